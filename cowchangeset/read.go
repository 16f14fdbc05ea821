package cowchangeset

import "iter"

// entries yields indices and entries below m.
func (l *log[E]) entries(m *mark[E]) iter.Seq2[uint64, E] { return l.start().entries(m) }

// position is a boundary between reservations: an index, and a chunk that does
// not start after it.
type position[E any] struct {
	chunk *chunk[E]
	i     uint64
}

func (l *log[E]) start() position[E] { return position[E]{&l.head, 0} }

// entries yields indices and entries from p up to m.
func (p position[E]) entries(m *mark[E]) iter.Seq2[uint64, E] {
	return func(yield func(uint64, E) bool) { p.walk(m.n, yield) }
}

// walk yields indices and entries from p up to the boundary n, below which all
// slots are decided. It returns n's position, or false if the loop has ended
// before.
func (p position[E]) walk(n uint64, yield func(uint64, E) bool) (position[E], bool) {
	for p.i < n {
		now := p.at().load()
		rest := p.i + now.span()
		if now.kind() != published {
			p.i = rest
		}
		for ; p.i < rest; p.i++ {
			if !yield(p.i, p.at().value) {
				return p, false
			}
		}
	}
	return p, true
}

// at returns the slot, which exists, and brings the chunk up to it.
func (p *position[E]) at() *slot[E] {
	p.chunk = p.chunk.to(p.i)
	return &p.chunk.slots[p.i-p.chunk.base]
}

// collect returns the entries of whole reservations from p on, below n: as many
// as there are, or until they are enough.
func (p position[E]) collect(n uint64, enough int) (position[E], []Entry[E]) {
	var entries []Entry[E]
	for p.i < n && len(entries) < enough {
		p, _ = p.walk(p.i+p.at().load().span(), func(i uint64, e E) bool {
			entries = append(entries, Entry[E]{i, e})
			return true
		})
	}
	return p, entries
}

// to returns the chunk that holds slot i, which exists and is not before c.
func (c *chunk[E]) to(i uint64) *chunk[E] {
	for i-c.base >= uint64(len(c.slots)) {
		c = c.next.Load()
	}
	return c
}
