//go:build !modelcheck

package cowchangeset_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/cowchangeset"
)

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
func TestStoreIsToldInSpiteOfContexts(t *testing.T) {
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
