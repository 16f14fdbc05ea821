package shardedregistry

// taker is one call of Snapshot. It belongs to its goroutine.
//
// It joins scans, so that from now on changes are dated; makes a cut; and looks
// at every cell for what it held at the cut. Dates tell that, except of a plain
// record: one that the look before saw was there at the cut, but one that is
// new may be older or younger than it. Then the taker makes another cut. So it
// looks twice, and beyond that at most once for each change that was under way
// when it joined: what starts later is dated.
type taker[K comparable, V any] struct {
	root *root[K, V]
	cut  uint64 // the last one that was made; 0 before the first

	keys  directory[K]
	sight []sighting[K, V] // by number of the key

	next   int  // the number of the key that comes next, if the order is that of the last look
	unsure bool // whether a plain record was found that is new
}

// sighting is what a taker knows of a key.
type sighting[K comparable, V any] struct {
	cell *cell[K, V] // as last seen
	head *record[V]  // what it held then: before the next cut

	held *record[V] // what the key held at the cut; nil or dead if it was absent
	cut  uint64     // of held
}

// take takes a snapshot. It takes effect when its last cut is made.
func (o *root[K, V]) take() *Snapshot[K, V] {
	t := o.join()
	t.collect() // its first look has nothing to compare with
	for !t.collect() {
		// until nothing is new that was under way when it joined
	}
	return t.leave()
}

func (o *root[K, V]) join() *taker[K, V] {
	n := o.len()
	o.scan(scans.joined)
	return &taker[K, V]{root: o, keys: makeDirectory[K](n), sight: make([]sighting[K, V], 0, n)}
}

// collect makes a cut and finds what every key held at it. It reports whether
// it is sure.
func (t *taker[K, V]) collect() (sure bool) {
	// LP(Snapshot): the state with the last cut is stored.
	t.cut = t.root.scan(func(s scans) scans { return s.advanced(t.cut) }).clock
	t.next, t.unsure = 0, false
	t.each(t.look)
	for i := range t.sight {
		if s := &t.sight[i]; s.cut != t.cut {
			t.judge(s, s.cell) // which has left the table
		}
	}
	return !t.unsure
}

// leave returns what was collected, and leaves nothing behind.
func (t *taker[K, V]) leave() *Snapshot[K, V] {
	t.root.scan(func(s scans) scans { return s.left(t.cut) })
	t.each(t.clear)
	return t.snapshot()
}

// each calls f for every cell that is in a table from now until then, dead or
// alive, or instead of a dead one for the one that replaces it.
func (t *taker[K, V]) each(f func(hkey[K], *cell[K, V])) {
	for i := range t.root.shards {
		if table := t.root.shards[i].table.Load(); table != nil {
			for k, c := range table.All() {
				f(k, c)
			}
		}
	}
}

// look looks at a cell that is in a table.
func (t *taker[K, V]) look(k hkey[K], c *cell[K, V]) {
	if t.next == len(t.keys.keys) || t.keys.keys[t.next] != k {
		var isNew bool
		if t.next, isNew = t.keys.add(k); isNew {
			t.sight = append(t.sight, sighting[K, V]{})
		}
	}
	t.judge(&t.sight[t.next], c)
	t.next++
}

// judge finds what the key of s, which now has cell c, held at the cut.
func (t *taker[K, V]) judge(s *sighting[K, V], c *cell[K, V]) {
	head := c.rec.Load()
	held := t.root.at(head, t.cut)
	if held == nil && s.cell != nil && s.cell != c {
		// This cell is younger than the cut. The one before it may have died
		// after the cut too.
		held = t.root.at(s.cell.rec.Load(), t.cut)
	}
	if held != nil && held.mark&datedBit == 0 && held != s.head {
		t.unsure = true
	}
	*s = sighting[K, V]{cell: c, head: head, held: held, cut: t.cut}
}

// clear forgets what was kept for the cut. Who changes the key from now on keeps
// nothing for it, and who read scans before has stored a record before, which is
// found here.
func (t *taker[K, V]) clear(k hkey[K], c *cell[K, V]) {
	rec := c.rec.Load()
	if rec.mark&datedBit != 0 && !t.root.settle(rec) && rec.dead() {
		t.root.tidy(k)
	}
}

// snapshot returns what was collected, without what is absent.
func (t *taker[K, V]) snapshot() *Snapshot[K, V] {
	present := 0
	for i := range t.sight {
		if rec := t.sight[i].held; rec != nil && !rec.dead() {
			present++
		}
	}
	s := &Snapshot[K, V]{naming: t.root.naming, keys: t.keys, records: make([]*record[V], 0, present)}
	if present < len(t.sight) {
		s.keys = makeDirectory[K](present)
	}
	for i := range t.sight {
		rec := t.sight[i].held
		if rec == nil || rec.dead() {
			continue
		}
		if rec.mark&datedBit != 0 { // it would keep what it replaced
			rec = &record[V]{rec.mark &^ datedBit, rec.value}
		}
		s.records = append(s.records, rec)
		if present < len(t.sight) {
			s.keys.add(t.keys.keys[i])
		}
	}
	return s
}
