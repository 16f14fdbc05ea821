package shardedregistry

import "slices"

// taker is one call of Snapshot. It belongs to its goroutine.
//
// It joins scans, so that from now on changes are dated; makes a cut; and looks
// at every cell for what it held at the cut. Dates tell that, except of a plain
// record: one that the look before saw was there at the cut, but one that is
// new may be older or younger than it. Then the taker makes another cut. So it
// looks twice, and beyond that at most once for each change that was under way
// when it joined: what starts later is dated.
type taker[K comparable] struct {
	root *root[K]
	cut  uint64 // the last one that was made; 0 before the first

	keys  directory[K]
	sight []sighting[K] // by number of the key

	next   int  // the number of the key that comes next, if the order is that of the last look
	unsure bool // whether a plain record was found that is new
}

// sighting is what a taker knows of a key.
type sighting[K comparable] struct {
	cell   *cell[K] // as last seen
	before *cell[K] // the one that the key had at the look before, if that was another
	head   *record  // what cell held when it was last read: before the next cut
	held   *record  // what the key held at the cut; nil or dead if it was absent

	// quiet says that held is head, plain and alive. That is what most keys
	// are. As long as the cell holds head, the record itself need not be read.
	quiet bool
}

// take puts a snapshot into p. It takes effect when its last cut is made. Plain is
// the function of that name for the registry's values.
func take[K comparable](o *root[K], p *picture[K], plain func(*record) *record) {
	t := newTaker(o)
	t.collect() // its first look has nothing to compare with
	for !t.collect() {
		// until nothing is new that was under way when it joined
	}
	t.leave(p, plain)
}

func newTaker[K comparable](o *root[K]) *taker[K] {
	n := o.len()
	o.scan(scans.joined)
	return &taker[K]{root: o, keys: directory[K]{keys: make([]K, 0, n)}, sight: make([]sighting[K], 0, n)}
}

// collect makes a cut and finds what every key held at it. It reports whether
// it is sure.
func (t *taker[K]) collect() (sure bool) {
	// LP(Snapshot): the state with the last cut is stored.
	t.cut = t.root.scan(func(s scans) scans { return s.advanced(t.cut) }).clock
	t.next, t.unsure = 0, false
	t.walk()
	t.look()
	return !t.unsure
}

// leave puts what was collected into p, and leaves nothing behind.
func (t *taker[K]) leave(p *picture[K], plain func(*record) *record) {
	t.root.scan(func(s scans) scans { return s.left(t.cut) })
	for i := range t.sight {
		t.clear(t.keys.keys[i], &t.sight[i])
	}
	t.develop(p, plain)
}

// walk finds every cell that is in the table from now until then, dead or alive,
// or instead of a dead one the one that replaces it. A key has one at most. The
// first walk finds no key that is known.
func (t *taker[K]) walk() {
	first := len(t.sight) == 0
	for c := range t.root.cells.All() {
		if first {
			t.sight = append(t.sight, sighting[K]{cell: c})
		} else {
			t.meet(c)
		}
	}
}

// meet notes c, and is not called by the first walk. Most cells are where the look
// before met them, and are not read.
func (t *taker[K]) meet(c *cell[K]) {
	if t.next == len(t.sight) || t.sight[t.next].cell != c && t.keys.keys[t.next] != c.key {
		var isNew bool
		if t.next, isNew = t.keys.add(c.key, t.root.hash); isNew {
			t.sight = append(t.sight, sighting[K]{})
		}
	}
	if s := &t.sight[t.next]; s.cell != c {
		s.cell, s.before = c, s.cell
	}
	t.next++
}

// lookAhead is how many cells are read before the first of their records is, and
// how many records before the first is judged, so that the processor can wait for
// many of them at once.
const lookAhead = 64

// look finds what every key held at the cut, also those whose cell has left the
// table.
func (t *taker[K]) look() {
	var (
		heads [lookAhead]*record
		marks [lookAhead]mark
	)
	first := len(t.keys.keys) == 0
	for some := range slices.Chunk(t.sight, lookAhead) {
		for i := range some {
			heads[i] = some[i].cell.rec.Load()
		}
		if first {
			for i := range some {
				t.keys.append(some[i].cell.key)
			}
		}
		for i := range some {
			if !some[i].still(heads[i]) {
				marks[i] = heads[i].mark
			}
		}
		for i := range some {
			s, head := &some[i], heads[i]
			switch {
			case s.still(head):
			case marks[i]&(datedBit|deadBit) == 0:
				t.unsure = t.unsure || head != s.head
				*s = sighting[K]{cell: s.cell, head: head, held: head, quiet: true}
			default:
				t.judge(s, head)
			}
		}
	}
}

// still reports whether the cell of s, which holds head now, held that before, and
// it is what most cells hold.
func (s *sighting[K]) still(head *record) bool { return s.quiet && head == s.head }

// judge finds what the key of s, whose cell holds head, held at the cut.
func (t *taker[K]) judge(s *sighting[K], head *record) {
	held := t.root.at(head, t.cut)
	if held == nil && s.before != nil {
		// This cell is younger than the cut. The one before it may have died
		// after the cut too.
		held = t.root.at(s.before.rec.Load(), t.cut)
	}
	if held != nil && held.mark&datedBit == 0 && held != s.head {
		t.unsure = true
	}
	*s = sighting[K]{cell: s.cell, head: head, held: held}
}

// clear forgets what was kept for the cut of key. It was kept only if the key has
// changed since it was seen, or held something else than at the cut. Who changes
// the key from now on keeps nothing for it, and who read scans before has stored
// a record before, which is found here.
func (t *taker[K]) clear(key K, s *sighting[K]) {
	if s.still(s.cell.rec.Load()) {
		return
	}
	k := t.root.rehashed(key)
	c := t.root.cells.Load(k) // s.cell may have been replaced
	if c == nil {
		return
	}
	rec := c.rec.Load()
	if rec.mark&datedBit != 0 && !t.root.settle(rec) && rec.dead() {
		t.root.tidy(k)
	}
}

// develop puts what was collected into p, without what is absent.
func (t *taker[K]) develop(p *picture[K], plain func(*record) *record) {
	present := 0
	for i := range t.sight {
		if t.sight[i].present() {
			present++
		}
	}
	p.naming, p.keys, p.records = t.root.naming, t.keys.keys, make([]*record, 0, present)
	all := present == len(t.sight)
	if !all {
		p.keys = make([]K, 0, present)
	}
	for i := range t.sight {
		if found := &t.sight[i]; found.present() {
			rec := found.held
			if !t.lasts(found) {
				rec = plain(rec)
			}
			p.records = append(p.records, rec)
			if !all {
				p.keys = append(p.keys, t.keys.keys[i])
			}
		}
	}
}

// present reports whether the key was present at the cut.
func (s *sighting[K]) present() bool { return s.quiet || s.held != nil && !s.held.dead() }

// lasts reports whether what the key of s held at the cut keeps nothing that it
// has replaced. What has forgotten that has done so for ever.
func (t *taker[K]) lasts(s *sighting[K]) bool {
	o := t.root
	dated := !s.quiet && s.held.mark&datedBit != 0
	return !dated && (!o.transitions() || o.links(s.held).prev.Load() == nil)
}
