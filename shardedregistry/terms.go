package shardedregistry

import (
	"cmp"
	"unsafe"
)

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

// Where there are rules, each live record that a cell holds is the first field
// of one of these. So what it was indexed under is known for ever, whatever the
// functions would say now, and reading an index runs none of them.
type (
	termed[V any] struct {
		record[V]
		terms []term // ordered, each once; shared by records that agree on them
	}
	datedTermed[V any] struct {
		dated[V]
		terms []term
	}
)

// terms returns what a record is found by: nothing, if there is none or it is
// dead. It is called only where there are rules.
func (r *record[V]) terms() []term {
	switch {
	case r == nil || r.dead():
		return nil
	case r.mark&datedBit != 0:
		// Safety: draftTermed alone makes live records where there are rules, and
		// sets the bit in those that are the first field of a datedTermed.
		return (*datedTermed[V])(unsafe.Pointer(r)).terms
	}
	// Safety: likewise, and the others are the first field of a termed.
	return (*termed[V])(unsafe.Pointer(r)).terms
}

// draftTermed is bare with terms.
func draftTermed[V any](taking bool, old *record[V], m mark, value V, terms []term) *record[V] {
	if !taking {
		return &(&termed[V]{record[V]{m, value}, terms}).record
	}
	d := &datedTermed[V]{terms: terms}
	d.record = record[V]{m | datedBit, value}
	d.prev.Store(old)
	return &d.record
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
