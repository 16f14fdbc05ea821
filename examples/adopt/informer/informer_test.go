package informer

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
)

var indexers = map[string]IndexFunc{
	"node":  func(o Object) []string { return []string{o.Node} },
	"label": func(o Object) []string { return o.Labels },
}

// both runs a test in a bubble with each store.
func both(t *testing.T, indexers map[string]IndexFunc, f func(t *testing.T, s Store)) {
	for name, make := range map[string]func() Store{
		"before": func() Store { return NewBefore(indexers) },
		"after":  func() Store { return NewAfter(indexers) },
	} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { f(t, make()) }) })
	}
}

func expect(t *testing.T, what string, got, want []string) {
	t.Helper()
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// keys returns objects as KEY@VERSION.
func keys(objects iter.Seq[Object]) (all []string) {
	for o := range objects {
		all = append(all, o.Key+"@"+strconv.FormatUint(o.Version, 10))
	}
	return all
}

func TestIndexes(t *testing.T) {
	both(t, indexers, func(t *testing.T, s Store) {
		s.Replace([]Object{{"a", "n1", []string{"web", "blue"}, 1}, {"b", "n1", []string{"web"}, 2}})
		expect(t, "n1", keys(s.ByIndex("node", "n1")), []string{"a@1", "b@2"})
		expect(t, "web", keys(s.ByIndex("label", "web")), []string{"a@1", "b@2"})
		s.Apply(Event{Object: Object{"a", "n2", []string{"blue"}, 3}})
		expect(t, "n1", keys(s.ByIndex("node", "n1")), []string{"b@2"})
		expect(t, "n2", keys(s.ByIndex("node", "n2")), []string{"a@3"})
		expect(t, "web", keys(s.ByIndex("label", "web")), []string{"b@2"})
		for range s.ByIndex("label", "blue") {
			break
		}
		s.Apply(Event{Object{"a", "n2", nil, 4}, true})
		expect(t, "n2", keys(s.ByIndex("node", "n2")), nil)
		if o, ok := s.Get("a"); ok {
			t.Errorf("a was deleted: %+v", o)
		}
	})
}

// What the store has already, or has in a later version, changes nothing.
func TestOldEvents(t *testing.T) {
	both(t, indexers, func(t *testing.T, s Store) {
		s.Replace([]Object{{Key: "a", Node: "n5", Version: 5}})
		s.Apply(Event{Object: Object{Key: "a", Node: "n4", Version: 4}})
		s.Apply(Event{Object{Key: "a", Version: 3}, true})
		s.Apply(Event{Object{Key: "b", Version: 3}, true})
		s.Replace([]Object{{Key: "a", Node: "n2", Version: 2}})
		expect(t, "n5", keys(s.ByIndex("node", "n5")), []string{"a@5"})
	})
}

// script is a server whose answers are known before.
type script struct {
	lists   [][]Object
	version uint64 // of the first list; each has one that is 10 higher
	watches [][]any
	asked   []string // for which versions
	end     func()
}

func (s *script) List(context.Context) ([]Object, uint64, error) {
	list, version := s.lists[0], s.version
	s.lists, s.version = s.lists[1:], version+10
	return list, version, nil
}

func (s *script) Watch(_ context.Context, version uint64) iter.Seq2[Event, error] {
	s.asked = append(s.asked, strconv.FormatUint(version, 10))
	return func(yield func(Event, error) bool) {
		if len(s.watches) == 0 {
			s.end()
			return
		}
		watch := s.watches[0]
		s.watches = s.watches[1:]
		for _, step := range watch {
			e, _ := step.(Event)
			err, _ := step.(error)
			if !yield(e, err) {
				return
			}
		}
	}
}

// A watch that breaks goes on where it was, and one that is too old with another list.
func TestRun(t *testing.T) {
	both(t, indexers, func(t *testing.T, s Store) {
		ctx, end := context.WithCancel(t.Context())
		server := &script{end: end, version: 3,
			lists: [][]Object{
				{{Key: "a", Node: "n", Version: 1}, {Key: "b", Node: "n", Version: 3}},
				{{Key: "b", Node: "n", Version: 3}, {Key: "d", Node: "n", Version: 12}},
			},
			watches: [][]any{
				{Event{Object: Object{Key: "c", Node: "n", Version: 4}}, errors.New("connection reset")},
				{Event{Object{Key: "c", Version: 5}, true}, ErrExpired},
				{Event{Object: Object{Key: "e", Node: "n", Version: 14}}},
			}}
		if err := Run(ctx, server, s); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		expect(t, "versions", server.asked, []string{"13", "14", "3", "4"})
		expect(t, "objects", keys(s.ByIndex("node", "n")), []string{"b@3", "d@12", "e@14"})
	})
}

// watch starts a loop, and returns what it has seen last of each key when the test asks.
func watch(t *testing.T, s Store, body func()) (seen func() []string) {
	var mu sync.Mutex
	state := map[string]Event{}
	go func() {
		for e := range s.Watch(t.Context()) {
			mu.Lock()
			state[e.Key] = e
			mu.Unlock()
			body()
		}
	}()
	synctest.Wait()
	return func() (all []string) {
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		for key, e := range state {
			if e.Deleted {
				key += " is gone"
			}
			all = append(all, key)
		}
		return all
	}
}

func TestWatch(t *testing.T) {
	both(t, indexers, func(t *testing.T, s Store) {
		s.Apply(Event{Object: Object{Key: "a", Version: 1}})
		seen := watch(t, s, func() {})
		s.Apply(Event{Object: Object{Key: "b", Version: 2}})
		s.Apply(Event{Object{Key: "a", Version: 3}, true})
		expect(t, "seen", seen(), []string{"a is gone", "b"})
		s.Replace([]Object{{Key: "c", Version: 4}})
		expect(t, "seen", seen(), []string{"a is gone", "b is gone", "c"})
	})
}

func TestReadersAndWriter(t *testing.T) {
	both(t, indexers, func(t *testing.T, s Store) {
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for range 500 {
					for o := range s.ByIndex("node", "n1") {
						if o.Node != "n1" {
							t.Errorf("under n1: %+v", o)
						}
					}
					s.Get("a")
				}
			})
		}
		for version := range uint64(500) {
			s.Apply(Event{Object: Object{Key: "a", Node: "n" + strconv.Itoa(int(version%3)), Version: version + 1}})
		}
		all.Wait()
	})
}

