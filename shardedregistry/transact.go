package shardedregistry

import (
	"cmp"
	"slices"
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
)

// Transact runs fn, which reads and stores several keys through its argument, and makes all that it
// has stored take effect at one instant, or nothing. Fn sees what the keys hold at one moment, and
// what it has stored itself. If what it has read of a key no longer holds before the commit, Transact
// runs fn again. Changes that fn makes by other methods take effect at once. They must not be of keys that
// it also uses in the transaction, nor deletions where it reads several absent keys, or Transact may
// return [ErrTooManyRetries].
//
// If fn reads several absent keys, it also runs again when any key of their shards is deleted or
// expires. So do not read hundreds of absent keys in one transaction.
//
// Watchers see each key by itself, when all have changed.
//
// Unique values are checked for what the keys hold afterwards: two keys may swap theirs. Fn cannot
// read an index: for a quota, keep a count in a key (example of Put).
//
// If a key that fn has read has changed, its next read of another key ends fn by a panic, which Transact
// recovers.
//
// A transaction takes some three times as long as an Update of each key.
//
// Transact panics if fn is nil.
//
// Transact is lock-free, or obstruction-free if two of its keys have hashes that agree in 58 bits;
// if a key is absent or deleted, or it helps a transaction, it is blocking on a hash bucket, and
// with indexes or TTL on more, see [Config]. It takes effect when it has
// committed, or, if it stores nothing, when the last key was read.
func (r *Registry[K, V]) Transact(fn func(tx *Tx[K, V]) error) error {
	if fn == nil {
		panic("shardedregistry: Transact called with a nil function")
	}
	return transact(r.install(), fn)
}

// transact runs Transact. Each attempt but the last fails because another operation has
// changed a key, or, if two keys have the same hash, aborted the transaction.
func transact[K comparable, V any](rt *root[K, V], fn func(*Tx[K, V]) error) error {
	return retry(0, func() (done bool, err error) {
		return newTx[K, V](rt).attempt(fn)
	})
}

// Tx is the argument of the function that [Registry.Transact] runs, and belongs to its goroutine.
// Its methods panic when the function has ended, and those of the zero Tx always do. A transaction
// over n keys takes time in proportion to n²: over 1,000, some milliseconds.
type Tx[K comparable, V any] struct {
	_ atomics.NoCopy
	t transaction[K, V]
}

func newTx[K comparable, V any](rt *root[K, V]) *Tx[K, V] {
	tx := new(Tx[K, V])
	tx.t.root = rt
	return tx
}

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
	record[K, V] // the intent: its word has intentBits

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

// conflict is the panic that ends a function whose transaction cannot commit.
type conflict struct {
	tx any // the transaction
}

func (*conflict) Error() string {
	return "shardedregistry: a key that the transaction has read has changed, and Transact is about to run its function again"
}

// attempt runs fn once and stores what fn has stored. It reports whether that is done; if not, a key
// that fn has used has changed, or may have: stillAbsent tells that of several absent keys by their
// shards alone.
func (tx *Tx[K, V]) attempt(fn func(*Tx[K, V]) error) (done bool, err error) {
	if err := tx.run(fn); err != nil || tx.t.has(isConflicted) {
		return !tx.t.has(isConflicted), err
	}
	return tx.t.commit()
}

// run runs fn, and catches the panic by which a conflict ends it.
func (tx *Tx[K, V]) run(fn func(*Tx[K, V]) error) error {
	defer tx.t.end()
	return fn(tx)
}

// end is deferred around the function.
func (tx *transaction[K, V]) end() {
	tx.flags |= isOver
	if !tx.has(isConflicted) {
		return
	}
	if r := recover(); r != nil {
		if c, ok := r.(*conflict); !ok || c.tx != any(tx) {
			panic(r)
		}
	}
}

// Get returns the value of key, and whether key is present, as the function has stored it, or else
// as it is in the registry.
//
// Get is wait-free. It takes effect with its transaction.
func (tx *Tx[K, V]) Get(key K) (value V, ok bool) {
	u, err := tx.shared().using("Get", key, true)
	if err != nil {
		return value, false
	}
	rec := u.shown()
	if rec == nil {
		return value, false
	}
	return rec.value, true
}

