//go:build !modelcheck

package atomicbreaker

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
)

// A caller who has changed the breaker and stops before it says so holds up
// what came later, and no more: when it goes on, the listener is told of all.
func TestLateWinnersAreToldInOrder(t *testing.T) {
	order := []uint32{1, 2, 3, 4, 5, 6}
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var got []uint64
		b := deafTo(uint64(len(order)), func(e Event) { got = append(got, e.Generation) })
		r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for i, gen := range order {
			publish(b, gen)
			// Told is what has no gap before it.
			want := 0
			for slices.Contains(order[:i+1], uint32(want+1)) {
				want++
			}
			if len(got) != want || want > 0 && got[want-1] != uint64(want) {
				t.Fatalf("%v published: told of %v", order[:i+1], got)
			}
		}
	}
}

// Generations in a word go round; those of events do not.
func TestEventsOutlastGenerations(t *testing.T) {
	var got []uint64
	b := deafTo(0, func(e Event) { got = append(got, e.Generation) })
	b.core.delivered.Store(genMask - 2)
	b.core.word.Store((genMask - 2) << genShift)
	for range 4 {
		b.Reset()
	}
	if want := []uint64{genMask - 1, genMask, genMask + 1, genMask + 2}; !slices.Equal(got, want) {
		t.Fatalf("told of %v, want %v", got, want)
	}
	if gen := b.Snapshot().Generation; gen != 2 {
		t.Fatalf("generation %d, want 2", gen)
	}
	// The same with late winners on both sides.
	got = nil
	b.core.delivered.Store(genMask - 2)
	for _, gen := range []uint32{1, genMask, 2, genMask - 1} {
		publish(b, gen)
	}
	if want := []uint64{genMask - 1, genMask, genMask + 1, genMask + 2}; !slices.Equal(got, want) {
		t.Fatalf("told of %v, want %v", got, want)
	}
}

// A listener that fails at every event is told of all, by whoever delivers,
// while that unwinds.
func TestDeliveryGoesOnWhileItUnwinds(t *testing.T) {
	for name, end := range map[string]func(int){
		"panic":  func(i int) { panic(i) },
		"goexit": func(int) { runtime.Goexit() },
		"both": func(i int) {
			if i%2 == 0 {
				panic(i)
			}
			runtime.Goexit()
		},
	} {
		t.Run(name, func(t *testing.T) {
			const n = 100
			var got []uint64
			b := deafTo(n, func(e Event) {
				got = append(got, e.Generation)
				end(len(got))
			})
			for gen := uint32(n); gen > 1; gen-- {
				publish(b, gen)
			}
			done := make(chan any)
			go func() {
				defer func() { done <- recover() }()
				publish(b, 1)
			}()
			if <-done == nil && name == "panic" {
				t.Error("the panic has got lost")
			}
			if len(got) != n || got[n-1] != n {
				t.Fatalf("told of %v", got)
			}
			if q := b.core.set.Load().queue; q.head.Load() != nil || q.waiting != nil {
				t.Fatal("the queue is not empty and free")
			}
		})
	}
}

// listening returns a group that remembers what its listener is told.
func listening() (g *Group[string], got func() string) {
	var events string
	g = MustNewGroup(GroupConfig[string]{
		Default:       Config{Policy: Consecutive(1), OpenTimeout: -1},
		OnStateChange: func(k string, e Event) { events += fmt.Sprintf("%s %v %d; ", k, e.To, e.Generation) },
	})
	return g, func() (s string) {
		s, events = events, ""
		return s
	}
}

func (g *Group[K]) mustBeQuiet(t *testing.T) {
	t.Helper()
	if err := g.CheckQuiet(); err != nil {
		t.Error(err)
	}
}

// Keys whose hashes are equal share a queue. Then an event of one may have to wait
// for those of the other, and all are told, in order and once.
func TestKeysThatShareAQueue(t *testing.T) {
	g, got := listening()
	g.queueHash = func(string, uint64) uint64 { return 7 }
	_, publish := tripInSilence(t, g, "a")
	g.RecordFailure("b")
	if s := got(); s != "b Open 1; " {
		t.Fatalf("told %q before an event of another key was published", s)
	}
	g.Reset("a") // which waits for its first event
	g.RecordSuccess("b")
	if s := got(); s != "" {
		t.Fatalf("told %q while the first key's events wait", s)
	}
	publish()
	if s := got(); s != "a Open 1; a Closed 2; b Closed 2; " {
		t.Fatal(s)
	}
	if g.mustBeQuiet(t); g.Len() != 0 {
		t.Fatalf("%d keys are left", g.Len())
	}
}

// tripInSilence opens the breaker of a key and keeps the event from being published.
func tripInSilence(t *testing.T, g *Group[string], k string) (c *cell, publish func()) {
	ks := g.current()
	c = ks.obtain(k, ks.hash(k, 0), nil)
	s := c.set.Load()
	now, at := s.clock()
	w := word(c.word.Load())
	next, v := w.recordFailure(s, now)
	s.quota.acquireAnyway()
	if v != Tripped || !c.word.CompareAndSwap(uint64(w), uint64(next)) {
		t.Fatal(v)
	}
	e := s.event(w, change{next: next, why: ReasonThreshold, at: at})
	return c, func() { ks.publish(&c.core, next.gen(), *e).deliver() }
}

