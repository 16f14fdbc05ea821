//go:build modelcheck

package interleave

import (
	"maps"
	"slices"
	"testing"
)

// Reached counts what threads do, as "operation" and as "operation = result", once
// in each class of histories. A nil one does not.
type Reached map[string]int

func (r Reached) add(op, got string) {
	if r != nil {
		r[op]++
		r[op+" = "+got]++
	}
}

// Require fails a test for each of the wanted that was not reached, and says
// what was.
func (r Reached) Require(t testing.TB, want ...string) {
	t.Helper()
	for _, w := range want {
		if r[w] == 0 {
			t.Errorf("nobody reaches %q", w)
		}
	}
	t.Logf("%q", slices.Sorted(maps.Keys(r)))
}
