//go:build !modelcheck

package cowchangeset_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/cowchangeset"
)

// Starts have their turns in the order in which they have come, and those that
// leave the line hold up nobody.
func TestStoreStartsInLine(t *testing.T) {
	for name, leave := range map[string][]int{
		"nobody leaves": nil, "first": {0}, "middle": {4, 3}, "last": {9}, "all but one": {9, 0, 4, 3, 2, 5, 6, 8, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tracker, m := kept(cowchangeset.Config[int]{StoreTimeout: -1})
				gate := make(chan struct{})
				m.faults(func(context.Context, string, string) error { <-gate; return nil })
				var starters sync.WaitGroup
				start := func(ctx context.Context) {
					starters.Go(func() {
						if _, err := tracker.Start(ctx); (err == nil) != (ctx.Err() == nil) {
							t.Error(err)
						}
					})
					synctest.Wait()
				}
				start(t.Context()) // has the turn
				want := []string{"1"}
				var cancels []context.CancelFunc
				for i := range 10 {
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					cancels = append(cancels, cancel)
					start(ctx)
					if !slices.Contains(leave, i) {
						want = append(want, fmt.Sprint(i+2))
					}
				}
				for _, i := range leave {
					cancels[i]()
					synctest.Wait()
				}
				close(gate)
				starters.Wait()
				if got := m.ids(); !slices.Equal(got, want) || !slices.Equal(got, tracker.IDs()) {
					t.Errorf("started %v, want %v", got, want)
				}
				m.check(t)
			})
		})
	}
}

// However somebody leaves the line, those behind have their turns.
func TestStoreStartsLeftInLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker, m := kept(cowchangeset.Config[int]{StoreTimeout: -1})
		gate := make(chan struct{})
		m.faults(func(context.Context, string, string) error { <-gate; return nil })
		go tracker.Start(t.Context())
		synctest.Wait()
		for _, exit := range []bool{false, true} {
			left := make(chan struct{})
			go func() {
				defer close(left)
				defer func() { recover() }()
				tracker.Start(exitContext{context.Background(), exit})
			}()
			<-left
		}
		last := make(chan error)
		go func() { _, err := tracker.Start(t.Context()); last <- err }()
		close(gate)
		if err := <-last; err != nil || len(m.ids()) != 2 {
			t.Error(err, m.ids())
		}
		m.check(t)
	})
}

// exitContext panics where it is waited for, or ends the goroutine.
type exitContext struct {
	context.Context
	exit bool
}

func (c exitContext) Done() <-chan struct{} {
	if c.exit {
		runtime.Goexit()
	}
	panic("exit")
}

// A context that has ended and panics when it is asked for its cause ends a Start,
// and keeps no turn, in line or not.
func TestStoreStartsCauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker, m := kept(cowchangeset.Config[int]{StoreTimeout: -1})
		gate := make(chan struct{})
		m.faults(func(context.Context, string, string) error { <-gate; return nil })
		for range 2 {
			if panicOf(func() { tracker.Start(&causeContext{Context: t.Context()}) }) != "cause" {
				t.Error("no panic")
			}
		}
		started := make(chan error)
		go func() { _, err := tracker.Start(t.Context()); started <- err }()
		synctest.Wait()
		close(gate)
		if err := <-started; err != nil || len(m.ids()) != 1 {
			t.Error(err, m.ids())
		}
		m.check(t)
	})
}

// causeContext ends when it is first waited for.
type causeContext struct {
	context.Context
	ended bool
}

func (c *causeContext) Done() <-chan struct{} {
	c.ended = true
	done := make(chan struct{})
	close(done)
	return done
}

func (c *causeContext) Err() error {
	if c.ended {
		return context.Canceled
	}
	return nil
}

func (c *causeContext) Value(any) any { panic("cause") }

// Whoever retries behind a store that hangs leaves nothing behind.
func TestStoreStartsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker, m := kept(cowchangeset.Config[int]{StoreTimeout: time.Second})
		gate := make(chan struct{})
		m.faults(func(context.Context, string, string) error { <-gate; return nil })
		for range 1000 {
			if _, err := tracker.Start(t.Context()); !errors.Is(err, cowchangeset.ErrStore) || !errors.Is(err, cowchangeset.ErrStoreTimeout) {
				t.Fatal(err)
			}
		}
		if n := tracker.InLine(); n > 3 {
			t.Errorf("%d turns are kept", n)
		}
		close(gate)
		synctest.Wait()
		if _, err := tracker.Start(t.Context()); err != nil {
			t.Error(err)
		}
		m.check(t)
	})
}