// A cell with events that were not delivered keeps its place, so that those of
// the key's next cell come after them.
func TestCellsWaitForTheirEvents(t *testing.T) {
	g, got := listening()
	c, publish := tripInSilence(t, g, "k")
	g.RecordSuccess("k")
	if s := got(); s != "" || g.Len() != 1 {
		t.Fatalf("told %q before the first event was published, %d keys", s, g.Len())
	}
	g.RecordFailure("k")
	if d := g.current().find("k"); d != c {
		t.Fatal("the key has another cell")
	}
	g.RecordSuccess("k")
	publish()
	if s := got(); s != "k Open 1; k Closed 2; k Open 3; k Closed 4; " {
		t.Fatal(s)
	}
	if g.Len() != 0 {
		t.Fatal("the cell stays when all was told")
	}
	g.mustBeQuiet(t)
}

// After ResetAll a key goes on at once, and what its listener is told waits for
// what is missing from before.
func TestResetAllWaitsForNobody(t *testing.T) {
	for name, old := range map[string]func(*Group[string], *cell){
		"ResetAll has gone through":      func(g *Group[string], _ *cell) { g.ResetAll() },
		"ResetAll goes through later":    func(g *Group[string], _ *cell) { g.replaceBook(nil) },
		"ResetAll twice":                 func(g *Group[string], _ *cell) { g.replaceBook(nil); g.ResetAll() },
		"two ResetAlls go through later": func(g *Group[string], _ *cell) { g.replaceBook(nil); g.replaceBook(nil) },
		"someone has sealed the cell": func(g *Group[string], c *cell) {
			g.replaceBook(func() { c.word.Store(uint64(word(c.word.Load()).enter(tombstone))) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, got := listening()
			c, publish := tripInSilence(t, g, "k")
			g.RecordFailure("other")
			got()
			old(g, c)
			g.RecordFailure("k")
			g.RecordSuccess("k")
			g.RecordFailure("k")
			for _, s := range []string{got()} {
				if s != "" && s != "other Closed 2; " {
					t.Fatalf("told %q before what came first", s)
				}
			}
			if g.State("k") != Open {
				t.Fatal("the breaker waits")
			}
			publish()
			s := got()
			if name == "someone has sealed the cell" {
				if s != "k Open 1; " {
					t.Fatal(s)
				}
				set := c.set.Load()
				e := set.event(word(open)<<modeShift, change{next: word(tombstone) << modeShift, why: ReasonReset, at: set.epoch})
				g.current().push(c, 2, e).deliver()
				s += got()
			}
			if s != "k Open 1; k Closed 2; k Open 1; k Closed 2; k Open 3; " {
				t.Fatal(s)
			}
			g.ResetAll()
			g.mustBeQuiet(t)
		})
	}
}

// replaceBook is ResetAll by someone who stops when the group state is replaced.
func (g *Group[K]) replaceBook(then func()) {
	ks := newKeyedState(g)
	ks.before.Store(&g.current().groupState)
	g.state.Store(&ks.presence)
	if then != nil {
		then()
	}
}

// Whoever has the old group state in hand when ResetAll replaces it changes nothing
// there, so that no event comes after those of the new group state.
func TestOldGroupStatesDoNotChange(t *testing.T) {
	for name, op := range map[string]func(g *Group[string], old *keyedState[string], p Permit){
		"Allow": func(g *Group[string], old *keyedState[string], _ Permit) {
			p, err := old.allowLinked("k", old.hash("k", 0), old.departures.last.Load())
			if err != nil || g.current().group != g {
				t.Error(err)
			}
			p.Success()
		},
		"a permit": func(_ *Group[string], _ *keyedState[string], p Permit) {
			if v := p.Failure(); v != Late {
				t.Error(v)
			}
		},
		"settle": func(_ *Group[string], old *keyedState[string], p Permit) {
			for _, o := range []Outcome{Success, Failure, Ignored} {
				if v := old.settleKey("k", old.hash("k", 0), p.since, result{outcome: o}, nil); v != Late {
					t.Error(v)
				}
			}
		},
		"Sweep": func(_ *Group[string], old *keyedState[string], _ Permit) { old.sweep() },
	} {
		t.Run(name, func(t *testing.T) {
			g, got := listening()
			p, _ := g.Allow("k")
			g.RecordFailure("k")
			old := g.current()
			g.replaceBook(nil)
			got()
			op(g, old, p)
			if s := got(); s != "" {
				t.Fatalf("told %q", s)
			}
			if w := word(old.find("k").word.Load()); w.mode() != open {
				t.Fatalf("the old cell is %#x", uint64(w))
			}
			g.ResetAll()
			if s := got(); s != "k Closed 2; " {
				t.Fatalf("told %q", s)
			}
			g.mustBeQuiet(t)
		})
	}
}

// A breaker keeps none of the events that have waited for a late winner, once the listener was
// told of them.
func TestMemoryOfDeliveredEvents(t *testing.T) {
	const many = 20_000
	told := 0
	b := deafTo(many, func(Event) { told++ })
	before := heapInUse()
	for gen := uint32(2); gen <= many; gen++ {
		publish(b, gen)
	}
	publish(b, 1)
	if told != many {
		t.Fatalf("told of %d events, want %d", told, many)
	}
	if kept := heapInUse() - before; kept > many {
		t.Errorf("%d bytes are kept", kept)
	}
	runtime.KeepAlive(b)
}

// heapInUse returns how many bytes are reachable.
func heapInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
