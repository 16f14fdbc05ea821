package shardedregistry

import (
	"hash/maphash"
	"slices"
	"strings"
)

// Filter selects the keys that a loop over Watch, WatchSnapshot or WatchFrom sees: those that at
// least one of its filters accepts, or all if it has none. The zero Filter accepts no key.
type Filter[K comparable] struct {
	keys   []K             // of Keys
	prefix string          // of Prefix
	as     prefixLength[K] // of Prefix
	match  func(K) bool    // of Matching; else nil
}

// Keys returns a filter that accepts keys and no others. They are normalised when a loop begins;
// invalid ones are left out. A change of another key costs a look-up, however many such loops there
// are.
//
// Keys is wait-free. It takes effect at any moment: it reads nothing.
func Keys[K comparable](keys ...K) Filter[K] { return Filter[K]{keys: slices.Clone(keys)} }

// Prefix returns a filter that accepts the keys that begin with prefix, byte by byte, and prefix
// itself. It compares keys as they are stored, and does not normalise prefix. A change of any key
// costs a look-up for each length of watched prefixes.
//
// Prefix is wait-free. It takes effect at any moment: it reads nothing.
func Prefix[K ~string](prefix K) Filter[K] {
	return Filter[K]{prefix: string(prefix), as: prefixLength[K]{
		length: len(prefix),
		text:   func(key K) string { return string(key) },
	}}
}

// Matching returns a filter that accepts the keys for which match returns true. Match is given keys
// as they are stored and must always return the same for a key. It runs on the goroutine of the
// loop, before that yields a change, and for each key of a snapshot. [Keys] and [Prefix] cost less.
//
// Matching panics if match is nil.
//
// Matching is wait-free. It takes effect at any moment: it reads nothing.
func Matching[K comparable](match func(K) bool) Filter[K] {
	if match == nil {
		panic("shardedregistry: Matching called with a nil function")
	}
	return Filter[K]{match: match}
}

// interest is what one loop watches. It is immutable.
type interest[K comparable] struct {
	all      bool                       // the loop is told of all keys
	keys     map[K]uint64               // else of these, with their hashes
	prefixes map[string]prefixLength[K] // and of those that begin with these

	// match says which of these keys the loop shows; nil stands for all. It runs the
	// user's functions, on the goroutine of the loop.
	match func(K) bool
}

// has reports whether the loop shows k.
func (in *interest[K]) has(k K) bool { return in.accepts(k) && (in.match == nil || in.match(k)) }

func (in *interest[K]) accepts(k K) bool {
	if in.all {
		return true
	}
	if _, ok := in.keys[k]; ok {
		return true
	}
	for prefix, by := range in.prefixes {
		if strings.HasPrefix(by.text(k), prefix) {
			return true
		}
	}
	return false
}

// hasAll reports whether the loop shows every key.
func (in *interest[K]) hasAll() bool { return in.all && in.match == nil }

// interestOf returns what a loop with filters watches. One with a function is told of all
// keys, and asks the function itself.
func interestOf[K comparable, V any](rt *root[K, V], filters []Filter[K]) interest[K] {
	if len(filters) == 0 {
		return interest[K]{all: true}
	}
	var (
		listed  = interest[K]{keys: map[K]uint64{}, prefixes: map[string]prefixLength[K]{}}
		matches []func(K) bool
	)
	for _, f := range filters {
		switch {
		case f.match != nil:
			matches = append(matches, f.match)
		case f.as.text != nil && f.prefix == "":
			return interest[K]{all: true}
		case f.as.text != nil:
			listed.prefixes[f.prefix] = f.as
		}
		for _, key := range f.keys {
			if k, err := rt.hashed(key); err == nil {
				listed.keys[k.Key] = k.Hash
			}
		}
	}
	if matches == nil {
		return listed
	}
	return interest[K]{all: true, match: func(k K) bool {
		return listed.accepts(k) || slices.ContainsFunc(matches, func(match func(K) bool) bool { return match(k) })
	}}
}

// Loops that watch some keys only are found by topic: the key, or a prefix of it. So a
// change looks up its key, and one prefix for each length, however many loops there are.

// prefixLength is a length that watched prefixes have.
type prefixLength[K comparable] struct {
	length int
	text   func(K) string // a key as a string
}

// watcherSet is the watchers that have joined. It is immutable. Nil is the empty set.
type watcherSet[K comparable, V any] struct {
	all      *members[*watcher[K, V]]     // those of all keys
	keys     topicNode[K, *watcher[K, V]] // those of single keys
	prefixes []watchedPrefixes[K, V]      // those of prefixes, by their length; none is empty
	seed     maphash.Seed                 // of the hashes of prefixes in the tries
	joined   uint64                       // so many watchers have joined
}

// watchedPrefixes is the prefixes of one length that are watched.
type watchedPrefixes[K comparable, V any] struct {
	prefixLength[K]
	topicNode[string, *watcher[K, V]]
}

// hash returns the hash of a prefix for a trie. Nobody can choose prefixes that collide.
func (s *watcherSet[K, V]) hash(prefix string) uint64 { return maphash.String(s.seed, prefix) }

// with returns a copy of s with w.
func (s *watcherSet[K, V]) with(w *watcher[K, V]) *watcherSet[K, V] {
	next := new(watcherSet[K, V])
	if s != nil {
		*next = *s
	} else {
		next.seed = maphash.MakeSeed()
	}
	next.joined++
	w.number = next.joined
	if w.interest.all {
		next.all = next.all.with([]*watcher[K, V]{w})
		return next
	}
	for key, hash := range w.interest.keys {
		next.keys = next.keys.with(hash, key, w, 0)
	}
	next.prefixes = slices.Clone(next.prefixes)
	for prefix, by := range w.interest.prefixes {
		i, ok := next.length(len(prefix))
		if !ok {
			next.prefixes = slices.Insert(next.prefixes, i, watchedPrefixes[K, V]{prefixLength: by})
		}
		at := &next.prefixes[i].topicNode
		*at = at.with(next.hash(prefix), prefix, w, 0)
	}
	return next
}

