package shardedregistry

import "cmp"

// term is a value of an index.
type term struct {
	index int // its number in rules
	value hkey[string]
}

func (t term) compare(other term) int {
	if c := cmp.Compare(t.index, other.index); c != 0 {
		return c
	}
	return cmp.Compare(t.value.Key, other.value.Key)
}

// missing calls f for each of terms that is not in others. Both are ordered.
func missing(terms, others []term, f func(term)) {
	for _, t := range terms {
		for len(others) > 0 && others[0].compare(t) < 0 {
			others = others[1:]
		}
		if len(others) == 0 || others[0] != t {
			f(t)
		}
	}
}
