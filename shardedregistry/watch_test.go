//go:build !modelcheck

package shardedregistry_test

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/latchfree/latchfree/shardedregistry"
)

type event = shardedregistry.Event[string, int]

// wantEvents fails the test unless got is want.
func wantEvents(t testing.TB, got []event, want ...event) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}

// wantTraces fails the test unless loops and calls of Wait have left nothing.
func wantTraces[K comparable, V any](t testing.TB, r *shardedregistry.Registry[K, V]) {
	t.Helper()
	if n := shardedregistry.Traces(r); n != 0 {
		t.Fatalf("%d traces are left", n)
	}
}

// The loop yields what changes while it runs, and sleeps in between: synctest.Wait
// returns only when it does.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r shardedregistry.Registry[string, int]
		mustPut(t, &r, "before", 1)
		ctx, cancel := context.WithCancel(t.Context())
		changes := r.Watch(ctx)
		mustPut(t, &r, "before", 2) // it watches only when the loop begins
		var got []event
		ended := false
		go func() {
			for e := range changes {
				got = append(got, e)
			}
			ended = true
		}()
		synctest.Wait()
		wantEvents(t, got)
		for _, step := range []struct {
			do   func()
			want []event
		}{
			{func() { mustPut(t, &r, "a", 1) }, []event{{"a", 1, 1, false, false}}},
			{func() { r.Update("a", func(v int) (int, error) { return v + 1, nil }) }, []event{{"a", 2, 2, false, false}}},
			{func() { r.UpdateIf("a", 2, 3) }, []event{{"a", 3, 3, false, false}}},
			{func() { r.UpdateIf("a", 2, 4) }, nil},
			{func() { createOrUpdate(&r, "a", func(v int, _ bool) (int, error) { return v + 1, nil }) }, []event{{"a", 4, 4, false, false}}},
			{func() { createOrUpdate(&r, "a", func(int, bool) (int, error) { return 0, errTest }) }, nil},
			{func() { r.Create("a", 9) }, nil},
			{func() { r.Delete("a") }, []event{{"a", 4, 5, true, false}}},
			{func() { r.Delete("a") }, nil},
			{func() { r.Create("a", 6) }, []event{{"a", 6, 6, false, false}}},
			{func() { r.DeleteIf("a", 6) }, []event{{"a", 6, 7, true, false}}},
			{func() { r.Get("before"); r.Snapshot() }, nil},
			{func() { mustPut(t, &r, "before", 3) }, []event{{"before", 3, 3, false, false}}},
		} {
			got = nil
			step.do()
			synctest.Wait()
			wantEvents(t, got, step.want...)
		}
		cancel()
		synctest.Wait()
		if !ended {
			t.Error("the loop goes on when its context has ended")
		}
		mustPut(t, &r, "a", 8)
		wantTraces(t, &r)
	})
}

// A loop that is behind gets what the keys hold when it comes to them: once each,
// the key that has waited longest first, and nothing of what was in between.
func TestWatchCoalesces(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 1})
	mustPut(t, r, "gone", 1)
	mustPut(t, r, "b", 1)
	w := shardedregistry.Subscribe(r)
	for i := range 5 {
		mustPut(t, r, "a", i)
		mustPut(t, r, "b", i)
	}
	r.Delete("gone")
	mustPut(t, r, "again", 1)
	r.Delete("again")
	again := mustPut(t, r, "again", 3)
	mustPut(t, r, "briefly", 1)
	gone, _ := r.Delete("briefly")
	if n := w.Notifications(); n != 5 {
		t.Errorf("%d notifications for 5 keys", n)
	}
	got := w.Drain()
	for i, e := range got {
		if e.Key == "briefly" {
			got[i].Version -= gone.Version
		} else if e.Key == "again" {
			got[i].Version -= again
		}
	}
	wantEvents(t, got, event{"a", 4, 5, false, false}, event{"b", 4, 6, false, false}, event{"gone", 1, 2, true, false},
		event{"again", 3, 0, false, false}, event{"briefly", 1, 1, true, false})
	wantEvents(t, w.Drain())
	w.Leave()
	wantTraces(t, r)
}

