//go:build !modelcheck

package shardedregistry_test

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	model "github.com/latchfree/latchfree/internal/tools/model/shardedregistry"
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

// Subscriptions come and go, one or several at a time, whatever the ranks of their loops; old lists stay
// as they are.
func TestSubscriptionsAreASet(t *testing.T) {
	for name, rank := range map[string]func(rnd *rand.Rand, i int) uint64{
		"growing":    func(_ *rand.Rand, i int) uint64 { return uint64(i) },
		"random":     func(rnd *rand.Rand, _ int) uint64 { return rnd.Uint64() },
		"few bits":   func(rnd *rand.Rand, _ int) uint64 { return 1<<rnd.IntN(64) | 2<<rnd.IntN(63) },
		"often same": func(rnd *rand.Rand, _ int) uint64 { return uint64(rnd.IntN(5)) << 8 },
		"all same":   func(*rand.Rand, int) uint64 { return 7 },
	} {
		rnd := rand.New(rand.NewPCG(5, 6))
		type member struct {
			rank    uint64
			without func(shardedregistry.Members) shardedregistry.Members
		}
		var (
			set, old      shardedregistry.Members
			members       []member
			ranks, before []uint64
		)
		check := func(set shardedregistry.Members, want []uint64) {
			t.Helper()
			got := set.Ranks()
			slices.Sort(got)
			if want = slices.Sorted(slices.Values(want)); !slices.Equal(got, want) {
				t.Fatalf("%s: the ranks are %v, want %v", name, got, want)
			}
			if depth := set.Depth(); depth > 16 {
				t.Fatalf("%s: a path has length %d", name, depth)
			}
		}
		for i := range 3000 {
			if grows := i/300%2 == 0; grows == (rnd.IntN(4) > 0) {
				more := make([]uint64, 1+rnd.IntN(4)*rnd.IntN(8))
				for j := range more {
					more[j] = rank(rnd, 40*i+j)
				}
				slices.Sort(more)
				with, without := set.With(more...)
				set = with
				for j, f := range without {
					members = append(members, member{more[j], f})
				}
			} else {
				for range min(len(members), 1+rnd.IntN(16)) {
					j := rnd.IntN(len(members))
					set = members[j].without(set)
					members = slices.Delete(members, j, j+1)
				}
			}
			if i%20 == 0 {
				check(old, before)
				ranks = nil
				for _, m := range members {
					ranks = append(ranks, m.rank)
				}
				check(set, ranks)
				old, before = set, ranks
			}
		}
		for _, m := range members {
			set = m.without(set)
		}
		if !set.IsEmpty() {
			t.Errorf("%s: all have left, and something stays", name)
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

// someKeys are keys that prefixes tell apart: a prefix itself, what comes right before
// and after the keys that begin with it, and shorter ones.
var someKeys = []string{"", "a", "a/", "a/b", "a/bc", "a/c", "a/\xff", "a0", "b", "b/", "ab/", "\xff"}

var someFilters = map[string]model.Filter{
	"no key":              {},
	"a key":               {Keys: []string{"a"}},
	"the empty key":       {Keys: []string{""}},
	"keys":                {Keys: []string{"a", "b", "absent", "a"}},
	"a prefix":            {Prefixes: []string{"a/"}},
	"a prefix of one":     {Prefixes: []string{"a/b"}},
	"prefixes":            {Prefixes: []string{"a", "b/", "a/b"}},
	"every prefix":        {Prefixes: []string{""}},
	"no UTF-8":            {Prefixes: []string{"\xff"}},
	"a key and a prefix":  {Keys: []string{"a/b", "b"}, Prefixes: []string{"a/"}},
	"a function":          {Match: func(k string) bool { return len(k) == 2 }},
	"a function and keys": {Keys: []string{"a"}, Prefixes: []string{"b"}, Match: func(k string) bool { return k == "a0" }},
	"never":               {Match: func(string) bool { return false }},
}

// A loop with filters yields what they accept, by all three methods.
func TestFilters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := shardedregistry.MustNew(shardedregistry.Config[string, int]{History: 1024})
		for name, f := range someFilters {
			ctx, cancel := context.WithCancel(t.Context())
			var watched, changed, after, first, want []string
			for i, k := range someKeys {
				if mustPut(t, r, k, i); f.Accepts(k) {
					want = append(want, k)
				}
			}
			go func() {
				for e := range r.Watch(ctx, f.Filters()...) {
					watched = append(watched, e.Key)
				}
			}()
			go func() {
				for s, e := range r.WatchSnapshot(ctx, f.Filters()...) {
					if s != nil {
						first = slices.Collect(maps.Keys(maps.Collect(s.All())))
					} else {
						after = append(after, e.Key)
					}
				}
			}()
			go func() {
				for e, err := range r.WatchFrom(ctx, r.Revision(), f.Filters()...) {
					if err != nil {
						t.Error(err)
					}
					if e.Bookmark {
						continue
					}
					changed = append(changed, e.Key)
				}
			}()
			synctest.Wait()
			same := func(what string, got []string, times int) {
				t.Helper()
				slices.Sort(got)
				all := slices.Sorted(slices.Values(slices.Repeat(want, times)))
				if !slices.Equal(got, all) {
					t.Errorf("%s: %s yields %q, want %q", name, what, got, all)
				}
			}
			same("the snapshot", first, 1)
			for i, k := range someKeys {
				r.Put(k, -i)
				synctest.Wait()
			}
			same("Watch", watched, 1)
			same("WatchSnapshot", after, 1)
			same("WatchFrom", changed, 1)
			for _, k := range someKeys {
				r.Delete(k)
			}
			synctest.Wait()
			same("Watch", watched, 2)
			same("WatchSnapshot", after, 2)
			same("WatchFrom", changed, 2)
			cancel()
			synctest.Wait()
		}
	})
}

