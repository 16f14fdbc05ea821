package shardedregistry

import (
	"hash/maphash"
	"math/bits"
	"slices"
)

// Loops that watch some keys only are found by topic: the key, or a group that the key
// belongs to. So a change looks up its key, and one group for each grouping, however many
// loops there are.

// group is the keys of a namespace whose text begins with a prefix. Keys without
// namespaces belong to "". With an empty prefix it is the whole namespace.
type group struct{ space, prefix string }

// grouping says to which of the groups whose prefixes have one length a key belongs. In
// one registry, groupings of one length are alike.
type grouping[K comparable] struct {
	length int
	parts  func(K) (space, text string) // of a key
}

// of returns the group of k, or false if it is in none, being shorter.
func (by *grouping[K]) of(k K) (g group, ok bool) {
	space, text := by.parts(k)
	if len(text) < by.length {
		return g, false
	}
	return group{space, text[:by.length]}, true
}

// watcherSet is the watchers that have joined. It is immutable. Nil is the empty set.
type watcherSet[K comparable] struct {
	all    []*watcher[K]      // those of all keys, in the order in which they came
	keys   topicNode[K, K]    // those of single keys
	groups []groupedTopics[K] // those of groups, by their length
	seed   maphash.Seed       // of the hashes of groups
	bitmap topicBitmap        // of the topics
}

// groupedTopics is the groups of one grouping that are watched.
type groupedTopics[K comparable] struct {
	grouping[K]
	topicNode[group, K]
}

// hash returns the hash of g.
func (s *watcherSet[K]) hash(g *group) (hash uint64) {
	if g.prefix != "" {
		hash = maphash.String(s.seed, g.prefix)
	}
	if g.space != "" {
		hash = bits.RotateLeft64(hash, 32) ^ maphash.String(s.seed, g.space)
	}
	return hash
}

// with returns a copy of s with w.
func (s *watcherSet[K]) with(w *watcher[K]) *watcherSet[K] {
	next := new(watcherSet[K])
	if s != nil {
		*next = *s
	} else {
		next.seed = maphash.MakeSeed()
	}
	if w.interest.all {
		next.all = append(slices.Clip(next.all), w)
		return next
	}
	for key, hash := range w.interest.keys {
		next.keys = next.keys.with(hash, key, w, 0)
	}
	next.groups = slices.Clone(next.groups)
	for g, by := range w.interest.groups {
		i, ok := next.grouping(len(g.prefix))
		if !ok {
			next.groups = slices.Insert(next.groups, i, groupedTopics[K]{grouping: by})
		}
		at := &next.groups[i].topicNode
		*at = at.with(next.hash(&g), g, w, 0)
	}
	next.bitmap = next.marked(w)
	return next.orNil()
}

// without returns a copy of s without w, which may have left before.
func (s *watcherSet[K]) without(w *watcher[K]) *watcherSet[K] {
	if s == nil {
		return nil
	}
	next := new(watcherSet[K])
	*next = *s
	if w.interest.all {
		next.all = less(next.all, w)
		return next.orNil()
	}
	for key, hash := range w.interest.keys {
		next.keys = next.keys.without(hash, key, w, 0)
	}
	next.groups = slices.Clone(next.groups)
	for g := range w.interest.groups {
		if i, ok := next.grouping(len(g.prefix)); ok {
			at := &next.groups[i].topicNode
			*at = at.without(next.hash(&g), g, w, 0)
		}
	}
	next.bitmap.spare -= w.interest.topics()
	next.groups = slices.DeleteFunc(next.groups, func(t groupedTopics[K]) bool { return t.empty() })
	return next.orNil()
}

// grouping returns the index of the grouping of a length, or where it belongs.
func (s *watcherSet[K]) grouping(length int) (i int, ok bool) {
	return slices.BinarySearchFunc(s.groups, length, func(t groupedTopics[K], length int) int { return t.length - length })
}

// orNil returns s, or nil if it is empty.
func (s *watcherSet[K]) orNil() *watcherSet[K] {
	if len(s.all) == 0 && s.keys.empty() && len(s.groups) == 0 {
		return nil
	}
	return s
}

// at returns the watchers of the group of key in one grouping.
func (s *watcherSet[K]) at(t *groupedTopics[K], key K) []*watcher[K] {
	g, ok := t.of(key)
	if !ok {
		return nil
	}
	hash := s.hash(&g)
	if !s.bitmap.has(hash) {
		return nil
	}
	return t.find(hash, &g)
}

// ignores reports whether none is told of key, which the bitmap nearly always knows.
func (s *watcherSet[K]) ignores(hash uint64, key K) bool {
	if len(s.all) != 0 || !s.keys.empty() && s.bitmap.has(hash) {
		return false
	}
	for i := range s.groups {
		if s.at(&s.groups[i], key) != nil {
			return false
		}
	}
	return true
}

// topicBitmap has two bits of one word for the hash of each topic that is watched, so that
// most changes that no loop is told of find that out by one load: it is a blocked Bloom
// filter of Putze, Sanders and Singler (WEA 2007). It is immutable. Bits of topics that
// nobody watches any more stay until a loop joins and nothing is spare.
type topicBitmap struct {
	words []uint64 // a power of two
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

// has reports whether a topic with this hash may be watched.
func (b *topicBitmap) has(hash uint64) bool {
	if len(b.words) == 0 {
		return false
	}
	bits := bitsOf(hash)
	return b.words[hash>>32%uint64(len(b.words))]&bits == bits
}

func (b *topicBitmap) add(hash uint64) { b.words[hash>>32%uint64(len(b.words))] |= bitsOf(hash) }

// bitsOf returns the bits for a hash in its word.
func bitsOf(hash uint64) uint64 { return 1<<(hash>>58) | 1<<(hash>>52&63) }

// marked returns a bitmap of the topics of s and of w, which has just been added to s.
func (s *watcherSet[K]) marked(w *watcher[K]) topicBitmap {
	next := topicBitmap{slices.Clone(s.bitmap.words), s.bitmap.spare - w.interest.topics()}
	if next.spare < 0 {
		return s.newBitmap()
	}
	for _, hash := range w.interest.keys {
		next.add(hash)
	}
	for g := range w.interest.groups {
		next.add(s.hash(&g))
	}
	return next
}

// newBitmap returns a bitmap of the topics of s.
func (s *watcherSet[K]) newBitmap() (b topicBitmap) {
	n := 0
	s.eachHash(func(uint64) { n++ })
	b.words = make([]uint64, min(max(ceilPowerOfTwo(n*bitsPerTopic/64+1), minBitmapWords), maxBitmapWords))
	b.spare = max(n, minBitmapWords*64/bitsPerTopic)
	s.eachHash(b.add)
	return b
}

// eachHash calls f for the hash of each topic.
func (s *watcherSet[K]) eachHash(f func(hash uint64)) {
	s.keys.eachHash(f)
	for i := range s.groups {
		s.groups[i].eachHash(f)
	}
}
