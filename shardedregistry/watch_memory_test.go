//go:build !modelcheck

package shardedregistry_test

import (
	"fmt"
	"runtime"
	"testing"
	"weak"

	"github.com/latchfree/latchfree/shardedregistry"
)

// A loop that stalls delays nobody. What waits for it is bounded by the keys,
// however often they change, come and go, and it sees how they end.
func TestWatcherStalls(t *testing.T) {
	const keys, rounds = 50, 40
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 2})
	w, other := shardedregistry.Subscribe(r), shardedregistry.Subscribe(r)
	within(t, func() {
		for round := range rounds {
			for i := range keys {
				mustPut(t, r, key(i), round)
				mustPut(t, r, key(i), -round)
				if round == rounds-1 && i%2 == 0 || round%2 == i%2 {
					r.Delete(key(i))
				}
			}
			other.Drain()
			if slips, linked, seats := w.Piled(), shardedregistry.Linked(r), shardedregistry.Seats(r); slips > keys || linked > keys || seats > 2*keys {
				t.Fatalf("%d slips, %d cells, %d seats in round %d", slips, linked, seats, round)
			}
		}
	})
	view := map[string]int{}
	apply(view, w.Drain())
	if len(view) != r.Len() {
		t.Errorf("the loop has %d keys, want %d", len(view), r.Len())
	}
	for k, v := range view {
		wantValue(t, r, k, v)
	}
	if linked := shardedregistry.Linked(r); linked != r.Len() {
		t.Errorf("%d cells are linked for %d keys", linked, r.Len())
	}
	w.Leave()
	other.Leave()
	wantTraces(t, r)
}

// What a loop keeps of keys that are gone is bounded by those that are there.
func TestWatchForgetsKeys(t *testing.T) {
	var r shardedregistry.Registry[string, int]
	w, other := shardedregistry.Subscribe(&r), shardedregistry.Subscribe(&r)
	defer w.Leave()
	defer other.Leave()
	for i := range 100 {
		mustPut(t, &r, fmt.Sprint("stays ", i), i)
	}
	for i := range 5000 {
		mustPut(t, &r, key(i), i)
		if i%2 == 0 {
			w.Drain()
		}
		r.Delete(key(i))
		w.Drain()
		other.Drain()
		if n := w.Kept(); n > 300 {
			t.Fatalf("the loop keeps %d keys of %d", n, r.Len())
		}
	}
	if n := w.Kept(); n < 100 {
		t.Errorf("the loop has forgotten keys that are there: it has %d", n)
	}
}

// Neither a loop nor what it has yielded keeps values that were replaced, and
// when it has ended nothing keeps the loop.
func TestWatchMemory(t *testing.T) {
	r := new(shardedregistry.Registry[string, *blob])
	first, second := new(blob), new(blob)
	replaced, deleted := weak.Make(first), weak.Make(second)
	mustPut(t, r, "a", first)
	mustPut(t, r, "b", second)
	body := new(blob)
	watching := weak.Make(body)
	func() {
		for state, e := range r.WatchSnapshot(t.Context()) {
			if state != nil {
				mustPut(t, r, "a", new(blob))
				r.Delete("b")
				state, first, second = nil, nil, nil
				continue
			}
			body.bytes[0]++
			if e.Key == "b" {
				mustPut(t, r, "c", new(blob))
			}
			if e.Key == "c" {
				break
			}
			if runtime.GC(); replaced.Value() != nil {
				t.Error("the loop keeps a value that was replaced")
			}
		}
	}()
	body = nil
	runtime.GC()
	if deleted.Value() != nil {
		t.Error("a value that was deleted is kept")
	}
	if watching.Value() != nil {
		t.Error("the loop is kept")
	}
	wantTraces(t, r)
	runtime.KeepAlive(r)
}
