//go:build !modelcheck

package atomicbreaker

import (
	"testing"
	"testing/synctest"
	"time"
)

// A cell that a late result has made, and not used, keeps its place as long as
// one that has recovered.
func TestLateResultsLeaveIdleCells(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := MustNewGroup(GroupConfig[string]{Default: Config{Trip: Consecutive(1)}, IdleTimeout: time.Second})
		p, _ := g.Allow("k")
		g.RecordFailure("k")
		g.RecordSuccess("k")
		time.Sleep(time.Second)
		if n := g.Sweep(); n != 1 {
			t.Fatalf("Sweep removed %d keys, want 1", n)
		}
		if v := p.Failure(); v != Late || g.Len() != 1 {
			t.Fatalf("%v, and %d keys", v, g.Len())
		}
		time.Sleep(time.Second - 1)
		if n := g.Sweep(); n != 0 {
			t.Fatal("Sweep removed the key before its time")
		}
		time.Sleep(time.Nanosecond)
		if n := g.Sweep(); n != 1 {
			t.Fatalf("Sweep removed %d keys, want 1", n)
		}
	})
}

// Sweep removes what another caller has killed and not removed yet, and does
// not count it.
func TestSweepHelps(t *testing.T) {
	g := recovered(t, "k")
	kill(t, g, "k")
	if n := g.Sweep(); n != 0 || g.Len() != 0 {
		t.Fatalf("Sweep removed %d keys, and left %d", n, g.Len())
	}
	g.mustBeQuiet(t)
}

// A key that is in the group is not asked for its settings again.
func TestPerKeyIsForAbsentKeys(t *testing.T) {
	calls := 0
	g := MustNewGroup(GroupConfig[string]{PerKey: func(string) Config {
		calls++
		return Config{}
	}})
	g.RecordFailure("k")
	g.RecordFailure("k")
	g.Reset("k")
	if calls != 1 {
		t.Fatalf("PerKey was called %d times, want 1", calls)
	}
}
