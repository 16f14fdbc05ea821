package shardedregistry

import (
	"math/bits"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/table"
)

// root is what every operation starts from. It is immutable but for the table, four
// pointers, and what is inside the shards. Those whom every change asks are in one cache
// line.
type root[K comparable] struct {
	naming[K]
	shift uint8 // of a hash, to leave the index of a shard

	// What lets an operation take the short way. Open says that keys are stored as
	// they are given, and values handed out as they are stored; light that values
	// are stored as they are given, too, in records that have nothing besides.
	open, light bool

	// cells has the cell of each key, for a while also after the key's deletion. It
	// begins with what every operation reads, and ends with a line that some of those
	// who create and delete write.
	cells table.Cells[K, cell[K]]
	_     atomics.CacheLinePad

	custody *custody[K] // nil without Clone and Fingerprint
	rules   ruler[K]    // nil if there are no indexes and nothing is checked
	shards  []atomics.Pointer[shard]

	// suspects lists the calls that may be changing their own key. It is nearly
	// always nil. Everyone who has changed a key reads it. See suspect.
	suspects atomics.Pointer[suspect[K]]

	// scans says which snapshots are being taken, and is nil until the first.
	// Snapshot replaces it, three times or a few more; everyone who changes a
	// key reads it.
	scans atomics.Pointer[scans]

	// audience says who wants to hear of changes, and is nil while nobody does.
	// Who comes or goes replaces it by CAS; everyone who has changed a key reads
	// it.
	audience atomics.Pointer[audience[K]]

	// rooms holds, by key, where calls of Wait sleep. It is nil until the first
	// does, which installs it by CAS, and then stays. Who has changed a key reads
	// it while somebody waits.
	rooms atomics.Pointer[table.Table[hkey[K], room]]

	// prints is nil without Fingerprint. Like large it is installed by New, so that a
	// program without that has none of it.
	prints verifier[K]

	// large makes live records where they have something besides that is not due
	// to a snapshot: see freshLarge. It is nil elsewhere.
	large func(taking bool) *record

	// shut is what a cell has beside its record that leaves the table and has
	// nothing else. It is nil without Config.Transitions.
	shut *side[K]
}

// newRoot returns an empty registry of n shards, n a power of two.
func newRoot[K comparable](n int, normalize func(K) (K, error)) *root[K] {
	o := &root[K]{
		naming: newNaming(normalize),
		shift:  uint8(63 - bits.TrailingZeros(uint(n))),
		shards: make([]atomics.Pointer[shard], n),
	}
	o.cells.Init(func(k K, _ uint64) uint64 { return o.hash(k) }, 0)
	o.cells.Spread(n, func(hash uint64) *atomics.Int64 { return &o.installShard(hash).cells })
	o.ease()
	return o
}

// ease says what operations may take the short way. It is called when all that
// this depends on was set.
func (o *root[K]) ease() {
	o.open = o.normalize == nil && !o.keys.Dynamic() && o.custody == nil
	o.light = o.open && o.large == nil
}

// loadLive returns the cell of k and its record, or nil and nil if k is
// absent.
//
// A dead cell that is still linked means absent, even if the table holds
// another by now: it died before the table was read, and then k was absent at
// that moment, or between that and the reading of its record, and then k was
// absent at the moment it died.
func (o *root[K]) loadLive(k hkey[K]) (*cell[K], *record) {
	c := o.cells.Load(k)
	if c == nil {
		return nil, nil
	}
	rec := c.rec.Load()
	if rec.mark&(datedBit|deadBit) != 0 {
		if rec = o.live(rec); rec == nil {
			return nil, nil
		}
	}
	return c, rec
}

// live returns rec, which a cell holds, or nil if it is dead.
func (o *root[K]) live(rec *record) *record {
	o.date(rec)
	if rec.dead() {
		return nil
	}
	return rec
}

