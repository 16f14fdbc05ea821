//go:build !modelcheck

package cowchangeset_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/cowchangeset"
)

// What Record has returned, the store has; and so with what was sealed.
func TestStore(t *testing.T) {
	tracker, m := kept(cowchangeset.Config[int]{})
	first, err := tracker.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		r, err := tracker.Record(i)
		if err != nil || first.Durable() <= r.Seq {
			t.Fatal(r, err, first.Durable())
		}
	}
	wantValues(t, m, "1", 0, 1, 2)
	if _, err := tracker.RecordBatch([]int{3, 4, 5}); err != nil {
		t.Fatal(err)
	}
	wantValues(t, m, "1", 0, 1, 2, 3, 4, 5)
	second, err := tracker.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := second.Record(7); err != nil {
		t.Fatal(err)
	}
	if f, err := second.Seal(t.Context()); err != nil || f.Len() != 1 {
		t.Fatal(f.Len(), err)
	}
	if err := tracker.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"1", "2"} {
		if !m.has(id).Sealed {
			t.Errorf("%s is not sealed in the store", id)
		}
	}
	n := len(m.called())
	if _, err := second.Seal(t.Context()); err != nil {
		t.Error(err)
	}
	if err := tracker.Flush(t.Context()); err != nil || len(m.called()) != n {
		t.Errorf("%v, and the store is told again: %v", err, m.called()[n:])
	}
	m.check(t)
}

// Records that come while the store is busy share its next call.
func TestStoreGroupsRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker, m := kept(cowchangeset.Config[int]{})
		tracker.Start(t.Context())
		m.faults(func(context.Context, string, string) error { time.Sleep(time.Second); return nil })
		var recorders sync.WaitGroup
		began := time.Now()
		for i := range 64 {
			recorders.Go(func() {
				if _, err := tracker.Record(i); err != nil {
					t.Error(err)
				}
			})
		}
		recorders.Wait()
		if d, n := time.Since(began), len(m.called())-1; d > 2*time.Second || n > 2 {
			t.Errorf("%v, with %d calls of the store", d, n)
		}
		m.check(t)
	})
}

// Recorders that wait for the store and record again share a call each time, and do not
// wait for two: the call after it does not begin before they have come back.
func TestStoreGroupsNextRecords(t *testing.T) {
	const recorders, each = 64, 50
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // with more, who runs first is chance
	synctest.Test(t, func(t *testing.T) {
		tracker, m := kept(cowchangeset.Config[int]{})
		tracker.Start(t.Context())
		m.faults(func(context.Context, string, string) error { time.Sleep(time.Second); return nil })
		began := time.Now()
		together(recorders, func(g int) {
			for range each {
				if _, err := tracker.Record(g); err != nil {
					t.Error(err)
				}
			}
		})
		if calls := time.Since(began) / time.Second; calls > each*6/5 {
			t.Errorf("%d calls of the store for %d records each", calls, each)
		}
		m.check(t)
	})
}

// Recorders share calls from the first one on: one that records again as soon as the store
// has returned does not keep the others from running.
func TestStoreGroupsFirstRecords(t *testing.T) {
	const recorders, each = 8, 50
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // with more, who runs first is chance
	tracker, m := kept(cowchangeset.Config[int]{})
	tracker.Start(t.Context())
	before := len(m.called())
	together(recorders, func(g int) {
		for range each {
			if _, err := tracker.Record(g); err != nil {
				t.Error(err)
			}
		}
	})
	if calls := len(m.called()) - before; calls > 2*each {
		t.Errorf("%d calls of the store for %d records of each of %d goroutines", calls, each, recorders)
	}
	m.check(t)
}

