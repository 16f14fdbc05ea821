package oncecache

import (
	"fmt"
	"math"
	"math/bits"
)

// With Config.MaxWeight, an order also bounds the sum of the weights of its entries. A value
// that alone weighs more is never put into the table, so that nothing has to make room for
// it in vain.

// tooHeavy stands for the weight of a value that weighs more than Config.MaxWeight.
const tooHeavy = -1

// weightSum is a sum of weights, in 128 bits, since leases may hold any number of them.
type weightSum struct{ high, low uint64 }

func (s *weightSum) add(w int64) {
	var carry uint64
	s.low, carry = bits.Add64(s.low, uint64(w), 0)
	s.high += carry
}

func (s *weightSum) sub(w int64) {
	var borrow uint64
	s.low, borrow = bits.Sub64(s.low, uint64(w), 0)
	s.high -= borrow
}

func (s *weightSum) exceeds(bound int64) bool { return s.high != 0 || s.low > uint64(bound) }

// shown returns the sum for Stats.
func (s *weightSum) shown() int64 {
	if s.exceeds(math.MaxInt64) {
		return math.MaxInt64
	}
	return int64(s.low)
}

// weigh changes the weight of the order by that of a node that comes and one that goes; nil
// stands for none. The caller holds mu.
func (s *sieve[K]) weigh(comes, goes *sieveNode[K]) {
	if s.maxWeight == 0 {
		return
	}
	if comes != nil {
		s.weight.add(comes.weight)
	}
	if goes != nil {
		s.weight.sub(goes.weight)
	}
	s.shown.Store(s.weight.shown())
}

// weigher returns a function that calls Config.Weight for the value of an entry.
func weigher[K comparable, V any](weight func(K, V) int64) func(*entry[K]) int64 {
	if weight == nil {
		return nil
	}
	return func(e *entry[K]) int64 {
		w := weight(e.key, *valueOf[V](e))
		if w < 0 {
			panic(fmt.Sprintf("oncecache: Config.Weight returned %d for key %v: must not be negative", w, e.key))
		}
		return w
	}
}

// weightOf returns the weight of the value of e, or tooHeavy if it is not to be kept. It
// runs user code.
func (s *sieve[K]) weightOf(e *entry[K]) int64 {
	if s.weighs == nil {
		return 0
	}
	w := s.weighs(e)
	if w > s.maxWeight {
		return tooHeavy
	}
	return w
}

// limitsOfValue is root.limitsOf.
func (s *sieve[K]) limitsOfValue(r *root[K], e *entry[K], owned bool) (l limits) {
	returned := r.close == nil || !owned
	defer func() {
		if !returned {
			r.own(e.key)
			r.close.closeOneLater(r, r.copied(e)) // no longer e, which shows a failure
		}
	}()
	if l.weight = s.weightOf(e); l.weight != tooHeavy && s.lives != nil {
		l.until = s.lives.lasts(r, e)
	}
	returned = true
	return l
}

// refuseHeavy takes e, whose creation makes a value that is too heavy, out of the table
// before the value is there: as if Delete came then. If another call has taken it out, and has
// not ended the creation, it does so too: a value that is too heavy never has a place.
func (*sieve[K]) refuseHeavy(r *root[K], e *entry[K]) {
	r.remove(e)
	r.removed(e)
}

// setHeavy is core.set of the value of n, which is too heavy: what the key has leaves, as it
// does for another value, and n is in no table. Callers of a creation under way get it.
func (s *sieve[K]) setHeavy(r *root[K], n *entry[K]) (old *entry[K]) {
	at := r.at(n.key)
	r.makePassing(n)
	for {
		e := r.entries.Load(at) // LP(Set): too heavy, and nothing was there
		if e == nil {
			break
		}
		if r.close != nil && r.hasValueOf(e, n) { // LP(Set): the very value
			defer r.unown(n.key) // also if TTL panics
			if s.lives != nil {
				r.prolongs(e, s.lives.lasts(r, n)) // or it leaves just then, after this Set
			}
			return n
		}
		if r.note(e); !r.remove(e) { // LP(Set): too heavy
			continue // another caller has replaced or removed it
		}
		had := r.replaced(e, n)
		left := r.leave(e)
		if had && e.live(left) {
			old = e
		}
		defer r.finish(e, left, whyReplaced) // though the Close function of n may end the goroutine
		break
	}
	r.dropPassing(n)
	return old
}

// makePassing makes n, which has a value that is not kept, an entry that is ready, for the
// callers of a creation that ends in it. Those that want leases look again, as after Set and
// Delete.
func (r *root[K]) makePassing(n *entry[K]) {
	if r.close != nil {
		p := newLeased[K]()
		p.leases.dying(0)
		n.state.Store(p)
	}
}

// dropPassing closes the value of n, for which makePassing was called.
func (r *root[K]) dropPassing(n *entry[K]) {
	if r.close != nil {
		r.dispose(n)
	}
}
