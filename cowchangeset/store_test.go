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
	"weak"

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

// Reported bug 18, mqlens: remains stay beside a retry; damage passes for a torn end.
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

// A store that has begun something with the context of a call learns that the call is over,
// long before StoreTimeout.
func TestContextsOfCallsEndWithThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker, m := forgetting(cowchangeset.Config[int]{StoreTimeout: time.Hour})
		var mu sync.Mutex
		given := map[string]context.Context{}
		m.faults(func(ctx context.Context, method, _ string) error {
			mu.Lock()
			defer mu.Unlock()
			given[method] = ctx
			return ctx.Err()
		})
		applied, _ := tracker.Start(t.Context())
		aborted, err := tracker.Start(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		tracker.Record(1)
		if err := errors.Join(applied.Apply(t.Context(), func(context.Context, final) error { return nil }), aborted.Abort(t.Context(), nil)); err != nil {
			t.Fatal(err)
		}
		mustStart(t, tracker, 1)
		tracker.Prune(1)
		synctest.Wait()
		if len(given) != 6 {
			t.Error(given)
		}
		for method, ctx := range given {
			if ctx.Err() != context.Canceled {
				t.Errorf("%s has returned, and its context has not ended: %v", method, ctx.Err())
			}
		}
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
							t.Error(r, err)
						}
						if i == 0 {
							synctest.Wait() // for the call that hangs: later ones void no slot
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

// A call that fails is no error of a Record that it came too early for: another call follows.
func TestStoreFailsForThoseItWasFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker, m := kept(cowchangeset.Config[int]{StoreTimeout: -1})
		tracker.Start(t.Context())
		goOn, returned, calls := make(chan struct{}), make(chan struct{}), 0
		m.faults(func(context.Context, string, string) error {
			if calls++; calls > 1 {
				<-returned // or the first Record might find its entry stored, and return no error
				return nil
			}
			<-goOn
			return errDisk
		})
		var errs [2]error
		for i := range errs {
			go func() {
				if _, errs[i] = tracker.Record(i); i == 0 {
					close(returned)
				}
			}()
			synctest.Wait()
		}
		close(goOn)
		if synctest.Wait(); !errors.Is(errs[0], errDisk) || errs[1] != nil || calls != 2 {
			t.Errorf("errors %v, %d calls", errs, calls)
		}
		m.check(t)
	})
}

// A Record at the bound waits for room, and not for all that is before it.
func TestStoreAsyncWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker, m := kept(cowchangeset.Config[int]{Async: true, MaxBacklog: 3, StoreTimeout: -1})
		c, _ := tracker.Start(t.Context())
		goOn := make(chan struct{})
		m.faults(func(_ context.Context, method, _ string) error {
			if method == "Append" {
				<-goOn
			}
			return nil
		})
		tracker.Record(0)
		synctest.Wait() // for the call with this entry alone
		tracker.Record(1)
		tracker.Record(2)
		recorded := 0
		go func() {
			for v := range 2 {
				tracker.Record(3 + v)
				recorded++
			}
		}()
		want := func(durable uint64, n int) {
			t.Helper()
			if synctest.Wait(); c.Durable() != durable || recorded != n {
				t.Errorf("%d were recorded when the store had %d; want %d and %d", recorded, c.Durable(), n, durable)
			}
		}
		want(0, 0)
		goOn <- struct{}{}
		want(1, 1) // and the next call, of all others, has begun
		close(goOn)
		if synctest.Wait(); recorded != 2 {
			t.Error("a Record still waits")
		}
		if err := tracker.Flush(t.Context()); err != nil {
			t.Error(err)
		}
		m.check(t)
	})
}