// Keys are normalised, and invalid ones are none.
func TestFilterNormalizes(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Normalize: func(k string) (string, error) {
		if k == "bad" {
			return "", errTest
		}
		return strings.ToLower(k), nil
	}})
	w := shardedregistry.SubscribeFiltered(r, shardedregistry.Keys("A", "bad"), shardedregistry.Prefix("B"))
	none := shardedregistry.SubscribeFiltered(r, shardedregistry.Keys("bad"))
	for _, k := range []string{"a", "B", "bb", "bad", ""} {
		r.Put(k, 1)
	}
	wantEvents(t, w.Drain(), event{"a", 1, 1, false, false})
	wantEvents(t, none.Drain())
	w.Leave()
	none.Leave()
	wantTraces(t, r)
}

// A key that holds what cannot be compared, or what is not equal to itself, is invalid,
// and the rest is watched.
func TestFilterOfOddKeys(t *testing.T) {
	var r shardedregistry.Registry[any, int]
	w := shardedregistry.SubscribeFiltered(&r, shardedregistry.Keys[any]([]int{1}, math.NaN(), "a", 7, nil))
	for _, k := range []any{7, "a", nil, "b", 8, math.NaN()} {
		r.Put(k, 1)
	}
	var got []any
	for _, e := range w.Drain() {
		got = append(got, e.Key)
	}
	if !slices.Equal(got, []any{7, "a", nil}) {
		t.Errorf("the loop is told of %v", got)
	}
	w.Leave()
	wantTraces(t, &r)
}

// Prefixes of other string types.
func TestPrefixOfATypeOfStrings(t *testing.T) {
	type name string
	var r shardedregistry.Registry[name, int]
	w := shardedregistry.SubscribeFiltered(&r, shardedregistry.Prefix[name]("a"))
	r.Put("b", 1)
	r.Put("ab", 2)
	if got := w.Drain(); len(got) != 1 || got[0].Key != "ab" {
		t.Errorf("the loop is told of %v", got)
	}
	w.Leave()
	wantTraces(t, &r)
}

// The zero Filter accepts no key, and adds none to others.
func TestZeroFilter(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	none := shardedregistry.SubscribeFiltered(&r, shardedregistry.Filter[string]{})
	one := shardedregistry.SubscribeFiltered(&r, shardedregistry.Filter[string]{}, shardedregistry.Keys("a"))
	mustPut(t, &r, "a", 1)
	mustPut(t, &r, "b", 1)
	wantEvents(t, none.Drain())
	wantEvents(t, one.Drain(), event{"a", 1, 1, false, false})
	none.Leave()
	one.Leave()
	wantTraces(t, &r)
}