// What the first way does wrong.

// A loop that is slow for a while misses what has changed meanwhile, for ever.
func TestSlowWatcher(t *testing.T) {
	const objects = 1000
	both(t, indexers, func(t *testing.T, s Store) {
		proceed := make(chan struct{})
		seen := watch(t, s, func() { <-proceed })
		for i := range objects {
			s.Apply(Event{Object: Object{Key: strconv.Itoa(i), Version: uint64(i + 1)}})
			if i == 0 {
				synctest.Wait() // the loop has the first one
			}
		}
		close(proceed)
		want := objects
		if _, ok := s.(*Before); ok {
			want = 1 + buffered
		}
		if got := len(seen()); got != want {
			t.Errorf("the loop has seen %d objects of %d, want %d", got, objects, want)
		}
	})
}

// While an index function runs, nobody can read, whatever the key.
func TestSlowIndex(t *testing.T) {
	duringIndex := func(Object) {}
	slow := map[string]IndexFunc{"slow": func(o Object) []string { duringIndex(o); return nil }}
	both(t, slow, func(t *testing.T, s Store) {
		s.Apply(Event{Object: Object{Key: "a", Version: 1}})
		b, before := s.(*Before)
		called := false
		duringIndex = func(Object) {
			called = true
			if before {
				if b.mu.TryRLock() {
					t.Error("the lock is free")
					b.mu.RUnlock()
				}
			} else if _, ok := s.Get("a"); !ok {
				t.Error("a is not there")
			}
		}
		defer func() { duringIndex = func(Object) {} }()
		s.Apply(Event{Object: Object{Key: "b", Version: 2}})
		if !called {
			t.Error("the index function was not called")
		}
	})
}
