package shardedregistry

import "slices"

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
