package shardedregistry

import "slices"

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
