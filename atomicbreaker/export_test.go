package atomicbreaker

import "fmt"

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
