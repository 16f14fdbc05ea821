package shardedregistry

import (
	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/table"
)

// index is one index of a registry. It is immutable but for what is in its
// table.
//
// Its postings are counts: a record that a key holds has a pin on each value
// that it is found by, and so has a record that is about to be stored. Whoever
// wants to store a record pins first, and whoever has replaced one drops its
// pins afterwards. So a key is found under a value as long as it holds a record
// with that value, whatever others have in progress; and when nobody is at work,
// the postings are those of the records and no others.
type index[K comparable] struct {
	name   string
	unique bool
	values func(K, *record) []string

	// lists holds a posting list for each value that something has a pin on.
	lists *table.Table[hkey[string], postingList[K]]
}

// postingList is one life of one value of one index: the keys under it.
type postingList[K comparable] struct {
	// keys is not nil when the posting list enters its table. Who pins and who drops
	// replaces it by CAS. Nil is final: the posting list is empty, and leaves the table
	// or is replaced there. Everybody reads.
	keys atomics.Pointer[postings[K]]
}

// on returns the keys under a value now.
func (x *index[K]) on(value hkey[string]) *postings[K] {
	s := x.lists.Load(value)
	if s == nil {
		return nil
	}
	return s.keys.Load()
}

// pin adds a pin of k on value. It is repeated only when another operation has
// changed what is under the value.
func (x *index[K]) pin(value hkey[string], k hkey[K]) {
	one := posting[K]{k, 1}
	for {
		var now *postings[K]
		s := x.lists.Load(value)
		if s != nil {
			now = s.keys.Load()
		}
		if now == nil {
			if x.tryPin(value, one) {
				return
			}
			continue
		}
		if s.keys.CompareAndSwap(now, now.plus(one, 0)) {
			return
		}
	}
}

// tryPin puts a posting list with one posting into the table, unless there is one that
// is not empty, and reports whether it did.
func (x *index[K]) tryPin(value hkey[string], one posting[K]) bool {
	fresh := new(postingList[K])
	fresh.keys.Store((*postings[K])(nil).plus(one, 0))
	return fresh == x.lists.Compute(value, func(now *postingList[K]) *postingList[K] {
		if now != nil && now.keys.Load() != nil {
			return now
		}
		return fresh
	})
}

// drop removes a pin of k on value, which there is: so the posting list is in the table
// until it is dropped. It is repeated only when another operation has changed
// what is under the value.
func (x *index[K]) drop(value hkey[string], k hkey[K]) {
	s := x.lists.Load(value)
	for {
		now := s.keys.Load()
		rest := now.minus(k, 0)
		if !s.keys.CompareAndSwap(now, rest) {
			continue
		}
		if rest == nil {
			x.lists.CompareAndDelete(value, s) // or who pins has replaced it
		}
		return
	}
}