// A Record that is rejected only looks, and voids no slot of a writer that stalls.
func TestRejectedRecordOnlyLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker, m := kept(cowchangeset.Config[int]{Async: true, MaxBacklog: 1, RejectWhenFull: true, StoreTimeout: -1})
		c, _ := tracker.Start(t.Context())
		answer := make(chan struct{})
		m.faults(func(context.Context, string, string) error { <-answer; return nil })
		tracker.Record(1)
		synctest.Wait() // for the call, during which no other flush cuts
		w, _ := c.Reserve(2)
		if _, err := tracker.Record(3); err != cowchangeset.ErrBacklogFull {
			t.Error(err)
		}
		if !w.Put() {
			t.Error("another writer has lost its slot")
		}
		close(answer)
		synctest.Wait()
		wantValues(t, m, "1", 1, 2)
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
	synctest.Test(t, func(t *testing.T) { // a store that hangs holds up nobody where there is no bound
		tracker, m := kept(cowchangeset.Config[int]{Async: true, MaxBacklog: -1, StoreTimeout: -1})
		c, _ := tracker.Start(t.Context())
		hang := make(chan struct{})
		m.faults(func(context.Context, string, string) error { <-hang; return nil })
		var last uint64 // 9, or more where a flush cut while a Record was under way
		for i := range 10 {
			r, err := tracker.Record(i)
			if last = r.Seq; err != nil || c.Durable() != 0 {
				t.Error(err, c.Durable())
			}
		}
		close(hang)
		if err := tracker.Flush(t.Context()); err != nil || c.Durable() != last+1 {
			t.Error(err, c.Durable(), last)
		}
	})
}

// A Record into a sealed changeset is refused for that, however far the store is behind.
func TestSealedComesBeforeFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker, m := kept(cowchangeset.Config[int]{Async: true, MaxBacklog: 1, RejectWhenFull: true, StoreTimeout: time.Nanosecond})
		c, _ := tracker.Start(t.Context())
		m.faults(func(ctx context.Context, _, _ string) error { <-ctx.Done(); return ctx.Err() })
		c.Record(1)
		if _, err := c.Record(2); err != cowchangeset.ErrBacklogFull {
			t.Error(err)
		}
		_, err := c.Seal(t.Context())
		if !errors.Is(err, cowchangeset.ErrStoreTimeout) {
			t.Error(err)
		}
		if _, err := c.Record(2); err != cowchangeset.ErrSealed {
			t.Error(err)
		}
		m.faults(nil)
		time.Sleep(time.Second) // until the call that hangs has ended
		if err := tracker.Flush(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// failing returns a fault of one method.
func failing(method string) func(context.Context, string, string) error {
	return func(_ context.Context, m, _ string) error {
		if m == method {
			return errDisk
		}
		return nil
	}
}

// A batch that was voided leaves a gap, however large, that takes no memory.
func TestResumeAcrossLargeGaps(t *testing.T) {
	tracker, m := kept(cowchangeset.Config[int]{})
	c, _ := tracker.Start(t.Context())
	for _, n := range []int{1, 3, 300, 1<<17 + 1} {
		w, _ := c.Reserve(make([]int, n)...)
		c.Len() // a cut voids it
		if w.PutAll() {
			t.Fatal("not voided")
		}
		if _, err := tracker.RecordBatch([]int{n, -n}); err != nil {
			t.Fatal(err)
		}
	}
	again, err := cowchangeset.Resume(t.Context(), cowchangeset.Config[int]{Store: m})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(everything(again)), fmt.Sprint(everything(tracker)); got != want {
		t.Errorf("resumed %s, want %s", got, want)
	}
	if r, err := again.Record(9); err != nil || r.Seq != 2*4+1+3+300+1<<17+1 {
		t.Error(r, err)
	}
	if c, _ := again.Current(); c.Chunks() > 20 {
		t.Errorf("%d chunks", c.Chunks())
	}
	m.check(t)
}

// What is recorded during a call that fails is told by the next one.
func TestStoreAsyncGoesOnAfterAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker, m := kept(cowchangeset.Config[int]{Async: true})
		tracker.Start(t.Context())
		calls := 0
		m.faults(func(ctx context.Context, _, _ string) error {
			if calls++; calls == 1 {
				<-ctx.Done() // hangs once, and is healthy then
				return ctx.Err()
			}
			return nil
		})
		tracker.Record(0)
		synctest.Wait()
		for i := range 5 {
			if _, err := tracker.Record(i + 1); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(24 * time.Hour)
		wantValues(t, m, "1", 0, 1, 2, 3, 4, 5)
		m.check(t)
	})
}

