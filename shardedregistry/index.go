package shardedregistry

import (
	"cmp"
	"slices"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/table"
)

// index is one index of a registry. It is immutable but for what is in its
// table.
//
// Its postings are counts: a record that a key holds has a pin on each value
// that it is found by, and so has a record that is about to be stored. A writer
// pins before it stores a record, and drops the pins of the replaced one afterwards.
// So a key is found under a value as long as it holds a record with that value,
// whatever others have in progress; and when no operation is in progress, the
// postings are those of the records and no others.
type index[K comparable, V any] struct {
	name   string
	unique bool
	values func(K, V) []string

	// lists holds a posting list for each value that something has a pin on.
	lists *table.Table[hkey[string], postingList[K]]
}

// on returns the keys under a value now.
func (x *index[K, V]) on(value hkey[string]) *postings[K] {
	s := x.lists.Load(value)
	if s == nil {
		return nil
	}
	return s.keys.Load()
}

// pin adds a pin of k on value. It is repeated only when another operation has
// changed what is under the value.
func (x *index[K, V]) pin(value hkey[string], k hkey[K]) {
	one := posting[K]{k, 1}
	for {
		var now *postings[K]
		s := x.lists.Load(value)
		if s != nil {
			now = s.keys.Load()
		}
		if now == nil {
			if x.tryPin(value, one) {
				return
			}
			continue
		}
		if s.keys.CompareAndSwap(now, now.plus(one, 0)) {
			return
		}
	}
}

// tryPin puts a posting list with one posting into the table, unless there is one that
// is not empty, and reports whether it did.
func (x *index[K, V]) tryPin(value hkey[string], one posting[K]) bool {
	fresh := new(postingList[K])
	fresh.keys.Store((*postings[K])(nil).plus(one, 0))
	return fresh == x.lists.Compute(value, func(now *postingList[K]) *postingList[K] {
		if now != nil && now.keys.Load() != nil {
			return now
		}
		return fresh
	})
}

// drop removes a pin of k on value, which there is: so the posting list is in the table
// until it is dropped. It is repeated only when another operation has changed
// what is under the value.
func (x *index[K, V]) drop(value hkey[string], k hkey[K]) {
	s := x.lists.Load(value)
	for {
		now := s.keys.Load()
		rest := now.minus(k, 0)
		if !s.keys.CompareAndSwap(now, rest) {
			continue
		}
		if rest == nil {
			x.lists.CompareAndDelete(value, s) // or another pin has replaced it
		}
		return
	}
}

// postingList is one life of one value of one index: the keys under it.
type postingList[K comparable] struct {
	// keys is not nil when the posting list enters its table. Calls of pin and drop
	// replace it by CAS. Nil is final: the posting list is empty, and leaves the table
	// or is replaced there. Everybody reads.
	keys atomics.Pointer[postings[K]]
}

// indexKey is a value of an index.
type indexKey struct {
	index int // its number in constraints
	value hkey[string]
}

func (k indexKey) compare(other indexKey) int {
	if c := cmp.Compare(k.index, other.index); c != 0 {
		return c
	}
	return cmp.Compare(k.value.Key, other.value.Key)
}

// missing calls f for each of index keys that is not in others. Both are ordered.
func missing(keys, others []indexKey, f func(indexKey)) {
	for _, t := range keys {
		for len(others) > 0 && others[0].compare(t) < 0 {
			others = others[1:]
		}
		if len(others) == 0 || others[0] != t {
			f(t)
		}
	}
}

// Sizes of a trie of postings. Four bits of the hash for each level make a
// change of one key among 100,000 copy four nodes of 16 pointers. A leaf of 8
// postings takes as long to copy as one such node. Leaves are made of branches
// only when half of that is left, so that a key which comes and goes does not
// split and gather a leaf each time.
const (
	fanBits  = 4
	fan      = 1 << fanBits
	leafSize = 8
	levels   = 64 / fanBits // what is below has used up the hash
)

// postings is an immutable set of keys, each with the number of records that
// count on it. Nil is the empty set. It is a leaf, or a branch that leads on by
// the next bits of the keys' hashes.
type postings[K comparable] struct {
	n    int // the keys
	leaf []posting[K]
	kids *[fan]*postings[K] // nil in a leaf
}

// posting is a key, and how many records want to be found by it: the one that is
// the key's, if that has the value, and those about to be stored.
type posting[K comparable] struct {
	key  hkey[K]
	pins int // at least 1
}

// len returns the number of keys.
func (p *postings[K]) len() int {
	if p == nil {
		return 0
	}
	return p.n
}

// plus returns the set with the pins of one more, at a level of the trie.
func (p *postings[K]) plus(one posting[K], level int) *postings[K] {
	if p == nil {
		return &postings[K]{n: 1, leaf: []posting[K]{one}}
	}
	if p.kids != nil {
		kid := p.kid(one.key, level)
		return p.with(one.key, level, kid.plus(one, level+1))
	}
	i := p.find(one.key)
	if i >= 0 {
		leaf := slices.Clone(p.leaf)
		leaf[i].pins += one.pins
		return &postings[K]{n: p.n, leaf: leaf}
	}
	if p.n < leafSize || level == levels {
		leaf := make([]posting[K], p.n+1)
		copy(leaf, p.leaf)
		leaf[p.n] = one
		return &postings[K]{n: p.n + 1, leaf: leaf}
	}
	branch := &postings[K]{kids: new([fan]*postings[K])}
	for _, each := range p.leaf {
		branch = branch.plus(each, level)
	}
	return branch.plus(one, level)
}

// minus returns the set with one pin of k less, at a level of the trie. K has
// one.
func (p *postings[K]) minus(k hkey[K], level int) *postings[K] {
	if p.kids != nil {
		rest := p.with(k, level, p.kid(k, level).minus(k, level+1))
		if rest.n > leafSize/2 {
			return rest
		}
		leaf := make([]posting[K], 0, rest.n)
		rest.all(func(one posting[K]) bool { leaf = append(leaf, one); return true })
		return &postings[K]{n: rest.n, leaf: leaf}
	}
	i := p.find(k)
	leaf := slices.Clone(p.leaf)
	if leaf[i].pins--; leaf[i].pins > 0 {
		return &postings[K]{n: p.n, leaf: leaf}
	}
	if p.n == 1 {
		return nil
	}
	return &postings[K]{n: p.n - 1, leaf: slices.Delete(leaf, i, i+1)}
}

// find returns the place of k in a leaf, or -1.
func (p *postings[K]) find(k hkey[K]) int {
	return slices.IndexFunc(p.leaf, func(one posting[K]) bool { return one.key == k })
}

// kid returns where a branch leads for k.
func (p *postings[K]) kid(k hkey[K], level int) *postings[K] {
	return p.kids[k.Hash>>(fanBits*level)%fan]
}

// with returns a copy of a branch that leads to kid for k.
func (p *postings[K]) with(k hkey[K], level int, kid *postings[K]) *postings[K] {
	kids := *p.kids
	kids[k.Hash>>(fanBits*level)%fan] = kid
	return &postings[K]{n: p.n + kid.len() - p.kid(k, level).len(), kids: &kids}
}

// all calls f for each posting until it returns false, and reports whether it
// never did.
func (p *postings[K]) all(f func(posting[K]) bool) bool {
	if p == nil {
		return true
	}
	for _, one := range p.leaf {
		if !f(one) {
			return false
		}
	}
	if p.kids != nil {
		for _, kid := range p.kids {
			if !kid.all(f) {
				return false
			}
		}
	}
	return true
}
