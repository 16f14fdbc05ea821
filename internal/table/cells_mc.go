//go:build modelcheck

package table

import (
	"iter"

	"github.com/latchfree/latchfree/internal/atomics"
)

// Cells is the model of a [Lines], which documents it, as Table is that of the
// other table.
type Cells[K comparable, E any] struct{ t Table[Hashed[K], E] }

// Init makes t an empty set. The model has no use for the rest.
func (t *Cells[K, E]) Init(Hash[K], int) {
	mustBeCell[K, E]()
	t.t.Init(func(k Hashed[K], _ uint64) uint64 { return k.Hash }, 0)
}

// Spread does nothing: the model counts nothing.
func (t *Cells[K, E]) Spread(int, func(uint64) *atomics.Int64) {}

// Find reads the key's word.
func (t *Cells[K, E]) Find(keys *Keys[K], k K) *E {
	return t.Load(Hashed[K]{Hash: keys.Hash(k), Key: k})
}

// Load reads the key's word.
func (t *Cells[K, E]) Load(k Hashed[K]) *E { return t.t.Load(k) }

// Compute writes the key's word in one step if f takes none.
func (t *Cells[K, E]) Compute(k Hashed[K], f func(now *E) *E) *E { return t.t.Compute(k, f) }

// LoadOrStore writes the key's word, or reads it if there is a cell.
func (t *Cells[K, E]) LoadOrStore(k Hashed[K], e *E) (actual *E, loaded bool) {
	now, stored := t.t.slot(k).replace(&t.t, "LoadOrStore", true, e, func(now *E) bool { return now == nil })
	if stored {
		return e, false
	}
	return now, true
}

// Swap writes the key's word.
func (t *Cells[K, E]) Swap(k Hashed[K], e *E) (old *E) { return t.t.Swap(k, e) }

// LoadAndDelete writes the key's word, or reads it if there is no cell.
func (t *Cells[K, E]) LoadAndDelete(k Hashed[K]) (old *E) { return t.t.LoadAndDelete(k) }

// CompareAndSwap writes the key's word, or reads it if there is another cell.
func (t *Cells[K, E]) CompareAndSwap(k Hashed[K], old, e *E) (swapped bool) {
	return t.t.CompareAndSwap(k, old, e)
}

// CompareAndDelete writes the key's word, or reads it if there is another cell.
func (t *Cells[K, E]) CompareAndDelete(k Hashed[K], old *E) (deleted bool) {
	return t.t.CompareAndDelete(k, old)
}

// All is as weak as its promise.
func (t *Cells[K, E]) All() iter.Seq[*E] {
	return func(yield func(*E) bool) {
		for _, e := range t.t.All() {
			if !yield(e) {
				return
			}
		}
	}
}

// Len counts the keys in one step.
func (t *Cells[K, E]) Len() int { return t.t.Len() }