// What piles up during a call is told in calls of bounded length, and all of it,
// though nobody records or waits any more.
func TestStoreAsyncCatchesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const backlog = 10_000
		tracker, m := kept(cowchangeset.Config[int]{Async: true})
		c, _ := tracker.Start(t.Context())
		blocked := make(chan struct{})
		m.faults(func(context.Context, string, string) error { <-blocked; return nil })
		for i := range backlog {
			tracker.Record(i)
		}
		close(blocked)
		synctest.Wait()
		calls := 0
		for _, call := range m.calls {
			if strings.HasPrefix(call, "Append") {
				calls++
			}
		}
		if n := len(m.values("1")); n != backlog || c.Durable() < backlog || calls < 3 || calls > 5 {
			t.Errorf("the store has %d, %d are durable, %d calls", n, c.Durable(), calls)
		}
		m.check(t)
	})
}

// ApplyEach is one entry ahead of the store at most.
func TestApplyEachWaitsForTheStore(t *testing.T) {
	tracker, m := kept(cowchangeset.Config[int]{})
	c, _ := tracker.Start(t.Context())
	tracker.RecordBatch([]int{0, 1, 2, 3})
	m.faults(failing("Applied"))
	ran := map[int]int{}
	fn := func(_ context.Context, _ uint64, v int) error { ran[v]++; return nil }
	for range 3 {
		if err := c.ApplyEach(t.Context(), fn); !errors.Is(err, errDisk) {
			t.Error(err)
		}
	}
	m.faults(nil)
	again, err := cowchangeset.Resume(t.Context(), cowchangeset.Config[int]{Store: m})
	if err != nil {
		t.Fatal(err)
	}
	c, _ = again.Current()
	c.ApplyEach(t.Context(), fn)
	twice := 0
	for _, n := range ran {
		if n > 1 {
			twice++
		}
	}
	if twice > 1 || len(ran) != 4 {
		t.Errorf("applied %v", ran)
	}
}

// A Start behind one whose store hangs waits no longer than StoreTimeout.
func TestStoreStartBehindOneThatHangs(t *testing.T) {
	for _, timeout := range []time.Duration{time.Minute, time.Nanosecond} {
		synctest.Test(t, func(t *testing.T) {
			tracker, m := kept(cowchangeset.Config[int]{StoreTimeout: timeout})
			tracker.Start(t.Context())
			never := make(chan struct{})
			m.faults(func(context.Context, string, string) error { <-never; return nil })
			for _, method := range []string{"Start", "wait"} {
				began := time.Now()
				_, err := tracker.Start(t.Context())
				wantStoreError(t, err, method, cowchangeset.ErrStore)
				if d := time.Since(began); d != timeout {
					t.Errorf("%s: %v", method, d)
				}
			}
			close(never)
			synctest.Wait()
			m.faults(nil)
			if _, err := tracker.Start(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// evilContext panics where it is waited for.
type evilContext struct{ context.Context }

func (evilContext) Done() <-chan struct{} { panic("evil") }

// Whatever ends a Start, the next one has its turn; and whatever a panic's value
// does, nobody waits for it.
func TestStoreEvilUsers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker, m := kept(cowchangeset.Config[int]{})
		panicOf(func() { tracker.Start(evilContext{context.Background()}) })
		c, err := tracker.Start(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		m.faults(func(context.Context, string, string) error { panic(evilPanic{}) })
		if _, err := c.Seal(t.Context()); !errors.Is(err, cowchangeset.ErrStore) {
			t.Error("Seal succeeded")
		}
	})
}

type evilPanic struct{}

func (evilPanic) Error() string { runtime.Goexit(); return "" }

// A Record waits for its entry, and not for what the store is told after it.
func TestStoreRecordDoesNotWaitForSeal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker, m := kept(cowchangeset.Config[int]{StoreTimeout: -1})
		c, _ := tracker.Start(t.Context())
		gate, never := make(chan struct{}), make(chan struct{})
		m.faults(func(_ context.Context, method, _ string) error {
			switch method {
			case "Append":
				<-gate
			case "Seal":
				<-never
			}
			return nil
		})
		returned := make(chan error, 2)
		for v := range 2 {
			go func() { _, err := tracker.Record(v); returned <- err }()
			synctest.Wait()
		}
		go c.Seal(t.Context())
		synctest.Wait()
		gate <- struct{}{}
		synctest.Wait()
		gate <- struct{}{}
		synctest.Wait()
		if c.Durable() != 2 || len(returned) != 2 {
			t.Errorf("%d durable, %d returned", c.Durable(), len(returned))
		}
		close(never)
	})
}

