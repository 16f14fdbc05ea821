//go:build !modelcheck

package table

import (
	"iter"

	"github.com/puzpuzpuz/xsync/v3"
)

// Table maps K to *E. A nil *E means "absent" everywhere. Make it with New, or,
// where it is part of something else, with Init.
//
// Progress: Load is wait-free but for the length of a bucket chain. Everything
// that writes is blocking: it holds the mutex of one bucket, and waits while
// the table is being resized. Those sections run no user code: see Compute.
type Table[K comparable, E any] struct {
	m *xsync.MapOf[K, *E]
}

// New returns an empty table that hashes with hash and has room for sizeHint
// entries; a hint of zero or less means the smallest table. It never shrinks
// below that room.
//
// The hash function is called before any lock is taken, so one that panics
// leaves the table as it was.
func New[K comparable, E any](hash Hash[K], sizeHint int) *Table[K, E] {
	t := new(Table[K, E])
	t.Init(hash, sizeHint)
	return t
}

// Init makes t an empty table, as New does. It must come before all else, and
// only once.
func (t *Table[K, E]) Init(hash Hash[K], sizeHint int) {
	t.m = xsync.NewMapOfWithHasher[K, *E](hash, xsync.WithPresize(sizeHint))
}

// Load returns the pointer stored for k, or nil. It takes effect when the
// entry is read.
func (t *Table[K, E]) Load(k K) *E {
	e, _ := t.m.Load(k)
	return e
}

// LoadOrStore returns the pointer stored for k if there is one, and otherwise
// stores e and returns it. Loaded tells which.
func (t *Table[K, E]) LoadOrStore(k K, e *E) (actual *E, loaded bool) {
	return t.m.LoadOrStore(k, e)
}

// Swap stores e for k and returns the pointer that it replaced, or nil.
func (t *Table[K, E]) Swap(k K, e *E) (old *E) {
	old, loaded := t.m.LoadAndStore(k, e)
	if !loaded {
		return nil // xsync returns e here
	}
	return old
}

// LoadAndDelete removes k and returns the pointer that was stored, or nil. An
// absent key costs only a Load.
func (t *Table[K, E]) LoadAndDelete(k K) (old *E) {
	if t.Load(k) == nil {
		return nil
	}
	old, _ = t.m.LoadAndDelete(k)
	return old
}

// CompareAndSwap stores e for k if old is what is stored now, and reports
// whether it did. Old must not be nil; see LoadOrStore for that.
func (t *Table[K, E]) CompareAndSwap(k K, old, e *E) (swapped bool) {
	if t.Load(k) != old {
		return false
	}
	t.Compute(k, func(now *E) *E {
		if now != old {
			return now
		}
		swapped = true
		return e
	})
	return swapped
}

// CompareAndDelete removes k if old is what is stored now, and reports whether
// it did.
func (t *Table[K, E]) CompareAndDelete(k K, old *E) (deleted bool) {
	if old == nil {
		return false
	}
	return t.CompareAndSwap(k, old, nil)
}

// Compute replaces what is stored for k by f of it, where nil stands for
// absent both ways, and returns the result.
//
// f runs while the bucket's mutex is held and without a deferred unlock, as
// does everything in xsync/v3: a panic in it, or a wait, would freeze every
// writer at the next resize. It must therefore be the library's own code, do
// a handful of loads and stores, and call nothing that a user supplied.
func (t *Table[K, E]) Compute(k K, f func(now *E) *E) *E {
	e, ok := t.m.Compute(k, func(now *E, _ bool) (*E, bool) {
		e := f(now)
		return e, e == nil
	})
	if !ok {
		return nil // xsync returns what it deleted
	}
	return e
}

// All yields every entry. It is weakly consistent: each key at most once,
// every key that is present throughout, and any subset of those that come or
// go meanwhile. It waits for each Compute whose function has begun before, and yields what
// that inserts. The loop body runs outside every lock and may use the table.
func (t *Table[K, E]) All() iter.Seq2[K, *E] {
	return func(yield func(K, *E) bool) { t.m.Range(yield) }
}

// Len returns the number of entries: exact while nobody writes, and otherwise
// off by at most the writes in progress.
func (t *Table[K, E]) Len() int { return max(0, t.m.Size()) }
