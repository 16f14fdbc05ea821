package shardedregistry

import "slices"

// collector is one call of Snapshot. It belongs to its goroutine.
//
// It joins the clock, so that from now on changes are dated; makes a cut; and looks
// at every cell for what it held at the cut. Dates tell that, except of a plain
// record: one that the previous look saw was there at the cut, but one that is
// new may be older or younger than the cut. Then the collector makes another cut. So
// it looks twice, and beyond that at most once for each change that was under way
// when it joined: changes that start later are dated.
type collector[K comparable] struct {
	root *root[K]
	cut  uint64 // the last one that was made; 0 before the first

	keys     keyList[K]
	observed []observation[K] // by number of the key

	next   int  // the number of the key that comes next, if the order is that of the previous look
	unsure bool // whether a plain record was found that is new
}

// observation is what a collector knows of a key.
type observation[K comparable] struct {
	cell   *cell[K] // as last seen
	before *cell[K] // the one that the key had at the previous look, if that was another
	head   *record  // what cell held when it was last read: before the next cut; nil if the key was absent
	held   *record  // what the key held at the cut; nil or dead if it was absent

	// quiet says that held is head, plain and alive. That is what most keys
	// are. As long as the cell holds head, the record itself need not be read.
	quiet bool
}

// take puts a snapshot into p. It takes effect when its last cut is made. Plain is
// the function of that name for the registry's values.
func take[K comparable](rt *root[K], p *contents[K], plain func(*record) *record) {
	col := newCollector(rt)
	col.collect() // its first look has nothing to compare with
	for !col.collect() {
		// until nothing is new that was under way when it joined
	}
	col.finish(p, plain)
}

func newCollector[K comparable](rt *root[K]) *collector[K] {
	n := rt.len()
	rt.updateClock(snapshotClock.joined)
	return &collector[K]{root: rt, keys: keyList[K]{keys: make([]K, 0, n)}, observed: make([]observation[K], 0, n)}
}

// collect makes a cut and finds what every key held at it. It reports whether
// it is sure.
func (col *collector[K]) collect() (sure bool) {
	// LP(Snapshot): the state with the last cut is stored.
	col.cut = col.root.updateClock(func(s snapshotClock) snapshotClock { return s.advanced(col.cut) }).time
	col.next, col.unsure = 0, false
	col.walk()
	col.observe()
	return !col.unsure
}

// finish puts what was collected into p, and leaves nothing behind.
func (col *collector[K]) finish(p *contents[K], plain func(*record) *record) {
	col.root.updateClock(func(s snapshotClock) snapshotClock { return s.left(col.cut) })
	for i := range col.observed {
		col.clear(col.keys.keys[i], &col.observed[i])
	}
	col.fill(p, plain)
}

// walk finds every cell that is in the table throughout the walk, dead or alive, or
// instead of a dead one the cell that replaces it. A key has one at most. In the first
// walk no key is known.
func (col *collector[K]) walk() {
	first := len(col.observed) == 0
	for c := range col.root.cells.All() {
		if first {
			col.observed = append(col.observed, observation[K]{cell: c})
		} else {
			col.meet(c)
		}
	}
}

// meet notes c, and is not called by the first walk. Most cells are where the previous
// look met them, and are not read.
func (col *collector[K]) meet(c *cell[K]) {
	if col.next == len(col.observed) || col.observed[col.next].cell != c && col.keys.keys[col.next] != c.key {
		var isNew bool
		if col.next, isNew = col.keys.add(c.key, col.root.hash); isNew {
			col.observed = append(col.observed, observation[K]{})
		}
	}
	if s := &col.observed[col.next]; s.cell != c {
		s.cell, s.before = c, s.cell
	}
	col.next++
}

// lookAhead is how many cells are read before the first of their records is, and
// how many records before the first is judged, so that the processor can wait for
// many of them at once.
const lookAhead = 64

// observe finds what every key held at the cut, also those whose cell has left the
// table.
func (col *collector[K]) observe() {
	var (
		heads [lookAhead]*record
		words [lookAhead]word
	)
	first := len(col.keys.keys) == 0
	for some := range slices.Chunk(col.observed, lookAhead) {
		for i := range some {
			heads[i] = some[i].cell.rec.Load()
		}
		if first {
			for i := range some {
				col.keys.append(some[i].cell.key)
			}
		}
		for i := range some {
			if !some[i].still(heads[i]) {
				words[i] = heads[i].word
			}
		}
		for i := range some {
			s, head := &some[i], heads[i]
			switch {
			case s.still(head):
			case words[i]&(datedBit|deadBit) == 0:
				col.unsure = col.unsure || head != s.head
				*s = observation[K]{cell: s.cell, head: head, held: head, quiet: true}
			default:
				col.judge(s, head)
			}
		}
	}
}

// still reports whether the cell of o is quiet and holds head as before.
func (o *observation[K]) still(head *record) bool { return o.quiet && head == o.head }

// judge finds what the key of s, whose cell holds head, held at the cut.
func (col *collector[K]) judge(s *observation[K], head *record) {
	head = resolved(head)
	held := col.root.at(head, col.cut)
	if held == nil && s.before != nil {
		// This cell is younger than the cut. The one before it may have died
		// after the cut too.
		held = col.root.at(resolved(s.before.rec.Load()), col.cut)
	}
	if held != nil && held.word&datedBit == 0 && held != s.head {
		col.unsure = true
	}
	*s = observation[K]{cell: s.cell, head: head, held: held}
}

// clear forgets what was kept of key for the cut. Something was kept only if the key
// has changed since it was seen, or held something else then than at the cut. A writer
// that changes the key from now on keeps nothing for the cut, and one that read the
// clock before has stored its record before, and is found here.
func (col *collector[K]) clear(key K, s *observation[K]) {
	if s.still(s.cell.rec.Load()) {
		return
	}
	k := col.root.rehashed(key)
	c := col.root.cells.Load(k) // s.cell may have been replaced
	if c == nil {
		return
	}
	rec := resolved(c.rec.Load())
	if rec != nil && rec.word&datedBit != 0 && !col.root.settle(rec) && rec.dead() {
		col.root.tidy(k)
	}
}

// fill puts what was collected into p, without what is absent.
func (col *collector[K]) fill(p *contents[K], plain func(*record) *record) {
	present := 0
	for i := range col.observed {
		if col.observed[i].present() {
			present++
		}
	}
	p.codec, p.keys, p.records = col.root.keyCodec, col.keys.keys, make([]*record, 0, present)
	all := present == len(col.observed)
	if !all {
		p.keys = make([]K, 0, present)
	}
	for i := range col.observed {
		if found := &col.observed[i]; found.present() {
			rec := found.held
			if !col.lasts(found) {
				rec = plain(rec)
			}
			p.records = append(p.records, rec)
			if !all {
				p.keys = append(p.keys, col.keys.keys[i])
			}
		}
	}
}

// present reports whether the key was present at the cut.
func (o *observation[K]) present() bool { return o.quiet || o.held != nil && !o.held.dead() }

// lasts reports whether the record that the key of s held at the cut refers to no
// record that it has replaced. A record that has forgotten those does so for ever.
func (col *collector[K]) lasts(s *observation[K]) bool {
	rt := col.root
	dated := !s.quiet && s.held.word&datedBit != 0
	return !dated && (rt.transitions == nil || rt.transitions.alone(s.held))
}
