package main

import (
	"hash/fnv"
	"slices"
)

// selection is a target with those of its mutants that are to be tried.
type selection struct {
	target  *target
	mutants []*mutant
	whole   bool // all there are
}

// sample keeps n of the mutants of all targets together, and each as likely as any
// other: those whose keys have the smallest hashes. So a sample is the same each time,
// as long as the sources are, and a larger one contains a smaller one.
func sample(all []selection, n int) {
	var ranks []uint64
	for _, s := range all {
		for _, m := range s.mutants {
			ranks = append(ranks, rank(s.target, m))
		}
	}
	if n >= len(ranks) {
		return
	}
	slices.Sort(ranks)
	for i := range all {
		s := &all[i]
		s.mutants = slices.DeleteFunc(s.mutants, func(m *mutant) bool { return rank(s.target, m) >= ranks[n] })
		s.whole = false
	}
}

// rank is where a mutant comes in all samples.
func rank(t *target, m *mutant) uint64 {
	h := fnv.New64a()
	h.Write([]byte(t.dir + " " + m.key()))
	// FNV mixes its last bytes little into the high bits.
	return h.Sum64() * 0x9e3779b97f4a7c15
}
