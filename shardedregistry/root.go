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
	keyCodec[K]
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

	guard       *valueGuard[K] // nil without Clone and Fingerprint
	constraints constrainer[K] // nil if there are no indexes and nothing is checked
	shards      []atomics.Pointer[shard]

	// detectors lists the calls that may be changing their own key. It is nearly
	// always nil. Everyone who has changed a key reads it. See detector.
	detectors atomics.Pointer[reentryDetector[K]]

	// clock says which snapshots are being taken, and is nil until the first.
	// Snapshot replaces it, three times or a few more; everyone who changes a
	// key reads it.
	clock atomics.Pointer[snapshotClock]

	// subscribers are those who want to hear of changes, and is nil while nobody does.
	// Who comes or goes replaces it by CAS; everyone who has changed a key reads
	// it.
	subscribers atomics.Pointer[subscribers[K]]

	// waitlists holds, by key, where calls of Wait sleep. It is nil until the first
	// does, which installs it by CAS, and then stays. Who has changed a key reads
	// it while somebody waits.
	waitlists atomics.Pointer[table.Table[hkey[K], waitlist]]

	// verifier is nil without Fingerprint. Like large it is installed by New, so that a
	// program without that has none of it.
	verifier verifier[K]

	// large makes live records where they have something besides that is not due
	// to a snapshot: see freshLarge. It is nil elsewhere.
	large func(taking bool) *record

	// shut is what a cell has beside its record that leaves the table and has
	// nothing else. It is nil without Config.Transitions.
	shut *cellMeta[K]
}

// newRoot returns an empty registry of n shards, n a power of two.
func newRoot[K comparable](n int, normalize func(K) (K, error)) *root[K] {
	rt := &root[K]{
		keyCodec: newKeyCodec(normalize),
		shift:    uint8(63 - bits.TrailingZeros(uint(n))),
		shards:   make([]atomics.Pointer[shard], n),
	}
	rt.cells.Init(func(k K, _ uint64) uint64 { return rt.hash(k) }, 0)
	rt.cells.Spread(n, func(hash uint64) *atomics.Int64 { return &rt.installShard(hash).cells })
	rt.ease()
	return rt
}

// ease says what operations may take the short way. It is called when all that
// this depends on was set.
func (rt *root[K]) ease() {
	rt.open = rt.normalize == nil && !rt.keys.Dynamic() && rt.guard == nil
	rt.light = rt.open && rt.large == nil
}

// loadLive returns the cell of k and its record, or nil and nil if k is
// absent.
//
// A dead cell that is still linked means absent, even if the table holds
// another by now: it died before the table was read, and then k was absent at
// that moment, or between that and the reading of its record, and then k was
// absent at the moment it died.
func (rt *root[K]) loadLive(k hkey[K]) (*cell[K], *record) {
	c := rt.cells.Load(k)
	if c == nil {
		return nil, nil
	}
	rec := c.rec.Load()
	if rec.word&(datedBit|deadBit) != 0 {
		if rec = rt.live(rec); rec == nil {
			return nil, nil
		}
	}
	return c, rec
}

// live returns rec, which a cell holds, or nil if it is dead.
func (rt *root[K]) live(rec *record) *record {
	rt.date(rec)
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
func (rt *root[K]) publish(k hkey[K], fresh *cell[K], rec *record) (c *cell[K], present *record) {
	var (
		s     = rt.installShard(k.Hash)
		heirs []*subscription[K]
		late  bool
	)
	for { // again only when a deleter was late, which is then no more
		late = false
		c = rt.cells.Compute(k, func(now *cell[K]) *cell[K] {
			last := Version(s.floor.Load())
			if now != nil {
				present = now.rec.Load()
				if !present.dead() {
					return now
				}
				if rt.transitions() {
					if late = rt.history(present).published.Load() == 0; late {
						return now
					}
					last = 0 // so that the versions of a chain are consecutive
				}
				last = max(last, present.version())
				rt.follow(rec, present)
				heirs = fresh.succeed(now, rt.transitions())
			}
			rec.word |= firstWord(last)
			s.live.Add(1)
			return fresh
		})
		if !late {
			break
		}
		rt.date(present)
		rt.enqueue(rt.subscribers.Load(), k, c, present)
	}
	for _, s := range heirs {
		if s.watcher.unreachable() { // perhaps before it could find s here
			rt.unsubscribe(s)
		}
	}
	return c, present
}

// kill deletes k, whose cell c holds the live record old, and reports whether
// it did; if not, the record has changed. It takes effect when the dead record
// is stored. What follows is housekeeping that no other operation waits for:
// meanwhile a creator may replace the dead cell.
func (rt *root[K]) kill(k hkey[K], c *cell[K], old *record) bool {
	rt.check(k, old)
	// Asked after old was read: a plain record deletes only what was there
	// before any collector joined that might miss it.
	dead := rt.tombstone(rt.snapshotting(), old)
	if !c.rec.CompareAndSwap(old, dead) {
		return false
	}
	rt.shard(k.Hash).live.Add(-1)
	rt.bury(k, c, old, dead)
	return true
}

// bury does what is left to do when dead has been stored and counted. A dead
// cell that a snapshot or a watcher needs stays in the table; the last of these
// will unlink it.
func (rt *root[K]) bury(k hkey[K], c *cell[K], old, dead *record) {
	if needed := rt.changed(k, c, old, dead); needed || !rt.closeCell(c, dead) {
		rt.keepInTable(k, c)
	} else {
		rt.unlink(k, c, dead)
	}
	rt.check(k, dead)
}

// changed is called by everyone who has stored rec in the cell c of k in place of
// old, or as the first one there, and reports whether a snapshot in progress needs what k
// held before, or a watcher will look at k. The order matters: until rec is dated
// the change has not happened.
func (rt *root[K]) changed(k hkey[K], c *cell[K], old, rec *record) (needed bool) {
	if rec.word&datedBit != 0 {
		needed = rt.settle(rec)
	}
	if rt.constraints != nil {
		rt.constraints.unpin(k, old.indexKeys(), rec.indexKeys())
	}
	rt.detectReentry(k)
	s := rt.subscribers.Load()
	if rt.transitions() {
		rt.enqueue(s, k, c, rec)
	}
	if s != nil && rt.notify(s, k) {
		needed = true
	}
	return needed
}

// visit calls f for the keys that are present, with their cells and records,
// until it returns false.
func (rt *root[K]) visit(f func(k hkey[K], c *cell[K], rec *record) bool) {
	for c := range rt.cells.All() {
		// LP(All): the record is read.
		// LP(Entries): the record is read.
		rec := rt.live(c.rec.Load())
		if rec != nil && !f(rt.rehashed(c.key), c, rec) {
			return
		}
	}
}

// len adds the counters of the shards.
func (rt *root[K]) len() int {
	n := int64(0)
	for i := range rt.shards {
		// LP(Len), a shard that was never used: the pointer is read.
		if s := rt.shards[i].Load(); s != nil {
			// LP(Len): the counter is read.
			n += s.live.Load()
		}
	}
	return int(n)
}
