package shardedregistry

import (
	"cmp"
	"slices"

	"github.com/latchfree/latchfree/internal/atomics"
)

// transaction is one run of a function given to Transact, and then what is needed to
// decide it. While the function runs it belongs to its goroutine, the owner. From the
// first intent that is stored on, others read it: it is immutable then, but for status,
// date, and what insert sets of a key that was absent.
//
// It is the multi-word compare-and-swap of Harris, Fraser and Pratt, "A Practical
// Multi-Word Compare-and-Swap Operation" (DISC 2002), on cells and records. As a cell that
// was only read gets an intent too, nothing is left to validate.
type transaction[K comparable] struct {
	root *root[K]
	only func(hkey[K]) bool // in a View, whether a key belongs to it; otherwise nil

	// status is undecided, then aborted or committed for ever. Set by CAS by the owner and
	// all that help. Everybody reads who meets an intent.
	status atomics.Uint32

	// dated says that what is stored is dated, because a snapshot was being taken.
	dated bool

	// date is 0 until somebody who finds the transaction committed sets it by CAS, to the
	// clock. It is the date of all that is stored. Only if dated.
	date atomics.Uint64

	// uses is the keys that the function has used; in the order of their hashes, from the
	// first intent on.
	uses []*use[K]

	byKey map[K]*use[K] // nil while there are few

	first [fewUses]use[K]  // of them
	begin [fewUses]*use[K] // for uses, as long as that is short
}

// fewUses is for how many keys a transaction needs no further memory: a transfer has two.
const fewUses = 2

// The states of a transaction.
const (
	undecided uint32 = iota
	aborted
	committed
)

// use is what a transaction knows of a key that it uses, and its intent there.
type use[K comparable] struct {
	intent
	tx  *transaction[K]
	key hkey[K] // as it is stored

	// cell has the key. If the key was absent, it is one that the transaction made, which
	// insert puts into the table, once.
	cell *cell[K]

	// old is the record that was read; if the key was absent, a dead one or nil. An intent
	// stands for it until the transaction commits. If the key was absent, insert sets it to
	// what is in the table then, under the mutex of the bucket.
	old *record

	// next is what the transaction stores; nil if it leaves the key as it was.
	next *record

	spelled *K      // see cellMeta
	floor   Version // of the shard, before the key was found absent

	absent  bool // the key was absent
	written bool // the function has stored next, or, if that is nil, has deleted the key
	crowded bool // another key of the transaction has the same hash
}

// outcome implements decider. It dates the transaction also where that leaves the key as it
// was: a change that follows must not have an earlier date.
func (u *use[K]) outcome() *record {
	if u.tx.status.Load() != committed {
		return u.old
	}
	date := uint64(0)
	if u.tx.dated {
		date = u.tx.time()
	}
	if u.next == nil {
		return u.old
	}
	if date != 0 {
		u.next.dated().date.CompareAndSwap(0, date)
	}
	return u.next
}

// time returns the date of a transaction that has committed, which it sets if there is
// none. The clock is read when the transaction has committed. So who has found an intent
// undecided has done so before.
func (tx *transaction[K]) time() uint64 {
	if t := tx.date.Load(); t != 0 {
		return t
	}
	// LP(Transact), committed while a snapshot is being taken: the clock is read.
	now := tx.root.clock.Load()
	if tx.date.CompareAndSwap(0, now.time) {
		return now.time
	}
	return tx.date.Load()
}

// finish implements decider.
func (u *use[K]) finish() {
	u.tx.decide()
	u.withdraw()
}

// abort implements decider.
func (u *use[K]) abort() {
	u.tx.status.CompareAndSwap(undecided, aborted)
	u.withdraw()
}

// decide stores an intent for each key, if that holds what the transaction has read, and
// then decides. The owner calls it, and all that find the transaction undecided where they
// want to store something.
//
// All store the intents in the order of the hashes. So a transaction that is in the way
// needs no key that is held by the one that it is in the way of, and can be finished.
func (tx *transaction[K]) decide() (status uint32) {
	verdict := committed
	for _, u := range tx.uses {
		if tx.status.Load() != undecided {
			break
		}
		if !u.install() {
			verdict = aborted
			break
		}
	}
	// LP(Transact): the transaction commits. All its intents are stored, since none is
	// withdrawn before.
	tx.status.CompareAndSwap(undecided, verdict)
	return tx.status.Load()
}

