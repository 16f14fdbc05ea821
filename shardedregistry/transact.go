package shardedregistry

import "github.com/latchfree/latchfree/internal/atomics"

// Transact runs fn, which reads and stores several keys through its argument, and makes
// all that it has stored take effect at one instant, or nothing. What fn reads is what the
// keys hold at one moment, besides what it has stored itself. If a key that it has used
// changes before the instant, Transact runs fn again.
//
// No operation sees a part of a transaction: not those of other keys, nor a Snapshot, nor
// a transaction. Watch, Wait and WatchFrom tell of each key by itself, when all have changed.
// A loop over All sees each key at another moment.
//
// If fn returns an error, Transact returns that error as it is. An error that is due to a
// value is that of Config.Check, or a [*UniqueError]. In all these cases, and when fn
// panics or calls runtime.Goexit, nothing has changed. A unique value is taken as long as
// another key has it, also if that loses it in the same transaction.
//
// Fn runs outside every lock on the caller's goroutine. So it should have no effects but
// those on its argument. When a key that it has read has changed, the next method that
// reads another ends fn by a panic, which Transact recovers; a deferred function that
// recovers it does no harm. Fn may use the registry and other transactions. What it changes
// there takes effect at once and by itself. If it changes a key there that it also uses here,
// each time it runs, Transact returns [ErrTooManyRetries].
//
// A method that is to change a key finishes a transaction that is being stored there
// first, and may block on the mutex of the hash bucket of a key that the transaction found
// absent. Readers never wait.
//
// Transact panics if fn is nil.
//
// Transact is lock-free; if a key is absent or deleted, or it helps a transaction, it is
// blocking on the mutex of a hash bucket, and with indexes or TTL on more, see
// [Config]. It takes effect when it has committed, or, if it stores nothing, when the last
// key was read.
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

// Tx is a transaction, the argument of the function that [Registry.Transact] runs. It shows
// what all keys hold at one moment, and what the function itself has stored.
//
// A Tx belongs to the goroutine that runs the function. Its methods panic when the function
// has ended, and those of the zero Tx always do.
//
// To use n keys takes a time in proportion to n², because each key that is read is compared
// with all others: with 1,000 keys some milliseconds.
type Tx[K comparable, V any] struct {
	_ atomics.NoCopy
	transaction[K, V]
}

func newTx[K comparable, V any](rt *root[K, V]) *Tx[K, V] {
	tx := new(Tx[K, V])
	tx.root = rt
	return tx
}

// conflict is the panic that ends a function whose transaction cannot commit.
type conflict struct {
	tx any // the transaction
}

func (*conflict) Error() string {
	return "shardedregistry: a key that the transaction has read has changed, and Transact is about to run its function again"
}

// attempt runs fn once and stores what fn has stored. It reports whether that is done;
// if not, another operation has changed a key that fn has used.
func (tx *Tx[K, V]) attempt(fn func(*Tx[K, V]) error) (done bool, err error) {
	if err := tx.run(fn); err != nil || tx.has(isConflicted) {
		return !tx.has(isConflicted), err
	}
	return tx.commit()
}

// run runs fn, and catches the panic by which a conflict ends it.
func (tx *Tx[K, V]) run(fn func(*Tx[K, V]) error) error {
	defer tx.end()
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

// Get returns the value of key, and whether key is present: as the function has stored it,
// or else as it is in the registry.
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

// Lookup is Get with the key as it is stored and the version. The version of what the
// function itself has stored is 0: it is known when the transaction has committed.
//
// Lookup is wait-free. It takes effect with its transaction.
func (tx *Tx[K, V]) Lookup(key K) (entry Entry[K, V], ok bool) {
	u, err := tx.shared().using("Lookup", key, true)
	if err != nil {
		return entry, false
	}
	return tx.entry(u)
}

// Put stores value for key, present or not, when the transaction commits. An invalid key
// gives [ErrInvalidKey]. Config.Check and unique indexes may reject the value then.
//
// Put is wait-free. It takes effect with its transaction.
func (tx *Tx[K, V]) Put(key K, value V) error {
	u, err := tx.shared().using("Put", key, false)
	if err != nil {
		return err
	}
	u.next = tx.root.draft(false, value)
	u.word |= writtenBit
	if u.absent() {
		tx.spell(u, key)
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
	entry, ok = tx.entry(u)
	u.next = nil
	u.word |= writtenBit
	return entry, ok
}

// shared returns the part of tx that does not depend on V, or nil if tx is nil.
func (tx *Tx[K, V]) shared() *transaction[K, V] {
	if tx == nil {
		return nil
	}
	return &tx.transaction
}

// entry returns the entry of a key as the function sees it.
func (tx *Tx[K, V]) entry(u *use[K, V]) (entry Entry[K, V], ok bool) {
	rec := u.shown()
	if rec == nil {
		return entry, false
	}
	return rec.entry(u.cell.key), true
}
