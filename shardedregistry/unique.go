package shardedregistry

import (
	"math/bits"
	"slices"

	"github.com/latchfree/latchfree/internal/atomics"
)

// gates are the mutexes of the values of unique indexes: each value has one, by
// its hash. Who wants to store a record by which a key gains a unique value holds
// the value's gate from looking for another key that has it until the record is
// stored. So a value that nobody has is gained by nobody else meanwhile. Who
// keeps a value or loses one needs no gate, and no function of a user runs behind
// one.
//
// There are 64, so that a set of them is a word.
type gates [64]struct {
	atomics.Mutex
	_ atomics.CacheLinePad
}

// gateSet is a set of gates.
type gateSet uint64

// enter locks the gates of the unique values among those of terms that are not
// in others, in the order of their numbers, so that no two wait for each other.
func (u *rules[K, V]) enter(terms, others []term) (held gateSet) {
	if u.gates == nil {
		return 0
	}
	missing(terms, others, func(t term) {
		if u.indexes[t.index].unique {
			held |= 1 << (t.value.hash % uint64(len(u.gates)))
		}
	})
	for rest := held; rest != 0; rest &= rest - 1 {
		u.gates[bits.TrailingZeros64(uint64(rest))].Lock()
	}
	return held
}

// leave unlocks what enter has locked.
func (u *rules[K, V]) leave(held gateSet) {
	for ; held != 0; held &= held - 1 {
		u.gates[bits.TrailingZeros64(uint64(held))].Unlock()
	}
}

// holder is a key that has a value which another wants, and the record with it.
type holder[K comparable, V any] struct {
	term term
	key  hkey[K]
	cell *cell[K, V]
	rec  *record[V]
}

// held reports whether the key still holds the same record.
func (h *holder[K, V]) held() bool { return h.cell.rec.Load() == h.rec }

// error returns the error for who wants the value.
func (h *holder[K, V]) error(u *rules[K, V]) error {
	return &UniqueError{Index: u.indexes[h.term.index].name, Value: h.term.value.key, Key: h.key.key}
}

// rival returns a key other than k that has one of those unique values among
// terms that are not in others, or nil. Where it finds a record with the value,
// nobody else can have it at that moment.
func (o *root[K, V]) rival(k hkey[K], terms, others []term) (found *holder[K, V]) {
	missing(terms, others, func(t term) {
		if x := &o.rules.indexes[t.index]; found == nil && x.unique {
			found = o.has(t, k)
		}
	})
	return found
}

// has returns a key other than k that has a term, or nil.
func (o *root[K, V]) has(t term, k hkey[K]) (found *holder[K, V]) {
	o.rules.indexes[t.index].on(t.value).all(func(one posting[K]) bool {
		if one.key == k {
			return true
		}
		c, rec := o.loadLive(one.key)
		if slices.Contains(rec.terms(), t) {
			found = &holder[K, V]{t, one.key, c, rec}
		}
		return found == nil
	})
	return found
}
