//go:build !modelcheck

package cowchangeset_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/latchfree/latchfree/cowchangeset"
)

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
	synctest.Test(t, func(t *testing.T) {
		tracker, m := kept(cowchangeset.Config[int]{StoreTimeout: time.Minute})
		tracker.Start(t.Context())
		never := make(chan struct{})
		m.faults(func(context.Context, string, string) error { <-never; return nil })
		for _, method := range []string{"Start", "wait"} {
			began := time.Now()
			_, err := tracker.Start(t.Context())
			wantStoreError(t, err, method, cowchangeset.ErrStore)
			if d := time.Since(began); d != time.Minute {
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