// publish puts fresh, a new cell of k that holds rec, into the table unless k is
// present. It returns the cell that is there, and its record if that is another.
//
// The version is above all earlier ones of k. Every cell of k that has left the
// table did so under the mutex that is held here, either unlinked, after floor
// had been raised to its last version, or replaced here, by a cell that started
// above its last version.
func (o *root[K]) publish(k hkey[K], fresh *cell[K], rec *record) (c *cell[K], present *record) {
	var (
		s     = o.installShard(k.Hash)
		heirs []*seat[K]
		late  bool
	)
	for { // again only when a deleter was late, which is then no more
		late = false
		c = o.cells.Compute(k, func(now *cell[K]) *cell[K] {
			last := Version(s.floor.Load())
			if now != nil {
				present = now.rec.Load()
				if !present.dead() {
					return now
				}
				if o.transitions() {
					if late = o.links(present).told.Load() == 0; late {
						return now
					}
					last = 0 // so that the versions of a chain are consecutive
				}
				last = max(last, present.version())
				o.follow(rec, present)
				heirs = fresh.succeed(now, o.transitions())
			}
			rec.mark |= firstMark(last)
			s.live.Add(1)
			return fresh
		})
		if !late {
			break
		}
		o.date(present)
		o.inform(o.audience.Load(), k, c, present)
	}
	for _, s := range heirs {
		if s.watcher.deaf() { // perhaps before it could find s here
			o.unseat(s)
		}
	}
	return c, present
}

// kill deletes k, whose cell c holds the live record old, and reports whether
// it did; if not, the record has changed. It takes effect when the dead record
// is stored. What follows is housekeeping that no other operation waits for:
// meanwhile a creator may replace the dead cell.
func (o *root[K]) kill(k hkey[K], c *cell[K], old *record) bool {
	o.check(k, old)
	// Asked after old was read: a plain record deletes only what was there
	// before any taker joined that might miss it.
	dead := o.grave(o.taking(), old)
	if !c.rec.CompareAndSwap(old, dead) {
		return false
	}
	o.shard(k.Hash).live.Add(-1)
	o.bury(k, c, old, dead)
	return true
}

// bury does what is left to do when dead has been stored and counted. A dead
// cell that a snapshot or a watcher needs stays in the table; the last of these
// will unlink it.
func (o *root[K]) bury(k hkey[K], c *cell[K], old, dead *record) {
	if needed := o.changed(k, c, old, dead); needed || !o.part(c, dead) {
		o.leave(k, c)
	} else {
		o.unlink(k, c, dead)
	}
	o.check(k, dead)
}

// changed is called by everyone who has stored rec in the cell c of k in place of
// old, or as the first one there, and reports whether a snapshot in progress needs what k
// held before, or a watcher will look at k. The order matters: until rec is dated
// the change has not happened.
func (o *root[K]) changed(k hkey[K], c *cell[K], old, rec *record) (needed bool) {
	if rec.mark&datedBit != 0 {
		needed = o.settle(rec)
	}
	if o.rules != nil {
		o.rules.unpin(k, old.terms(), rec.terms())
	}
	o.tell(k)
	a := o.audience.Load()
	if o.transitions() {
		o.inform(a, k, c, rec)
	}
	if a != nil && o.announce(a, k) {
		needed = true
	}
	return needed
}

// visit calls f for the keys that are present, with their cells and records,
// until it returns false.
func (o *root[K]) visit(f func(k hkey[K], c *cell[K], rec *record) bool) {
	for c := range o.cells.All() {
		// LP(All): the record is read.
		// LP(Entries): the record is read.
		rec := o.live(c.rec.Load())
		if rec != nil && !f(o.rehashed(c.key), c, rec) {
			return
		}
	}
}

// len adds the counters of the shards.
func (o *root[K]) len() int {
	n := int64(0)
	for i := range o.shards {
		// LP(Len), a shard that was never used: the pointer is read.
		if s := o.shards[i].Load(); s != nil {
			// LP(Len): the counter is read.
			n += s.live.Load()
		}
	}
	return int(n)
}
