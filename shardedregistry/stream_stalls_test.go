//go:build !modelcheck

package shardedregistry_test

import (
	"runtime"
	"testing"
	"weak"

	"github.com/latchfree/latchfree/shardedregistry"
)

// A stream that ends leaves nothing, not even where all who have told it something
// have stalled for ever.
func TestStreamEndsWhereTellersStall(t *testing.T) {
	r := transitions(shardedregistry.Config[string, int]{})
	mustPut(t, r, "a", 1)
	s := shardedregistry.OpenStream(r, 100)
	shardedregistry.Stored(r, "a", 2)
	shardedregistry.Informed(r, "a", 3)
	if n := shardedregistry.Chained(r); n != 2 {
		t.Errorf("%d old records are kept for a stream, want 2", n)
	}
	s.Leave()
	wantForgotten(t, r)
}

// A deletion whose call has returned is not yielded, also where the key was
// created again before the deletion was told, by a call that has stalled.
func TestStreamBeginsAfterADeletion(t *testing.T) {
	r := transitions(shardedregistry.Config[string, int]{})
	mustPut(t, r, "a", 1)
	first := shardedregistry.OpenStream(r, 100)
	dead := shardedregistry.Kill(r, "a")
	made := shardedregistry.Made(r, "a", 3)
	dead()
	second := shardedregistry.OpenStream(r, 100)
	made()
	wantEvents(t, drain(t, second), event{"a", 3, 3, false, false})
	wantEvents(t, drain(t, first), event{"a", 0, 2, true, false}, event{"a", 3, 3, false, false})
	first.Leave()
	second.Leave()
	wantForgotten(t, r)
}

// The versions of a key that is deleted and created again are consecutive while a
// stream has not looked, whatever versions other keys of its shard have had.
func TestStreamOfANewLifeSkipsNothing(t *testing.T) {
	r := transitions(shardedregistry.Config[string, int]{Shards: 1})
	mustPut(t, r, "a", 1)
	for range 5 {
		mustPut(t, r, "b", 1)
	}
	r.Delete("b")
	s := shardedregistry.OpenStream(r, 100)
	r.Delete("a")
	mustPut(t, r, "a", 3)
	wantEvents(t, drain(t, s), event{"a", 0, 2, true, false}, event{"a", 3, 3, false, false})
	s.Leave()
}

// What a stream yields has happened, also where the one who changed the key has
// stalled before the change had a date: a snapshot that has what was done then has
// it too.
func TestStreamYieldsWhatHasHappened(t *testing.T) {
	r := transitions(shardedregistry.Config[string, int]{})
	mustPut(t, r, "a", 1)
	s := shardedregistry.OpenStream(r, 100)
	mustPut(t, r, "a", 2)
	drain(t, s)
	taker := shardedregistry.Join(r)
	taker.Collect()
	shardedregistry.Stored(r, "a", 3)
	shardedregistry.Changed(r, "a")
	wantEvents(t, drain(t, s), event{"a", 3, 3, false, false})
	mustPut(t, r, "then", 1)
	taker.Collect()
	found := taker.Leave()
	a, _ := found.Lookup("a")
	if _, ok := found.Lookup("then"); !ok || a.Version != 3 {
		t.Errorf("a snapshot has what was done then: %v, and version %d", ok, a.Version)
	}
	s.Leave()
}

// The subscriptions of a stream that has lagged, and whose loop does not know yet, go when
// their keys change.
func TestStreamThatHasLaggedLosesSeats(t *testing.T) {
	r := transitions(shardedregistry.Config[string, int]{})
	s, stuck := shardedregistry.OpenStream(r, 100), shardedregistry.OpenStream(r, 1)
	mustPut(t, r, "a", 1)
	mustPut(t, r, "b", 1)
	mustPut(t, r, "a", 2)
	if n := shardedregistry.Seats(r); n != 2 {
		t.Errorf("%d seats are left, want those of one stream at two keys", n)
	}
	stuck.Leave()
	s.Leave()
}

// A stream that forgets subscriptions that it does not have any more forgets what was kept
// there. It has lost one only if it has lagged.
func TestStreamForgetsLostSeats(t *testing.T) {
	const keys = 64 // at that many subscriptions it looks
	r := transitions(shardedregistry.Config[string, int]{})
	s := shardedregistry.OpenStream(r, keys)
	for i := range keys {
		mustPut(t, r, key(i), 1)
	}
	drain(t, s)
	late := shardedregistry.Telling(r, key(0))
	shardedregistry.Informed(r, key(0), 2) // and nobody ever says so
	shardedregistry.Informed(r, key(0), 3)
	mustPut(t, r, "another", 1)
	for range keys {
		mustPut(t, r, "too much", 1)
	}
	if n := shardedregistry.Chained(r); n != 1 {
		t.Errorf("%d old records are kept for a stream, want 1", n)
	}
	late()
	if e := s.Next(); e.Key != "another" { // it does not know yet that it has lagged
		t.Errorf("%v is yielded", e)
	}
	s.Leave()
	wantForgotten(t, r)
}

// A loop that has lagged keeps nothing of what it had taken, and nor does one that
// has ended, whoever keeps it.
func TestStreamKeepsNothingThatItWillNotYield(t *testing.T) {
	r := transitions(shardedregistry.Config[string, *blob]{})
	put := func(n int) weak.Pointer[blob] {
		v := new(blob)
		for range n {
			mustPut(t, r, "a", v)
		}
		mustPut(t, r, "a", nil)
		return weak.Make(v)
	}
	forgotten := func(when string, v weak.Pointer[blob]) {
		if runtime.GC(); v.Value() != nil {
			t.Errorf("what will not be yielded is kept by a loop that %s", when)
		}
	}
	s := shardedregistry.OpenStream(r, 5)
	v := put(4)
	if s.Next(); v.Value() == nil {
		t.Error("there is nothing that could be kept")
	}
	put(5)
	s.Run(t.Context(), func(_ shardedregistry.Event[string, *blob], err error) bool {
		if forgotten("has lagged", v); err == nil {
			t.Error("the loop goes on")
		}
		return false
	})
	s.Leave()

	s = shardedregistry.OpenStream(r, 5)
	v = put(4)
	s.Next()
	s.Leave()
	keeper := s.Keeper()
	forgotten("has left", v)
	runtime.KeepAlive(keeper)
	wantForgotten(t, r)
}
