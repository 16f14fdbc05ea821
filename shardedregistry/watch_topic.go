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

	// alone is ignores of a set that has no other topics, or nil. It does without the calls
	// that take keys apart and find the groupings.
	alone func(*watcherSet[K]) func(hash uint64, key K) bool
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
	// Nearly every change reads this part alone: see ignores.
	bitmap    topicBitmap   // of the topics
	groupings []grouping[K] // of groups
	whole     bool          // all is not empty
	single    bool          // keys is not empty

	all    *members[*watcher[K]] // those of all keys
	keys   topicNode[K, K]       // those of single keys
	groups []groupedTopics[K]    // those of groups, by their length
	seed   maphash.Seed          // of the hashes of groups in the tries
	joined uint64                // so many watchers have joined
}

// groupedTopics is the groups of one grouping that are watched.
type groupedTopics[K comparable] struct {
	grouping[K]
	topicNode[group, K]
}

// hash returns the hash of g for a trie. Nobody can choose groups that collide.
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
		next.bitmap.seed = maphash.String(next.seed, "bitmap")
	}
	next.joined++
	w.number = next.joined
	if w.interest.all {
		next.all = next.all.with([]*watcher[K]{w})
		return next.completed()
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
	return next.completed()
}

// without returns a copy of s without w, which may have left before.
func (s *watcherSet[K]) without(w *watcher[K]) *watcherSet[K] {
	if s == nil {
		return nil
	}
	next := new(watcherSet[K])
	*next = *s
	if w.interest.all {
		next.all = next.all.without(w)
		return next.completed()
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
	return next.completed()
}

// grouping returns the index of the grouping of a length, or where it belongs.
func (s *watcherSet[K]) grouping(length int) (i int, ok bool) {
	return slices.BinarySearchFunc(s.groups, length, func(t groupedTopics[K], length int) int { return t.length - length })
}

// completed returns s when it has set what ignores reads, or nil if s is empty.
func (s *watcherSet[K]) completed() *watcherSet[K] {
	s.whole, s.single, s.groupings = s.all != nil, !s.keys.empty(), nil
	for i := range s.groups {
		s.groupings = append(s.groupings, s.groups[i].grouping)
	}
	if !s.whole && !s.single && s.groupings == nil {
		return nil
	}
	return s
}

// at returns the watchers of the group of key in one grouping.
func (s *watcherSet[K]) at(t *groupedTopics[K], key K) *members[*watcher[K]] {
	g, ok := t.of(key)
	if !ok || !s.bitmap.has(groupHash(s.bitmap.seed, g.space, g.prefix)) {
		return nil
	}
	return t.find(s.hash(&g), &g)
}

// ignores returns a function that reports whether no watcher is told of key, which has this
// hash. The bitmap nearly always knows.
func (s *watcherSet[K]) ignores() func(hash uint64, key K) bool {
	if !s.whole && !s.single && len(s.groupings) == 1 && s.groupings[0].alone != nil {
		return s.groupings[0].alone(s)
	}
	return func(hash uint64, key K) bool {
		if s.whole || s.single && s.bitmap.has(hash) && s.hasKey(hash, key) {
			return false
		}
		for i := range s.groupings {
			by := &s.groupings[i] // and not by.of, to save a call
			space, text := by.parts(key)
			if len(text) < by.length {
				continue
			}
			text = text[:by.length]
			if s.bitmap.has(groupHash(s.bitmap.seed, space, text)) && s.hasGroup(i, group{space, text}) {
				return false
			}
		}
		return true
	}
}

// ignoresBeginnings is ignores of a set that has prefixes of one length only.
func ignoresBeginnings[K ~string](s *watcherSet[K]) func(uint64, K) bool {
	length := s.groupings[0].length
	return func(_ uint64, key K) bool {
		if len(key) < length {
			return true
		}
		text := string(key[:length])
		return !s.bitmap.has(textHash(s.bitmap.seed, text)) || !s.hasGroup(0, group{"", text})
	}
}

// ignoresSpaces is ignores of a set that has namespaces only.
func ignoresSpaces[K comparable](s *watcherSet[Scoped[K]]) func(uint64, Scoped[K]) bool {
	return func(_ uint64, key Scoped[K]) bool {
		return !s.bitmap.has(textHash(s.bitmap.seed, key.Space)) || !s.hasGroup(0, group{key.Space, ""})
	}
}

func (s *watcherSet[K]) hasKey(hash uint64, key K) bool { return s.keys.find(hash, &key) != nil }

func (s *watcherSet[K]) hasGroup(i int, g group) bool { return s.groups[i].find(s.hash(&g), &g) != nil }

// topicBitmap has two bits of one word for the hash of each topic that is watched, so that
// most changes that no loop is told of find that out by one load: it is a blocked Bloom
// filter of Putze, Sanders and Singler (WEA 2007). It is immutable. Bits of topics that
// nobody watches any more stay until a loop joins and nothing is spare.
type topicBitmap struct {
	words []uint64 // a power of two
	seed  uint64   // of groupHash
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

// groupHash returns the hash of a group for a bitmap, made as wyhash makes that of a short
// text. Unlike maphash it takes a few instructions. It reads 16 bytes at each end of a text,
// so groups that differ only in between have the same bits. That costs a look into a trie,
// and no more.
func groupHash(seed uint64, space, prefix string) uint64 {
	if prefix == "" {
		space, prefix = "", space // one text is hashed as one, whichever it is
	}
	if space != "" {
		seed = textHash(seed, space)
	}
	return textHash(seed, prefix)
}

// textHash is groupHash of one text.
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
func (s *watcherSet[K]) marked(w *watcher[K]) topicBitmap {
	next := s.bitmap
	if next.spare -= w.interest.topics(); next.spare < 0 {
		return s.newBitmap()
	}
	next.words = slices.Clone(next.words)
	for _, hash := range w.interest.keys {
		next.add(hash)
	}
	for g := range w.interest.groups {
		next.add(groupHash(next.seed, g.space, g.prefix))
	}
	return next
}

// newBitmap returns a bitmap of the topics of s.
func (s *watcherSet[K]) newBitmap() topicBitmap {
	b, n := topicBitmap{seed: s.bitmap.seed}, 0
	s.eachHash(func(uint64) { n++ })
	b.words = make([]uint64, min(max(ceilPowerOfTwo(n*bitsPerTopic/64+1), minBitmapWords), maxBitmapWords))
	b.spare = max(n, minBitmapWords*64/bitsPerTopic)
	s.eachHash(b.add)
	return b
}

// eachHash calls f with the hash of each topic for the bitmap.
func (s *watcherSet[K]) eachHash(f func(hash uint64)) {
	s.keys.each(func(t *watchedTopic[K, K]) { f(t.hash) })
	for i := range s.groups {
		s.groups[i].each(func(t *watchedTopic[group, K]) { f(groupHash(s.bitmap.seed, t.topic.space, t.topic.prefix)) })
	}
}