// install stores the intent, and reports whether it was stored at some time; if not, the
// key does not hold what the transaction has read.
//
// It may store the intent when the transaction is decided, because a key that was left as
// it was holds the same record again. Such an intent stands for that record.
func (u *use[K]) install() bool {
	if u.absent {
		return u.insert()
	}
	for u.tx.status.Load() == undecided { // until nothing that was in the way is
		if u.cell.rec.CompareAndSwap(u.old, &u.record) {
			if u.tx.status.Load() != undecided {
				u.withdraw()
			}
			return true
		}
		rec := u.cell.rec.Load()
		switch {
		case rec == &u.record:
			return true
		case rec.word == intentWord:
			u.pass(rec)
		case rec != u.old:
			return false
		}
	}
	return true
}

// pass makes sure that the transaction of rec, the intent of another that is in the way, is
// decided, and takes rec out of its cell.
//
// If the other needs another key of u's that has the same hash, each could be in the way of
// the other; so it is aborted.
func (u *use[K]) pass(rec *record) {
	if u.crowded {
		asIntent(rec).of.abort()
	} else {
		asIntent(rec).of.finish()
	}
}

// insert is install for a key that was absent: it puts a cell with the intent into the
// table, once. If a snapshot or a watcher needs a dead cell of the key, the new one takes
// its place with its record. All are told of that before, so that nobody is told of one
// deletion at both cells.
//
// Status is read under the mutex of the bucket: while it is undecided there, the
// cell was in the table never or still is, and the transaction cannot commit before the
// mutex is unlocked.
func (u *use[K]) insert() bool {
	var (
		tx, rt  = u.tx, u.tx.root
		s       = rt.installShard(u.key.Hash)
		heirs   subscriptions[K]
		found   *record // what was in the way, or nil
		buried  *record // a dead record of which all have been told
		entered bool
		sealed  bool // then the transaction aborts: Clear may be what runs this
	)
	for tx.status.Load() == undecided { // until nothing that was in the way is
		found = nil
		c := rt.cells.Compute(u.key, func(now *cell[K]) *cell[K] {
			if now == u.cell || tx.status.Load() != undecided {
				return now
			}
			last := Version(s.floor.Load())
			if sealed = last&sealedBit != 0; sealed {
				return now
			}
			var dead *record
			if now != nil {
				dead = now.rec.Load()
				if dead != buried {
					found = dead
					return now
				}
				last, heirs = rt.supersede(u.cell, u.next, now, dead, last)
			}
			if u.next != nil {
				u.next.word |= firstWord(last)
			}
			u.old, entered = dead, true
			return u.cell
		})
		switch {
		case sealed:
			return false
		case found == nil:
			if heirs != nil {
				heirs.handedOn(rt)
			}
			if entered && tx.status.Load() != undecided {
				u.withdraw()
			}
			return true
		case !found.dead():
			return false
		case found.word == intentWord:
			u.pass(found)
		default:
			rt.helpBury(u.key, c, found)
			buried = found
		}
	}
	return true
}

// withdraw takes the intent out of its cell, if it is there. The transaction is decided.
func (u *use[K]) withdraw() {
	if !u.absent {
		u.cell.rec.CompareAndSwap(&u.record, u.outcome())
		return
	}
	rt := u.tx.root
	if rt.cells.Load(u.key) != u.cell {
		return // it has never entered the table, or has left it
	}
	rec := u.outcome()
	if rec == nil {
		rt.cells.CompareAndDelete(u.key, u.cell)
		return
	}
	u.cell.rec.CompareAndSwap(&u.record, rec)
	if rec.dead() {
		rt.keepInTable(u.key, u.cell) // as long as somebody needs it: insert has told all
	}
}

// sort puts the keys in the order in which all transactions store their intents.
func (tx *transaction[K]) sort() {
	slices.SortFunc(tx.uses, func(a, b *use[K]) int { return cmp.Compare(a.key.Hash, b.key.Hash) })
	for i, u := range tx.uses[1:] {
		if before := tx.uses[i]; before.key.Hash == u.key.Hash {
			before.crowded, u.crowded = true, true
		}
	}
}
