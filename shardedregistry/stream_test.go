//go:build !modelcheck

package shardedregistry_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/latchfree/latchfree/shardedregistry"
)

// transitions returns an empty registry that keeps what Stream needs.
func transitions[K comparable, V any](config shardedregistry.Config[K, V]) *shardedregistry.Registry[K, V] {
	config.Shards, config.Transitions = 2, true
	return shardedregistry.MustNew(config)
}

// wantForgotten fails the test unless streams have left nothing.
func wantForgotten[K comparable, V any](t testing.TB, r *shardedregistry.Registry[K, V]) {
	t.Helper()
	wantTraces(t, r)
	if n := shardedregistry.Chained(r); n != 0 {
		t.Fatalf("%d old records are kept", n)
	}
}

// drain returns what a loop that has not lagged has to yield.
func drain[K comparable, V any](t testing.TB, s shardedregistry.Streamer[K, V]) []shardedregistry.Event[K, V] {
	t.Helper()
	all, lagged := s.Drain()
	if n := s.Behind(); lagged || n != 0 {
		t.Fatalf("lagged: %v, %d changes wait", lagged, n)
	}
	return all
}

// The loop yields what every method changes while it runs, and sleeps in between.
func TestStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := transitions(shardedregistry.Config[string, int]{Normalize: normalize})
		mustPut(t, r, "before", 1)
		ctx, cancel := context.WithCancel(t.Context())
		changes := r.Stream(ctx, 10)
		mustPut(t, r, "before", 2) // it subscribes only when the loop begins
		var got []event
		ended := false
		go func() {
			for e, err := range changes {
				if err != nil {
					t.Error(err)
				}
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
			{func() { mustPut(t, r, "A", 1) }, []event{{"a", 1, 1, false, false}}},
			{func() { r.Update("a", func(v int) (int, error) { return v + 1, nil }) }, []event{{"a", 2, 2, false, false}}},
			{func() { r.UpdateIf("a", 2, 3) }, []event{{"a", 3, 3, false, false}}},
			{func() { r.UpdateIf("a", 2, 4) }, nil},
			{func() { createOrUpdate(r, "a", func(v int, _ bool) (int, error) { return v + 1, nil }) }, []event{{"a", 4, 4, false, false}}},
			{func() { createOrUpdate(r, "a", func(int, bool) (int, error) { return 0, errTest }) }, nil},
			{func() { r.Create("a", 9) }, nil},
			{func() { r.Delete("a") }, []event{{"a", 0, 5, true, false}}},
			{func() { r.Delete("a") }, nil},
			{func() { r.GetOrCreate("a", answer(6, nil)) }, []event{{"a", 6, 6, false, false}}},
			{func() { r.DeleteIf("a", 6) }, []event{{"a", 0, 7, true, false}}},
			{func() { r.Put("A", 8); r.Put("A", 9); r.Delete("A"); r.Create("A", 11) }, []event{{"a", 8, 8, false, false}, {"a", 9, 9, false, false}, {"a", 0, 10, true, false}, {"a", 11, 11, false, false}}},
			{func() { r.Get("before"); r.Snapshot() }, nil},
			{func() { r.DeleteFunc(func(k string, _ int) bool { return k == "before" }) }, []event{{"before", 0, 3, true, false}}},
			{func() {
				r.Update("a", func(v int) (int, error) { // changes its own key first
					if v == 11 {
						r.Put("a", 12)
					}
					return v + 1, nil
				})
			}, []event{{"a", 12, 12, false, false}, {"a", 13, 13, false, false}}},
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
		mustPut(t, r, "a", 8)
		wantForgotten(t, r)
	})
}