// without returns a copy of s without w, which may have left before.
func (s *watcherSet[K, V]) without(w *watcher[K, V]) *watcherSet[K, V] {
	if s == nil {
		return nil
	}
	next := new(watcherSet[K, V])
	*next = *s
	if w.interest.all {
		next.all = next.all.without(w)
	}
	for key, hash := range w.interest.keys {
		next.keys = next.keys.without(hash, key, w, 0)
	}
	next.prefixes = slices.Clone(next.prefixes)
	for prefix := range w.interest.prefixes {
		if i, ok := next.length(len(prefix)); ok {
			at := &next.prefixes[i].topicNode
			*at = at.without(next.hash(prefix), prefix, w, 0)
		}
	}
	next.prefixes = slices.DeleteFunc(next.prefixes, func(p watchedPrefixes[K, V]) bool { return p.empty() })
	if next.all == nil && next.keys.empty() && len(next.prefixes) == 0 {
		return nil
	}
	return next
}

// length returns the index of a length in prefixes, or where it belongs.
func (s *watcherSet[K, V]) length(n int) (i int, ok bool) {
	return slices.BinarySearchFunc(s.prefixes, n, func(p watchedPrefixes[K, V], n int) int { return p.length - n })
}

// ignores reports whether no watcher is told of key, which has this hash.
func (s *watcherSet[K, V]) ignores(hash uint64, key K) bool {
	if s.all != nil || s.keys.find(hash, &key) != nil {
		return false
	}
	for i := range s.prefixes {
		if s.at(&s.prefixes[i], key) != nil {
			return false
		}
	}
	return true
}

// at returns the watchers of the prefix of key that has the length of p.
func (s *watcherSet[K, V]) at(p *watchedPrefixes[K, V], key K) *members[*watcher[K, V]] {
	text := p.text(key)
	if len(text) < p.length {
		return nil
	}
	text = text[:p.length]
	return p.find(s.hash(text), &text)
}

const (
	topicBits   = 4              // of the hash that a branch takes
	topicFan    = 1 << topicBits // so many children a branch has
	topicsInTip = 4              // beyond so many, a tip becomes a branch
)

// topicNode is a node of a trie over the hashes of topics of type T, which has branches
// where the topics are many, so that joining and leaving copy little. It is immutable.
// The zero topicNode is empty.
type topicNode[T comparable, W member] struct {
	tip   []watchedTopic[T, W]
	below *[topicFan]topicNode[T, W] // nil in a tip
}

// watchedTopic is a topic with the loops that watch it.
type watchedTopic[T comparable, W member] struct {
	hash     uint64
	topic    T
	watchers *members[W] // at least one
}

func (n *topicNode[T, W]) empty() bool { return n.tip == nil && n.below == nil }

// find returns the loops that watch a topic.
func (n *topicNode[T, W]) find(hash uint64, topic *T) *members[W] {
	for rest := hash; n.below != nil; rest >>= topicBits {
		n = &n.below[rest%topicFan]
	}
	for i := range n.tip {
		if t := &n.tip[i]; t.hash == hash && t.topic == *topic {
			return t.watchers
		}
	}
	return nil
}

// with returns a copy of n with w at a topic. Depth is how many bits of the hash have led
// to n.
func (n *topicNode[T, W]) with(hash uint64, topic T, w W, depth int) topicNode[T, W] {
	if n.below != nil {
		below := *n.below
		at := &below[hash>>depth%topicFan]
		*at = at.with(hash, topic, w, depth+topicBits)
		return topicNode[T, W]{below: &below}
	}
	if i := n.index(topic); i >= 0 {
		tip := slices.Clone(n.tip)
		tip[i].watchers = tip[i].watchers.with([]W{w})
		return topicNode[T, W]{tip: tip}
	}
	tip := append(slices.Clip(n.tip), watchedTopic[T, W]{hash, topic, (*members[W])(nil).with([]W{w})})
	if len(tip) <= topicsInTip || depth >= 64 {
		return topicNode[T, W]{tip: tip}
	}
	below := new([topicFan]topicNode[T, W])
	for _, t := range tip {
		at := &below[t.hash>>depth%topicFan]
		at.tip = append(at.tip, t)
	}
	return topicNode[T, W]{below: below}
}

// without returns a copy of n without w at a topic.
func (n *topicNode[T, W]) without(hash uint64, topic T, w W, depth int) topicNode[T, W] {
	if n.below != nil {
		below := *n.below
		at := &below[hash>>depth%topicFan]
		*at = at.without(hash, topic, w, depth+topicBits)
		for i := range below {
			if !below[i].empty() {
				return topicNode[T, W]{below: &below}
			}
		}
		return topicNode[T, W]{}
	}
	i := n.index(topic)
	if i < 0 {
		return *n
	}
	tip := slices.Clone(n.tip)
	if tip[i].watchers = tip[i].watchers.without(w); tip[i].watchers == nil {
		tip = slices.Delete(tip, i, i+1)
	}
	if len(tip) == 0 {
		tip = nil
	}
	return topicNode[T, W]{tip: tip}
}

// index returns the index of a topic in a tip, or -1.
func (n *topicNode[T, W]) index(topic T) int {
	return slices.IndexFunc(n.tip, func(t watchedTopic[T, W]) bool { return t.topic == topic })
}
