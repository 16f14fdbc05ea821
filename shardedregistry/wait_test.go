//go:build !modelcheck

package shardedregistry_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/latchfree/latchfree/shardedregistry"
)

// waited is what a call of Wait has returned.
type waited struct {
	entry shardedregistry.Entry[string, int]
	err   error
	done  bool
}

// waiting starts a call of Wait.
func waiting(ctx context.Context, r *shardedregistry.Registry[string, int], key string, since shardedregistry.Version) *waited {
	w := new(waited)
	go func() {
		w.entry, w.err = r.Wait(ctx, key, since)
		w.done = true
	}()
	return w
}

// want fails the test unless the call has returned v of the key a at a version.
func (w *waited) want(t *testing.T, v int, version shardedregistry.Version) {
	t.Helper()
	synctest.Wait()
	if e := (shardedregistry.Entry[string, int]{Key: "a", Value: v, Version: version}); !w.done || w.err != nil || w.entry != e {
		t.Fatalf("Wait = %v, %v (returned: %v), want %v", w.entry, w.err, w.done, e)
	}
}

// wantError fails the test unless the call has returned an error and no entry.
func (w *waited) wantError(t *testing.T, err error) {
	t.Helper()
	synctest.Wait()
	if !w.done || !errors.Is(w.err, err) || w.entry != (shardedregistry.Entry[string, int]{}) {
		t.Fatalf("Wait = %v, %v (returned: %v), want %v", w.entry, w.err, w.done, err)
	}
}

// sleeps fails the test unless the call has not returned, and is not running.
func (w *waited) sleeps(t *testing.T) {
	t.Helper()
	synctest.Wait()
	if w.done {
		t.Fatalf("Wait = %v, %v, want it to wait", w.entry, w.err)
	}
}

func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 1, Normalize: normalize})
		ctx := t.Context()

		present := waiting(ctx, r, " A", 0)
		likewise := waiting(ctx, r, "a", 0)
		present.sleeps(t)
		mustPut(t, r, "b", 1) // wakes nobody
		present.sleeps(t)
		mustPut(t, r, "a", 1)
		present.want(t, 1, 1)
		likewise.want(t, 1, 1)
		waiting(ctx, r, "a", 0).want(t, 1, 1) // what holds needs no waiting
		wantTraces(t, r)

		second, third := waiting(ctx, r, "a", 1), waiting(ctx, r, "a", 2)
		second.sleeps(t)
		mustPut(t, r, "a", 2)
		second.want(t, 2, 2)
		third.sleeps(t)
		r.Update("a", func(v int) (int, error) { return v + 1, nil })
		third.want(t, 3, 3)
		waiting(ctx, r, "a", 2).want(t, 3, 3)
		wantTraces(t, r)

		gone := waiting(ctx, r, "a", 3)
		gone.sleeps(t)
		r.Delete("a")
		gone.wantError(t, shardedregistry.ErrNotFound)
		waiting(ctx, r, "a", 1).wantError(t, shardedregistry.ErrNotFound) // it is gone already
		again := waiting(ctx, r, "a", 0)
		again.sleeps(t)
		r.Create("a", 5)
		again.want(t, 5, 5)
		waiting(ctx, r, "a", 3).want(t, 5, 5) // another life is above, too
		wantTraces(t, r)
	})
}

func TestWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r shardedregistry.Registry[string, int]
		ctx, cancel := context.WithCancelCause(t.Context())
		first, second := waiting(ctx, &r, "a", 0), waiting(t.Context(), &r, "a", 0)
		first.sleeps(t)
		if n := shardedregistry.Waiters(&r); n != 2 {
			t.Errorf("%d calls wait, want 2", n)
		}
		cancel(errTest)
		first.wantError(t, errTest)
		second.sleeps(t) // it has another context
		waiting(ctx, &r, "a", 0).wantError(t, errTest)
		mustPut(t, &r, "a", 1)
		second.want(t, 1, 1)
		waiting(ctx, &r, "a", 0).want(t, 1, 1) // nothing to wait for
		wantTraces(t, &r)
	})
}

// Those who leave without having been woken leave nothing behind.
func TestWaitLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r shardedregistry.Registry[string, int]
		var cancels []context.CancelFunc
		var all []*waited
		for range 4 {
			ctx, cancel := context.WithCancel(t.Context())
			cancels, all = append(cancels, cancel), append(all, waiting(ctx, &r, "a", 0))
			synctest.Wait()
		}
		for i, cancel := range cancels {
			all[i].sleeps(t)
			cancel()
			all[i].wantError(t, context.Canceled)
		}
		wantTraces(t, &r)
	})
}

// Nobody is left behind when calls leave a waitlist one after the other, and others
// come in between.
func TestWaitTakesTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r shardedregistry.Registry[string, int]
		ctx, cancel := context.WithCancel(t.Context())
		for range 3 {
			first := waiting(ctx, &r, "a", 0)
			first.sleeps(t)
		}
		last := waiting(t.Context(), &r, "a", 0)
		last.sleeps(t)
		cancel()
		last.sleeps(t)
		mustPut(t, &r, "a", 1)
		last.want(t, 1, 1)
		wantTraces(t, &r)
	})
}

// A call that was woken and has stalled lets the others sleep again.
func TestWaitersSleepBesideOneThatStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r shardedregistry.Registry[string, int]
		ctx, cancel := context.WithCancel(t.Context())
		woken := waiting(t.Context(), &r, "a", 0)
		woken.sleeps(t)
		sleeping, exit := shardedregistry.EnterWaitlist(&r, "a")
		mustPut(t, &r, "a", 1)
		woken.want(t, 1, 1)
		last := waiting(ctx, &r, "a", 1)
		for turns := 0; !sleeping() && turns < 1_000_000; turns++ {
			runtime.Gosched()
		}
		if !sleeping() {
			t.Error("it does not sleep")
		}
		exit()
		cancel()
		last.wantError(t, context.Canceled)
		wantTraces(t, &r)
	})
}

func TestWaitForAnInvalidKey(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Normalize: normalize})
	if e, err := r.Wait(t.Context(), " ", 0); !errors.Is(err, shardedregistry.ErrInvalidKey) || e.Version != 0 {
		t.Errorf("Wait = %v, %v", e, err)
	}
	wantTraces(t, r)
}

// A call that waits for another key is found by one look-up, however many there
// are: they are not woken.
func TestManyWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 1000
		r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 2})
		var all []*waited
		for i := range n {
			all = append(all, waiting(t.Context(), r, key(i), 0))
		}
		synctest.Wait()
		mustPut(t, r, "other", 1)
		for i, w := range all {
			if w.sleeps(t); i%100 == 0 {
				mustPut(t, r, key(i), i)
				if synctest.Wait(); !w.done || w.entry.Value != i {
					t.Fatalf("Wait = %v, %v", w.entry, w.err)
				}
			}
		}
		for i := range n {
			mustPut(t, r, key(i), -1)
		}
		synctest.Wait()
		wantTraces(t, r)
	})
}
