package shardedregistry

import (
	"cmp"
	"slices"
	"unsafe"

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

	// status is undecided, then aborted or committed for ever. Set by CAS by the owner and
	// all that help. Everybody reads who meets an intent.
	status atomics.Uint32

	few     uint8 // how many of first are in use
	absent  uint8 // 1 if a key that the function has used was absent, 2 if several were
	crossed uint8 // 1 if two keys were used, and are in the other order in first; otherwise 0
	flags   transactionFlags

	// date is 0 until somebody who finds the transaction committed sets it by CAS, to the
	// clock. It is the date of all that is stored. Only with isDated.
	date atomics.Uint64

	rare  *rareParts[K]   // nil while nothing there is needed
	first [fewUses]use[K] // of the keys that the function has used first
}

// transactionFlags are bits. All are set before the first intent is stored.
type transactionFlags uint8

const (
	isOver       transactionFlags = 1 << iota // the function has ended
	isConflicted                              // a key that it has read has changed since
	isDated                                   // what is stored is dated, because a snapshot was being taken
)

func (tx *transaction[K]) has(f transactionFlags) bool { return tx.flags&f != 0 }

// rareParts is what few transactions have besides. A collection of garbage is due after so
// and so many bytes, and what most transactions need has a round size without these.
type rareParts[K comparable] struct {
	floors Version       // the sum of the floors of the shards of absent keys, before each was found absent
	all    []*use[K]     // nil while first is enough
	byKey  map[K]*use[K] // nil while there are not very many
}

// rarely returns the rare parts, which it makes if there are none.
func (tx *transaction[K]) rarely() *rareParts[K] {
	if tx.rare == nil {
		tx.rare = new(rareParts[K])
	}
	return tx.rare
}

// n returns how many keys the function has used: see at.
func (tx *transaction[K]) n() int {
	if tx.rare != nil && tx.rare.all != nil {
		return len(tx.rare.all)
	}
	return int(tx.few)
}

// at returns the i-th of the keys that the function has used; from the first intent on, in
// the order of their hashes.
func (tx *transaction[K]) at(i int) *use[K] {
	if tx.rare != nil && tx.rare.all != nil {
		return tx.rare.all[i]
	}
	return &tx.first[uint8(i)^tx.crossed]
}

// fewUses is for how many keys a transaction needs no further memory: a transfer has two.
const fewUses = 2

// The states of a transaction.
const (
	undecided uint32 = iota
	aborted
	committed
)

// use is what a transaction knows of a key that it uses, and its intent there: what a cell
// holds in place of a record while the transaction is being decided, and until somebody
// replaces it then. It stands for what the key held before, until the transaction has
// committed, and from then on for what the transaction has stored. So a transaction changes
// all its keys by one store.
//
// Its word is that of no record, and has the flag of a dated one. So it costs only those
// that meet a dated or dead record something. It also has the order of the key and flags. A
// use is immutable like its transaction:
//
//	63                   6 5       4         3        2 1 0
//	+---------------------+---------+---------+--------+-------+
//	| top bits of the hash| crowded | written | absent | 1 1 0 |
//	+---------------------+---------+---------+--------+-------+
type use[K comparable] struct {
	record // whose word has intentBits

	tx *transaction[K]

	// cell has the key, as it is stored. If the key was absent, it is one that the
	// transaction made, which insert puts into the table, once.
	cell *cell[K]

	// old is the record that was read; if the key was absent, a dead one or nil. An intent
	// stands for it until the transaction commits. If the key was absent, insert sets it to
	// what is in the table then, under the mutex of the bucket.
	old *record

	// next is what the transaction stores; nil if it leaves the key as it was.
	next *record
}

// Of the word of a use.
const (
	absentBit  word = 1 << (versionShift + iota) // the key was absent
	writtenBit                                   // the function has stored next, or, if that is nil, has deleted the key
	crowdedBit                                   // another key of the transaction has the same order

	orderBits = ^(crowdedBit<<1 - 1)
)

func (u *use[K]) absent() bool  { return u.word&absentBit != 0 }
func (u *use[K]) written() bool { return u.word&writtenBit != 0 }
func (u *use[K]) crowded() bool { return u.word&crowdedBit != 0 }

// order is the hash of the key, but for its lowest bits. It names the shard.
func (u *use[K]) order() uint64 { return uint64(u.word & orderBits) }

// key returns the key of u as it is stored, with its hash. That is computed anew: most
// transactions do not need it again, and each of their uses is 8 bytes smaller.
func (tx *transaction[K]) key(u *use[K]) hkey[K] { return tx.root.rehashed(u.cell.key) }

// useOf returns the use of which rec, an intent, is the first field.
func useOf[K comparable](rec *record) *use[K] {
	// Safety: rec has intentBits. Read alone sets them, in the first field of a use.
	return (*use[K])(unsafe.Pointer(rec))
}