// A store that fails leaves everything in memory, says so, and is asked again
// with the same first entry.
func TestStoreFails(t *testing.T) {
	for name, fail := range map[string]func(context.Context, string, string) error{
		"error":  func(context.Context, string, string) error { return errDisk },
		"panic":  func(context.Context, string, string) error { panic(errDisk) },
		"Goexit": func(context.Context, string, string) error { runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			for when, set := range map[string]func(*memory, func(context.Context, string, string) error){
				"before": (*memory).faults, "after": (*memory).lateFaults,
			} {
				tracker, m := kept(cowchangeset.Config[int]{})
				c, _ := tracker.Start(t.Context())
				set(m, fail)
				want := errDisk
				if name != "error" {
					want = cowchangeset.ErrStore
				}
				var receipts []cowchangeset.Receipt
				for i := range 3 {
					r, err := tracker.Record(i)
					if receipts = append(receipts, r); !errors.Is(err, cowchangeset.ErrStore) || !errors.Is(err, want) {
						t.Fatalf("%s: %v", when, err)
					}
				}
				if c.Durable() != 0 || c.Len() != 3 || receipts[2] != (cowchangeset.Receipt{ChangesetID: "1", Ordinal: 1, Seq: 2}) {
					t.Errorf("%s: %d durable of %d, receipts %v", when, c.Durable(), c.Len(), receipts)
				}
				if _, err := tracker.Start(t.Context()); !errors.Is(err, cowchangeset.ErrStore) {
					t.Errorf("%s: %v", when, err)
				}
				if now, open := tracker.Current(); now != c || !open {
					t.Errorf("%s: a Start that failed changed the tracker", when)
				}
				if f, err := c.Seal(t.Context()); !errors.Is(err, cowchangeset.ErrStore) || f.Len() != 3 {
					t.Errorf("%s: %v, %d entries", when, err, f.Len())
				}
				if _, err := c.Record(9); err != cowchangeset.ErrSealed {
					t.Errorf("%s: %v", when, err)
				}
				if err := c.Apply(t.Context(), func(context.Context, cowchangeset.Final[int]) error { panic("applied") }); !errors.Is(err, cowchangeset.ErrStore) {
					t.Errorf("%s: %v", when, err)
				}
				set(m, nil)
				if _, err := tracker.Start(t.Context()); err != nil {
					t.Errorf("%s: %v", when, err)
				}
				if err := tracker.Flush(t.Context()); err != nil {
					t.Errorf("%s: %v", when, err)
				}
				wantValues(t, m, "1", 0, 1, 2)
				for _, call := range m.called() {
					if strings.HasPrefix(call, "Append 1 ") && !strings.HasPrefix(call, "Append 1 [{0 0}") {
						t.Errorf("%s: %s", when, call)
					}
				}
				if !m.has("1").Sealed || c.Durable() != 3 {
					t.Errorf("%s: %+v, %d durable", when, m.has("1"), c.Durable())
				}
				m.check(t)
			}
		})
	}
}

// A store that does not answer holds up nobody for longer than StoreTimeout, and
// is not called again before it has.
func TestStoreHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker, m := kept(cowchangeset.Config[int]{StoreTimeout: time.Minute})
		c, _ := tracker.Start(t.Context())
		m.faults(func(ctx context.Context, _, _ string) error {
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), cowchangeset.ErrStore) {
				t.Error(context.Cause(ctx))
			}
			time.Sleep(time.Hour)
			return nil
		})
		began := time.Now()
		_, err := tracker.Record(1)
		wantStoreError(t, err, "Append", cowchangeset.ErrStore)
		if d := time.Since(began); d != time.Minute {
			t.Errorf("Record took %v", d)
		}
		_, err = tracker.Record(2)
		wantStoreError(t, err, "Append", cowchangeset.ErrStore)
		if d := time.Since(began); d != time.Minute {
			t.Errorf("the next one waited too: %v", d)
		}
		_, err = tracker.Start(t.Context()) // another changeset's call, which hangs too
		wantStoreError(t, err, "Start", cowchangeset.ErrStore)
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = tracker.Start(short)
		wantStoreError(t, err, "wait", context.DeadlineExceeded)
		if f, err := c.Seal(t.Context()); f.Len() != 2 || !errors.Is(err, cowchangeset.ErrStore) {
			t.Error(f.Len(), err)
		}
		m.faults(nil)
		if err := tracker.Flush(t.Context()); !errors.Is(err, cowchangeset.ErrStore) {
			t.Error(err)
		}
		time.Sleep(2 * time.Hour)
		if err := tracker.Flush(t.Context()); err != nil {
			t.Error(err)
		}
		wantValues(t, m, "1", 1, 2)
		n, err := tracker.Start(t.Context())
		if err != nil || n.Ordinal() != 2 {
			t.Error(n, err)
		}
		m.check(t)
	})
}

