package shardedregistry

import (
	"iter"
	"slices"

	"github.com/latchfree/latchfree/internal/atomics"
)

// Snapshot is what all keys of a [Registry] held at one instant. It never changes, many goroutines
// may use it, and it needs no closing. It keeps the records that it contains, and nothing else of
// the registry. The zero Snapshot is empty.
type Snapshot[K comparable, V any] struct {
	contents contents[K, V]
	revision Revision // see Revision
}

// contents is all of a snapshot but its revision.
type contents[K comparable, V any] struct {
	codec   keyCodec[K]
	keys    []K
	records []*record[K, V] // of the keys: live and undated
	last    Version         // see Last

	// table is of keys, and nil until somebody looks for one. Everybody reads.
	table atomics.Pointer[keyTable]
}

// Snapshot returns what all keys hold at one instant during the call. It looks at every entity
// three times or a few more.
//
// Only creations and deletions may wait for it, for one hash bucket at a time. While it is being
// taken, each change costs two more compare-and-swaps, and what keys held is kept.
//
// Snapshot is blocking on one hash bucket at a time. It takes effect when its cut is made: see
// DESIGN.md.
func (r *Registry[K, V]) Snapshot() *Snapshot[K, V] {
	rt := r.root.Load()
	if rt == nil {
		return new(Snapshot[K, V]) // LP(Snapshot), never used: the root is read
	}
	return snapshot(rt)
}

// snapshot runs Snapshot.
func snapshot[K comparable, V any](rt *root[K, V]) *Snapshot[K, V] {
	s := new(Snapshot[K, V])
	if rt.history != nil {
		s.revision = rt.history.revision() // before the cut
	}
	take(rt, &s.contents)
	return s
}

// Revision returns a revision up to which the snapshot contains all changes, and perhaps some later
// ones, for [Registry.WatchFrom]; 0 without Config.History.
func (s *Snapshot[K, V]) Revision() Revision { return s.revision }

// Last returns a version that is at least that of each change that the snapshot
// contains, deletions included: see [Restore].
func (s *Snapshot[K, V]) Last() Version { return s.contents.last }

// keep makes c what it has of the keys that only accepts.
func (c *contents[K, V]) keep(only func(K) bool) {
	whole, records := c.keys, c.records
	c.keys, c.records = nil, nil
	for i, k := range whole {
		if only(k) {
			c.keys, c.records = append(c.keys, k), append(c.records, records[i])
		}
	}
}

// Get returns the value of key, and whether key is in the snapshot. The first call of Get or Lookup
// makes an index of the keys.
func (s *Snapshot[K, V]) Get(key K) (value V, ok bool) {
	if _, rec := s.contents.find(key); rec != nil {
		return rec.value, true
	}
	return value, false
}

// Lookup returns what key held, with its version, and whether key is in the snapshot.
func (s *Snapshot[K, V]) Lookup(key K) (entry Entry[K, V], ok bool) {
	if k, rec := s.contents.find(key); rec != nil {
		return rec.entry(k.Key), true
	}
	return entry, false
}

// find returns key as it is stored and its record, or nil.
func (c *contents[K, V]) find(key K) (k hkey[K], rec *record[K, V]) {
	if len(c.records) == 0 {
		return k, nil
	}
	k, err := c.codec.hashed(key)
	if err != nil {
		return k, nil
	}
	x := c.table.Load()
	if x == nil {
		made := keyTableOf(c.keys, c.codec.hash)
		x = c.table.Install(&made)
	}
	if i := (*x)[slotOf(*x, c.keys, k)]; i != 0 {
		return hkey[K]{Hash: k.Hash, Key: c.keys[i-1]}, c.records[i-1]
	}
	return k, nil
}

// Len returns the number of keys.
func (s *Snapshot[K, V]) Len() int { return len(s.contents.records) }

// All returns an iterator over the keys, as they are stored, and their values,
// in no particular order.
func (s *Snapshot[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for i, rec := range s.contents.records {
			if !yield(s.contents.keys[i], rec.value) {
				return
			}
		}
	}
}

// Keys is All without values.
func (s *Snapshot[K, V]) Keys() iter.Seq[K] {
	return slices.Values(s.contents.keys[:len(s.contents.records)])
}

// Entries is All with versions.
func (s *Snapshot[K, V]) Entries() iter.Seq[Entry[K, V]] {
	return func(yield func(Entry[K, V]) bool) {
		for i, rec := range s.contents.records {
			if !yield(rec.entry(s.contents.keys[i])) {
				return
			}
		}
	}
}

// snapshotClock says which snapshots are being taken. It is immutable: to change it,
// replace it.
//
// A cut is an instant between the changes that a snapshot contains and those
// that it does not. The clock counts cuts; cut c is the instant at which the
// clock became c. A change dated t happened before the cuts above t, and after
// the others.
type snapshotClock struct {
	time       uint64   // starts at 1: the date 0 means long ago
	collectors int      // snapshots that are being taken
	cuts       []uint64 // of those collectors that have made theirs
}

// now returns s, or what nil stands for.
func (sc *snapshotClock) now() snapshotClock {
	if sc == nil {
		return snapshotClock{time: 1}
	}
	return *sc
}

// joined adds a collector.
func (sc snapshotClock) joined() snapshotClock {
	sc.collectors++
	return sc
}

// advanced makes a cut for a collector, in place of its old one (0: none).
func (sc snapshotClock) advanced(old uint64) snapshotClock {
	sc.time++
	sc.cuts = append(sc.without(old), sc.time)
	return sc
}

