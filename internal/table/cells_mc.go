//go:build modelcheck

package table

import (
	"iter"

	"github.com/latchfree/latchfree/internal/atomics"
)

// Cells is the model of a [Lines], which documents it. The methods that it does not
// declare are those of Table, the model of the other table.
type Cells[K comparable, E any] struct{ Table[Hashed[K], E] }

// Init makes t an empty set. The model has no use for the rest.
func (t *Cells[K, E]) Init(Hash[K], int) {
	mustBeCell[K, E]()
	t.Table.Init(func(k Hashed[K], _ uint64) uint64 { return k.Hash }, 0)
}

// Spread does nothing: the model counts nothing.
func (t *Cells[K, E]) Spread(int, func(uint64) *atomics.Int64) {}

// Counted is Len.
func (t *Cells[K, E]) Counted() int { return t.Len() }

// Find reads the key's word.
func (t *Cells[K, E]) Find(keys *Keys[K], k K) (e *E, hash uint64) {
	hash = keys.Hash(k)
	return t.Load(Hashed[K]{Hash: hash, Key: k}), hash
}

// LoadOrStore writes the key's word, or reads it if there is a cell.
func (t *Cells[K, E]) LoadOrStore(k Hashed[K], e *E) (actual *E, loaded bool) {
	now, stored := t.slot(k).replace(&t.Table, "LoadOrStore", true, e, func(now *E) bool { return now == nil })
	if stored {
		return e, false
	}
	return now, true
}

// Remove writes the key's word, or reads it if there is another cell.
func (t *Cells[K, E]) Remove(k Hashed[K], old *E) {
	t.slot(k).replace(&t.Table, "Remove", true, nil, func(now *E) bool { return now == old })
}

// All is as weak as its promise.
func (t *Cells[K, E]) All() iter.Seq[*E] {
	return func(yield func(*E) bool) {
		for _, e := range t.Table.All() {
			if !yield(e) {
				return
			}
		}
	}
}