// Lookup is Get with the key as it is stored and the version, which is 0 of what the function
// itself has stored.
//
// Lookup is wait-free. It takes effect with its transaction.
func (tx *Tx[K, V]) Lookup(key K) (entry Entry[K, V], ok bool) {
	u, err := tx.shared().using("Lookup", key, true)
	if err != nil {
		return entry, false
	}
	return u.shownEntry()
}

// Put stores value for key, present or not, when the transaction commits.
//
// Put is wait-free. It takes effect with its transaction.
func (tx *Tx[K, V]) Put(key K, value V) error {
	u, err := tx.shared().using("Put", key, false)
	if err != nil {
		return err
	}
	u.next = tx.t.root.draft(false, value)
	u.word |= writtenBit
	if u.absent() {
		tx.t.spell(u, key)
	}
	return nil
}

// Delete removes key when the transaction commits, and returns what Lookup returns.
//
// Delete is wait-free. It takes effect with its transaction.
func (tx *Tx[K, V]) Delete(key K) (entry Entry[K, V], ok bool) {
	u, err := tx.shared().using("Delete", key, true)
	if err != nil {
		return entry, false
	}
	entry, ok = u.shownEntry()
	u.next = nil
	u.word |= writtenBit
	return entry, ok
}

// shared returns the transaction of tx, or nil if tx is nil.
func (tx *Tx[K, V]) shared() *transaction[K, V] {
	if tx == nil {
		return nil
	}
	return &tx.t
}

// shownEntry returns the entry of u's key as the function sees it.
func (u *use[K, V]) shownEntry() (entry Entry[K, V], ok bool) {
	rec := u.shown()
	if rec == nil {
		return entry, false
	}
	return rec.entry(u.cell.key), true
}

// using returns what the transaction knows of key for one of the methods of Tx. If that is
// to show what the key holds, and the key is new, all that was read before must still be
// there.
func (tx *transaction[K, V]) using(method string, key K, shows bool) (u *use[K, V], err error) {
	if tx == nil || tx.root == nil || tx.has(isOver) {
		panic("shardedregistry: Tx." + method + " called outside of the function of its Transact")
	}
	if tx.root.open { // otherwise key need not be how it is stored, or cannot be compared
		u = tx.known(key)
	}
	if u == nil {
		if u, err = tx.use(key, shows); err != nil {
			return nil, err
		}
	}
	if tx.has(isConflicted) {
		panic(&conflict{tx})
	}
	return u, nil
}

// use is using for a key that need not be known.
func (tx *transaction[K, V]) use(key K, shows bool) (*use[K, V], error) {
	var k hkey[K]
	if rt := tx.root; rt.open && key == key { //nolint:staticcheck // false for NaN
		k = hkey[K]{Hash: rt.keys.Hash(key), Key: key}
	} else {
		var err error
		if k, err = rt.hashed(key); err != nil {
			return nil, err
		}
		if u := tx.known(k.Key); u != nil {
			return u, nil
		}
	}
	u := tx.add(k)
	if shows && tx.n() > 1 && !tx.still() {
		tx.flags |= isConflicted
	}
	return u, nil
}

// add reads a key that the transaction has not used before.
func (tx *transaction[K, V]) add(k hkey[K]) *use[K, V] {
	if tx.few >= fewUses {
		return tx.addMore(k)
	}
	u := &tx.first[tx.few]
	tx.read(u, k)
	tx.few++
	return u
}

// addMore is add where first is full.
func (tx *transaction[K, V]) addMore(k hkey[K]) *use[K, V] {
	rare := tx.rarely()
	if rare.all == nil {
		for i := range tx.first {
			rare.all = append(rare.all, &tx.first[i])
		}
	}
	u := new(use[K, V])
	tx.read(u, k)
	rare.all = append(rare.all, u)
	if rare.byKey != nil {
		rare.byKey[u.cell.key] = u
	}
	return u
}

// manyUses is from how many keys on a transaction finds them by a map.
const manyUses = 16

// known returns what the transaction knows of a key as it is stored, or nil if it has not
// used the key before.
func (tx *transaction[K, V]) known(key K) *use[K, V] {
	n := tx.n()
	if n >= manyUses {
		return tx.rare.known(key)
	}
	for i := n - 1; i >= 0; i-- { // the last one first, as a function often stores what it has just read
		if u := tx.at(i); u.cell.key == key {
			return u
		}
	}
	return nil
}

