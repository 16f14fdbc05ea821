//go:build modelcheck

package table_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/table"
	"github.com/latchfree/latchfree/internal/tools/mc"
)

// keyed is a Lines or the map that it should behave like. Keys are "a" to "z",
// and their hashes 0 to 25.
type keyed interface {
	load(k string) any
	add(k string, n int) any
	swap(k string, n int) any
	remove(k string) any
	removeFirst(k string) any // if the cell is the one that was there at first
	drop(k string) any        // the same, by Remove, which does not tell
	all() any
	fits() any // whether there are as many chains as there should be, and their buckets right
}

func keyOf(k string) table.Hashed[string] { return table.Hashed[string]{Hash: hashOf(k, 0), Key: k} }

func hashOf(k string, _ uint64) uint64 { return uint64(k[0] - 'a') }

// real is a Lines.
type real struct {
	table.Lines[string, part]
	first map[string]*part
	part  atomics.Int64 // in which it counts, if counting is spread
	kept  int64         // what part had before
}

func (r *real) load(k string) any {
	e, _ := r.Find(table.KeysHashedBy(hashOf), k)
	return shown(e)
}

func (r *real) add(k string, n int) any {
	fresh := &part{k, n}
	return shown(r.Compute(keyOf(k), func(now *part) *part {
		if now != nil {
			return now
		}
		return fresh
	}))
}

func (r *real) swap(k string, n int) (old any) {
	r.Compute(keyOf(k), func(now *part) *part {
		old = shown(now)
		return &part{k, n}
	})
	return old
}

func (r *real) remove(k string) (old any) {
	r.Compute(keyOf(k), func(now *part) *part {
		old = shown(now)
		return nil
	})
	return old
}

func (r *real) removeFirst(k string) any { return r.CompareAndDelete(keyOf(k), r.first[k]) }

func (r *real) drop(k string) any {
	r.Remove(keyOf(k), r.first[k])
	return nil
}