// outcome returns what the intent stands for: a record that has its date, or nil if the key is
// absent and the cell is that of the transaction. It dates the transaction also where that
// leaves the key as it was: a change that follows must not have an earlier date.
func (u *use[K]) outcome() *record {
	tx := u.tx
	if tx.status.Load() != committed {
		return u.old
	}
	date := uint64(0)
	if tx.has(isDated) {
		date = tx.time()
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

// finish decides the transaction, if that is left to do, and takes the intent out of its
// cell.
func (u *use[K]) finish() {
	u.tx.decide()
	u.tx.withdraw(u)
}

// abort does so as well, but aborts the transaction unless it has committed.
func (u *use[K]) abort() {
	u.tx.status.CompareAndSwap(undecided, aborted)
	u.tx.withdraw(u)
}

// decide stores an intent for each key, if that holds what the transaction has read, and
// then decides. The owner calls it, and all that find the transaction undecided where they
// want to store something.
//
// All store the intents in the order of the hashes. So a transaction that is in the way
// needs no key that is held by the one that it is in the way of, and can be finished.
func (tx *transaction[K]) decide() (status uint32) {
	verdict := committed
	for i := range tx.n() {
		if !tx.install(tx.at(i)) {
			verdict = aborted
			break
		}
	}
	// LP(Transact): the transaction commits. All its intents are stored, since none is
	// withdrawn before.
	if tx.status.CompareAndSwap(undecided, verdict) {
		return verdict
	}
	return tx.status.Load()
}

// install stores the intent, and reports whether it was stored at some time; if not, the
// key does not hold what the transaction has read.
//
// It may store the intent when the transaction is decided, because a key that was left as
// it was holds the same record again. Such an intent stands for that record.
func (tx *transaction[K]) install(u *use[K]) bool {
	if u.absent() {
		return tx.insert(u)
	}
	for tx.status.Load() == undecided { // until nothing that was in the way is
		if u.cell.rec.CompareAndSwap(u.old, &u.record) {
			if tx.status.Load() != undecided {
				tx.withdraw(u)
			}
			return true
		}
		rec := u.cell.rec.Load()
		switch {
		case rec == &u.record:
			return true
		case rec.intent():
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
	if u.crowded() {
		useOf[K](rec).abort()
	} else {
		useOf[K](rec).finish()
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
func (tx *transaction[K]) insert(u *use[K]) bool {
	var (
		rt      = tx.root
		key     = tx.key(u)
		s       = rt.installShard(key.Hash)
		heirs   subscriptions[K]
		found   *record // what was in the way, or nil
		buried  *record // a dead record of which all have been told
		entered bool
	)
	for tx.status.Load() == undecided { // until nothing that was in the way is
		found = nil
		c := rt.cells.Compute(key, func(now *cell[K]) *cell[K] {
			if now == u.cell || tx.status.Load() != undecided {
				return now
			}
			last := Version(s.floor.Load())
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
		case found == nil:
			if heirs != nil {
				heirs.handedOn(rt)
			}
			if entered && tx.status.Load() != undecided {
				tx.withdraw(u)
			}
			return true
		case found.intent():
			u.pass(found)
		case !found.dead():
			return false
		default:
			rt.helpBury(key, c, found)
			buried = found
		}
	}
	return true
}

// withdraw takes the intent out of its cell, if it is there. The transaction is decided.
func (tx *transaction[K]) withdraw(u *use[K]) {
	if !u.absent() {
		u.cell.rec.CompareAndSwap(&u.record, u.outcome())
		return
	}
	rt, key := tx.root, tx.key(u)
	if rt.cells.Load(key) != u.cell {
		return // it has never entered the table, or has left it
	}
	rec := u.outcome()
	if rec == nil {
		rt.cells.CompareAndDelete(key, u.cell)
		return
	}
	u.cell.rec.CompareAndSwap(&u.record, rec)
	if rec.dead() {
		rt.keepInTable(key, u.cell) // as long as somebody needs it: insert has told all
	}
}

// sort puts the keys in the order in which all transactions store their intents.
func (tx *transaction[K]) sort() {
	if tx.rare == nil || tx.rare.all == nil {
		if tx.few == 2 && tx.first[0].follows(&tx.first[1]) {
			tx.crossed = 1
		}
		return
	}
	all := tx.rare.all
	slices.SortFunc(all, func(a, b *use[K]) int { return cmp.Compare(a.order(), b.order()) })
	for i, u := range all[1:] {
		all[i].follows(u)
	}
}

// follows reports whether u comes after other. If neither comes first, it notes that for both.
func (u *use[K]) follows(other *use[K]) bool {
	if u.order() == other.order() {
		u.word |= crowdedBit
		other.word |= crowdedBit
	}
	return u.order() > other.order()
}
