package shardedregistry

import (
	"hash/maphash"
	"math/bits"
	"slices"
)

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
