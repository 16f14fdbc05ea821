//go:build !modelcheck

package atomicbreaker

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"
)

// A caller who has changed the breaker and stops before it says so holds up
// what came later, and no more: when it goes on, the listener is told of all.
func TestLateWinnersAreNotifiedInOrder(t *testing.T) {
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
//
// Checks I19, I20, I21, I22.
func TestEventsOutlastGenerations(t *testing.T) {
	var got []uint64
	b := deafTo(0, func(e Event) { got = append(got, e.Generation) })
	b.core.queue.delivered.Store(genMask - 2)
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
	b.core.queue.delivered.Store(genMask - 2)
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
			if q := b.core.queue; q.head.Load() != nil || q.waiting != nil {
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

// tripInSilence opens the breaker of a key and keeps the event from being published.
func tripInSilence(t *testing.T, g *Group[string], k string) (c *cell[string], publish func()) {
	ks := g.current()
	c = ks.obtain(k, ks.hash(k, 0), nil)
	s := c.set.Load()
	now, at := s.clock()
	w := word(c.word.Load())
	next := w.trip(s, 0, now)
	s.quota.acquire(0)
	if !c.word.CompareAndSwap(uint64(w), uint64(next)) {
		t.Fatal("the word has changed")
	}
	e := s.event(w, change{next: next, why: ReasonThreshold, at: at})
	return c, func() { c.queue.push(next.gen(), e).deliver() }
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
	if d := g.current().cells.Load("k"); d != c {
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

// A call that was admitted after ResetAll has returned is good, also if its cell dies later,
// as that has waited for its events.
func TestCallsAfterResetAllOutliveTheirCell(t *testing.T) {
	g, got := listening()
	_, publish := tripInSilence(t, g, "k")
	g.ResetAll()
	p, err := g.Allow("k")
	if err != nil {
		t.Fatal(err)
	}
	publish()
	if s := got(); s != "k Open 1; k Closed 2; " || g.Len() != 0 {
		t.Fatalf("told %q, %d keys", s, g.Len())
	}
	if v := p.Failure(); v != Tripped {
		t.Errorf("%v of a call from after ResetAll", v)
	}
}

// A breaker keeps none of the events that have waited for a late winner, or for the listener,
// once that was told of them.
func TestMemoryOfDeliveredEvents(t *testing.T) {
	const many = 20_000
	others := func(b *Breaker) {
		for gen := uint32(3); gen <= many; gen++ {
			publish(b, gen)
		}
		publish(b, 2)
	}
	for _, slow := range []bool{false, true} {
		notified := 0
		var b *Breaker
		b = deafTo(many, func(Event) {
			if notified++; slow && notified == 1 {
				others(b)
			}
		})
		before := heapInUse()
		if !slow {
			others(b)
		}
		publish(b, 1)
		if notified != many {
			t.Fatalf("told of %d events, want %d", notified, many)
		}
		if kept := heapInUse() - before; kept > many {
			t.Errorf("%d bytes are kept, slow %v", kept, slow)
		}
		runtime.KeepAlive(b)
	}
}

// heapInUse returns how many bytes are reachable.
func heapInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// However many events wait for one whose caller is stopped, the next costs no more: it is
// put behind the last.
func TestManyEventsWaitForOne(t *testing.T) {
	const n = 100_000 // of which the square is too much for a test
	notified := 0
	b := deafTo(0, func(Event) { notified++ })
	began := time.Now()
	for gen := uint32(2); gen < n; gen++ {
		publish(b, gen)
	}
	if notified != 0 {
		t.Fatalf("%d events were delivered before the first", notified)
	}
	if publish(b, 1); notified != n-1 {
		t.Errorf("%d of %d events were delivered", notified, n-1)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("that took %v", took)
	}
}

// A dead cell that has not left the table yet is none: its key is absent, and so never a
// Shadow.
func TestDeadCellsReadAsAbsent(t *testing.T) {
	g := MustNewGroup(GroupConfig[string]{PerKey: func(string) Config { return Config{Name: "stored", Shadow: true} }})
	st := g.current()
	c := st.obtain("k", st.hash("k", 0), nil)
	c.word.Store(uint64(word(c.word.Load()).stay().bury()))
	if s := g.Snapshot("k"); s.State != Closed || s.Name != "" || g.State("k") != Closed || g.IsOpen("k") {
		t.Errorf("%+v, %v", s, g.State("k"))
	}
}