// A loop that is behind gets everything, each key's changes in their order, and
// nothing from before it began; each loop on its own.
func TestStreamSkipsNothing(t *testing.T) {
	const keys = 7
	r := transitions(shardedregistry.Config[string, int]{})
	type stream struct {
		s    shardedregistry.Streamer[string, int]
		want map[string][]event
		got  map[string][]event
	}
	var all []*stream
	open := func() {
		all = append(all, &stream{shardedregistry.OpenStream(r, 10_000), map[string][]event{}, map[string][]event{}})
	}
	end := func(s *stream) {
		for _, e := range drain(t, s.s) {
			s.got[e.Key] = append(s.got[e.Key], e)
		}
		for i := range keys {
			wantEvents(t, s.got[key(i)], s.want[key(i)]...)
		}
		s.s.Leave()
	}
	for i := range keys {
		mustPut(t, r, key(i), i)
	}
	for round := range 300 {
		if round%50 == 0 {
			open()
		}
		k := key(round % keys)
		change := event{Key: k, Value: round}
		if (round/3)%4 == 3 {
			e, ok := r.Delete(k)
			if !ok {
				continue
			}
			change = event{Key: k, Version: e.Version + 1, Deleted: true}
		} else {
			change.Version = mustPut(t, r, k, round)
		}
		for i, s := range all {
			s.want[k] = append(s.want[k], change)
			if round%(3*i+2) == 0 {
				for _, e := range drain(t, s.s) {
					s.got[e.Key] = append(s.got[e.Key], e)
				}
			}
		}
		if round%120 == 119 {
			end(all[0])
			all = all[1:]
		}
	}
	for _, s := range all {
		end(s)
	}
	wantForgotten(t, r)
}

// What others have stored and not told yet is told by who comes next, be it that
// it replaces, deletes or creates again what they have stored.
func TestStreamLateTellers(t *testing.T) {
	r := transitions(shardedregistry.Config[string, int]{})
	mustPut(t, r, "a", 1)
	before := shardedregistry.Stored(r, "a", 2) // had not returned when the loop began
	s := shardedregistry.OpenStream(r, 100)
	first := shardedregistry.Stored(r, "a", 3)
	second := shardedregistry.Stored(r, "a", 4)
	mustPut(t, r, "a", 5)
	wantEvents(t, drain(t, s), event{"a", 2, 2, false, false}, event{"a", 3, 3, false, false}, event{"a", 4, 4, false, false}, event{"a", 5, 5, false, false})
	second()
	before()
	wantEvents(t, drain(t, s))

	third := shardedregistry.Stored(r, "a", 6)
	dead := shardedregistry.Kill(r, "a")
	mustPut(t, r, "a", 8)
	other := shardedregistry.OpenStream(r, 100)
	wantEvents(t, drain(t, s), event{"a", 6, 6, false, false}, event{"a", 0, 7, true, false}, event{"a", 8, 8, false, false})
	dead()
	third()
	first()
	r.Delete("a")
	wantEvents(t, drain(t, s), event{"a", 0, 9, true, false})
	wantEvents(t, drain(t, other), event{"a", 0, 9, true, false})
	if n := shardedregistry.Linked(r); n != 0 {
		t.Errorf("%d cells are linked", n)
	}
	s.Leave()
	other.Leave()
	wantForgotten(t, r)
}

// More than limit changes that wait end the loop, and it yields none of them.
// What it has in its body does not wait.
func TestStreamLags(t *testing.T) {
	for _, limit := range []int{1, 2, 5} {
		r := transitions(shardedregistry.Config[string, int]{})
		n := 0
		begun := make(chan struct{})
		within(t, func() {
			go func() {
				<-begun
				mustPut(t, r, "a", 0)
			}()
			began(r, begun)
			for e, err := range r.Stream(t.Context(), limit) {
				n++
				switch {
				case err == nil && n == 1:
					for i := range limit { // just not too many
						mustPut(t, r, key(i%2), i)
					}
				case err == nil && n == limit+1:
					for i := range limit + 1 {
						mustPut(t, r, key(i%2), i)
					}
				case err != nil:
					var lagged *shardedregistry.LaggedError
					if n != limit+2 || e != (event{}) || !errors.Is(err, shardedregistry.ErrLagged) || !errors.As(err, &lagged) || lagged.Limit != limit {
						t.Errorf("limit %d: yielded are %v, %v as number %d", limit, e, err, n)
					}
				}
			}
		})
		if n != limit+2 {
			t.Errorf("limit %d: %d are yielded", limit, n)
		}
		wantForgotten(t, r)
	}
	err := &shardedregistry.LaggedError{Limit: 5}
	if got, want := err.Error(), "shardedregistry: too many changes wait for the loop: more than 5"; got != want {
		t.Errorf("the error is %q, want %q", got, want)
	}
}

// began closes c as soon as a loop over r has begun.
func began[K comparable, V any](r *shardedregistry.Registry[K, V], c chan struct{}) {
	go func() {
		for shardedregistry.Traces(r) == 0 {
			runtime.Gosched()
		}
		close(c)
	}()
}