// A changeset that the store refuses keeps no other one out, and Prune tries
// again what has failed.
func TestStoreOneChangesetFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker, m := kept(cowchangeset.Config[int]{Async: true})
		failed := false
		m.faults(func(_ context.Context, method, id string) error {
			if method == "Append" && (id == "1" || !failed) {
				failed = failed || id == "2"
				return errDisk
			}
			return nil
		})
		for v := range 2 {
			tracker.Start(t.Context())
			synctest.Wait()
			tracker.Record(v)
			synctest.Wait()
		}
		if err := tracker.Flush(t.Context()); !errors.Is(err, errDisk) {
			t.Error(err)
		}
		wantValues(t, m, "2", 1)
		m.faults(nil)
		tracker.Start(t.Context())
		for range 4 {
			tracker.Prune(1)
			synctest.Wait()
		}
		if ids := tracker.IDs(); len(ids) != 1 {
			t.Errorf("%v are left", ids)
		}
		m.check(t)
	})
}

// No link leads back to what Prune has forgotten.
func TestPruneCutsAllLinks(t *testing.T) {
	tracker := cowchangeset.MustNew(cowchangeset.Config[*[1 << 16]byte]{PruneUnapplied: true})
	var held *cowchangeset.Changeset[*[1 << 16]byte]
	var first weak.Pointer[[1 << 16]byte]
	for i := range 4 {
		c, _ := tracker.Start(t.Context())
		e := new([1 << 16]byte)
		if i == 0 {
			first = weak.Make(e)
		}
		if i == 2 {
			held = c
		}
		tracker.Record(e)
	}
	tracker.Prune(1)
	if p := held.Previous(); p != nil {
		t.Errorf("Previous returns number %d", p.Ordinal())
	}
	for began := time.Now(); first.Value() != nil; runtime.GC() {
		if time.Since(began) > time.Minute {
			t.Fatal("the first is kept, though only the third is held")
		}
	}
	runtime.KeepAlive(held)
	runtime.KeepAlive(tracker)
}

// Nothing is applied, and no Follow goes on, when the context has ended.
func TestContextsEndInTime(t *testing.T) {
	tracker, m := kept(cowchangeset.Config[int]{})
	c, _ := tracker.Start(t.Context())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	m.faults(func(_ context.Context, method, _ string) error {
		if method == "Seal" {
			cancel()
		}
		return nil
	})
	if err := c.Apply(ctx, func(context.Context, final) error { panic("called") }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	_, c = opened(t, 1, 2, 3)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	n := 0
	for range c.Follow(ctx, 0) {
		n++
		leave()
	}
	if n != 1 {
		t.Errorf("%d entries after the end", n-1)
	}
}

// A Start that has left, as its context has ended, is in line no longer, though the store hangs.
func TestStartsLeaveTheLine(t *testing.T) {
	for _, timeout := range []time.Duration{0, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			tracker, m := kept(cowchangeset.Config[int]{StoreTimeout: timeout})
			goOn := make(chan struct{})
			m.faults(func(context.Context, string, string) error { <-goOn; return nil })
			go tracker.Start(t.Context())
			synctest.Wait()
			before := goroutines()
			for range 10 {
				ctx, leave := context.WithTimeout(t.Context(), time.Second)
				if _, err := tracker.Start(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
				leave()
			}
			synctest.Wait()
			if n := goroutines() - before; n > 0 {
				t.Errorf("%d goroutines wait for those who have left, with a timeout of %v", n, timeout)
			}
			close(goOn)
		})
	}
}

// goroutines counts those of the process, without any that synctest.Wait takes for dead and that has
// not left yet: the world does not stop for ReadMemStats before it has.
func goroutines() int {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return runtime.NumGoroutine()
}