func (r *real) all() any {
	var all []string
	for e := range r.All() {
		all = append(all, fmt.Sprint(e.key, e.n))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func (r *real) fits() any {
	counted := int64(r.Len()) + r.part.Load() - r.kept
	for range r.All() {
		counted--
	}
	return r.Fits() && r.Wrong() == 0 && counted == 0
}

func shown(e *part) any {
	if e == nil {
		return nil
	}
	return e.n
}

// modelled is a map.
type modelled map[string]int

func (m modelled) load(k string) any {
	if n, ok := m[k]; ok {
		return n
	}
	return nil
}

func (m modelled) add(k string, n int) any {
	if _, ok := m[k]; !ok {
		m[k] = n
	}
	return m[k]
}

func (m modelled) swap(k string, n int) any {
	old := m.load(k)
	m[k] = n
	return old
}

func (m modelled) remove(k string) any {
	old := m.load(k)
	delete(m, k)
	return old
}

func (m modelled) removeFirst(k string) any {
	isFirst := m.load(k) == 0
	if isFirst {
		delete(m, k)
	}
	return isFirst
}

func (m modelled) drop(k string) any {
	m.removeFirst(k)
	return nil
}

func (m modelled) all() any {
	var all []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		all = append(all, fmt.Sprint(k, m[k]))
	}
	return strings.Join(all, " ")
}

func (m modelled) fits() any { return true }

// Checks L1, L2, L3, L4, L5, L6, L7.

// Operations on the cells of a Lines are atomic: while it grows and shrinks,
// where a chain has several buckets, and where cells come and go meanwhile. With
// one chain it grows when it has three cells, with two when it has six, and one
// of 16 shrinks when it has four. Nothing is counted twice or lost.
func TestLinesAreLinearizable(t *testing.T) {
	load := func(k string) mc.Call[keyed] {
		return mc.Call[keyed]{Name: "load(" + k + ")", Do: func(s keyed) any { return s.load(k) }}
	}
	add := func(k string) mc.Call[keyed] {
		return mc.Call[keyed]{Name: "add(" + k + ")", Do: func(s keyed) any { return s.add(k, 1) }}
	}
	swap := func(k string) mc.Call[keyed] {
		return mc.Call[keyed]{Name: "swap(" + k + ")", Do: func(s keyed) any { return s.swap(k, 2) }}
	}
	remove := func(k string) mc.Call[keyed] {
		return mc.Call[keyed]{Name: "remove(" + k + ")", Do: func(s keyed) any { return s.remove(k) }}
	}
	removeFirst := func(k string) mc.Call[keyed] {
		return mc.Call[keyed]{Name: "CompareAndDelete(" + k + ")", Do: func(s keyed) any { return s.removeFirst(k) }}
	}
	drop := func(k string) mc.Call[keyed] {
		return mc.Call[keyed]{Name: "Remove(" + k + ")", Do: func(s keyed) any { return s.drop(k) }}
	}
	all := mc.Call[keyed]{Name: "all", Do: func(s keyed) any { return s.all() }}
	fits := mc.Call[keyed]{Name: "fits", Do: func(s keyed) any { return s.fits() }}
	type threads = [][]mc.Call[keyed]
	const (
		spreads = -1 // counts in one part, in batches of two if there are 8 chains
		keeps   = -2 // the same, and the part has something from when there were more chains
	)
	for _, tt := range []struct {
		name    string
		chains  int
		few     int    // as in limits, or one of these
		first   string // keys that are there
		threads threads
		cfg     mc.Config
	}{
		{"counts in parts", 8, spreads, "a", threads{{add("b"), remove("b")}, {add("c")}, {remove("a")}}, mc.Config{Mode: mc.Bounded, Preemptions: 2}},
		{"counts in parts by two", 8, spreads, "abc", threads{{add("d"), add("e")}, {remove("a"), add("f")}}, mc.Config{}},
		{"growth counted in parts", 8, spreads, "abcdefghijklmnopqrst", threads{{add("u")}, {add("v"), load("a")}}, mc.Config{Mode: mc.Bounded, Preemptions: 1}},
		{"parts that are collected", 4, keeps, "a", threads{{add("b")}, {remove("a")}, {add("c")}}, mc.Config{}},
		{"one key", 1, 0, "", threads{{add("a"), load("a")}, {remove("a")}, {swap("a")}}, mc.Config{}},
		{"who deletes and who replaces", 4, 0, "a", threads{{removeFirst("a"), add("a")}, {swap("a")}, {removeFirst("a")}}, mc.Config{}},
		{"who removes and who replaces", 4, 0, "a", threads{{drop("a"), add("a")}, {swap("a")}, {drop("a"), load("a")}}, mc.Config{}},
		{"growth and who removes", 1, 0, "ab", threads{{add("c")}, {drop("a"), load("b")}}, mc.Config{}},
		{"two add", 4, 0, "", threads{{add("a"), load("b")}, {add("b"), load("a")}, {add("a")}}, mc.Config{}},
		{"a slot that changes hands", 4, 0, "a", threads{{remove("a"), add("e"), add("a")}, {load("a"), load("e")}}, mc.Config{}},
		{"a slot that is filled again", 4, 0, "a", threads{{remove("a"), add("a")}, {load("a"), load("a")}}, mc.Config{}},
		{"a slot that another fills", 4, 0, "a", threads{{remove("a"), add("e")}, {load("e"), load("e")}}, mc.Config{}},
		{"a chain of two buckets", 4, 0, "aeimq", threads{{add("u"), remove("a")}, {load("u"), load("q")}, {swap("e")}}, mc.Config{}},
		{"a second bucket empties", 4, 0, "aeimqu", threads{{remove("u"), add("y")}, {load("u"), load("y")}}, mc.Config{}},
		{"growth and a reader", 1, 0, "ab", threads{{add("c")}, {load("a"), load("c")}}, mc.Config{}},
		{"growth and who deletes", 1, 0, "ab", threads{{add("c")}, {removeFirst("a"), load("b")}}, mc.Config{}},
		{"growth and who replaces", 1, 0, "ab", threads{{add("c")}, {swap("b"), load("a")}}, mc.Config{}},
		{"growth and a second writer", 1, 0, "ab", threads{{add("c")}, {add("d"), load("c")}}, mc.Config{}},
		{"growth, a writer and a reader", 1, 0, "ab", threads{{add("c")}, {swap("a")}, {load("a"), load("a")}}, mc.Config{}},
		{"growth, who deletes and a reader", 1, 0, "ab", threads{{add("c")}, {remove("a"), add("a")}, {load("a")}}, mc.Config{}},
		{"growth of two chains", 2, 0, "abcde", threads{{add("f")}, {remove("b"), load("c")}}, mc.Config{}},
		{"growth twice", 1, 0, "abcd", threads{{add("e")}, {add("f"), add("g"), load("a")}}, mc.Config{Mode: mc.Bounded, Preemptions: 2}},
		{"growth that is due again", 1, 0, "ab", threads{{add("c")}, {add("d"), add("e"), add("f")}}, mc.Config{Mode: mc.Bounded, Preemptions: 2}},
		{"growth that two see due", 1, 0, "ab", threads{{add("c")}, {add("d")}, {load("d"), load("c")}}, mc.Config{Mode: mc.Bounded, Preemptions: 2}},
		{"growth of cells that have moved", 1, 0, "abcde", threads{{add("f")}, {swap("c"), load("b")}}, mc.Config{}},
		{"growth of cells that have moved, and who deletes", 1, 0, "abcde", threads{{add("f")}, {remove("c"), add("c"), load("b")}}, mc.Config{Mode: mc.Bounded, Preemptions: 2}},
		{"growth and a second bucket", 2, 1, "acegi", threads{{add("b")}, {add("k"), load("m")}}, mc.Config{Mode: mc.Bounded, Preemptions: 2}},
		{"growth of a chain of two", 4, 1, "aeimqubcdf", threads{{add("g"), add("y"), load("y")}, {load("u"), load("y")}}, mc.Config{}},
		{"growth in parts and a reader", 4, 1, "abcdefghij", threads{{add("k"), swap("a"), swap("b"), swap("a")}, {load("e"), load("a")}}, mc.Config{}},
		{"growth in parts and who replaces", 4, 2, "abcdefghij", threads{{add("k")}, {swap("a"), load("c")}}, mc.Config{Mode: mc.Bounded, Preemptions: 2}},
		{"growth in parts and who deletes", 4, 1, "abcdefghij", threads{{add("k")}, {remove("a"), add("a"), load("e")}}, mc.Config{Mode: mc.Bounded, Preemptions: 2}},
		{"growth in parts by three", 4, 2, "abcdefghij", threads{{add("k")}, {add("l")}, {swap("d"), load("h")}}, mc.Config{Mode: mc.Bounded, Preemptions: 1}},
		{"shrinkage and a reader", 16, 0, "abcdi", threads{{remove("d")}, {load("a"), load("i")}}, mc.Config{}},
		{"shrinkage and a writer", 16, 2, "abcdi", threads{{remove("d")}, {swap("a"), load("i")}}, mc.Config{Mode: mc.Bounded, Preemptions: 2}},
		{"shrinkage and who adds", 16, 2, "abcdi", threads{{remove("d")}, {add("q"), load("a")}}, mc.Config{Mode: mc.Bounded, Preemptions: 2}},
		{"shrinkage and who deletes", 16, 2, "abcdi", threads{{remove("d")}, {removeFirst("a"), add("q"), load("i")}}, mc.Config{Mode: mc.Bounded, Preemptions: 2}},
		{"shrinkage of two into one", 16, 2, "abcdi", threads{{remove("d")}, {swap("a"), load("i")}, {swap("i"), load("a")}}, mc.Config{Mode: mc.Bounded, Preemptions: 1}},
		{"shrinkage, a writer and a reader", 16, 2, "abcdi", threads{{remove("d")}, {swap("i")}, {load("i"), load("i")}}, mc.Config{Mode: mc.Bounded, Preemptions: 1}},
		{"shrinkage, who deletes and a reader", 16, 2, "abcdi", threads{{remove("d")}, {remove("i"), add("i")}, {load("i")}}, mc.Config{Mode: mc.Bounded, Preemptions: 1}},
		{"shrinkage of chains of two", 16, 2, "aiqyd", threads{{remove("d")}, {remove("q"), load("y"), add("q")}}, mc.Config{Mode: mc.Bounded, Preemptions: 1}},
		{"shrinkage twice", 32, 0, "abcdefghiq", threads{{remove("b"), remove("c"), remove("d"), remove("e"), remove("f"), remove("g")}, {swap("q"), load("i")}}, mc.Config{Mode: mc.Bounded, Preemptions: 1}},
		{"shrinkage in parts and a reader", 16, 1, "abcdi", threads{{remove("d"), remove("b"), remove("c")}, {load("a"), load("i")}}, mc.Config{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			prepared := func(s keyed) keyed {
				for _, k := range tt.first {
					s.add(string(k), 0)
				}
				return s
			}
			mc.Linearizable(t, tt.cfg, mc.Program[keyed]{
				New: func() keyed {
					r := &real{first: map[string]*part{}}
					if tt.few >= 0 {
						r.MoveOnly(tt.few)
					}
					r.InitChains(hashOf, tt.chains)
					if tt.few < 0 {
						r.Spread(1, func(uint64) *atomics.Int64 { return &r.part })
					}
					prepared(r)
					r.GrowTo(tt.chains)
					if tt.few == keeps {
						r.kept = 1
						r.part.Store(r.kept)
					}
					for e := range r.All() {
						r.first[e.key] = e
					}
					return r
				},
				Model:   func() keyed { return prepared(modelled{}) },
				Threads: tt.threads,
				After:   []mc.Call[keyed]{load("a"), load("b"), load("c"), all, fits},
			})
		})
	}
}

// A chain moves while writers that found no segment for it in the next array change it where
// it is: its slots are emptied and filled while the keys in them are hashed.
func TestLinesMoveWhileOthersWrite(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "move ∥ remove(c) ∥ add(e)"}, func(m *mc.M) {
		s := new(real)
		s.MoveOnly(-1)
		s.InitChains(hashOf, 2)
		for _, k := range "abc" {
			s.add(string(k), 0)
		}
		s.Forget()
		s.Begin(4)
		m.Go(s.Mover(0))
		m.Go(func() { s.remove("c") })
		m.Go(func() { s.add("e", 1) })
		m.Final(func() {
			if got, ok := s.all(), s.fits(); got != "a0 b0 e1" || ok != true {
				m.Failf("%v, fits: %v", got, ok)
			}
		})
	})
}

