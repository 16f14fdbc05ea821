package atomicbreaker

import "fmt"

// ProbeGeneration returns the generation of a permit that is a probe.
func (p Permit) ProbeGeneration() (gen int, probe bool) {
	w := word(p.bits)
	return int(w.gen()), p.core != nil && w.mode() == halfOpen
}

// CheckQuiet returns what is inconsistent in a group that nobody uses.
func (g *Group[K]) CheckQuiet() error {
	b := g.current()
	cells, byStripe := int64(0), map[uint64]uint32{}
	for k, c := range b.cells.All() {
		cells++
		byStripe[stripeOf(c.hash)]++
		switch w := word(c.word.Load()); {
		case w.mode() == tombstone:
			return fmt.Errorf("the dead cell of %v is still in the table", k)
		case w.pristine() && g.config.IdleTimeout == 0:
			return fmt.Errorf("the pristine cell of %v is still in the table", k)
		}
	}
	if n := b.linked.Load(); n != cells {
		return fmt.Errorf("%d cells in the table, counted as %d", cells, n)
	}
	s := b.stripes.Load()
	if s == nil {
		return nil // nothing was ever inserted
	}
	for i := range s {
		if n := s[i].Load(); n != byStripe[uint64(i)] {
			return fmt.Errorf("%d cells in stripe %d, counted as %d", byStripe[uint64(i)], i, n)
		}
	}
	return nil
}