// A failure names the method that has failed.
func TestStoreErrorsNameTheMethod(t *testing.T) {
	for _, method := range []string{"Append", "Seal", "Abort", "Applied"} {
		tracker, m := kept(cowchangeset.Config[int]{})
		c, _ := tracker.Start(t.Context())
		m.faults(func(_ context.Context, name, _ string) error {
			if name == method {
				panic(errDisk)
			}
			return nil
		})
		_, err := tracker.Record(1)
		if method == "Seal" {
			_, err = c.Seal(t.Context())
		}
		if method == "Abort" {
			err = c.Abort(t.Context(), nil)
		}
		if method == "Applied" {
			err = c.Apply(t.Context(), func(context.Context, final) error { return nil })
		}
		wantStoreError(t, err, method, errDisk)
		if s := new(cowchangeset.StoreError); !errors.As(err, &s) || s.ChangesetID != c.ID() {
			t.Errorf("%v, want an error of %q", err, c.ID())
		}
	}
}

// A store that waits for itself waits for StoreTimeout, and for no longer.
func TestStoreCallsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker, m := kept(cowchangeset.Config[int]{StoreTimeout: time.Second})
		c, _ := tracker.Start(t.Context())
		waits := map[string]func() error{
			"Append": func() error { _, err := tracker.Record(2); return err },
			"Seal":   func() error { return tracker.Flush(t.Context()) },
			"Start":  func() error { _, err := tracker.Start(t.Context()); return err },
		}
		var mu sync.Mutex // methods run on several goroutines
		m.faults(func(_ context.Context, method, _ string) error {
			mu.Lock()
			wait := waits[method]
			delete(waits, method)
			mu.Unlock()
			if wait != nil {
				if err := wait(); !errors.Is(err, cowchangeset.ErrStore) {
					t.Errorf("in %s: %v", method, err)
				}
			}
			return nil
		})
		began := time.Now()
		tracker.Record(1)
		tracker.Start(t.Context())
		c.Seal(t.Context())
		synctest.Wait()
		if d := time.Since(began); len(waits) > 0 || d > 3*time.Second {
			t.Errorf("%v, and %d were not called", d, len(waits))
		}
		if _, err := tracker.Start(t.Context()); err != nil {
			t.Error(err)
		}
		if err := tracker.Flush(t.Context()); err != nil || c.Durable() != 2 {
			t.Error(err, c.Durable())
		}
		m.check(t)
	})
}

// stallingContext stalls whoever asks when it ends.
type stallingContext struct {
	context.Context
	stalls chan struct{}
}

func (c stallingContext) Done() <-chan struct{} {
	<-c.stalls
	return nil
}

// A Start that stalls in its caller's context holds up no other, whether it is in
// line, has its turn, or is the store's.
func TestStoreStartStallsInItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker, m := kept(cowchangeset.Config[int]{StoreTimeout: time.Second})
		first, _ := tracker.Start(t.Context())
		stalls, gate := make(chan struct{}), make(chan struct{})
		var starters sync.WaitGroup
		stalling := func(start func(context.Context) (*cowchangeset.Changeset[int], error), want error) {
			starters.Go(func() {
				if _, err := start(stallingContext{context.Background(), stalls}); err != want {
					t.Errorf("%v, want %v", err, want)
				}
			})
			synctest.Wait()
		}
		m.faults(func(context.Context, string, string) error { <-gate; return nil })
		stalling(tracker.Start, nil)
		stalling(tracker.Start, nil)
		stalling(func(ctx context.Context) (*cowchangeset.Changeset[int], error) {
			return tracker.StartAfter(ctx, first)
		}, cowchangeset.ErrConflict)
		close(gate)
		for range 3 {
			if _, err := tracker.Start(t.Context()); err != nil {
				t.Error(err)
			}
		}
		close(stalls)
		starters.Wait()
		if got := tracker.IDs(); len(got) != 6 || !slices.Equal(got, m.ids()) {
			t.Errorf("started %v, and the store has %v", got, m.ids())
		}
		m.check(t)
	})
}

