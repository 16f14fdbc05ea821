package atomicbreaker

import "testing"

// kill retires a key's cell, which is pristine.
func kill(t testing.TB, g *Group[string], k string) *cell[string] {
	t.Helper()
	c := g.current().cells.Load(k)
	if w := word(c.word.Load()); !w.pristine() || !c.retire(w) {
		t.Fatalf("cell %#x cannot be killed", uint64(w))
	}
	return c
}

// linger reports a success of a key, as a caller does that is stopped before it retires
// the cell. It returns what that caller does when it goes on.
func linger(g *Group[string], k string) (goOn func()) {
	c := g.current().cells.Load(k)
	work := report{core: &c.core, result: result{outcome: Success, how: direct}}
	_, did := work.run()
	if did.owed != nil {
		c.owner = lingering{c}
		did.owed.deliver()
		c.owner = c
	}
	return func() { c.tidy(did.to) }
}

// lingering is a cell that is not retired when its events are delivered.
type lingering struct{ owner }

func (lingering) notified() {}

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
	b.core.queue.push(gen, s.event(0, change{why: ReasonReset, at: s.epoch})).deliver()
}

// event is describe for tests.
func (s *settings) event(from word, x change) *Event {
	var e Event
	s.describe(&e, from, &x)
	return &e
}
