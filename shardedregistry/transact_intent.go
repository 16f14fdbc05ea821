package shardedregistry

import "unsafe"

// intent is what a cell holds in place of a record while a transaction that uses its key
// is being decided, and until somebody replaces it then. It stands for what the key held
// before, until the transaction has committed, and from then on for what the transaction
// has stored. So a transaction changes all its keys by one store.
//
// Its word is that of no record, and has the flag of a dated one. So it costs only those
// that meet a dated or dead record something.
type intent struct {
	record         // whose word has intentBits
	of     decider // immutable
}

// decider is a transaction, or a rewriting. Its methods are given one of its intents. As it
// is an interface, a program that has no transactions links none of them.
type decider interface {
	// outcome returns what the intent stands for: a record that has its date, or nil if
	// the key is absent and the cell is that of the transaction.
	outcome(of *record) *record
	// finish decides the transaction, if that is left to do, and takes the intent out of
	// its cell.
	finish(of *record)
	// abort does so as well, but aborts the transaction unless it has committed.
	abort(of *record)
}

// asIntent returns the intent whose record is rec.
func asIntent(rec *record) *intent {
	// Safety: transaction.read and rewriting.make alone set intentBits, in the first field of an intent.
	return (*intent)(unsafe.Pointer(rec))
}

// resolved returns what rec, which a cell holds, stands for: itself, if it is no intent.
// It may be nil where it is one.
func resolved(rec *record) *record {
	if !rec.intent() {
		return rec
	}
	return asIntent(rec).of.outcome(rec)
}

// held returns what c holds, dead or alive, or nil if it holds nothing yet, or never.
func (rt *root[K]) held(c *cell[K]) *record {
	rec := c.rec.Load()
	if rec.word&(datedBit|deadBit) == 0 {
		return rec
	}
	if rec = resolved(rec); rec != nil {
		rt.date(rec)
	}
	return rec
}

// cleared returns what c holds after rec, if that is an intent: its transaction is
// finished, in case its owner has stalled. Operations that are about to store into c call it
// when they have read rec there.
func (c *cell[K]) cleared(rec *record) *record {
	if !rec.intent() {
		return rec
	}
	asIntent(rec).of.finish(rec)
	return c.rec.Load()
}