// A Start that has stalled in its context for too long hears of the store's
// failure, and one that comes after it starts what it would have started.
func TestStoreStartStallsAndFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker, m := kept(cowchangeset.Config[int]{StoreTimeout: time.Second})
		stalls, failed := make(chan struct{}), make(chan error)
		m.faults(failing("Start"))
		go func() {
			_, err := tracker.Start(stallingContext{context.Background(), stalls})
			failed <- err
		}()
		synctest.Wait()
		m.faults(nil)
		if c, err := tracker.Start(t.Context()); err != nil || c.Ordinal() != 1 {
			t.Error(c, err)
		}
		close(stalls)
		if err := <-failed; !errors.Is(err, errDisk) {
			t.Error(err)
		}
		m.check(t)
	})
}

// hostileContext does what it does to whoever asks when it ends.
type hostileContext struct {
	context.Context
	do func()
}

func (c hostileContext) Done() <-chan struct{} {
	c.do()
	return nil
}

// What a caller has to tell the store, it is told, also when the caller's context
// panics, ends its goroutine or stalls while another call is on.
func TestStoreIsNotifiedInSpiteOfContexts(t *testing.T) {
	for name, how := range map[string]func(stalls chan struct{}){
		"panics": func(chan struct{}) { panic(errDisk) },
		"exits":  func(chan struct{}) { runtime.Goexit() },
		"stalls": func(stalls chan struct{}) { <-stalls },
	} {
		synctest.Test(t, func(t *testing.T) {
			tracker, m := kept(cowchangeset.Config[int]{StoreTimeout: -1})
			c, _ := tracker.Start(t.Context())
			gate, stalls := make(chan struct{}), make(chan struct{})
			m.faults(func(context.Context, string, string) error { <-gate; return nil })
			go tracker.Record(1)
			synctest.Wait()
			bad := hostileContext{context.Background(), func() { how(stalls) }}
			for _, call := range []func(){
				func() { tracker.RecordContext(bad, 2) },
				func() { c.Abort(bad, nil) },
			} {
				go func() {
					defer func() { recover() }()
					call()
				}()
				synctest.Wait()
			}
			close(gate)
			synctest.Wait()
			if got := m.called(); c.Durable() != 2 || !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, "Abort") }) {
				t.Errorf("%s: durable up to %d, and the store has heard %q", name, c.Durable(), got)
			}
			close(stalls)
			m.check(t)
		})
	}
}

// An Apply waits for a store that hangs no longer than its context lasts. What its
// function has done counts, and another Apply tells the store.
func TestApplyLeavesAStoreThatHangs(t *testing.T) {
	for _, timeout := range []time.Duration{-1, time.Minute} {
		for _, each := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				tracker, m := kept(cowchangeset.Config[int]{StoreTimeout: timeout})
				c, _ := tracker.Start(t.Context())
				tracker.RecordBatch([]int{1, 2})
				answer := make(chan struct{})
				m.faults(func(_ context.Context, method, _ string) error {
					if method == "Applied" {
						<-answer
					}
					return nil
				})
				ran := 0
				apply := func(ctx context.Context) error {
					if each {
						return c.ApplyEach(ctx, func(context.Context, uint64, int) error { ran++; return nil })
					}
					return c.Apply(ctx, func(context.Context, final) error { ran += 2; return nil })
				}
				for range 2 { // the second finds the first's work not told yet
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					began := time.Now()
					err := apply(ctx)
					cancel()
					var failed *cowchangeset.StoreError
					if !errors.As(err, &failed) || failed.Method != "wait" || !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
						t.Errorf("each %v: %v after %v", each, err, time.Since(began))
					}
				}
				applied, want, once := c.Applied(), cowchangeset.AllApplied, 2
				if each {
					want, once = 1, 1 // no further than one entry ahead of the store
				}
				if applied != want || ran != once {
					t.Errorf("each %v: applied up to %d, %d entries", each, applied, ran)
				}
				if pending := slices.Collect(tracker.Pending()); len(pending) != 1 {
					t.Errorf("each %v: %d are pending", each, len(pending))
				}
				close(answer)
				if err := apply(t.Context()); err != nil {
					t.Error(err)
				}
				if ran != 2 || m.has("1").Applied != cowchangeset.AllApplied {
					t.Errorf("each %v: %d entries were applied, and the store knows %d", each, ran, m.has("1").Applied)
				}
				if err := apply(t.Context()); err != cowchangeset.ErrApplied {
					t.Error(err)
				}
				m.check(t)
			})
		}
	}
}

