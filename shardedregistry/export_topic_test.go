package shardedregistry

// TopicSet is a set of loops with filters, as the subscribers have it. Loops have numbers.
// It is immutable.
type TopicSet struct {
	rt    *root[string, int]
	set   *watcherSet[string, int]
	loops map[*watcher[string, int]]int // shared by all versions
}

// NewTopicSet returns an empty set, in a registry that hashes with hash if that is not nil.
func NewTopicSet(hash func(string) uint64) TopicSet {
	rt := new(Registry[string, int]).install()
	if hash != nil {
		rt.hasher = hash
	}
	return TopicSet{rt, nil, map[*watcher[string, int]]int{}}
}

// With returns a set with a loop more, and one without that again.
func (s TopicSet) With(loop int, filters ...Filter[string]) (with TopicSet, without func(TopicSet) TopicSet) {
	w := &watcher[string, int]{root: s.rt, interest: interestOf(s.rt, filters)}
	s.loops[w] = loop
	s.set = s.set.with(w)
	return s, func(s TopicSet) TopicSet {
		s.set = s.set.without(w)
		return s
	}
}

// Told returns the loops that are told of key, some perhaps twice.
func (s TopicSet) Told(key string) (loops []int) {
	s.set.each(s.rt.rehashed(key), func(w *watcher[string, int]) { loops = append(loops, s.loops[w]) })
	return loops
}

// Ignores reports whether the set says that no loop is told of key, where it hashes keys as
// New makes it.
func (s TopicSet) Ignores(key string) bool {
	return s.set == nil || s.set.ignores(s.rt.keys.Hash(key), key)
}

// IsEmpty reports whether the set is what it was when it was new.
func (s TopicSet) IsEmpty() bool { return s.set == nil }

// Depth returns the length of the longest path in the tries, and the bytes of the bitmap.
func (s TopicSet) Depth() (depth, bitmap int) {
	if s.set == nil {
		return 0, 0
	}
	depth = depthOf(&s.set.keys)
	for i := range s.set.prefixes {
		depth = max(depth, depthOf(&s.set.prefixes[i].topicNode))
	}
	return depth, 8 * len(s.set.bitmap.words)
}

func depthOf[T comparable, W member](n *topicNode[T, W]) (depth int) {
	if n.below == nil {
		return 0
	}
	for i := range n.below {
		depth = max(depth, 1+depthOf(&n.below[i]))
	}
	return depth
}

// Mistaken returns how many keys of n the bitmap does not rule out, though nobody watches
// them.
func (s TopicSet) Mistaken(keys func(i int) string, n int) (mistaken int) {
	for i := range n {
		if s.set.bitmap.has(s.rt.hash(keys(i))) {
			mistaken++
		}
	}
	return mistaken
}

// RulesOut returns a function that reports whether the bitmap rules out the prefixes of a
// key, beside loops over some prefixes.
func RulesOut(prefixes ...string) func(key string) bool {
	s := NewTopicSet(nil)
	for i, prefix := range prefixes {
		s, _ = s.With(i, Prefix(prefix))
	}
	return func(key string) bool {
		for _, p := range s.set.lengths {
			if len(key) >= p.length && s.set.bitmap.has(textHash(s.set.bitmap.seed, key[:p.length])) {
				return false
			}
		}
		return true
	}
}

// TopicHash returns the hash of a prefix in a bitmap with a seed.
func TopicHash(seed uint64, prefix string) uint64 { return textHash(seed, prefix) }
