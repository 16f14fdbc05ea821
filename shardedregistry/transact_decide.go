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
type transaction[K comparable, V any] struct {
	root *root[K, V]

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

	rare  *rareParts[K, V]   // nil while nothing there is needed
	first [fewUses]use[K, V] // of the keys that the function has used first
}

// transactionFlags are bits. All are set before the first intent is stored.
type transactionFlags uint8

const (
	isOver       transactionFlags = 1 << iota // the function has ended
	isConflicted                              // a key that it has read has changed since
	isDated                                   // what is stored is dated, because a snapshot was being taken
)

func (tx *transaction[K, V]) has(f transactionFlags) bool { return tx.flags&f != 0 }

// rareParts is what few transactions have besides. A collection of garbage is due after so
// and so many bytes, and what most transactions need has a round size without these.
type rareParts[K comparable, V any] struct {
	floors Version          // the sum of the floors of the shards of absent keys, before each was found absent
	all    []*use[K, V]     // nil while first is enough
	byKey  map[K]*use[K, V] // nil while there are not very many
}

// rarely returns the rare parts, which it makes if there are none.
func (tx *transaction[K, V]) rarely() *rareParts[K, V] {
	if tx.rare == nil {
		tx.rare = new(rareParts[K, V])
	}
	return tx.rare
}

// n returns how many keys the function has used: see at.
func (tx *transaction[K, V]) n() int {
	if tx.rare != nil && tx.rare.all != nil {
		return len(tx.rare.all)
	}
	return int(tx.few)
}

// at returns the i-th of the keys that the function has used; from the first intent on, in
// the order of their hashes.
func (tx *transaction[K, V]) at(i int) *use[K, V] {
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
type use[K comparable, V any] struct {
	extended[K, V] // the intent: its word has intentBits

	tx *transaction[K, V]

	// cell has the key, as it is stored. If the key was absent, it is one that the
	// transaction made, which insert puts into the table, once.
	cell *cell[K, V]

	// old is the record that was read; if the key was absent, a dead one or nil. An intent
	// stands for it until the transaction commits. If the key was absent, insert sets it to
	// what is in the table then, under the mutex of the bucket.
	old *record[K, V]

	// next is what the transaction stores; nil if it leaves the key as it was.
	next *record[K, V]
}

// Of the word of a use.
const (
	absentBit  word = 1 << (versionShift + iota) // the key was absent
	writtenBit                                   // the function has stored next, or, if that is nil, has deleted the key
	crowdedBit                                   // another key of the transaction has the same order

	orderBits = ^(crowdedBit<<1 - 1)
)

func (u *use[K, V]) absent() bool  { return u.word&absentBit != 0 }
func (u *use[K, V]) written() bool { return u.word&writtenBit != 0 }
func (u *use[K, V]) crowded() bool { return u.word&crowdedBit != 0 }

// order is the hash of the key, but for its lowest bits. It names the shard.
func (u *use[K, V]) order() uint64 { return uint64(u.word & orderBits) }

// key returns the key of u as it is stored, with its hash. That is computed anew: most
// transactions do not need it again, and each of their uses is 8 bytes smaller.
func (tx *transaction[K, V]) key(u *use[K, V]) hkey[K] { return tx.root.rehashed(u.cell.key) }

// outcome returns what the intent stands for: a record that has its date, or nil if the key is
// absent and the cell is that of the transaction. It dates the transaction also where that
// leaves the key as it was: a change that follows must not have an earlier date.
func (u *use[K, V]) outcome() *record[K, V] {
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
func (tx *transaction[K, V]) time() uint64 {
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
func (u *use[K, V]) finish() {
	u.tx.decide()
	u.tx.withdraw(u)
}

// abort does so as well, but aborts the transaction unless it has committed.
func (u *use[K, V]) abort() {
	u.tx.status.CompareAndSwap(undecided, aborted)
	u.tx.withdraw(u)
}

// decide stores an intent for each key, if that holds what the transaction has read, and
// then decides. The owner calls it, and all that find the transaction undecided where they
// want to store something.
//
// All store the intents in the order of the hashes. So a transaction that is in the way
// needs no key that is held by the one that it is in the way of, and can be finished.
func (tx *transaction[K, V]) decide() (status uint32) {
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
func (tx *transaction[K, V]) install(u *use[K, V]) bool {
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
func (u *use[K, V]) pass(rec *record[K, V]) {
	if u.crowded() {
		rec.ext.use.abort()
	} else {
		rec.ext.use.finish()
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
func (tx *transaction[K, V]) insert(u *use[K, V]) bool {
	var (
		rt      = tx.root
		key     = tx.key(u)
		s       = rt.installShard(key.Hash)
		heirs   subscriptionList[K, V]
		found   *record[K, V] // what was in the way, or nil
		buried  *record[K, V] // a dead record of which all have been told
		entered bool
	)
	for tx.status.Load() == undecided { // until nothing that was in the way is
		found = nil
		c := rt.cells.Compute(key, func(now *cell[K, V]) *cell[K, V] {
			if now == u.cell || tx.status.Load() != undecided {
				return now
			}
			last := Version(s.floor.Load())
			var dead *record[K, V]
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
			heirs.handedOn()
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
func (tx *transaction[K, V]) withdraw(u *use[K, V]) {
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
func (tx *transaction[K, V]) sort() {
	if tx.rare == nil || tx.rare.all == nil {
		if tx.few == 2 && tx.first[0].follows(&tx.first[1]) {
			tx.crossed = 1
		}
		return
	}
	all := tx.rare.all
	slices.SortFunc(all, func(a, b *use[K, V]) int { return cmp.Compare(a.order(), b.order()) })
	for i, u := range all[1:] {
		all[i].follows(u)
	}
}

// follows reports whether u comes after other. If neither comes first, it notes that for both.
func (u *use[K, V]) follows(other *use[K, V]) bool {
	if u.order() == other.order() {
		u.word |= crowdedBit
		other.word |= crowdedBit
	}
	return u.order() > other.order()
}