func (m *rareParts[K, V]) known(key K) *use[K, V] {
	if m.byKey == nil {
		m.byKey = make(map[K]*use[K, V], 2*len(m.all))
		for _, u := range m.all {
			m.byKey[u.cell.key] = u
		}
	}
	return m.byKey[key]
}

// read lets u be that of k, and reads what the key holds.
func (tx *transaction[K, V]) read(u *use[K, V], k hkey[K]) {
	u.word, u.tx = word(k.Hash)&orderBits|intentBits, tx
	if tx.look(u, k) {
		return
	}
	floor := tx.root.floor(k.Hash)
	if tx.look(u, k) { // for what there is when floor is known
		return
	}
	u.cell = &cell[K, V]{key: k.Key}
	u.word |= absentBit
	tx.rarely().floors += floor
	tx.absent = min(tx.absent+1, 2)
}

// look reads what the key holds, and reports whether it is present.
func (tx *transaction[K, V]) look(u *use[K, V], k hkey[K]) bool {
	rt := tx.root
	if u.cell, u.old = rt.cells.Load(k), nil; u.cell == nil {
		return false
	}
	u.old = rt.held(u.cell)
	return u.old != nil && !u.old.dead()
}

// floor returns the floor of the shard of a hash.
func (rt *root[K, V]) floor(hash uint64) Version {
	s := rt.shardAt(hash).Load()
	if s == nil {
		return 0
	}
	return Version(s.floor.Load())
}

// still reports whether there was a moment since the last key was read at which all keys
// held what the transaction has read of them.
//
// A present key has held its record from when that was read until it is found there again.
// An absent key is looked at before: if it is the only one, that is the moment. If there
// are more, each was absent throughout. Otherwise another dead record would be in its cell,
// or the floor would have been raised.
//
// Floors only grow: if their sum is as it was, each is.
func (tx *transaction[K, V]) still() bool {
	if tx.absent > 0 && !tx.stillAbsent(tx.absent > 1) {
		return false
	}
	for i := range tx.n() {
		u := tx.at(i)
		if !u.absent() && !tx.stillPresent(u) {
			return false
		}
	}
	return true
}

// stillPresent reports whether the key, which was present, has what was read.
func (tx *transaction[K, V]) stillPresent(u *use[K, V]) bool {
	rec := u.cell.rec.Load()
	return rec == u.old || tx.root.resolved(rec) == u.old
}

// stillAbsent reports whether the keys that were absent are, and, if throughout, were since
// they were read.
func (tx *transaction[K, V]) stillAbsent(throughout bool) bool {
	rt, floors := tx.root, Version(0)
	for i := range tx.n() {
		u := tx.at(i)
		if !u.absent() {
			continue
		}
		var now *record[K, V]
		if c := rt.cells.Load(tx.key(u)); c != nil {
			now = rt.held(c)
		}
		if now != nil && !now.dead() {
			return false
		}
		if throughout {
			if now != u.old {
				return false
			}
			floors += rt.floor(u.order())
		}
	}
	return !throughout || floors == tx.rare.floors
}

// shown returns the record of the key that the function sees, or nil if that is absent.
func (u *use[K, V]) shown() *record[K, V] {
	switch {
	case u.written():
		return u.next
	case u.absent():
		return nil
	}
	return u.old
}

// spell notes how the key of u, which was absent, is spelled in the call that stores it.
func (tx *transaction[K, V]) spell(u *use[K, V], given K) {
	if tx.root.normalize == nil {
		return
	}
	var meta *cellMeta[K, V]
	if s := tx.root.spelling(tx.key(u), given); s != nil {
		meta = &cellMeta[K, V]{spelled: s}
	}
	u.cell.meta.Store(meta)
}

// commit stores what the function has stored, all or nothing. It reports as attempt does. An error
// is that of the constraints.
//
// The functions of the user's run in prepare, before the first lock and the first intent.
func (tx *transaction[K, V]) commit() (done bool, err error) {
	if !tx.stores() {
		return true, nil // LP(Transact), nothing to store: the last key was read
	}
	if err := tx.prepare(); err != nil {
		return true, err
	}
	tx.sort()
	var status uint32
	tx.count(1)
	if tx.root.constraints == nil {
		status = tx.decide()
	} else {
		status, err = tx.root.constraints.decide(tx)
	}
	if status != committed {
		tx.count(-1)
	}
	if status == undecided {
		return err != nil, err
	}
	for i := range tx.n() {
		tx.withdraw(tx.at(i))
	}
	if status == committed {
		tx.tell()
	}
	return status == committed, nil
}