// Every caller stops waiting for a store that hangs when its own context ends.
func TestCallersLeaveAStoreThatHangs(t *testing.T) {
	type world struct {
		tracker *cowchangeset.Tracker[int]
		c       *cowchangeset.Changeset[int]
	}
	nothing := func(context.Context, final) error { return nil }
	for what, call := range map[string]func(ctx context.Context, w world) error{
		"Apply": func(ctx context.Context, w world) error { return w.c.Apply(ctx, nothing) },
		"ApplyEach": func(ctx context.Context, w world) error {
			return w.c.ApplyEach(ctx, func(context.Context, uint64, int) error { return nil })
		},
		"Abort": func(ctx context.Context, w world) error { return w.c.Abort(ctx, nil) },
		"Apply of an aborted one": func(ctx context.Context, w world) error {
			done, cancel := context.WithTimeout(ctx, time.Millisecond)
			defer cancel()
			w.c.Abort(done, nil)
			return w.c.Apply(ctx, nothing)
		},
		"RecordContext": func(ctx context.Context, w world) error { _, err := w.tracker.RecordContext(ctx, 2); return err },
		"RecordBatchContext": func(ctx context.Context, w world) error {
			_, err := w.tracker.RecordBatchContext(ctx, []int{2})
			return err
		},
		"Changeset.RecordContext": func(ctx context.Context, w world) error { _, err := w.c.RecordContext(ctx, 2); return err },
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tracker, m := kept(cowchangeset.Config[int]{Async: true, MaxBacklog: 1, StoreTimeout: time.Hour})
				c, _ := tracker.Start(t.Context())
				answer := make(chan struct{})
				m.faults(func(context.Context, string, string) error { <-answer; return nil })
				tracker.Record(1)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				began := time.Now()
				if err := call(ctx, world{tracker, c}); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
					t.Errorf("%v after %v", err, time.Since(began))
				}
				close(answer)
				synctest.Wait()
			})
		})
	}
}

// A Record that is rejected after a failure makes the tracker try again.
func TestRejectedRecordTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker, m := kept(cowchangeset.Config[int]{Async: true, MaxBacklog: 1, RejectWhenFull: true})
		c, _ := tracker.Start(t.Context())
		m.faults(func(context.Context, string, string) error { return errDisk })
		tracker.Record(1)
		synctest.Wait()
		m.faults(nil)
		if _, err := tracker.Record(2); err != cowchangeset.ErrBacklogFull {
			t.Error(err)
		}
		if synctest.Wait(); c.Durable() != 1 {
			t.Error("nobody has tried again")
		}
	})
}

// A Flush whose context is done does not say that the store knows what was forgotten.
func TestFlushInAContextThatIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker, m := forgetting(cowchangeset.Config[int]{StoreTimeout: time.Hour})
		c, _ := tracker.Start(t.Context())
		mustStart(t, tracker, 1)
		if err := errors.Join(c.Abort(t.Context(), nil), tracker.Flush(t.Context())); err != nil {
			t.Fatal(err)
		}
		answer := make(chan struct{})
		m.faults(func(context.Context, string, string) error { <-answer; return nil })
		tracker.Prune(1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for range 2 { // the second time it is done beforehand
			if err := tracker.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		}
		close(answer)
		synctest.Wait()
	})
}

// A Flush whose context has ended looks at no further changesets.
func TestFlushEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker, m := kept(cowchangeset.Config[int]{Async: true, StoreTimeout: -1})
		answer := make(chan struct{})
		m.faults(func(_ context.Context, method, _ string) error {
			if method == "Append" {
				<-answer
			}
			return nil
		})
		for range 3 {
			mustStart(t, tracker, 1)
			tracker.Record(1)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := tracker.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "\n") {
			t.Error("not one error:", err)
		}
		close(answer)
		synctest.Wait()
	})
}