// A loop that nobody tells of a key ends with its context, also without keys.
func TestFilterWithoutKeysEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := shardedregistry.MustNew(shardedregistry.Config[string, int]{History: 1024})
		ctx, cancel := context.WithCancel(t.Context())
		var ended atomic.Int32
		go func() {
			for e := range r.Watch(ctx, shardedregistry.Keys[string]()) {
				t.Errorf("%v is yielded", e)
			}
			ended.Add(1)
		}()
		go func() {
			for e := range r.WatchFrom(ctx, 0, shardedregistry.Keys[string]()) {
				t.Errorf("%v is yielded", e)
			}
			ended.Add(1)
		}()
		synctest.Wait()
		for range 5 {
			mustPut(t, r, "a", 1)
		}
		synctest.Wait()
		if wantTraces(t, r); ended.Load() != 0 {
			t.Error("a loop ends before its context")
		}
		cancel()
		synctest.Wait()
		if ended.Load() != 2 {
			t.Error("a loop goes on when its context has ended")
		}
	})
}

// What a caller does with its slices afterwards is no filter's business.
func TestFiltersAreCopies(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	keys := []string{"a"}
	filters := []shardedregistry.Filter[string]{shardedregistry.Keys(keys...)}
	changes := r.WatchSnapshot(t.Context(), filters...)
	keys[0], filters[0] = "b", shardedregistry.Keys("b")
	next, stop := iter.Pull2(changes)
	next()
	mustPut(t, &r, "b", 1)
	mustPut(t, &r, "a", 1)
	if _, e, _ := next(); e.Key != "a" {
		t.Errorf("%v is yielded", e)
	}
	stop()
}

// A function of Matching that panics or exits ends its own loop and leaves nothing;
// whoever changes a key does not run it.
func TestMatchingLeaves(t *testing.T) {
	for how, exit := range leave {
		r := shardedregistry.MustNew(shardedregistry.Config[string, int]{History: 1024})
		mustPut(t, r, "bad", 1)
		match := func(k string) bool {
			if k == "bad" {
				exit()
			}
			return true
		}
		other := shardedregistry.Subscribe(r)
		for name, loop := range map[string]func(){
			"WatchSnapshot": func() {
				for range r.WatchSnapshot(t.Context(), shardedregistry.Matching(match)) {
					t.Error("a snapshot is yielded")
				}
			},
			"Watch": func() {
				for range r.Watch(t.Context(), shardedregistry.Matching(match)) {
					t.Error("an event is yielded")
				}
			},
			"WatchFrom": func() {
				for range r.WatchFrom(t.Context(), 0, shardedregistry.Matching(match)) {
					t.Error("a change is yielded")
				}
			},
		} {
			done := make(chan struct{})
			var writer sync.WaitGroup
			writer.Go(func() {
				for {
					select {
					case <-done:
						return
					default:
						r.Put("bad", 2)
						runtime.Gosched()
					}
				}
			})
			p := left(t, loop)
			close(done)
			writer.Wait()
			if how == "panic" && p != "the caller's panic" {
				t.Errorf("%s: the panic became %v", name, p)
			}
		}
		r.Delete("bad")
		if e := other.Drain(); len(e) != 1 || !e[0].Deleted {
			t.Errorf("another loop is told of %v", e)
		}
		other.Leave()
		wantTraces(t, r)
	}
}

// A function that blocks holds up its own loop alone.
func TestMatchingBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r shardedregistry.Registry[string, int]
		ctx, cancel := context.WithCancel(t.Context())
		goOn := make(chan struct{})
		var got []event
		go func() {
			for e := range r.Watch(ctx, shardedregistry.Matching(func(string) bool { <-goOn; return true })) {
				got = append(got, e)
			}
		}()
		synctest.Wait()
		mustPut(t, &r, "a", 1)
		mustPut(t, &r, "a", 2)
		other := shardedregistry.Subscribe(&r)
		mustPut(t, &r, "a", 3)
		wantEvents(t, other.Drain(), event{"a", 3, 3, false, false})
		other.Leave()
		close(goOn)
		synctest.Wait()
		if len(got) == 0 || got[len(got)-1] != (event{"a", 3, 3, false, false}) {
			t.Errorf("the loop has %v", got)
		}
		cancel()
		synctest.Wait()
		wantTraces(t, &r)
	})
}

