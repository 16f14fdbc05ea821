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
type collector[K comparable, V any] struct {
	root *root[K, V]
	cut  uint64 // the last one that was made; 0 before the first

	// What is known of the keys, by their numbers. Keys and heads become the snapshot's.
	keys  keyList[K]
	cells []*cell[K, V]   // as last seen
	heads []*record[K, V] // what the cells held when they were last read: before the next cut; nil: not yet

	// exceptions has nil for a key that held its head at the cut, which is plain and alive. That
	// is what most keys are. As long as the cell holds head, the record itself need not be
	// read. It ends before the keys after which no exception was met.
	exceptions []*exception[K, V]

	last   Version // the highest version that was met
	next   int     // the number of the key that comes next, if the order is that of the previous look
	unsure bool    // whether a plain record was found that is new
}

// exception is what a collector knows of a key that may have held something else than its head.
type exception[K comparable, V any] struct {
	before *cell[K, V]   // the one that the key had at the previous look, if that was another
	held   *record[K, V] // what the key held at the cut; nil or dead if it was absent
}

// take puts a snapshot into p. It takes effect when its last cut is made.
func take[K comparable, V any](rt *root[K, V], p *contents[K, V]) {
	col := newCollector(rt)
	col.collect() // its first look has nothing to compare with
	for !col.collect() {
		// until nothing is new that was under way when it joined
	}
	col.finish(p)
}

func newCollector[K comparable, V any](rt *root[K, V]) *collector[K, V] {
	n := rt.len()
	rt.updateClock(snapshotClock.joined)
	return &collector[K, V]{root: rt, keys: keyList[K]{keys: make([]K, 0, n)}, cells: make([]*cell[K, V], 0, n), heads: make([]*record[K, V], 0, n)}
}

// collect makes a cut and finds what every key held at it. It reports whether
// it is sure.
func (col *collector[K, V]) collect() (sure bool) {
	// LP(Snapshot): the state with the last cut is stored.
	col.cut = col.root.updateClock(func(s snapshotClock) snapshotClock { return s.advanced(col.cut) }).time
	col.next, col.unsure = 0, false
	col.walk()
	col.observe()
	return !col.unsure
}

// finish puts what was collected into p, and leaves nothing behind.
func (col *collector[K, V]) finish(p *contents[K, V]) {
	col.root.updateClock(func(s snapshotClock) snapshotClock { return s.left(col.cut) })
	for i, c := range col.cells {
		if !col.quiet(i, c.rec.Load()) {
			col.clear(col.keys.keys[i])
		}
	}
	col.fill(p)
	p.last = max(col.last, col.root.highestFloor())
}

// walk finds every cell that is in the table throughout the walk, dead or alive, or
// instead of a dead one the cell that replaces it. A key has one at most. In the first
// walk no key is known.
func (col *collector[K, V]) walk() {
	first := len(col.cells) == 0
	for c := range col.root.cells.All() {
		if first {
			col.cells = append(col.cells, c)
		} else {
			col.meet(c)
		}
	}
}

// meet notes c, and is not called by the first walk. Most cells are where the previous
// look met them, and are not read.
func (col *collector[K, V]) meet(c *cell[K, V]) {
	if col.next == len(col.cells) || col.cells[col.next] != c && col.keys.keys[col.next] != c.key {
		var isNew bool
		if col.next, isNew = col.keys.add(c.key, col.root.hash); isNew {
			col.cells, col.heads = append(col.cells, c), append(col.heads, nil)
		}
	}
	if i := col.next; col.cells[i] != c {
		col.except(i, exception[K, V]{before: col.cells[i]})
		col.cells[i] = c
	}
	col.next++
}

// lookAhead is how many cells are read before the first of their records is, and
// how many records before the first is judged, so that the processor can wait for
// many of them at once.
const lookAhead = 64