// After a failure in an older changeset the next Record, Start or Prune asks the store again, though nobody records
// there any more: a crash would lose what it has.
func TestOlderChangesetsAreTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker, m := kept(cowchangeset.Config[int]{Async: true})
		first, _ := tracker.Start(t.Context())
		m.faults(func(_ context.Context, method, id string) error {
			if method == "Append" {
				return errDisk
			}
			return nil
		})
		tracker.Record(1)
		synctest.Wait()
		tracker.Start(t.Context()) // tries again, and fails again
		synctest.Wait()
		m.faults(nil) // the store is healthy from now on
		for i := range 100 {
			if _, err := tracker.Record(2 + i); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			if i%10 == 9 {
				tracker.Start(t.Context())
			}
		}
		if got := m.values("2"); len(got) != 10 {
			t.Fatal(got)
		}
		if d := first.Durable(); d != 1 || len(m.values("1")) != 1 || !m.has("1").Sealed {
			t.Errorf("after 100 more Records and 10 more Starts the store still has not entry 1: %+v, durable %d", m.has("1"), d)
		}
		again, err := cowchangeset.Resume(t.Context(), cowchangeset.Config[int]{Store: m}) // as after a crash
		if err != nil {
			t.Fatal(err)
		}
		if c, _ := again.ByOrdinal(1); c.Len() != 1 {
			t.Errorf("changeset 1 was resumed with %d entries, sealed %v; changeset 2 with all", c.Len(), c.IsSealed())
		}
	})
}

// The same without Async: the store hears of a Seal later.
func TestSealsAreTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker, m := kept(cowchangeset.Config[int]{})
		tracker.Start(t.Context())
		tracker.Record(1)
		m.faults(failing("Seal"))
		tracker.Start(t.Context())
		synctest.Wait()
		m.faults(nil)
		for i := range 100 {
			tracker.Record(2 + i)
			time.Sleep(time.Minute)
			if i%10 == 9 {
				tracker.Start(t.Context())
			}
		}
		if !m.has("1").Sealed || !m.has("2").Sealed {
			t.Errorf("the store knows that 2 is sealed: %v, and that 1 is: %v", m.has("2").Sealed, m.has("1").Sealed)
		}
	})
}

// While the store fails, each Record tries one older changeset again; when it does not, one Record is enough for all.
func TestOlderChangesetsAreTriedOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker, m := kept(cowchangeset.Config[int]{Async: true})
		tracker.Start(t.Context()) // the oldest one lacks nothing
		tracker.Record(0)
		synctest.Wait()
		var failed atomic.Int64
		m.faults(func(_ context.Context, method, _ string) error {
			if method == "Append" {
				failed.Add(1)
				return errDisk
			}
			return nil
		})
		for i := range 20 {
			tracker.Start(t.Context())
			tracker.Record(i)
			synctest.Wait()
		}
		before := failed.Load()
		tracker.Record(20)
		synctest.Wait()
		if n := failed.Load() - before; n != 2 {
			t.Errorf("a Record has called Append %d times, want for its own changeset and another one", n)
		}
		m.faults(nil)
		tracker.Record(21)
		synctest.Wait()
		for _, c := range tracker.All() {
			if c.Durable() != uint64(c.Len()) {
				t.Errorf("of changeset %d the store has %d entries, and there are %d", c.Ordinal(), c.Durable(), c.Len())
			}
		}
		if cowchangeset.RetriesOlder(tracker) {
			t.Error("each Record still looks for older changesets, and the store has all")
		}
	})
}

// A changeset that the store never takes keeps no other back.
func TestRefusedChangesetKeepsNoOtherBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker, m := kept(cowchangeset.Config[int]{Async: true})
		m.faults(failing("Append"))
		for i := range 4 {
			tracker.Start(t.Context())
			tracker.Record(i)
			synctest.Wait()
		}
		m.faults(func(_ context.Context, method, id string) error {
			if method == "Append" && id == "1" {
				return errDisk
			}
			return nil
		})
		for range 2 { // the first one may try the changeset that is refused
			tracker.Record(4)
			synctest.Wait()
		}
		for n, c := range tracker.All() {
			if lacks := c.Durable() != uint64(c.Len()); lacks != (n == 1) {
				t.Errorf("of changeset %d the store has %d entries, and there are %d", n, c.Durable(), c.Len())
			}
		}
	})
}
