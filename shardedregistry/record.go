package shardedregistry

import (
	"unsafe"

	"github.com/latchfree/latchfree/internal/atomics"
)

// layout says which parts each live record of a registry has before it.
type layout uint8

const (
	isIndexed  layout = 1 << iota // index keys, because there are constraints
	isRecorded                    // a history, because changes are remembered
	isLeased                      // a lease, because there is a time to live
)

// history is the part that each record has with Config.History.
type history struct {
	// revision is 0 until the change that has stored the record is in the changelog, and
	// then its revision. Set by CAS, by all that find the change there. Nobody replaces the
	// record before.
	revision atomics.Uint64

	// last is what a dead record has replaced. It never changes.
	last *record
}

// dated is the part of a record that was stored while a snapshot was being taken: a
// date and what the record replaced. A writer that sees the snapshot in the clock
// stores such a record.
//
// Its change takes effect when the clock is read for its date, after it was
// stored. An operation that finds a dated record dates it before anything else, and
// in particular before storing another, so the dates along prev never increase
// and nobody sees a change that has not happened.
type dated struct {
	// date is 0 until somebody sets it by CAS, to the clock. Everybody reads.
	date atomics.Uint64

	// prev is what the key held before, dead or alive, or nil if nobody needs
	// it. Set before publication; then it only moves on to older records, by
	// CAS.
	prev atomics.Pointer[record]
}

// With constraints, each live record that a cell holds has its index keys, ordered and
// each once. So what it was indexed under is known for ever, whatever the functions
// would say now, and reading an index runs none of them. Records with equal index keys
// share them.

// A record with such parts is the last field of one of these types. Each part is found
// without knowing the value, and dated is next to the record, so that the record's word
// says where the others are.
//
//lint:file-ignore U1000 parts are found by their offsets, and not by their names
type (
	datedRecord struct {
		dated
		record
	}
	indexedRecord struct {
		keys []indexKey
		record
	}
	datedIndexedRecord struct {
		keys []indexKey
		datedRecord
	}
	recordedRecord struct {
		history history
		record
	}
	datedRecordedRecord struct {
		history history
		datedRecord
	}
	indexedRecordedRecord struct {
		history history
		indexedRecord
	}
	datedIndexedRecordedRecord struct {
		history history
		datedIndexedRecord
	}
)

// withDate notes that rec is the last field of a datedRecord.
func withDate(rec *record) *record {
	rec.word = datedBit
	return rec
}

// What a part takes before the record.
const (
	datedSize    = unsafe.Sizeof(datedRecord{}) - unsafe.Sizeof(record{})
	indexedSize  = unsafe.Sizeof(indexedRecord{}) - unsafe.Sizeof(record{})
	recordedSize = unsafe.Sizeof(recordedRecord{}) - unsafe.Sizeof(record{})
)

// before returns what lies size bytes before r.
func (r *record) before(size uintptr) unsafe.Pointer {
	// Safety: the caller knows of what r is the last field.
	return unsafe.Add(unsafe.Pointer(r), -int(size))
}

// dated returns the dated of r, or nil if it is plain.
func (r *record) dated() *dated {
	if r.word&datedBit == 0 {
		return nil
	}
	// Safety: withDate alone sets the bit, in the last fields of a datedRecord.
	return (*dated)(r.before(datedSize))
}

// indexKeys returns what a record is found by: nothing, if r is nil or dead. It is
// called only where there are constraints.
func (r *record) indexKeys() []indexKey {
	if r == nil || r.dead() {
		return nil
	}
	return *r.indexed()
}

// indexed returns where the index keys of the live record r are. It is called only
// where there are constraints.
func (r *record) indexed() *[]indexKey {
	size := indexedSize
	if r.word&datedBit != 0 {
		size += datedSize
	}
	// Safety: where there are constraints, freshLarge alone makes live records, each in an
	// indexedRecord or, if it is dated, a datedIndexedRecord.
	return (*[]indexKey)(r.before(size))
}

