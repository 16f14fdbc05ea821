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
func (u *rules[K]) enter(terms, others []term) (held gateSet) {
	if u.gates == nil {
		return 0
	}
	missing(terms, others, func(t term) {
		if u.indexes[t.index].unique {
			held |= 1 << (t.value.Hash % uint64(len(u.gates)))
		}
	})
	for rest := held; rest != 0; rest &= rest - 1 {
		u.gates[bits.TrailingZeros64(uint64(rest))].Lock()
	}
	return held
}

// leave unlocks what enter has locked.
func (u *rules[K]) leave(held gateSet) {
	for ; held != 0; held &= held - 1 {
		u.gates[bits.TrailingZeros64(uint64(held))].Unlock()
	}
}

// rival is a key that has a unique value which another key wants.
type rival[K comparable] struct {
	term term
	key  hkey[K]
}

// taken returns the error for who wants what a rival has.
func (p *place[K]) taken(by *rival[K]) error {
	index := p.root.rules.indexes[by.term.index].name
	if !sameSpace(by.key.Key, p.key.Key) {
		return &UniqueError{Index: index, Value: by.term.value.Key, hidden: true}
	}
	return &UniqueError{Index: index, Value: by.term.value.Key, Key: p.shown(by.key.Key)}
}

// rival returns a key that has one of those unique values among terms that are
// not in others, or nil. It is another than the one that wants to gain them, or
// that has changed meanwhile.
func (o *root[K]) rival(terms, others []term) (found *rival[K]) {
	missing(terms, others, func(t term) {
		x := &o.rules.indexes[t.index]
		if found != nil || !x.unique {
			return
		}
		x.on(t.value).all(func(one posting[K]) bool {
			if c := o.holder(one.key, t); c != nil {
				found = &rival[K]{t, c.named(one.key.Hash)}
			}
			return found == nil
		})
	})
	return found
}

// holder returns the cell of k if k has a term now, or nil. Who has entered the
// term's gate and finds one twice knows that k has had the term in between.
func (o *root[K]) holder(k hkey[K], t term) *cell[K] {
	c, rec := o.loadLive(k)
	if !slices.Contains(rec.terms(), t) {
		return nil
	}
	return c
}