// A loop that yields nothing lags where it sleeps; what others get is theirs.
func TestStreamLagsAlone(t *testing.T) {
	r := transitions(shardedregistry.Config[string, int]{})
	behind, other := shardedregistry.OpenStream(r, 3), shardedregistry.OpenStream(r, 4)
	for i := range 4 {
		mustPut(t, r, "a", i)
	}
	if all, lagged := behind.Drain(); !lagged || len(all) != 0 {
		t.Errorf("lagged: %v, yielded are %v", lagged, all)
	}
	within(t, func() { behind.Sleep(t.Context()) }) // not while it has an error to yield
	if all := drain(t, other); len(all) != 4 {
		t.Errorf("another loop yields %v", all)
	}
	mustPut(t, r, "a", 5)
	if n := shardedregistry.Seats(r); n != 1 {
		t.Errorf("%d seats are left", n)
	}
	r.Delete("a")
	if all := drain(t, other); len(all) != 2 || shardedregistry.Linked(r) != 0 {
		t.Errorf("another loop yields %v, %d cells are linked", all, shardedregistry.Linked(r))
	}
	behind.Leave()
	other.Leave()
	wantForgotten(t, r)
}

// However a loop ends, and with whatever is still to be yielded, it leaves nothing
// behind.
func TestStreamLeavesNothing(t *testing.T) {
	for name, end := range map[string]func(context.CancelFunc){
		"break":  nil,
		"panic":  func(context.CancelFunc) { panic(errTest) },
		"Goexit": func(context.CancelFunc) { runtime.Goexit() },
		"cancel": func(cancel context.CancelFunc) { cancel() },
	} {
		r := transitions(shardedregistry.Config[string, int]{Normalize: normalize})
		mustPut(t, r, "A", 1)
		mustPut(t, r, "b", 1)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		begun := make(chan struct{})
		began(r, begun)
		go func() {
			<-begun
			r.Put("start", 1)
		}()
		left(t, func() {
			ended := false
			for e, err := range r.Stream(ctx, 1000) {
				if err != nil || ended {
					t.Errorf("%s: %v, %v is yielded", name, e, err)
				}
				if e.Key == "start" {
					for i := range 300 {
						mustPut(t, r, key(i%100), i)
					}
					mustPut(t, r, "a", 2)
					r.Delete("b")
				}
				if e.Key == key(50) {
					if shardedregistry.Traces(r) == 0 || shardedregistry.Chained(r) == 0 {
						t.Error("there is nothing that could be left")
					}
					if end == nil {
						break
					}
					ended = true
					end(cancel)
				}
			}
		})
		if traces, kept := shardedregistry.Traces(r), shardedregistry.Chained(r); traces+kept != 0 {
			t.Errorf("%s: %d traces and %d old records are left", name, traces, kept)
		}
		if _, err := r.Create("a", 3); err == nil || err.Error() != "shardedregistry: key exists: a, created as A, at version 2" {
			t.Errorf("%s: Create = %v", name, err)
		}
	}
}

// A sequence that nobody ranges over is nothing, may be ranged over again, and
// yields nothing if its context has ended.
func TestStreamIsASequence(t *testing.T) {
	r := transitions(shardedregistry.Config[string, int]{})
	changes := r.Stream(t.Context(), 1)
	wantTraces(t, r)
	for i := range 2 {
		begun, put := make(chan struct{}), make(chan struct{})
		began(r, begun)
		go func() {
			defer close(put)
			<-begun
			r.Put("a", i)
		}()
		next, stop := iter.Pull2(changes)
		if e, err, ok := next(); !ok || err != nil || e.Value != i {
			t.Errorf("a loop yields %v, %v, %v", e, err, ok)
		}
		stop()
		<-put // or it may be told to the next loop as well, which has no room for two
		wantForgotten(t, r)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for e, err := range r.Stream(ended, 1) {
		t.Errorf("%v, %v is yielded when ctx has ended", e, err)
	}
	wantForgotten(t, r)
}

func TestStreamPanics(t *testing.T) {
	var zero, used shardedregistry.Registry[string, int]
	mustPut(t, &used, "a", 1)
	r := transitions(shardedregistry.Config[string, int]{})
	for name, do := range map[string]func(){
		"shardedregistry: Stream called with a nil context":              func() { r.Stream(noContext, 1) },
		"shardedregistry: Stream with limit 0, which must be at least 1": func() { r.Stream(t.Context(), 0) },
		"shardedregistry: Stream without Config.Transitions": func() {
			left(t, func() { zero.Stream(t.Context(), 1); t.Error("a zero registry has a stream") })
			used.Stream(t.Context(), 1)
		},
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