// historyOf returns the history of r. It is called only where changes are remembered.
func (rt *root[K]) historyOf(r *record) *history {
	size := recordedSize
	if r.word&datedBit != 0 {
		size += datedSize
	}
	if rt.constraints != nil && !r.dead() {
		size += indexedSize
	}
	// Safety: where changes are remembered, freshLarge alone makes live records, and
	// tombstone dead ones, each with its history before all that is counted here.
	return (*history)(r.before(size))
}

// link makes rec, which others have not seen, the successor of old in its cell, or,
// if old is nil, the first one of a cell.
func (rt *root[K]) link(rec, old *record, m word) {
	rec.word = rec.word&datedBit | m
	if rec.word&datedBit != 0 {
		rec.dated().prev.Store(old)
	}
}

// tombstone returns a dead record to store in place of old. It has no value.
func (rt *root[K]) tombstone(snapshotting bool, old *record) (rec *record) {
	switch {
	case rt.history != nil && snapshotting:
		rec = withDate(&new(datedRecordedRecord).record)
	case rt.history != nil:
		rec = &new(recordedRecord).record
	case snapshotting:
		rec = withDate(&new(datedRecord).record)
	default:
		rec = new(record)
	}
	if rt.link(rec, old, old.deleted()); rt.history != nil {
		rt.historyOf(rec).last = old
	}
	return rec
}

// boxed is a live record, with the parts before it, and its value. H is record, or
// one of the types that end with it.
type boxed[H, V any] struct {
	head  H
	value V
}

// valueOf returns the value of rec, which is live. This is where the shell, which
// knows V, and the core, which does not, meet: see DESIGN.md.
func valueOf[V any](rec *record) *V {
	// Safety: the live records of a registry of V are made by the functions of this
	// file alone, each at the end of the head of a boxed[_, V]. Whatever else the head has, the value comes right after it, since
	// heads are multiples of 8 bytes, and so of the alignment of any V.
	return &(*boxed[record, V])(unsafe.Pointer(rec)).value
}

// fresh returns a live record, which others have not seen. Its word is 0, but for the
// bit dated if a snapshot is being taken.
func fresh[V any, K comparable](rt *root[K], snapshotting bool) *record {
	switch {
	case rt.large != nil:
		return rt.large(snapshotting)
	case snapshotting:
		return withDate(&new(boxed[datedRecord, V]).head.record)
	}
	return &new(boxed[record, V]).head
}

// freshLarge returns a function that makes records with the parts of a layout. The
// core keeps it: only a registry that was made with constraints or a history needs
// it.
func freshLarge[V any](s layout) func(snapshotting bool) *record {
	if s&isLeased != 0 {
		return freshLeased[V](s &^ isLeased)
	}
	return func(snapshotting bool) *record {
		switch {
		case s == isIndexed && !snapshotting:
			return &new(boxed[indexedRecord, V]).head.record
		case s == isIndexed:
			return withDate(&new(boxed[datedIndexedRecord, V]).head.record)
		case s == isRecorded && !snapshotting:
			return &new(boxed[recordedRecord, V]).head.record
		case s == isRecorded:
			return withDate(&new(boxed[datedRecordedRecord, V]).head.record)
		case !snapshotting:
			return &new(boxed[indexedRecordedRecord, V]).head.record
		}
		return withDate(&new(boxed[datedIndexedRecordedRecord, V]).head.record)
	}
}

// plain returns a copy of rec, which is live, without the parts before it.
func plain[V any](rec *record) *record {
	return &(&boxed[record, V]{record{word: rec.word &^ datedBit}, *valueOf[V](rec)}).head
}

// draft returns a record that others have not seen, with value. If it can, it uses spare,
// which is nil or was drafted and not published.
func draft[V any, K comparable](rt *root[K], snapshotting bool, spare *record, value V) *record {
	if spare == nil && !snapshotting && rt.large == nil {
		return &(&boxed[record, V]{value: value}).head // what fresh returns, in one step
	}
	if spare == nil || snapshotting || spare.word&datedBit != 0 {
		spare = fresh[V](rt, snapshotting)
	}
	*valueOf[V](spare) = value
	return spare
}

// entryOf returns the entry of a key that holds rec.
func entryOf[V any, K comparable](key K, rec *record) Entry[K, V] {
	return Entry[K, V]{key, *valueOf[V](rec), rec.version()}
}
