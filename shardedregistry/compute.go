package shardedregistry

import (
	"errors"
	"strconv"
)

// ComputeOp is what a function given to Compute asks for.
type ComputeOp int

const (
	// CancelOp leaves the key as it is.
	CancelOp ComputeOp = iota
	// UpdateOp stores the value that the function has returned, and creates the key
	// if it is absent.
	UpdateOp
	// DeleteOp deletes the key. An absent key stays absent.
	DeleteOp
)

// Compute calls fn with the value of key and true, or, if key is absent, with a
// zero value and false, and does what fn asks for: see [ComputeOp]. It returns
// what key holds then, and whether key is present then. If fn returns an error,
// Compute returns that error as it is, and nothing has changed. All that Update
// says about fn holds here too: it runs outside every lock, and again if another
// operation has changed key meanwhile. What fn decides about a value happens to
// that value or not at all.
//
// Compute panics if fn is nil, or asks for something else than these three; then
// nothing has changed.
//
// Compute is lock-free if it leaves or replaces the value of a present key, and
// otherwise blocking on the mutex of a hash bucket; with indexes or TTL, and where it helps a transaction, it may block in all cases, see
// [Config]. It takes effect when the new record or entry or the key's last
// record is stored, or, if it changes nothing, when what it found was read.
func (r *Registry[K, V]) Compute(key K, fn func(old V, exists bool) (V, ComputeOp, error)) (entry Entry[K, V], present bool, err error) {
	if fn == nil {
		panic("shardedregistry: Compute called with a nil function")
	}
	var t target[K, V]
	if err := r.install().aim(&t, key); err != nil {
		return entry, false, err
	}
	return compute(&t, fn)
}

// errStoresNothing ends an attempt whose function has drafted nothing.
var errStoresNothing = errors.New("shardedregistry: the function stores nothing")

// compute runs Compute.
func compute[K comparable, V any](t *target[K, V], fn func(V, bool) (V, ComputeOp, error)) (entry Entry[K, V], present bool, err error) {
	var (
		rt = t.root
		a  = change[K, V]{create: true}
		op ComputeOp
	)
	err = retry(0, func() (done bool, err error) {
		// LP(Compute), stored, or an error: see attempt.
		done, err = t.attempt(&a, func() (err error) {
			var old, value V
			if a.old != nil {
				old = a.old.value
			}
			if value, op, err = fn(old, a.old != nil); err != nil {
				return err
			}
			switch op {
			case CancelOp, DeleteOp:
				return errStoresNothing
			case UpdateOp:
				a.next = rt.draft(a.dated(rt), value)
				return nil
			}
			panic("shardedregistry: the function given to Compute returned ComputeOp " + strconv.Itoa(int(op)))
		})
		if err != errStoresNothing {
			return done, err
		}
		if op == DeleteOp && a.old != nil {
			// LP(Compute), deleted: the dead record is stored.
			return rt.kill(a.key, a.cell, a.old), nil
		}
		return true, nil // LP(Compute), nothing changed: attempt has read the record, or none
	})
	switch {
	case err != nil:
		return entry, false, err
	case op == UpdateOp:
		return a.next.entry(a.cell.key), true, nil
	case op == CancelOp && a.old != nil:
		return a.old.entry(a.cell.key), true, nil
	}
	return entry, false, nil
}