// A loop that watches other keys is not woken, and a Put beside it allocates nothing more.
func TestFilterDoesNotWake(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	mustPut(t, &r, "a", 1)
	without := testing.AllocsPerRun(100, func() { r.Put("a", 1) })
	for name, f := range map[string]shardedregistry.Filter[string]{
		"Keys": shardedregistry.Keys("b"), "Prefix": shardedregistry.Prefix("a/"),
	} {
		w := shardedregistry.SubscribeFiltered(&r, f)
		woken := w.Doze()
		if n := testing.AllocsPerRun(100, func() { r.Put("a", 1) }); n != without {
			t.Errorf("%s: a Put allocates %v times, and %v without the loop", name, n, without)
		}
		if woken() || w.Notifications() != 0 || shardedregistry.Subscriptions(&r) != 0 {
			t.Errorf("%s: the loop is told of another key", name)
		}
		if r.Put("b", 1); name == "Keys" && !woken() {
			t.Error("the loop is not woken for its key")
		}
		w.Leave()
	}
	wantTraces(t, &r)
}

func TestFilterPanics(t *testing.T) {
	wantPanic(t, "Matching called with a nil function", func() { shardedregistry.Matching[string](nil) })
}

// Loops come and go; the set finds those that are told of a key, whatever the hashes, and
// old sets stay as they are.
func TestTopicsAreAMap(t *testing.T) {
	for name, hash := range map[string]func(string) uint64{
		"random":      nil,
		"all equal":   func(string) uint64 { return 7 },
		"low bits":    func(k string) uint64 { return uint64(len(k)) },
		"high bits":   func(k string) uint64 { return uint64(len(k)) << 60 },
		"last branch": func(k string) uint64 { return uint64(len(k)%3)<<62 | 5 },
	} {
		rnd := rand.New(rand.NewPCG(1, 2))
		names := func() string {
			if rnd.IntN(3) == 0 { // some differ only in the middle
				return fmt.Sprintf("%020d/%d/%020d", rnd.IntN(2), rnd.IntN(40), rnd.IntN(2))
			}
			return "aaaaaaaaaaaaa"[:rnd.IntN(14)] + fmt.Sprint(rnd.IntN(40))
		}
		type loop struct {
			filter model.Filter
			leave  func(shardedregistry.TopicSet) shardedregistry.TopicSet
		}
		set := shardedregistry.NewTopicSet(hash)
		loops := map[int]loop{}
		check := func(set shardedregistry.TopicSet, loops map[int]loop) {
			t.Helper()
			for range 20 {
				key := names()
				got := set.Notified(key)
				slices.Sort(got)
				got = slices.Compact(got)
				var want []int
				for i, l := range loops {
					if l.filter.Accepts(key) {
						want = append(want, i)
					}
				}
				slices.Sort(want)
				if !slices.Equal(got, want) {
					t.Fatalf("%s: of %q are told %v, want %v", name, key, got, want)
				}
				if hash == nil && set.Ignores(key) != (want == nil) {
					t.Fatalf("%s: of %q are told %v, and it is ignored: %v", name, key, want, set.Ignores(key))
				}
			}
		}
		var old shardedregistry.TopicSet
		var oldLoops map[int]loop
		for i := range 2000 {
			grows := i/500%2 == 0 // then it shrinks
			if rnd.IntN(10) < 2 == grows && len(loops) > 0 {
				for n, l := range loops {
					set = l.leave(l.leave(set)) // the second time it has left
					delete(loops, n)
					break
				}
			} else if grows {
				var f model.Filter
				for range rnd.IntN(3) {
					f.Keys = append(f.Keys, names())
				}
				for range rnd.IntN(3) {
					prefix := names() + "a"
					if len(prefix) < 40 {
						prefix = prefix[:1+rnd.IntN(2)]
					}
					f.Prefixes = append(f.Prefixes, prefix[:len(prefix)-rnd.IntN(2)])
				}
				l := loop{filter: f}
				set, l.leave = set.With(i, f.Filters()...)
				loops[i] = l
			}
			if i%50 == 0 {
				check(set, loops)
			}
			if i%400 == 200 {
				if oldLoops != nil {
					check(old, oldLoops)
				}
				old, oldLoops = set, map[int]loop{}
				for n, l := range loops {
					oldLoops[n] = l
				}
			}
		}
		for _, l := range loops {
			set = l.leave(set)
		}
		if !set.IsEmpty() {
			t.Errorf("%s: all loops have left, and something stays", name)
		}
		check(old, oldLoops)
	}
}