// A caller's context ends its wait and no more.
func TestStoreWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker, m := kept(cowchangeset.Config[int]{Async: true, StoreTimeout: -1})
		c, _ := tracker.Start(t.Context())
		m.faults(func(context.Context, string, string) error { time.Sleep(time.Hour); return nil })
		if _, err := tracker.Record(1); err != nil {
			t.Fatal(err)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantStoreError(t, tracker.Flush(short), "wait", context.DeadlineExceeded)
		short, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		f, err := c.Seal(short)
		wantStoreError(t, err, "wait", context.DeadlineExceeded)
		if f.Len() != 1 {
			t.Error(f.Len())
		}
		if err := tracker.Flush(t.Context()); err != nil || !m.has("1").Sealed {
			t.Error(err)
		}

		// A Start that its caller has left does not come into being, although
		// the store says yes later; the next one takes its ordinal.
		short, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = tracker.Start(short)
		wantStoreError(t, err, "wait", context.DeadlineExceeded)
		n, err := tracker.Start(t.Context())
		if err != nil || n.Ordinal() != 2 || n.ID() != "3" || !slices.Equal(m.ids(), []string{"1", "3"}) {
			t.Error(n, err, m.ids())
		}
		m.check(t)
	})
}

// What a caller that has left was waiting for is tried again when the call of the store
// that it has begun fails.
func TestStoreTriesAgainForWhoHasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker, m := kept(cowchangeset.Config[int]{StoreTimeout: -1})
		tracker.Start(t.Context())
		failures := 1
		m.faults(func(context.Context, string, string) error {
			time.Sleep(time.Hour)
			if failures--; failures == 0 {
				return errDisk
			}
			return nil
		})
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := tracker.RecordContext(short, 1)
		wantStoreError(t, err, "wait", context.DeadlineExceeded)
		time.Sleep(3 * time.Hour)
		wantValues(t, m, "1", 1)
		m.check(t)
	})
}

// With Async the store is told soon, without anyone waiting, and nothing is
// forgotten.
func TestStoreAsync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker, m := kept(cowchangeset.Config[int]{Async: true})
		c, _ := tracker.Start(t.Context())
		m.faults(func(context.Context, string, string) error { time.Sleep(time.Second); return nil })
		began := time.Now()
		for i := range 10 {
			if _, err := tracker.Record(i); err != nil {
				t.Fatal(err)
			}
			time.Sleep(300 * time.Millisecond)
		}
		if d := time.Since(began); d != 3*time.Second || c.Durable() >= 10 {
			t.Errorf("%v, %d durable", d, c.Durable())
		}
		time.Sleep(5 * time.Second)
		wantValues(t, m, "1", 0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
		tracker.Start(t.Context())
		time.Sleep(5 * time.Second)
		if !m.has("1").Sealed {
			t.Error("the store was not told that the changeset is sealed")
		}
		m.check(t)
	})
}

// The store is told of changesets in their order, however many start at once.
func TestStoreStarts(t *testing.T) {
	tracker, m := kept(cowchangeset.Config[int]{})
	conflicts, failures := atomic.Int32{}, atomic.Int32{}
	m.faults(func(_ context.Context, method, id string) error {
		if method == "Start" && strings.HasSuffix(id, "3") {
			return errDisk
		}
		return nil
	})
	together(8, func(g int) {
		for range 50 {
			var err error
			if g%2 == 0 {
				_, err = tracker.Start(t.Context())
			} else {
				last, _ := tracker.Current()
				_, err = tracker.StartAfter(t.Context(), last)
			}
			switch {
			case err == nil:
				if _, err := tracker.Record(g); err != nil {
					t.Error(err)
				}
			case err == cowchangeset.ErrConflict:
				conflicts.Add(1)
			case errors.Is(err, errDisk):
				failures.Add(1)
			default:
				t.Error(err)
			}
		}
	})
	if err := tracker.Flush(t.Context()); err != nil {
		t.Error(err)
	}
	if ids := tracker.IDs(); !slices.Equal(ids, m.ids()) || len(ids) != 400-int(conflicts.Load()+failures.Load()) || failures.Load() == 0 {
		t.Errorf("%d changesets, %d in the store, %d conflicts, %d failures", len(ids), len(m.ids()), conflicts.Load(), failures.Load())
	}
	m.check(t)
}

