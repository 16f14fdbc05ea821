package atomicbreaker

import (
	"fmt"
	"testing"
)

// ProbeGeneration returns the generation of a permit that is a probe.
func (p Permit) ProbeGeneration() (gen int, probe bool) {
	w := decoded(p.bits)
	return int(w.gen()), w.mode() == halfOpen
}

// ProbeGeneration returns the generation of a permit that is a probe.
func (p GroupPermit[K]) ProbeGeneration() (gen int, probe bool) {
	return Permit{bits: p.bits}.ProbeGeneration()
}

// CheckQuiet returns what is inconsistent in a group that nobody uses, and that has had
// these keys only, or any if there are none.
func (g *Group[K]) CheckQuiet(keys ...K) error { return g.checkQuiet(keys...) }

// checkQuiet is CheckQuiet. It looks at the keys' slots of the filter.
func (g *Group[K]) checkQuiet(keys ...K) error {
	ks := g.current()
	cells, out, bySlot := int64(0), int64(0), map[uint64]uint32{}
	for k, c := range ks.cells.All() {
		cells++
		bySlot[filterSlot(ks.hash(c.key, 0))]++
		w := word(c.word.Load())
		if w.out() {
			out++
		}
		switch {
		case !c.deliveredUpTo(w):
			return fmt.Errorf("the listener was told of %d generations of %v, of %d", c.queue.delivered.Load(), k, w.gen())
		case w.mode() == tombstone:
			return fmt.Errorf("the dead cell of %v is still in the table", k)
		case w.pristine():
			return fmt.Errorf("the pristine cell of %v is still in the table", k)
		}
	}
	if n := ks.linked.Load(); n != cells {
		return fmt.Errorf("%d cells in the table, counted as %d", cells, n)
	}
	if n := ks.quota.held.Load(); n != out {
		return fmt.Errorf("%d cells are open or half-open, counted as %d", out, n)
	}
	s := ks.filter.Load()
	if s == nil {
		return nil // nothing was ever inserted
	}
	check := func(i uint64) error {
		if n := s[i].Load(); n != bySlot[i] {
			return fmt.Errorf("%d cells in slot %d of the filter, counted as %d", bySlot[i], i, n)
		}
		return nil
	}
	if len(keys) == 0 {
		for i := range s {
			if err := check(uint64(i)); err != nil {
				return err
			}
		}
	}
	for _, k := range keys {
		if err := check(filterSlot(ks.hash(k, 0))); err != nil {
			return err
		}
	}
	return nil
}

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
