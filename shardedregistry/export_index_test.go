package shardedregistry

// Pins returns what the indexes keep: values that have a posting list, keys under them,
// and pins of these.
func Pins[K comparable, V any](r *Registry[K, V]) (shelves, keys, pins int) {
	for _, x := range r.install().constraints.indexes {
		for _, s := range x.lists.All() {
			shelves++
			s.keys.Load().all(func(one posting[K]) bool { keys++; pins += one.pins; return true })
		}
	}
	return shelves, keys, pins
}

// Pinned does what a writer does before it stores what key is found by under a
// value of an index, and returns what it does if it has not stored.
func Pinned[K comparable, V any](r *Registry[K, V], key K, index, value string) (undo func()) {
	t, err := r.locate(key)
	if err != nil {
		panic(err)
	}
	rt, k := t.root, t.key
	cs := rt.constraints
	keys := []indexKey{cs.indexKey(cs.number(index), value)}
	cs.pin(k, keys, nil)
	return func() { cs.unpin(k, keys, nil) }
}

// Postings is a set of pins by itself. The hash of a key is the key.
type Postings struct{ p *postings[uint64] }

// Plus adds a pin, and Minus removes one.
func (s Postings) Plus(k uint64) Postings {
	return Postings{s.p.plus(posting[uint64]{hkey[uint64]{Hash: k, Key: k}, 1}, 0)}
}

func (s Postings) Minus(k uint64) Postings {
	return Postings{s.p.minus(hkey[uint64]{Hash: k, Key: k}, 0)}
}

// Map returns the pins by key, and Len the keys.
func (s Postings) Map() map[uint64]int {
	all := map[uint64]int{}
	s.p.all(func(one posting[uint64]) bool { all[one.key.Key] += one.pins; return true })
	return all
}

func (s Postings) Len() int { return s.p.len() }

// First returns how often a loop that ends after n postings gets one, and whether
// it is told that it has seen all.
func (s Postings) First(n int) (seen int, whole bool) {
	whole = s.p.all(func(posting[uint64]) bool { seen++; return seen < n })
	return seen, whole
}

// Nodes returns the number of branches and leaves.
func (s Postings) Nodes() (branches, leaves int) { return nodes(s.p) }

func nodes[K comparable](p *postings[K]) (branches, leaves int) {
	switch {
	case p == nil:
		return 0, 0
	case p.kids == nil:
		return 0, 1
	}
	branches = 1
	for _, kid := range p.kids {
		b, l := nodes(kid)
		branches, leaves = branches+b, leaves+l
	}
	return branches, leaves
}

// SameIndexKeys reports whether what key holds shares its index keys after do with what it
// held before.
func SameIndexKeys[K comparable, V any](r *Registry[K, V], key K, do func()) bool {
	keys := func() []indexKey {
		_, rec := r.root.Load().find(key)
		return rec.indexKeys()
	}
	before := keys()
	do()
	after := keys()
	return &before[0] == &after[0]
}
