package main

import (
	"slices"
	"testing"
)

// A sample is the same each time, has as many mutants as asked for, and is a part of
// each larger one.
func TestSample(t *testing.T) {
	target, err := inPlace(t).load(fixture)
	if err != nil {
		t.Fatal(err)
	}
	concurrent, sequential := target.mutants(concurrency), target.mutants(sequential)
	take := func(n int) (all []*mutant) {
		s := []selection{{target, slices.Clone(concurrent), true}, {target, slices.Clone(sequential), true}}
		sample(s, n)
		if whole := n >= len(concurrent)+len(sequential); s[0].whole != whole || s[1].whole != whole {
			t.Errorf("a sample of %d is whole: %t and %t", n, s[0].whole, s[1].whole)
		}
		return append(s[0].mutants, s[1].mutants...)
	}
	total := len(concurrent) + len(sequential)
	for n := 1; n < total; n++ {
		less, more := take(n), take(n+1)
		if len(less) != n || !slices.Equal(less, take(n)) {
			t.Fatalf("samples of %d have %d", n, len(less))
		}
		for _, m := range less {
			if !slices.Contains(more, m) {
				t.Fatalf("a sample of %d lacks %s, which one of %d has", n+1, m.key(), n)
			}
		}
	}
	if all := take(total + 1); len(all) != total {
		t.Errorf("a sample of more than there are has %d of %d", len(all), total)
	}
}
