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

// swap is place.swap under the rules.
func (u law[K]) swap(p place[K], k hkey[K], c *cell[K], old, next *record) (stored bool, err error) {
	terms, others := next.terms(), old.terms()
	gates := u.enter(terms, others)
	if by := u.rival(p.root, terms, others); by != nil {
		u.leave(gates)
		if c.rec.Load() != old {
			return false, nil // and what the error would say depends on that
		}
		return false, by.taken(&p)
	}
	u.pin(k, terms, others)
	stored = c.rec.CompareAndSwap(old, next)
	u.leave(gates)
	if !stored {
		u.unpin(k, terms, others)
	}
	return stored, nil
}

// enlist is publish under the rules.
func (u law[K]) enlist(p place[K], fresh *cell[K], rec *record) (c *cell[K], present *record, err error) {
	o, k, terms := p.root, p.key, rec.terms()
	gates := u.enter(terms, nil)
	for { // at most once for each term, which nobody gains meanwhile
		by := u.rival(o, terms, nil)
		if by == nil {
			break
		}
		c, present = o.loadLive(k)
		if present == nil && o.holder(by.key, by.term) == nil {
			continue // it may have lost the value while k was present
		}
		u.leave(gates)
		if present == nil {
			err = by.taken(&p)
		}
		return c, present, err
	}
	u.pin(k, terms, nil)
	c, present = o.publish(k, fresh, rec)
	u.leave(gates)
	if c != fresh {
		u.unpin(k, terms, nil)
	}
	return c, present, nil
}

// enter locks the gates of the unique values among those of terms that are not
// in others, in the order of their numbers, so that no two wait for each other.
func (u law[K]) enter(terms, others []term) (held gateSet) {
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
func (u law[K]) leave(held gateSet) {
	for ; held != 0; held &= held - 1 {
		u.gates[bits.TrailingZeros64(uint64(held))].Unlock()
	}
}

// rival is a key that has a unique value which another key wants.
type rival[K comparable] struct {
	index string // its name
	term  term
	key   hkey[K]
}

// taken returns the error for who wants, at p, what the rival has.
func (by *rival[K]) taken(p *place[K]) error {
	if !sameSpace(by.key.Key, p.key.Key) {
		return &UniqueError{Index: by.index, Value: by.term.value.Key, hidden: true}
	}
	return &UniqueError{Index: by.index, Value: by.term.value.Key, Key: p.shown(by.key.Key)}
}

// rival returns a key that has one of those unique values among terms that are
// not in others, or nil. It is another than the one that wants to gain them, or
// that has changed meanwhile.
func (u law[K]) rival(o *root[K], terms, others []term) (found *rival[K]) {
	missing(terms, others, func(t term) {
		x := &u.indexes[t.index]
		if found != nil || !x.unique {
			return
		}
		x.on(t.value).all(func(one posting[K]) bool {
			if c := o.holder(one.key, t); c != nil {
				found = &rival[K]{x.name, t, c.named(one.key.Hash)}
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
