package table

import "github.com/latchfree/latchfree/internal/atomics"

// spread is how a set counts its cells where concurrent additions and removals must not
// write the same word: in parts, of which each call writes one. A part adds its
// count to size when that is a batch, as the approximate counters of the Linux kernel
// (percpu_counter) do. A batch is so small that all parts together keep a quarter of a
// cell at most for each chain that there was when they counted last: in a set that
// grows, a tenth of its cells.
type spread struct {
	parts int // 0: all is counted in size at once
	part  func(hash uint64) *atomics.Int64
}

// Spread makes t count in that many parts, and part return one of them for a cell of a hash. It
// comes right after Init.
func (t *Lines[K, E]) Spread(parts int, part func(hash uint64) *atomics.Int64) {
	t.spread = spread{parts, part}
}

// Counted returns the number of cells without those in the parts, so that it may be below zero.
// Together with the parts it is exact while nobody writes.
func (t *Lines[K, E]) Counted() int { return int(t.size.Load()) }

// count counts a change by one cell of that hash, in a set of so many chains, and
// reports whether size has changed. It is called after the change.
func (t *Lines[K, E]) count(hash uint64, change int64, chains int) bool {
	if t.parts > 0 {
		change = t.countInPart(hash, change, chains)
	}
	if change != 0 {
		t.size.Add(change)
	}
	return change != 0
}

// countInPart is count for the part of that hash, and returns what is to be added to
// size.
func (t *Lines[K, E]) countInPart(hash uint64, change int64, chains int) int64 {
	part := t.part(hash)
	if batch := int64(chains / (4 * t.parts)); batch > 1 {
		if n := part.Add(change); -batch < n && n < batch {
			return 0
		}
		return part.Swap(0)
	}
	if part.Load() != 0 { // since there were more chains
		change += part.Swap(0)
	}
	return change
}
