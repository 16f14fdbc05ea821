package shardedregistry

import "cmp"

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