// Who tells late, when what it tells of was long replaced or deleted, tells
// nothing old, and nothing twice.
func TestWatchLateTellers(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 1})
	mustPut(t, r, "a", 1)
	late := shardedregistry.Stored(r, "a", 2)
	w := shardedregistry.Subscribe(r)
	mustPut(t, r, "a", 3)
	wantEvents(t, w.Drain(), event{"a", 3, 3, false, false})
	late()
	wantEvents(t, w.Drain())

	again := shardedregistry.Stored(r, "a", 4)
	dead := shardedregistry.Kill(r, "a")
	mustPut(t, r, "a", 6)
	wantEvents(t, w.Drain(), event{"a", 6, 6, false, false})
	dead()
	again()
	wantEvents(t, w.Drain())

	last := shardedregistry.Stored(r, "a", 7)
	r.Delete("a")
	wantEvents(t, w.Drain(), event{"a", 7, 8, true, false})
	last()
	wantEvents(t, w.Drain())
	if n := shardedregistry.Linked(r); n != 0 {
		t.Errorf("%d cells are linked", n)
	}
	w.Leave()
	wantTraces(t, r)
}

// What had been deleted when a loop began is none of its business, also while
// another one that is behind keeps the cell.
func TestWatchBeginsLate(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 1})
	mustPut(t, r, "a", 1)
	first := shardedregistry.Subscribe(r)
	r.Delete("a")
	second := shardedregistry.Subscribe(r)
	wantEvents(t, first.Drain(), event{"a", 1, 2, true, false})
	wantEvents(t, second.Drain())
	mustPut(t, r, "a", 3)
	wantEvents(t, second.Drain(), event{"a", 3, 3, false, false})
	second.Leave()
	wantEvents(t, first.Drain(), event{"a", 3, 3, false, false})
	first.Leave()
	wantTraces(t, r)
}

// Each loop gets everything, as fast as it is.
func TestWatchersAreIndependent(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 2})
	var all []shardedregistry.Watcher[string, int]
	views := make([]map[string]int, 8)
	for i := range views {
		all = append(all, shardedregistry.Subscribe(r))
		views[i] = map[string]int{}
	}
	for round := range 40 {
		for i := range 10 {
			if (i+round)%3 == 0 {
				r.Delete(key(i))
			} else {
				mustPut(t, r, key(i), round)
			}
		}
		for i, w := range all {
			if round%(i+1) == 0 {
				apply(views[i], w.Drain())
			}
		}
		if round == 20 { // others come and go
			all[3].Leave()
			all[3], views[3] = shardedregistry.Subscribe(r), maps.Collect(r.All())
		}
	}
	want := maps.Collect(r.All())
	for i, w := range all {
		if apply(views[i], w.Drain()); !maps.Equal(views[i], want) {
			t.Errorf("loop %d has %v, want %v", i, views[i], want)
		}
		w.Leave()
	}
	wantTraces(t, r)
}

func apply[K comparable, V any](view map[K]V, events []shardedregistry.Event[K, V]) {
	for _, e := range events {
		if e.Deleted {
			delete(view, e.Key)
		} else {
			view[e.Key] = e.Value
		}
	}
}

// T20: however a loop ends, and with whatever is still to be yielded, it leaves
// nothing behind. The package's main function looks for goroutines.
func TestWatchLeavesNothing(t *testing.T) {
	for name, end := range map[string]func(){
		"break":  nil,
		"panic":  func() { panic(errTest) },
		"Goexit": runtime.Goexit,
	} {
		r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 2, Normalize: normalize})
		mustPut(t, r, "A", 1)
		mustPut(t, r, "b", 1)
		left(t, func() {
			for state, e := range r.WatchSnapshot(t.Context()) {
				if state != nil {
					for i := range 100 {
						mustPut(t, r, key(i), i)
					}
					mustPut(t, r, "a", 2)
					r.Delete("b")
					continue
				}
				if e.Key == key(50) {
					if shardedregistry.Traces(r) == 0 {
						t.Error("there is nothing that could be left")
					}
					if end == nil {
						break
					}
					end()
				}
			}
		})
		if n := shardedregistry.Traces(r); n != 0 {
			t.Errorf("%s: %d traces are left", name, n)
		}
		if _, err := r.Create("a", 3); err == nil || !strings.Contains(err.Error(), "created as A") {
			t.Errorf("%s: the spelling is lost: %v", name, err)
		}
	}
}

