//go:build !modelcheck

package shardedregistry_test

import (
	"context"
	"iter"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	model "github.com/latchfree/latchfree/internal/model/shardedregistry"
	"github.com/latchfree/latchfree/shardedregistry"
)

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
			var watched, streamed, after, first, want []string
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
					streamed = append(streamed, e.Key)
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
			same("WatchFrom", streamed, 1)
			for _, k := range someKeys {
				r.Delete(k)
			}
			synctest.Wait()
			same("Watch", watched, 2)
			same("WatchSnapshot", after, 2)
			same("WatchFrom", streamed, 2)
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
			go func() {
				for {
					select {
					case <-done:
						return
					default:
						r.Put("bad", 2)
						runtime.Gosched()
					}
				}
			}()
			p := left(t, loop)
			close(done)
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
		if woken() || w.Piled() != 0 || shardedregistry.Seats(&r) != 0 {
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