// The tries stay flat, and few topics lie together, also where the hashes of keys are alike.
func TestTopicsShape(t *testing.T) {
	few := shardedregistry.NewTopicSet(nil)
	for i := range 4 {
		few, _ = few.With(i, shardedregistry.Keys(key(i)))
	}
	if depth, together := few.Depth(); depth != 0 || together != 4 {
		t.Errorf("of four topics, %d lie together, and the depth is %d", together, depth)
	}
	for name, test := range map[string]struct {
		hash            func(string) uint64
		filter          func(i int) shardedregistry.Filter[string]
		depth, together int
	}{
		"keys":     {nil, func(i int) shardedregistry.Filter[string] { return shardedregistry.Keys(key(i)) }, 7, 4},
		"prefixes": {nil, func(i int) shardedregistry.Filter[string] { return shardedregistry.Prefix(fmt.Sprintf("%05d/", i)) }, 7, 4},
		"nearly alike": {
			func(k string) uint64 { return uint64(k[len(k)-1]) << 60 },
			func(i int) shardedregistry.Filter[string] { return shardedregistry.Keys(key(i)) }, 16, 500,
		},
		"alike": {
			func(k string) uint64 { return 7 },
			func(i int) shardedregistry.Filter[string] { return shardedregistry.Keys(key(i)) }, 16, 2000,
		},
	} {
		set := shardedregistry.NewTopicSet(test.hash)
		var leave []func(shardedregistry.TopicSet) shardedregistry.TopicSet
		for i := range 2000 {
			with, without := set.With(i, test.filter(i))
			set, leave = with, append(leave, without)
		}
		if depth, together := set.Depth(); depth > test.depth || together > test.together {
			t.Errorf("%s: the depth is %d, and %d lie together", name, depth, together)
		}
		for _, f := range leave[10:] {
			set = f(set)
		}
		if _, together := set.Depth(); together > 10 {
			t.Errorf("%s: when most have left, %d lie together", name, together)
		}
	}
}

// Loops over prefixes of one length that are alone find the same as beside others.
func TestTopicsAlone(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 7, 8, 15, 16, 17, 33, 40} {
		text := strings.Repeat("x", n)
		last := text[:n-1] + "y"
		set, _ := shardedregistry.NewTopicSet(nil).With(1, shardedregistry.Prefix(text))
		set, _ = set.With(2, shardedregistry.Prefix(last))
		beside, _ := set.With(3, shardedregistry.Keys("a key"), shardedregistry.Prefix(strings.Repeat("another", 20)))
		for _, key := range []string{"", text, last, text[:n-1], text[:n-1] + "z", "y" + text[1:]} {
			watched := key == text || key == last
			for _, rest := range []string{"", "x", "a longer rest of the key"} {
				if text[:n-1] == key && rest == "x" {
					continue // is text
				}
				if got, other := set.Ignores(key+rest), beside.Ignores(key+rest); got == watched || other != got {
					t.Errorf("beside prefixes of %d bytes, that %q is ignored is %v, and beside others %v", n, key+rest, got, other)
				}
			}
		}
	}
}