// A sequence that nobody ranges over is nothing, one that is pulled ends with
// stop, and one whose context has ended yields nothing.
func TestWatchIsASequence(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	changes := r.Watch(t.Context())
	wantTraces(t, &r)
	next, stop := iter.Pull2(r.WatchSnapshot(t.Context()))
	if s, e, ok := next(); !ok || s == nil || s.Len() != 0 || e != (event{}) {
		t.Errorf("first comes %v, %v, %v, want an empty snapshot", s, e, ok)
	}
	mustPut(t, &r, "a", 1)
	if s, e, ok := next(); !ok || s != nil || e != (event{"a", 1, 1, false, false}) {
		t.Errorf("then comes %v, %v, %v", s, e, ok)
	}
	stop()
	wantTraces(t, &r)

	for range 2 { // it may be ranged over again
		next, stop := iter.Pull(changes)
		go func() {
			for shardedregistry.Traces(&r) == 0 {
				runtime.Gosched()
			}
			r.Put("a", 2)
		}()
		if e, ok := next(); !ok || e.Value != 2 {
			t.Errorf("a loop yields %v, %v", e, ok)
		}
		stop()
		wantTraces(t, &r)
	}

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for e := range r.Watch(ended) {
		t.Errorf("%v is yielded when ctx has ended", e)
	}
	for s, e := range r.WatchSnapshot(ended) {
		t.Errorf("%v, %v is yielded when ctx has ended", s, e)
	}
	wantTraces(t, &r)
}

// What is left of a batch is not yielded once ctx has ended.
func TestWatchEndsWithinABatch(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	w := shardedregistry.Subscribe(&r)
	for i := range 5 {
		mustPut(t, &r, key(i), i)
	}
	r.Delete(key(4))
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	w.Run(ctx, func(event) bool {
		if n++; n == 2 {
			cancel()
		}
		return true
	})
	if n != 2 {
		t.Errorf("%d events, want 2", n)
	}
	w.Leave()
	wantTraces(t, &r)
}

// T21: the body may change what it watches, and take snapshots and watch itself.
func TestWatchWithin(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	mustPut(t, &r, "a", 0)
	var seen []int
	for state, e := range r.WatchSnapshot(t.Context()) {
		if state != nil {
			mustPut(t, &r, "a", 1)
			continue
		}
		if seen = append(seen, e.Value); e.Deleted {
			break
		}
		if v, _ := r.Snapshot().Get("a"); v != e.Value {
			t.Errorf("a snapshot has %d, the event %d", v, e.Value)
		}
		for inner := range r.WatchSnapshot(t.Context()) {
			if v, _ := inner.Get("a"); v != e.Value {
				t.Errorf("an inner loop begins with %d, the event has %d", v, e.Value)
			}
			break
		}
		if e.Value < 4 {
			mustPut(t, &r, "a", e.Value+1)
		} else {
			r.Delete("a")
		}
	}
	if !slices.Equal(seen, []int{1, 2, 3, 4, 4}) {
		t.Errorf("the loop saw %v", seen)
	}
	wantTraces(t, &r)
}

func TestWatchPanics(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	for name, do := range map[string]func(){
		"shardedregistry: Watch called with a nil context":         func() { r.Watch(noContext) },
		"shardedregistry: WatchSnapshot called with a nil context": func() { r.WatchSnapshot(noContext) },
		"shardedregistry: Wait called with a nil context":          func() { r.Wait(noContext, "a", 0) },
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); got != name {
					t.Errorf("panicked with %q, want %q", got, name)
				}
			}()
			do()
		}()
	}
}

