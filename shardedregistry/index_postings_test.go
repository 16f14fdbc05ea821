//go:build !modelcheck

package shardedregistry_test

import (
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/latchfree/latchfree/shardedregistry"
)

// A set of postings is what a map of counts is, and earlier sets stay as they
// were. Keys are hashes: those of the second kind differ in the top bits alone,
// so that the trie is as deep as it gets.
func TestPostings(t *testing.T) {
	for name, key := range map[string]func(i uint64) uint64{
		"spread": func(i uint64) uint64 { return i * 0x9e3779b97f4a7c15 },
		"deep":   func(i uint64) uint64 { return i << 60 },
		"deeper": func(i uint64) uint64 { return i % 2 << 63 },
	} {
		t.Run(name, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(1, 2))
			var s shardedregistry.Postings
			want := map[uint64]int{}
			type version struct {
				s    shardedregistry.Postings
				want map[uint64]int
			}
			var versions []version
			check := func(v version) {
				t.Helper()
				if got := v.s.Map(); !maps.Equal(got, v.want) || v.s.Len() != len(v.want) {
					t.Fatalf("%d keys: %v, want %v", v.s.Len(), got, v.want)
				}
			}
			for i := range 4000 {
				k := key(rnd.Uint64N(400))
				if growing := i/500%2 == 0; want[k] == 0 || growing && rnd.IntN(4) > 0 {
					s = s.Plus(k)
					want[k]++
				} else {
					s = s.Minus(k)
					if want[k]--; want[k] == 0 {
						delete(want, k)
					}
				}
				if i%97 == 0 {
					versions = append(versions, version{s, maps.Clone(want)})
				}
				check(version{s, want})
			}
			for _, v := range versions {
				check(v)
			}
			for k, n := range want {
				for range n {
					s = s.Minus(k)
				}
			}
			if s != (shardedregistry.Postings{}) {
				t.Error("what is empty is not the empty set")
			}
		})
	}
}

// The trie grows and shrinks with its keys, and keys with one hash share a leaf
// at its end.
func TestPostingsShape(t *testing.T) {
	var s shardedregistry.Postings
	want := func(branches, leaves int) {
		t.Helper()
		if b, l := s.Nodes(); b != branches || l != leaves {
			t.Errorf("%d keys: %d branches and %d leaves, want %d and %d", s.Len(), b, l, branches, leaves)
		}
	}
	for i := range uint64(8) {
		s = s.Plus(i)
	}
	want(0, 1)
	s = s.Plus(8)
	want(1, 9)
	for i := range uint64(4) {
		s = s.Minus(i)
	}
	want(1, 5)
	s = s.Minus(4)
	want(0, 1)
	s = s.Plus(4) // neither splits again nor gathers
	want(0, 1)

	s = shardedregistry.Postings{}
	for i := range uint64(9) {
		s = s.Plus(i << 4) // alike in the first four bits
	}
	want(2, 9)

	// Of 20,000 keys, each change copies a few nodes of a tree that is as deep as
	// its size asks.
	s = shardedregistry.Postings{}
	for i := range uint64(20_000) {
		s = s.Plus(i * 0x9e3779b97f4a7c15)
	}
	if branches, leaves := s.Nodes(); branches > 20_000/8 || leaves > 20_000 {
		t.Errorf("%d branches and %d leaves for %d keys", branches, leaves, s.Len())
	}
	for i := range uint64(20_000) {
		s = s.Minus(i * 0x9e3779b97f4a7c15)
	}
	want(0, 0)
}

// A loop over postings gets none when it has ended, however deep it was.
func TestPostingsLoopEnds(t *testing.T) {
	var s shardedregistry.Postings
	for i := range uint64(300) {
		s = s.Plus(i << 52) // alike in the first 52 bits
	}
	for n := range s.Len() + 2 {
		want := min(max(n, 1), s.Len())
		if seen, whole := s.First(n); seen != want || whole != (n > s.Len()) {
			t.Errorf("a loop that ends after %d of %d keys got %d, and whole is %v", n, s.Len(), seen, whole)
		}
	}
}

// Keys that cannot be told apart by their hashes are kept all the same.
func TestPostingsWithOneHash(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[int, int]{
		Indexes: map[string]func(int, int) []string{"owner": func(_, owner int) []string { return []string{key(owner)} }},
	})
	shardedregistry.SetHash(r, func(int) uint64 { return 42 })
	const n = 40
	for i := range n {
		mustPut(t, r, i, 1)
	}
	for i := range n {
		if i%2 == 0 {
			mustPut(t, r, i, 0)
		}
	}
	for odd := range 2 {
		found := map[int]bool{}
		for e := range r.ByIndex("owner", key(odd)) {
			if found[e.Key] || e.Key%2 != odd {
				t.Errorf("ByIndex(%s) yields %v", key(odd), e)
			}
			found[e.Key] = true
		}
		if len(found) != n/2 {
			t.Errorf("ByIndex(%s) yields %d keys, want %d", key(odd), len(found), n/2)
		}
	}
}