// Loops that watch the same keys share topics, and each leaves for itself.
func TestTopicsAreShared(t *testing.T) {
	set := shardedregistry.NewTopicSet(nil)
	var leave []func(shardedregistry.TopicSet) shardedregistry.TopicSet
	for i := range 5000 {
		with, without := set.With(i, shardedregistry.Keys("a"), shardedregistry.Prefix("b/"))
		set, leave = with, append(leave, without)
	}
	for _, key := range []string{"a", "b/c"} {
		got := set.Notified(key)
		slices.Sort(got)
		if got = slices.Compact(got); len(got) != 5000 {
			t.Errorf("%d loops are told of %q", len(got), key)
		}
	}
	set = leave[10](set)
	if got := set.Notified("a"); len(got) != 4999 || slices.Contains(got, 10) {
		t.Errorf("when one has left, %d are told", len(got))
	}
}

// A set is never extended in place: two loops that join the same one at the same time
// would overwrite one another, and one would miss changes for ever.
func TestTopicSetsKeepApart(t *testing.T) {
	set := shardedregistry.NewTopicSet(func(string) uint64 { return 7 })
	loop := 0
	for i := range 200 {
		for _, f := range [][2]shardedregistry.Filter[string]{
			{shardedregistry.Keys("shared"), shardedregistry.Keys("shared")},
			{shardedregistry.Keys(fmt.Sprint("a", i)), shardedregistry.Keys(fmt.Sprint("b", i))},
			{shardedregistry.Prefix("p"), shardedregistry.Prefix("p")},
			{shardedregistry.Prefix(fmt.Sprint("q", i)), shardedregistry.Prefix(fmt.Sprint("r", i))},
			{shardedregistry.Prefix(""), shardedregistry.Prefix("")},
		} {
			loop += 2
			first, _ := set.With(loop, f[0])
			second, _ := set.With(loop+1, f[1])
			for _, key := range []string{"shared", fmt.Sprint("a", i), fmt.Sprint("b", i), "p", fmt.Sprint("q", i), fmt.Sprint("r", i)} {
				if slices.Contains(first.Notified(key), loop+1) || slices.Contains(second.Notified(key), loop) {
					t.Fatalf("two sets made of one of %d loops overwrite one another", i)
				}
			}
			set = first
		}
	}
}

// Loops are told in the order in which they have joined, however many watch a key, and also when some
// have left.
func TestLoopsAreNotifiedInOrder(t *testing.T) {
	set := shardedregistry.NewTopicSet(nil)
	var (
		leave []func(shardedregistry.TopicSet) shardedregistry.TopicSet
		want  []int
	)
	for i := range 5000 {
		with, without := set.With(i, shardedregistry.Keys("a"))
		set, leave = with, append(leave, without)
	}
	for i := range 5000 {
		if i%3 == 0 || i > 16 && i < 300 {
			set = leave[i](set)
		} else {
			want = append(want, i)
		}
	}
	if got := set.Notified("a"); !slices.Equal(got, want) {
		t.Errorf("%d loops are told, want %d in order", len(got), len(want))
	}
}

// A loop watches what it was given when it was made, whatever its caller makes of the slice.
func TestFiltersAreCopied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		r := remembering(16)
		filters := []shardedregistry.Filter[string]{shardedregistry.Keys("a")}
		watch, snapshot, from := r.Watch(ctx, filters...), r.WatchSnapshot(ctx, filters...), r.WatchFrom(ctx, r.Revision(), filters...)
		filters[0] = shardedregistry.Keys("b")
		var watched, listed, changed []string
		go func() {
			for e := range watch {
				watched = append(watched, e.Key)
			}
		}()
		go func() {
			for s, e := range snapshot {
				if s == nil {
					listed = append(listed, e.Key)
				}
			}
		}()
		go func() {
			for c, err := range from {
				if err == nil && !c.Bookmark {
					changed = append(changed, c.Key)
				}
			}
		}()
		synctest.Wait()
		mustPut(t, r, "b", 1)
		mustPut(t, r, "a", 1)
		synctest.Wait()
		cancel()
		synctest.Wait()
		for name, got := range map[string][]string{"Watch": watched, "WatchSnapshot": listed, "WatchFrom": changed} {
			if !slices.Equal(got, []string{"a"}) {
				t.Errorf("%s yields changes of %q", name, got)
			}
		}
	})
}
