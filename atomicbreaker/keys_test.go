//go:build !modelcheck

package atomicbreaker_test

import (
	"context"
	"math"
	"runtime"
	"strings"
	"testing"

	ab "github.com/latchfree/latchfree/atomicbreaker"
)

func TestKeysThatAreNotEqualToThemselves(t *testing.T) {
	nan := math.NaN()
	var g ab.Group[float64]
	for range 100 {
		wantVerdict(t, admit(t, keyed(&g, nan)).Failure(), ab.Late)
		wantVerdict(t, admit(t, keyed(&g, nan)).Success(), ab.Counted)
		wantVerdict(t, g.RecordFailure(nan), ab.Late)
		wantVerdict(t, g.RecordSuccess(nan), ab.Counted)
		g.Reset(nan)
		wantState(t, g.State(nan), ab.Closed)
		if g.RecordFailure(1.5); g.Len() != 1 {
			t.Fatalf("Len %d, want 1: a NaN was stored", g.Len())
		}
	}
	wantState(t, g.State(1.5), ab.Open)

	var h ab.Group[any]
	wantVerdict(t, admit(t, keyed[any](&h, nan)).Failure(), ab.Late)
	if h.Len() != 0 {
		t.Fatal("a NaN in an interface was stored")
	}
}

func TestUncomparableKeys(t *testing.T) {
	const prefix = "atomicbreaker: key"
	var g ab.Group[any]
	bad := any([]int{1})
	check := func() {
		t.Helper()
		panics(t, prefix, func() { g.Allow(bad) })
		panics(t, prefix, func() { g.Do(t.Context(), bad, func(context.Context) error { return nil }) })
		panics(t, prefix, func() { g.RecordSuccess(bad) })
		panics(t, prefix, func() { g.RecordFailure(bad) })
		panics(t, prefix, func() { g.IsOpen(bad) })
		panics(t, prefix, func() { g.State(bad) })
		panics(t, prefix, func() { g.Reset(bad) })
		panics(t, prefix, func() { g.Config(bad) })
		panics(t, prefix, func() { g.Snapshot(bad) })
		panics(t, prefix, func() { g.Trip(bad, 0) })
		panics(t, prefix, func() { g.HalfOpen(bad) })
		panics(t, prefix, func() { g.ForceOpen(bad) })
		panics(t, prefix, func() { g.Disable(bad) })
	}
	check() // while the group is empty
	wantVerdict(t, fail(t, keyed[any](&g, "good"), 5), ab.Tripped)
	check()
	wantVerdict(t, g.RecordSuccess("good"), ab.Recovered)
}

type point struct{ x, y int }
type name string
type small int8

// A permit carries its key unchanged, whatever the key's type.
//
// Checks I12.
func TestPermitsKeepKeys(t *testing.T) {
	keeps(t, "", "k", strings.Repeat("long", 1000))
	keeps[name](t, "", "k")
	keeps(t, 0, 1, -1, math.MaxInt, math.MinInt)
	keeps(t, uint64(0), math.MaxUint64, 1<<48, inCellBit)
	keeps[small](t, 0, -1, 127, -128)
	keeps(t, 0.0, 1.5, math.Inf(1))
	keeps(t, true, false)
	keeps(t, 'a', 'b')
	keeps(t, point{}, point{1, 2}, point{2, 1})
	keeps[any](t, nil, 1, "x", point{3, 4}, 1.5)
	keeps(t, [2]string{"a", "b"}, [2]string{"b", "a"})
	keeps(t, new(int), new(int), nil)
}

const inCellBit = 1 << 32

func keeps[K comparable](t *testing.T, keys ...K) {
	t.Helper()
	for _, others := range []bool{false, true} {
		g := ab.MustNewGroup(ab.GroupConfig[K]{Default: ab.Config{Policy: ab.Consecutive(1)}})
		if others {
			g.RecordFailure(keys[len(keys)-1]) // so that keys are hashed
			keys = keys[:len(keys)-1]
		}
		var permits []permit
		for _, k := range keys {
			permits = append(permits, admit(t, keyed(g, k)))
		}
		runtime.GC()
		for i, p := range permits {
			wantVerdict(t, p.Success(), ab.Counted)
			wantVerdict(t, p.Failure(), ab.Tripped)
			wantState(t, g.State(keys[i]), ab.Open)
			if want := i + 1; g.Len() != want && g.Len() != want+1 {
				t.Fatalf("Len %d after %d keys: a permit failed another key than its own", g.Len(), want)
			}
		}
	}
}