// observe finds what every key held at the cut, also those whose cell has left the
// table.
func (col *collector[K, V]) observe() {
	var (
		now   [lookAhead]*record[K, V]
		words [lookAhead]word
	)
	first := len(col.heads) == 0
	if first {
		col.heads = slices.Grow(col.heads, len(col.cells))[:len(col.cells)]
	}
	for from := 0; from < len(col.cells); from += lookAhead {
		cells := col.cells[from:min(from+lookAhead, len(col.cells))]
		for i, c := range cells {
			now[i] = c.rec.Load()
		}
		if first {
			for _, c := range cells {
				col.keys.append(c.key)
			}
		}
		for i := range cells {
			if !col.quiet(from+i, now[i]) {
				words[i] = now[i].word
			}
		}
		for i := range cells {
			switch n, head := from+i, now[i]; {
			case col.quiet(n, head):
			case words[i]&(datedBit|deadBit) == 0:
				if head != col.heads[n] {
					col.heads[n], col.unsure = head, true
					col.last = max(col.last, words[i].version())
				}
				if col.excepted(n) != nil {
					col.exceptions[n] = nil
				}
			default:
				col.judge(n, head)
			}
		}
	}
}

// quiet reports whether key n has held rec, plain and alive, since the previous look.
func (col *collector[K, V]) quiet(n int, rec *record[K, V]) bool {
	return rec == col.heads[n] && col.excepted(n) == nil
}

// excepted returns the exception of key n, or nil.
func (col *collector[K, V]) excepted(n int) *exception[K, V] {
	if n < len(col.exceptions) {
		return col.exceptions[n]
	}
	return nil
}

// except makes key n an exception.
func (col *collector[K, V]) except(n int, x exception[K, V]) {
	if n >= len(col.exceptions) {
		col.exceptions = append(col.exceptions, make([]*exception[K, V], len(col.cells)-len(col.exceptions))...)
	}
	if col.exceptions[n] == nil {
		col.exceptions[n] = new(exception[K, V])
	}
	*col.exceptions[n] = x
}

// judge finds what key n, whose cell holds head, held at the cut.
func (col *collector[K, V]) judge(n int, head *record[K, V]) {
	if head = col.root.resolved(head); head != nil {
		col.last = max(col.last, head.version())
	}
	held := col.root.at(head, col.cut)
	if x := col.excepted(n); held == nil && x != nil && x.before != nil {
		// This cell is younger than the cut. The one before it may have died
		// after the cut too.
		held = col.root.at(col.root.resolved(x.before.rec.Load()), col.cut)
	}
	if held != nil && held.word&datedBit == 0 && held != col.heads[n] {
		col.unsure = true
	}
	col.heads[n] = head
	col.except(n, exception[K, V]{held: held})
}

// clear forgets what was kept of key for the cut. Something was kept only if the key
// has changed since it was seen, or held something else then than at the cut. A writer
// that changes the key from now on keeps nothing for the cut, and one that read the
// clock before has stored its record before, and is found here.
func (col *collector[K, V]) clear(key K) {
	k := col.root.rehashed(key)
	c := col.root.cells.Load(k) // the one that was seen may have been replaced
	if c == nil {
		return
	}
	rec := col.root.resolved(c.rec.Load())
	if rec != nil && rec.word&datedBit != 0 && !col.root.settle(rec) && rec.dead() {
		col.root.tidy(k, 0)
	}
}

// fill puts what was collected into p: without what is absent, and instead of records that refer
// to what they have replaced, copies that do not. If all keys are quiet, nothing is left to do.
func (col *collector[K, V]) fill(p *contents[K, V]) {
	p.codec, p.keys, p.records = col.root.keyCodec, col.keys.keys, col.heads
	if len(col.exceptions) == 0 {
		return
	}
	n := 0
	for i, rec := range p.records {
		x := col.excepted(i)
		if x != nil {
			if rec = x.held; rec == nil || rec.dead() {
				continue
			}
		}
		// A record that has forgotten what it has replaced does so for ever.
		if x != nil && rec.word&datedBit != 0 {
			rec = &record[K, V]{word: rec.word &^ datedBit, value: rec.value}
		}
		p.keys[n], p.records[n] = p.keys[i], rec
		n++
	}
	clear(p.keys[n:])
	clear(p.records[n:])
	p.keys, p.records = p.keys[:n], p.records[:n]
}
