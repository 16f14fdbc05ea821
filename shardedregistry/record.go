package shardedregistry

import (
	"unsafe"

	"github.com/latchfree/latchfree/internal/atomics"
)

// record is what a key holds at one version. It is immutable once published, but for what
// is in its ext, and never reused, so equal pointers mean that the key has not changed in between.
//
// It stands alone, or is the first field of an extended or, as an intent, of a use. It is in an
// extended if it is dated, if it is live and the registry is not plain, or if there is a history.
type record[K comparable, V any] struct {
	word
	value V // of a dead record: the last value
}

// ext is what a record has besides its value, where it has any of that.
type ext[K comparable, V any] struct {
	// date is of a record that is dated: one that was stored while a snapshot was being
	// taken. A writer that sees the snapshot in the clock stores such a record.
	//
	// Its change takes effect when the clock is read for its date, after it was stored. An
	// operation that finds a dated record dates it before anything else, and in particular
	// before storing another, so the dates along prev never increase and nobody sees a change
	// that has not happened.
	//
	// It is 0 until somebody sets it by CAS, to the clock. Everybody reads.
	date atomics.Uint64

	// prev, of a dated record, is what the key held before, dead or alive, or nil if nobody
	// needs it. Set before publication; then it only moves on to older records, by CAS.
	prev atomics.Pointer[record[K, V]]

	// revision, with Config.History, is 0 until the change that has stored the record is in
	// the changelog, and then its revision. Set by CAS, by all that find the change there.
	// Nobody replaces the record before.
	revision atomics.Uint64

	// keys, with constraints, are the index keys of a live record, ordered and each once. So
	// what it was indexed under is known for ever, whatever the functions would say now, and
	// reading an index runs none of them. Records with equal index keys share them.
	keys []indexKey

	lease lease // of a live record, with Config.TTL
}

// extended is a record with its ext.
type extended[K comparable, V any] struct {
	record[K, V]
	parts ext[K, V]
}

// draft returns a live record with a value, which others have not seen. Its word is 0, but for
// the bit dated if a snapshot is being taken.
func (rt *root[K, V]) draft(snapshotting bool, value V) *record[K, V] {
	if !snapshotting && rt.plain {
		return &record[K, V]{value: value}
	}
	return extend[K, V](snapshotting, value)
}

// extend is draft for a record with ext.
func extend[K comparable, V any](dated bool, value V) *record[K, V] {
	x := new(extended[K, V])
	x.value = value
	if dated {
		x.word = datedBit
	}
	return &x.record
}

// tombstone returns a dead record to store in place of old.
func (rt *root[K, V]) tombstone(snapshotting bool, old *record[K, V]) (rec *record[K, V]) {
	if snapshotting || rt.history != nil {
		rec = extend[K, V](snapshotting, old.value)
	} else {
		rec = &record[K, V]{value: old.value}
	}
	rec.link(old, old.deleted())
	return rec
}

// link makes r, which others have not seen, the successor of old in its cell, or,
// if old is nil, the first one of a cell.
func (r *record[K, V]) link(old *record[K, V], m word) {
	if r.word = r.word&datedBit | m; r.isDated() {
		r.ext().prev.Store(old)
	}
}

// isDated reports whether r has a date. An intent has none, and its word says that it has: callers
// know that r is none, as resolved returns none.
func (r *record[K, V]) isDated() bool { return r.word&datedBit != 0 }

// dated returns the ext of r if that is dated, or nil.
func (r *record[K, V]) dated() *ext[K, V] {
	if !r.isDated() {
		return nil
	}
	return r.ext()
}

// ext returns what r has besides its value. It is called only where r has an ext.
func (r *record[K, V]) ext() *ext[K, V] {
	// Safety: r is the first field of an extended. Callers have found that it is dated, that it
	// is live in a registry that is not plain, or that there is a history. The ext of a dead
	// record may be missing otherwise: see tombstone.
	return &(*extended[K, V])(unsafe.Pointer(r)).parts
}

// use returns what the transaction knows whose intent r is.
func (r *record[K, V]) use() *use[K, V] {
	// Safety: r is the first field of a use: no other record has the word of an intent.
	return (*use[K, V])(unsafe.Pointer(r))
}

// indexKeys returns what a record is found by: nothing, if r is nil or dead. It is called only
// where there are constraints.
func (r *record[K, V]) indexKeys() []indexKey {
	if r == nil || r.dead() {
		return nil
	}
	return r.ext().keys
}

// entry returns the entry of a key that holds r.
func (r *record[K, V]) entry(key K) Entry[K, V] { return Entry[K, V]{key, r.value, r.version()} }

// word is the version of a record and three flags: whether the record is a
// deletion, whether it is dated, and whether it is the
// deletion of what has expired.
//
//	63                     3    2        1      0
//	+------------------------+---------+-------+------+
//	| version                | expired | dated | dead |
//	+------------------------+---------+-------+------+
//
// Every change of a key adds one to the version. It would wrap after 2^61
// changes.
type word uint64

const (
	deadBit word = 1 << iota
	datedBit
	expiredBit

	versionShift = iota
)

// intentBits is what the word of an intent has of these flags, and that of no record: only what is
// dead has expired. Dated sends readers on the way on which they meet dated and dead records, so
// intents cost others nothing. The other bits are the intent's own.
const intentBits = datedBit | expiredBit

// firstWord is the word of a key that is created above version last.
func firstWord(last Version) word { return word(last+1) << versionShift }

func (w word) version() Version { return Version(w >> versionShift) }
func (w word) dead() bool       { return w&deadBit != 0 }
func (w word) expired() bool    { return w&expiredBit != 0 }
func (w word) intent() bool     { return w&(deadBit|datedBit|expiredBit) == intentBits }

// changed and deleted return the next word of a live record's key.
func (w word) changed() word { return w&^datedBit + 1<<versionShift }
func (w word) deleted() word { return w.changed() | deadBit }