// left removes a collector and its cut.
func (sc snapshotClock) left(cut uint64) snapshotClock {
	sc.collectors--
	sc.cuts = sc.without(cut)
	return sc
}

func (sc snapshotClock) without(cut uint64) []uint64 {
	return slices.DeleteFunc(slices.Clone(sc.cuts), func(c uint64) bool { return c == cut })
}

// need reports whether a collector needs a record that was current from date since on
// and was replaced at date until.
func (sc snapshotClock) need(since, until uint64) bool {
	return slices.ContainsFunc(sc.cuts, func(c uint64) bool { return since < c && c <= until })
}

// updateClock replaces the clock by what change makes of it, and returns that. It is
// retried only when another collector has replaced the clock meanwhile.
func (rt *root[K, V]) updateClock(change func(snapshotClock) snapshotClock) snapshotClock {
	for {
		old := rt.clock.Load()
		next := change(old.now())
		if rt.clock.CompareAndSwap(old, &next) {
			return next
		}
	}
}

// follow lets rec, which begins a cell, follow the dead record of the cell that
// it replaces.
func (rt *root[K, V]) follow(rec, dead *record[K, V]) {
	rt.date(dead)
	if d := rec.dated(); d != nil {
		d.prev.Store(dead)
	}
}

// date returns the date of rec, which is no intent. It sets it if there is none. An undated record
// has date 0.
func (rt *root[K, V]) date(rec *record[K, V]) uint64 {
	d := rec.dated()
	if d == nil {
		return 0
	}
	if t := d.date.Load(); t != 0 {
		return t
	}
	now := rt.clock.Load()
	if d.date.CompareAndSwap(0, now.time) {
		return now.time
	}
	return d.date.Load()
}

// at returns the newest of rec and what it replaced that is dated before cut, or
// nil. It finds nothing older if the clock has cut.
func (rt *root[K, V]) at(rec *record[K, V], cut uint64) *record[K, V] {
	for rec != nil && rt.date(rec) >= cut {
		rec = rec.dated().prev.Load()
	}
	return rec
}

// settle dates rec, which is dated, and forgets what it replaced as far as no
// collector needs it. It reports whether there is something that one needs.
//
// The clock is read after the record was stored and when its date is known, so a
// cut that it does not list is made after rec has replaced all that is forgotten
// here.
func (rt *root[K, V]) settle(rec *record[K, V]) (needed bool) {
	first := rec.dated()
	until, now := first.date.Load(), rt.clock.Load()
	if until == 0 {
		if until = now.time; !first.date.CompareAndSwap(0, until) {
			until, now = first.date.Load(), rt.clock.Load()
		}
	}
	for d := first; ; {
		old := d.prev.Load()
		if old == nil {
			break
		}
		older, since := old.dated(), rt.date(old)
		if now.need(since, until) {
			needed = true
			if older == nil {
				break
			}
			d, until = older, since
			continue
		}
		var next *record[K, V]
		if older != nil {
			next = older.prev.Load()
		}
		d.prev.CompareAndSwap(old, next) // or somebody else has forgotten it
	}
	return needed
}

// collector is one call of Snapshot. It belongs to its goroutine.
//
// It joins the clock, so that from now on changes are dated; makes a cut; and looks
// at every cell for what it held at the cut. Dates tell that, except of an undated
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

	// exceptions has nil for a key that held its head at the cut, which is undated and alive. That
	// is what most keys are. As long as the cell holds head, the record itself need not be
	// read. It ends before the keys after which no exception was met.
	exceptions []*exception[K, V]

	last   Version // the highest version that was met
	next   int     // the number of the key that comes next, if the order is that of the previous look
	unsure bool    // whether an undated record was found that is new
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

// quiet reports whether key n has held rec, undated and alive, since the previous look.
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

// keyTable finds keys in a list. It holds the numbers of the keys plus 1, each in
// the first slot that was free from that of its hash on, and 0 elsewhere. The
// count of slots is a power of two, and at least half of them are free.
type keyTable []int

// keyTableOf returns a table of different keys, with room for as many more. It
// hashes them.
func keyTableOf[K comparable](keys []K, hash func(K) uint64) keyTable {
	x := make(keyTable, ceilPowerOfTwo(4*len(keys)+2))
	for i, k := range keys {
		x[slotOf(x, keys, hkey[K]{Hash: hash(k), Key: k})] = i + 1
	}
	return x
}

// slotOf returns the slot of k in x, or the one where it belongs.
func slotOf[K comparable](x keyTable, keys []K, k hkey[K]) int {
	mask := len(x) - 1
	for at := int(k.Hash) & mask; ; at = (at + 1) & mask {
		if i := x[at]; i == 0 || keys[i-1] == k.Key {
			return at
		}
	}
}

// keyList numbers keys in the order in which they are added. It belongs to
// one goroutine.
type keyList[K comparable] struct {
	keys  []K
	table keyTable // nil until a key has been looked for
}

// append numbers k, which is new, while no key has been looked for.
func (l *keyList[K]) append(k K) { l.keys = append(l.keys, k) }

// add returns the number of k, and whether it is new.
func (l *keyList[K]) add(k K, hash func(K) uint64) (i int, isNew bool) {
	if 2*len(l.keys)+2 > len(l.table) {
		l.table = keyTableOf(l.keys, hash)
	}
	at := slotOf(l.table, l.keys, hkey[K]{Hash: hash(k), Key: k})
	if i := l.table[at]; i != 0 {
		return i - 1, false
	}
	l.keys = append(l.keys, k)
	l.table[at] = len(l.keys)
	return len(l.keys) - 1, true
}