func TestStoreSettings(t *testing.T) {
	if _, err := cowchangeset.New(cowchangeset.Config[int]{Async: true}); err == nil || !strings.HasPrefix(err.Error(), "cowchangeset: Config.Async") {
		t.Error(err)
	}
	if _, err := cowchangeset.Resume(t.Context(), cowchangeset.Config[int]{}); err == nil || !strings.HasPrefix(err.Error(), "cowchangeset: Config.Store") {
		t.Error(err)
	}
}

// A store that hangs does not make the tracker collect entries without bound: a Record waits for
// it, or is refused, and records nothing. When the store works again, Record does.
func TestStoreAsyncIsBounded(t *testing.T) {
	for name, tt := range map[string]struct {
		bound int
		want  uint64
	}{"by default": {0, 1 << 16}, "as set": {3, 3}} {
		for _, reject := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " reject ", reject), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					tracker, m := kept(cowchangeset.Config[int]{Async: true, MaxBacklog: tt.bound, RejectWhenFull: reject, StoreTimeout: time.Hour})
					c, _ := tracker.Start(t.Context())
					m.faults(func(ctx context.Context, _, _ string) error { <-ctx.Done(); return ctx.Err() })
					for i := range tt.want {
						if r, err := tracker.Record(int(i)); err != nil || r.Seq != i {
							t.Fatal(r, err)
						}
					}
					began := time.Now()
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					for what, record := range map[string]func() (cowchangeset.Receipt, error){
						"Record":             func() (cowchangeset.Receipt, error) { return tracker.Record(1) },
						"RecordContext":      func() (cowchangeset.Receipt, error) { return c.RecordContext(ctx, 1) },
						"RecordBatchContext": func() (cowchangeset.Receipt, error) { return tracker.RecordBatchContext(ctx, []int{1, 2}) },
					} {
						r, err := record()
						if ctx.Err() != nil && err == context.DeadlineExceeded {
							continue // it has come too late
						}
						if !errors.Is(err, cowchangeset.ErrBacklogFull) || errors.Is(err, cowchangeset.ErrStore) == reject || r != (cowchangeset.Receipt{}) || uint64(c.Len()) != tt.want {
							t.Error(what, r, err, c.Len())
						}
					}
					if d := time.Since(began); reject && d > 0 || d > time.Hour {
						t.Error("they took", d)
					}
					m.faults(nil)
					time.Sleep(2 * time.Hour) // until the call that hangs has ended
					if _, err := tracker.Record(1); !reject && err != nil {
						t.Error(err)
					}
					synctest.Wait()
					if r, err := tracker.Record(2); err != nil || r.Seq < tt.want {
						t.Error(r, err)
					}
					if err := tracker.Flush(t.Context()); err != nil || len(m.values("1")) != c.Len() {
						t.Error(err, len(m.values("1")), c.Len())
					}
					m.check(t)
				})
			})
		}
	}
}

// A Record that waits for room in a changeset that is sealed meanwhile goes to the next one.
func TestStoreAsyncGoesOnInTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker, m := kept(cowchangeset.Config[int]{Async: true, MaxBacklog: 1, StoreTimeout: time.Minute})
		tracker.Start(t.Context())
		m.faults(func(ctx context.Context, method, _ string) error {
			if method == "Append" {
				<-ctx.Done()
			}
			return ctx.Err()
		})
		tracker.Record(1)
		go tracker.Start(t.Context())
		if r, err := tracker.Record(2); err != nil || r.Ordinal != 2 {
			t.Error(r, err)
		}
		m.faults(nil)
		time.Sleep(time.Hour) // until the call that hangs has ended
		m.check(t)
	})
}

func TestBoundsOfAsync(t *testing.T) {
	for _, config := range []cowchangeset.Config[int]{
		{MaxBacklog: 1}, {MaxBacklog: -1}, {RejectWhenFull: true}, {Async: true, MaxBacklog: -1, RejectWhenFull: true},
	} {
		config.Store = newMemory()
		if _, err := cowchangeset.New(config); err == nil || !strings.HasPrefix(err.Error(), "cowchangeset: Config.") {
			t.Errorf("%+v: %v", config, err)
		}
	}
	tracker, _ := kept(cowchangeset.Config[int]{Async: true, MaxBacklog: -1, StoreTimeout: -1})
	tracker.Start(t.Context())
	tracker.Record(1)
}