// A chain gets a bucket when its cells have been looked at and it has not moved yet.
func TestLinesMoveABucketThatHasCome(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "move ∥ add(k)"}, func(m *mc.M) {
		s := new(real)
		s.MoveOnly(-1)
		s.InitChains(hashOf, 2)
		for _, k := range "acegi" { // as many as a bucket holds
			s.add(string(k), 0)
		}
		s.Begin(4)
		m.Go(s.Mover(0))
		m.Go(func() { s.add("k", 1) })
		m.Final(func() {
			if got, ok := s.all(), s.fits(); got != "a0 c0 e0 g0 i0 k1" || ok != true {
				m.Failf("%v, fits: %v", got, ok)
			}
		})
	})
}

// All yields each key that stays once, and no key twice, while the set grows and
// shrinks and others come and go.
func TestLinesAllYieldsWhatStays(t *testing.T) {
	for _, tt := range []struct {
		name       string
		chains     int
		first      string
		operations string
		change     func(s keyed)
		cfg        mc.Config
	}{
		{"growth", 1, "ab", "all ∥ add(c), add(d)", func(s keyed) { s.add("c", 1); s.add("d", 1) }, mc.Config{}},
		{"growth twice", 1, "ab", "all ∥ add(c), add(d), add(e), add(f)", func(s keyed) {
			for _, k := range "cdef" {
				s.add(string(k), 1)
			}
		}, mc.Config{}},
		{"shrinkage", 16, "abijd", "all ∥ remove(d)", func(s keyed) { s.remove("d") }, mc.Config{Mode: mc.Bounded, Preemptions: 2}},
		{"shrinkage twice", 32, "abijqrcdef", "all ∥ remove(r), remove(q), remove(c), remove(d), remove(e), remove(f)", func(s keyed) {
			for _, k := range "rqcdef" {
				s.remove(string(k))
			}
		}, mc.Config{Mode: mc.Bounded, Preemptions: 1}},
		{"who leaves and comes back", 4, "abe", "all ∥ remove(e), add(i), add(e)", func(s keyed) {
			s.remove("e")
			s.add("i", 1)
			s.add("e", 1)
		}, mc.Config{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.cfg.Operations = tt.operations
			mc.Check(t, tt.cfg, func(m *mc.M) {
				s := new(real)
				s.InitChains(hashOf, tt.chains)
				for _, k := range tt.first {
					s.add(string(k), 0)
				}
				s.GrowTo(tt.chains)
				m.Go(func() {
					seen := map[string]int{}
					for e := range s.All() {
						seen[e.key]++
					}
					for k, n := range seen {
						if n != 1 {
							m.Failf("All yields %s %d times", k, n)
						}
					}
					if seen["a"]+seen["b"] != 2 {
						m.Failf("All yields %v: a and b are there", seen)
					}
				})
				m.Go(func() { tt.change(s) })
			})
		})
	}
}