// stores reports whether the transaction changes a key if it commits.
func (tx *transaction[K, V]) stores() bool {
	for i := range tx.n() {
		if tx.at(i).stores() {
			return true
		}
	}
	return false
}

// stores reports whether a transaction that commits changes the key.
func (u *use[K, V]) stores() bool { return u.written() && (u.next != nil || !u.absent()) }

// creates reports whether a transaction that commits creates the key.
func (u *use[K, V]) creates() bool { return u.absent() && u.next != nil }

// before returns what the key held that the transaction replaces, or nil if it was absent.
func (u *use[K, V]) before() *record[K, V] {
	if u.absent() {
		return nil // and old is set by those that help
	}
	return u.old
}

// prepare completes what is to be stored, and the cells for the keys that were absent.
//
// Whether a snapshot is being taken is asked once, after all keys were read: as in kill, an
// undated record deletes only what was there before any collector joined that might miss it.
func (tx *transaction[K, V]) prepare() error {
	rt := tx.root
	if rt.snapshotting() {
		tx.flags |= isDated
	}
	dated := tx.has(isDated)
	for i := range tx.n() {
		u := tx.at(i)
		var (
			before = u.before()
			m      word
		)
		if u.absent() {
			u.cell.rec.Store(&u.record)
		} else if u.written() {
			if rt.history != nil {
				rt.recall(tx.key(u), u.cell, u.old)
			}
			m = u.old.changed()
			if u.next == nil {
				u.next = rt.tombstone(dated, u.old)
				continue
			}
		}
		if u.next == nil {
			continue
		}
		if dated {
			u.next = extend[K, V](true, u.next.value)
		}
		if rt.isPlain(u.next) {
			u.next.word = m
			continue
		}
		ttl, err := rt.complete(tx.key(u), u.next, before, m)
		if err != nil {
			return err
		}
		if rt.expiry != nil {
			atomics.InitInt64(&u.next.ext().lease.until, int64(ttl))
		}
	}
	if rt.expiry == nil {
		return nil
	}
	for i := range tx.n() { // the functions for all keys have run: so none expires early
		if next := tx.at(i).next; next != nil && !next.dead() {
			rt.expiry.begin(next, time.Duration(next.ext().lease.until.Load()))
		}
	}
	return nil
}

// count adds n to the counter of live cells for each key that is created.
func (tx *transaction[K, V]) count(n int64) {
	if tx.absent == 0 {
		return
	}
	for i := range tx.n() {
		u := tx.at(i)
		if u.creates() {
			tx.root.installShard(u.order()).live.Add(n)
		}
	}
}

// tell does what is left to do for each key when the transaction has committed and its intents are
// withdrawn: what others do when they have stored one record.
func (tx *transaction[K, V]) tell() {
	rt := tx.root
	if tx.replaces() && rt.subscribers.Load() == nil {
		return // as in replace
	}
	for i := range tx.n() {
		u := tx.at(i)
		switch {
		case u.next == nil:
		case u.next.dead():
			rt.shard(u.order()).live.Add(-1)
			rt.bury(tx.key(u), u.cell, u.before(), u.next)
		default:
			rt.changed(tx.key(u), u.cell, u.before(), u.next)
		}
	}
}

// replaces reports whether the transaction has stored nothing but plain records in place of
// others.
func (tx *transaction[K, V]) replaces() bool {
	if !tx.root.plain || tx.has(isDated) || tx.absent > 0 {
		return false
	}
	for i := range tx.n() {
		if next := tx.at(i).next; next != nil && next.dead() {
			return false
		}
	}
	return true
}

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

// abort aborts the transaction unless it has committed, and takes the intent out of its cell.
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

// install stores the intent. It returns false if the key does not hold what the transaction has
// read, and true if the intent was stored at some time, or the transaction is decided.
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
		rec.use().abort()
	} else {
		rec.use().finish()
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
	if rec.dead() {
		u.cell.keep() // before anybody finds rec there: insert has told all
	}
	u.cell.rec.CompareAndSwap(&u.record, rec)
	if rec.dead() {
		rt.tidy(key, 0)
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
