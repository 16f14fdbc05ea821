//go:build !modelcheck

package cowchangeset_test

import (
	"context"
	"errors"
	"slices"
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