// The store knows how much time it has.
func TestStoreDeadline(t *testing.T) {
	for _, timeout := range []time.Duration{-1, 0, time.Second} {
		synctest.Test(t, func(t *testing.T) {
			tracker, m := kept(cowchangeset.Config[int]{StoreTimeout: timeout})
			m.faults(func(ctx context.Context, method, _ string) error {
				want := timeout
				if timeout == 0 {
					want = time.Minute
				}
				if at, ok := ctx.Deadline(); ok != (timeout >= 0) || ok && time.Until(at) != want {
					t.Errorf("%s has until %v, %t, of %v", method, at, ok, want)
				}
				if timeout >= 0 {
					<-ctx.Done()
					if ctx.Err() != context.DeadlineExceeded {
						t.Error(ctx.Err())
					}
					return ctx.Err()
				}
				return nil
			})
			if timeout < 0 {
				c, _ := tracker.Start(t.Context())
				tracker.Record(1)
				c.Seal(t.Context())
			} else {
				_, err := tracker.Start(t.Context())
				wantStoreError(t, err, "Start", cowchangeset.ErrStoreTimeout)
				if errors.Is(err, context.DeadlineExceeded) { // it was not the caller's
					t.Error(err)
				}
			}
			if len(m.called()) == 0 {
				t.Error("not called")
			}
			m.check(t)
		})
	}
}

// Whoever stops waiting has been heard: when the call returns that was on, the
// store is told of the rest.
func TestStoreIsNotifiedWhenNobodyWaits(t *testing.T) {
	for name, leave := range map[string]func(ctx context.Context, tracker *cowchangeset.Tracker[int], c *cowchangeset.Changeset[int]) error{
		"Seal": func(ctx context.Context, _ *cowchangeset.Tracker[int], c *cowchangeset.Changeset[int]) error {
			_, err := c.Seal(ctx)
			return err
		},
		"Abort": func(ctx context.Context, _ *cowchangeset.Tracker[int], c *cowchangeset.Changeset[int]) error {
			return c.Abort(ctx, errDisk)
		},
		"Record": func(_ context.Context, tracker *cowchangeset.Tracker[int], c *cowchangeset.Changeset[int]) error {
			_, err := tracker.Record(2)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tracker, m := kept(cowchangeset.Config[int]{StoreTimeout: time.Minute})
				c, _ := tracker.Start(t.Context())
				m.faults(func(context.Context, string, string) error { time.Sleep(time.Hour); return nil })
				go tracker.Record(1)
				synctest.Wait()
				short, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if err := leave(short, tracker, c); !errors.Is(err, cowchangeset.ErrStore) {
					t.Error(err)
				}
				time.Sleep(24 * time.Hour)
				switch s := m.has("1"); {
				case name == "Record" && len(s.Entries) != 2, name != "Record" && !s.Sealed, name == "Abort" && !s.Aborted:
					t.Errorf("the store has %+v", s)
				}
				m.check(t)
			})
		})
	}
}

// A StartAfter that was right when it came, and has lost its predecessor in line,
// starts nothing, and the store hears nothing of it.
func TestStoreStartAfterInLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracker, m := kept(cowchangeset.Config[int]{StoreTimeout: -1})
		a, err := tracker.StartAfter(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		gate := make(chan struct{})
		m.faults(func(context.Context, string, string) error { <-gate; return nil })
		var starters sync.WaitGroup
		starters.Go(func() {
			if _, err := tracker.Start(t.Context()); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		starters.Go(func() {
			if c, err := tracker.StartAfter(t.Context(), a); c != nil || err != cowchangeset.ErrConflict {
				t.Error(c, err)
			}
		})
		synctest.Wait()
		close(gate)
		starters.Wait()
		m.faults(failing("Start"))
		c, _ := tracker.Current()
		if n, err := tracker.StartAfter(t.Context(), c); n != nil || !errors.Is(err, errDisk) {
			t.Error(n, err)
		}
		if got := m.ids(); len(got) != 2 || !slices.Equal(got, tracker.IDs()) {
			t.Errorf("the store has %v, the tracker %v", got, tracker.IDs())
		}
		m.check(t)
	})
}

// waitedContext is a causeContext whose cause can be asked for.
type waitedContext struct{ causeContext }

func (*waitedContext) Value(any) any { return nil }

// The store is not called for a Start whose caller has left before its turn, and the
// next Start follows what there was.
func TestStoreStartsOfNobody(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // so that a caller leaves before its Start's goroutine runs
	calls := 0
	const attempts = 100
	for range attempts {
		synctest.Test(t, func(t *testing.T) {
			tracker, m := kept(cowchangeset.Config[int]{})
			if _, err := tracker.Start(&waitedContext{causeContext{Context: t.Context()}}); err == nil {
				t.Fatal("it has started")
			}
			synctest.Wait()
			calls += len(m.called())
			if c, err := tracker.Start(t.Context()); err != nil || c.Ordinal() != 1 {
				t.Fatal(c, err)
			}
			m.check(t)
		})
	}
	if calls > attempts/10 { // the scheduler may have taken a caller's turn away
		t.Errorf("%d calls of the store for %d Starts that nobody waits for", calls, attempts)
	}
}