// A list of subscriptions is never extended in place: two who add to the same one at the
// same time would overwrite one another, and a loop would miss a change for ever.
func TestSubscriptionListsKeepApart(t *testing.T) {
	for n := range 40 {
		if !shardedregistry.KeepsApart(n) {
			t.Errorf("two that extend a list of %d subscriptions overwrite one another", n)
		}
	}
}

// Loops that begin at the same time are all subscribers.
func TestWatchersBeginAtOnce(t *testing.T) {
	for range 2000 {
		r := shardedregistry.MustNew(shardedregistry.Config[int, int]{Shards: 1})
		all := make([]shardedregistry.Watcher[int, int], 3+8)
		var ready, come sync.WaitGroup
		ready.Add(8)
		for i := range all {
			if i < 3 {
				all[i] = shardedregistry.Subscribe(r)
				continue
			}
			come.Go(func() {
				ready.Done()
				ready.Wait()
				all[i] = shardedregistry.Subscribe(r)
			})
		}
		come.Wait()
		r.Put(1, 1)
		for i, w := range all {
			if got := w.Drain(); len(got) != 1 {
				t.Fatalf("loop %d has %v", i, got)
			}
			w.Leave()
		}
	}
}

// A key that comes again while its deletion waits for a loop is spelled as it was
// given then.
func TestWatchKeepsSpelling(t *testing.T) {
	for _, history := range []int{0, 16} {
		r := shardedregistry.MustNew(shardedregistry.Config[string, int]{
			History:   history,
			Normalize: func(k string) (string, error) { return strings.ToLower(k), nil },
		})
		w := shardedregistry.Subscribe(r)
		r.Create("a", 1)
		r.Delete("a")
		r.Create("A", 2)
		for _, then := range []func(){func() { w.Drain() }, w.Leave, func() {}} {
			_, err := r.Create("a", 3)
			if exists, ok := err.(*shardedregistry.ExistsError); !ok || exists.Stored != "A" {
				t.Errorf("Create = %v, want a key that was created as A", err)
			}
			then()
		}
	}
}

// WatchSnapshot yields nothing that its snapshot shows, and no deletion of what
// it has not shown.
func TestWatchSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 1})
		mustPut(t, r, "old", 1)
		mustPut(t, r, "kept", 1)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		goOn := make(chan struct{})
		var got []event
		go func() {
			for state, e := range r.WatchSnapshot(ctx) {
				if state != nil {
					wantSnapshot(t, state, map[string]int{"old": 1, "kept": 1})
					<-goOn
					continue
				}
				got = append(got, e)
			}
		}()
		synctest.Wait()
		shardedregistry.Changed(r, "kept") // told, and not newer than the snapshot
		mustPut(t, r, "briefly", 1)
		r.Delete("briefly")
		r.Delete("old")
		close(goOn)
		synctest.Wait()
		wantEvents(t, got, event{"old", 1, 2, true, false})

		got = nil // a later life of a key that was shown before
		v := mustPut(t, r, "old", 2)
		synctest.Wait()
		wantEvents(t, got, event{"old", 2, v, false, false})
		got = nil
		r.Delete("old")
		synctest.Wait()
		wantEvents(t, got, event{"old", 2, v + 1, true, false})
		mustPut(t, r, "kept", 2)
		r.Delete("kept")
		synctest.Wait()
	})
}

// A base tells a key's version once.
func TestWatchSnapshotForgetsItsBase(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 1})
	mustPut(t, r, "a", 1)
	next, stop := iter.Pull2(r.WatchSnapshot(t.Context()))
	defer stop()
	next()
	r.Delete("a")
	if _, e, _ := next(); e != (event{"a", 1, 2, true, false}) {
		t.Fatalf("got %v", e)
	}
	mustPut(t, r, "a", 3)
	r.Delete("a") // never shown since
	end := mustPut(t, r, "z", 1)
	if _, e, _ := next(); e != (event{"z", 1, end, false, false}) {
		t.Fatalf("got %v", e)
	}
}
