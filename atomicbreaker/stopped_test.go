package atomicbreaker

import "testing"

// kill makes a key's cell a tombstone, as retire does, and leaves the rest to
// others, as a goroutine does that is stopped there.
func kill(t testing.TB, g *Group[string], k string) *cell {
	t.Helper()
	c := g.current().find(k)
	w := word(c.word.Load())
	if !w.pristine() || !c.word.CompareAndSwap(uint64(w), uint64(w.bury())) {
		t.Fatalf("cell %#x cannot be killed", uint64(w))
	}
	return c
}

// linger reports a success of a key, as a caller does that is stopped before it retires
// the cell. It returns what that caller does when it goes on.
func linger(g *Group[string], k string) (goOn func()) {
	ks := g.current()
	c := ks.find(k)
	s, was := c.settings(), word(c.word.Load())
	_, did := c.apply(was, was.stay(), result{outcome: Success, how: direct}, s)
	if q := did.owed; q != nil {
		q.subscriber = lingering{q.subscriber}
		q.deliver()
	}
	return func() { ks.tidy(c, did.to) }
}

// lingering is a subscriber that is stopped before it retires a cell.
type lingering struct{ subscriber }

func (lingering) notified(*core) {}

// deafTo returns a breaker in the n-th generation of which nobody was told yet.
func deafTo(n uint64, listener func(Event)) *Breaker {
	b := MustNew(Config{OnStateChange: listener})
	b.core.word.Store(uint64(generation(n)) << genShift)
	return b
}

// publish is what a caller does who has begun a generation, as late as it may
// be.
func publish(b *Breaker, gen uint32) {
	s := b.core.set.Load()
	s.publish(&b.core, gen, s.event(0, change{why: ReasonReset, at: s.epoch})).deliver()
}

// event is describe for tests.
func (s *settings) event(from word, x change) *Event {
	var e Event
	s.describe(&e, from, &x)
	return &e
}
