package main

import (
	"slices"
	"testing"
	"time"
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

func TestSummary(t *testing.T) {
	got := summary([]*score{
		{mutants: 5, same: 1, counts: map[string]int{"unit": 2, "protocol": 1, "limit": 1, "reviewed": 1}},
		{mutants: 3, counts: map[string]int{"unit": 2, "lived": 1}},
	}, "abc", time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC))
	want := "Sample of 9 mutants, commit abc, 2026-11-25: 5 killed (unit 4, protocol 1), 1 by a limit, 2 live, of which 1 reviewed; 1 are the same machine code.\n"
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
