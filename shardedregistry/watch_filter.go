package shardedregistry

import (
	"hash/maphash"
	"math/bits"
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

// topics returns the number of topics under which tellers find the loop.
func (in *interest[K]) topics() int { return len(in.keys) + len(in.prefixes) }

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
	// Nearly every change reads this part alone: see ignores.
	bitmap  topicBitmap       // of the topics
	lengths []prefixLength[K] // of prefixes
	whole   bool              // all is not empty
	single  bool              // keys is not empty

	all      *members[*watcher[K, V]]     // those of all keys
	keys     topicNode[K, *watcher[K, V]] // those of single keys
	prefixes []watchedPrefixes[K, V]      // those of prefixes, by their length
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
		next.bitmap.seed = maphash.String(next.seed, "bitmap")
	}
	next.joined++
	w.number = next.joined
	if w.interest.all {
		next.all = next.all.with([]*watcher[K, V]{w})
		return next.completed()
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
	next.bitmap = next.marked(w)
	return next.completed()
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
		return next.completed()
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
	next.bitmap.spare -= w.interest.topics()
	next.prefixes = slices.DeleteFunc(next.prefixes, func(p watchedPrefixes[K, V]) bool { return p.empty() })
	return next.completed()
}

// length returns the index of a length in prefixes, or where it belongs.
func (s *watcherSet[K, V]) length(n int) (i int, ok bool) {
	return slices.BinarySearchFunc(s.prefixes, n, func(p watchedPrefixes[K, V], n int) int { return p.length - n })
}

// completed returns s when it has set what ignores reads, or nil if s is empty.
func (s *watcherSet[K, V]) completed() *watcherSet[K, V] {
	s.whole, s.single, s.lengths = s.all != nil, !s.keys.empty(), nil
	for i := range s.prefixes {
		s.lengths = append(s.lengths, s.prefixes[i].prefixLength)
	}
	if !s.whole && !s.single && s.lengths == nil {
		return nil
	}
	return s
}

// at returns the watchers of the prefix of key that has the length of p.
func (s *watcherSet[K, V]) at(p *watchedPrefixes[K, V], key K) *members[*watcher[K, V]] {
	text := p.text(key)
	if len(text) < p.length {
		return nil
	}
	if text = text[:p.length]; !s.bitmap.has(textHash(s.bitmap.seed, text)) {
		return nil
	}
	return p.find(s.hash(text), &text)
}

// ignores reports whether no watcher is told of key, which has this hash. The bitmap nearly
// always knows.
func (s *watcherSet[K, V]) ignores(hash uint64, key K) bool {
	if s.whole || s.single && s.bitmap.has(hash) && s.hasKey(hash, key) {
		return false
	}
	for i := range s.lengths {
		text := s.lengths[i].text(key)
		if len(text) < s.lengths[i].length {
			continue
		}
		text = text[:s.lengths[i].length]
		if s.bitmap.has(textHash(s.bitmap.seed, text)) && s.hasPrefix(i, text) {
			return false
		}
	}
	return true
}

func (s *watcherSet[K, V]) hasKey(hash uint64, key K) bool { return s.keys.find(hash, &key) != nil }

func (s *watcherSet[K, V]) hasPrefix(i int, text string) bool {
	return s.prefixes[i].find(s.hash(text), &text) != nil
}

// topicBitmap has two bits of one word for the hash of each topic that is watched, so that
// most changes that no loop is told of find that out by one load: it is a blocked Bloom
// filter of Putze, Sanders and Singler (WEA 2007). It is immutable. Bits of topics that
// nobody watches any more stay until a loop joins and nothing is spare.
type topicBitmap struct {
	words []uint64 // a power of two
	seed  uint64   // of textHash
	spare int      // so many topics may come or go before the next one is made
}

// Sizes of a bitmap: 16 bits for each topic when it is made, which rules out 98 of 100
// other keys, and at least 8 for each until the next one is made, which rules out 94. The
// largest has 4 KB, since each loop that joins copies it.
const (
	bitsPerTopic   = 16
	minBitmapWords = 4
	maxBitmapWords = 512
)

// has reports whether a topic with this hash may be watched. It needs a word.
func (b *topicBitmap) has(hash uint64) bool {
	bits := bitsOf(hash)
	return b.words[b.index(hash)]&bits == bits
}

func (b *topicBitmap) add(hash uint64) { b.words[b.index(hash)] |= bitsOf(hash) }

func (b *topicBitmap) index(hash uint64) uint64 { return hash >> 32 & uint64(len(b.words)-1) }

// bitsOf returns the bits for a hash in its word.
func bitsOf(hash uint64) uint64 { return 1<<(hash>>58) | 1<<(hash>>52&63) }

// textHash returns the hash of a prefix for a bitmap, made as wyhash makes that of a short
// text. Unlike maphash it takes a few instructions. It reads 16 bytes at each end of a text,
// so prefixes that differ only in between have the same bits. That costs a look into a trie,
// and no more.
func textHash(seed uint64, text string) uint64 {
	var first, last uint64
	n := len(text)
	seed += uint64(n)
	switch {
	case n >= 8:
		if n > 16 {
			seed = folded(seed^word64(text[8:]), ^seed^word64(text[n-16:]))
		}
		first, last = word64(text), word64(text[n-8:])
	case n >= 4:
		first, last = word32(text), word32(text[n-4:])
	case n > 0:
		first, last = uint64(text[0])<<8|uint64(text[n/2]), uint64(text[n-1])
	}
	return folded(seed^first, ^seed^last)
}

func folded(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// word64 and word32 are one load each.
func word64(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

func word32(s string) uint64 {
	_ = s[3]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24
}

// marked returns a bitmap of the topics of s and of w, which has just been added to s.
func (s *watcherSet[K, V]) marked(w *watcher[K, V]) topicBitmap {
	next := s.bitmap
	if next.spare -= w.interest.topics(); next.spare < 0 {
		return s.newBitmap()
	}
	next.words = slices.Clone(next.words)
	for _, hash := range w.interest.keys {
		next.add(hash)
	}
	for prefix := range w.interest.prefixes {
		next.add(textHash(next.seed, prefix))
	}
	return next
}

// newBitmap returns a bitmap of the topics of s.
func (s *watcherSet[K, V]) newBitmap() topicBitmap {
	b, n := topicBitmap{seed: s.bitmap.seed}, 0
	s.eachHash(func(uint64) { n++ })
	b.words = make([]uint64, min(max(ceilPowerOfTwo(n*bitsPerTopic/64+1), minBitmapWords), maxBitmapWords))
	b.spare = max(n, minBitmapWords*64/bitsPerTopic)
	s.eachHash(b.add)
	return b
}

// eachHash calls f with the hash of each topic for the bitmap.
func (s *watcherSet[K, V]) eachHash(f func(hash uint64)) {
	s.keys.each(func(t *watchedTopic[K, *watcher[K, V]]) { f(t.hash) })
	for i := range s.prefixes {
		s.prefixes[i].each(func(t *watchedTopic[string, *watcher[K, V]]) { f(textHash(s.bitmap.seed, t.topic)) })
	}
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

// each calls f for each topic.
func (n *topicNode[T, W]) each(f func(*watchedTopic[T, W])) {
	for i := range n.tip {
		f(&n.tip[i])
	}
	if n.below != nil {
		for i := range n.below {
			n.below[i].each(f)
		}
	}
}

// index returns the index of a topic in a tip, or -1.
func (n *topicNode[T, W]) index(topic T) int {
	return slices.IndexFunc(n.tip, func(t watchedTopic[T, W]) bool { return t.topic == topic })
}
