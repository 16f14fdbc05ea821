package shardedregistry

import (
	"math/bits"

	"github.com/latchfree/latchfree/internal/atomics"
)

// root is what every operation starts from. It is immutable but for scans and
// what is inside the shards.
type root[K comparable, V any] struct {
	naming[K]
	shift  uint8 // of a hash, to leave the index of a shard
	shards []shard[K, V]
	rules  *rules[K, V] // nil if there are no indexes and nothing is checked

	// scans says which snapshots are being taken, and is nil until the first.
	// Snapshot replaces it, three times or a few more; everyone who changes a
	// key reads it.
	scans atomics.Pointer[scans]
}

// newRoot returns an empty registry of n shards, n a power of two.
func newRoot[K comparable, V any](n int, normalize func(K) (K, error)) *root[K, V] {
	return &root[K, V]{
		naming: newNaming(normalize),
		shift:  uint8(64 - bits.TrailingZeros(uint(n))),
		shards: make([]shard[K, V], n),
	}
}

// shard returns the shard of a key.
func (o *root[K, V]) shard(hash uint64) *shard[K, V] {
	return &o.shards[hash>>o.shift]
}

// loadLive returns the cell of k and its record, or nil and nil if k is
// absent.
//
// A dead cell that is still linked means absent, even if the table holds
// another by now: it died before the table was read, and then k was absent at
// that moment, or between that and the reading of its record, and then k was
// absent at the moment it died.
func (o *root[K, V]) loadLive(k hkey[K]) (*cell[K, V], *record[V]) {
	c := o.shard(k.hash).load(k)
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
func (o *root[K, V]) live(rec *record[V]) *record[V] {
	o.date(rec)
	if rec.dead() {
		return nil
	}
	return rec
}

// create publishes value as a new cell of k unless k is present, in which case
// it returns false with the cell and the record that are. It takes effect when
// the table stores the new cell, or else when it reads the record. An error is
// that of the rules.
func (o *root[K, V]) create(k hkey[K], given K, value V) (*cell[K, V], *record[V], bool, error) {
	rec, err := o.draft(k, o.taking(), nil, 0, value)
	if err != nil {
		return nil, nil, false, err
	}
	fresh := &cell[K, V]{spelled: o.spelling(k, given)}
	fresh.rec.Store(rec)
	c, present, err := o.enlist(k, fresh, rec)
	if err != nil {
		return nil, nil, false, err
	}
	if c != fresh {
		o.date(present)
		return c, present, false, nil
	}
	o.changed(k, nil, rec)
	return c, rec, true, nil
}

// publish puts fresh, a new cell of k that holds rec, into the table unless k is
// present. It returns the cell that is there, and its record if that is another.
//
// The version is above all earlier ones of k. Every cell of k that has left the
// table did so under the mutex that is held here, either unlinked, after floor
// had been raised to its last version, or replaced here, by a cell that started
// above its last version.
func (o *root[K, V]) publish(k hkey[K], fresh *cell[K, V], rec *record[V]) (c *cell[K, V], present *record[V]) {
	s := o.shard(k.hash)
	c = s.install().Compute(k, func(now *cell[K, V]) *cell[K, V] {
		last := Version(s.floor.Load())
		if now != nil {
			present = now.rec.Load()
			if !present.dead() {
				return now
			}
			last = max(last, present.version())
			o.follow(rec, present)
		}
		rec.mark |= firstMark(last)
		s.live.Add(1)
		return fresh
	})
	return c, present
}

// kill deletes k, whose cell c holds the live record old, and reports whether
// it did; if not, the record has changed. It takes effect when the dead record
// is stored. What follows is housekeeping that no other operation waits for:
// meanwhile a creator may replace the dead cell.
func (o *root[K, V]) kill(k hkey[K], c *cell[K, V], old *record[V]) bool {
	var none V
	// Asked after old was read: a plain record deletes only what was there
	// before any taker joined that might miss it.
	dead := bare(o.taking(), old, old.deleted(), none)
	if !c.rec.CompareAndSwap(old, dead) {
		return false
	}
	o.shard(k.hash).live.Add(-1)
	o.bury(k, c, old, dead)
	return true
}

// bury does what is left to do when dead has been stored and counted. A dead
// cell that a snapshot needs stays in the table; its taker will unlink it.
func (o *root[K, V]) bury(k hkey[K], c *cell[K, V], old, dead *record[V]) {
	if needed := o.changed(k, old, dead); !needed {
		o.shard(k.hash).unlink(k, c, dead)
	}
}

// changed is called by everyone who has stored rec for k in place of old, or as
// the first of a cell, and reports whether a snapshot in progress needs what k
// held before. The order matters: until rec is dated the change has not
// happened.
func (o *root[K, V]) changed(k hkey[K], old, rec *record[V]) (needed bool) {
	if rec.mark&datedBit != 0 {
		needed = o.settle(rec)
	}
	if o.rules != nil {
		o.rules.drop(k, old.terms(), rec.terms())
	}
	o.shard(k.hash).tell(k)
	return needed
}

// len adds the counters of the shards.
func (o *root[K, V]) len() int {
	n := int64(0)
	for i := range o.shards {
		// LP(Len): the counter is read.
		n += o.shards[i].live.Load()
	}
	return int(n)
}
