//go:build !modelcheck

package atomicbreaker_test

import (
	"context"
	"maps"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	ab "github.com/latchfree/latchfree/atomicbreaker"
)

func TestZeroGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g ab.Group[string]
		g.ResetAll()
		g.Reset("a")
		wantState(t, g.State("a"), ab.Closed)
		wantVerdict(t, g.RecordSuccess("a"), ab.Counted)
		wantVerdict(t, fail(t, keyed(&g, "a"), 5), ab.Tripped)
		if !g.IsOpen("a") || g.IsOpen("b") {
			t.Fatal("want a open and b not")
		}
		time.Sleep(time.Minute)
		if g.IsOpen("a") {
			t.Fatal("IsOpen is true although a probe would be admitted")
		}
		wantState(t, g.State("a"), ab.HalfOpen)
		if err := g.Do(t.Context(), "a", func(context.Context) error { return nil }); err != nil {
			t.Fatal(err)
		}
		wantState(t, g.State("a"), ab.Closed)
		if n := g.Len(); n != 0 {
			t.Fatalf("Len %d after the recovery, want 0", n)
		}
	})
}

// Reported bug 60, gobreaker: calls hold a Redis lock. No test: nothing is held during a call.

// T56: keys do not affect each other.
//
// Reported bug 56, Couchbase: one bad host opens all.
func TestT56_KeysAreIndependent(t *testing.T) {
	g := ab.MustNewGroup(ab.GroupConfig[int]{Default: ab.Config{Policy: ab.Consecutive(2)}})
	for i := range 1000 {
		fail(t, keyed(g, i), 1+i%2)
	}
	for i := range 1000 {
		want := ab.Closed
		if i%2 == 1 {
			want = ab.Open
		}
		wantState(t, g.State(i), want)
	}
	if n := g.Len(); n != 1000 {
		t.Fatalf("Len %d, want 1000", n)
	}
	g.ResetAll()
	if n := g.Len(); n != 0 {
		t.Fatalf("Len %d after ResetAll, want 0", n)
	}
	wantState(t, g.State(1), ab.Closed)
}

// A group stores the keys that fail, and no others.
func TestMemoryIsForFailingKeys(t *testing.T) {
	g := ab.MustNewGroup(ab.GroupConfig[int]{Default: ab.Config{Policy: ab.Consecutive(2)}})
	fail(t, keyed(g, -1), 1)
	for i := range 1000 {
		wantVerdict(t, admit(t, keyed(g, i)).Success(), ab.Counted)
		wantVerdict(t, admit(t, keyed(g, i)).Cancel(), ab.Counted)
		g.RecordSuccess(i)
		g.State(i)
		g.Reset(i)
		fail(t, keyed(g, i), 1)
		g.RecordSuccess(i)
		fail(t, keyed(g, i), 1)
		admit(t, keyed(g, i)).Success()
	}
	if keys := slices.Collect(keysOf(g)); !slices.Equal(keys, []int{-1}) {
		t.Fatalf("stored %v, want only -1", keys)
	}
}

func keysOf[K comparable](g *ab.Group[K]) func(func(K) bool) { return maps.Keys(maps.Collect(g.All())) }

// A failure through a permit taken while the key was absent counts, also when
// the key came, recovered and went in between.
//
// Checks I12.
func TestPermitsForAbsentKeys(t *testing.T) {
	g := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: ab.Consecutive(2)}})
	allow := keyed(g, "k")
	old := []permit{admit(t, allow), admit(t, allow), admit(t, allow)}
	wantVerdict(t, fail(t, allow, 1), ab.Counted)
	live := admit(t, allow)
	wantVerdict(t, g.RecordSuccess("k"), ab.Counted)
	if g.Len() != 0 {
		t.Fatal("the key is still stored")
	}
	wantVerdict(t, old[0].Failure(), ab.Counted)
	wantVerdict(t, old[1].Success(), ab.Counted) // clears that failure
	if g.Len() != 0 {
		t.Fatal("the key is still stored")
	}
	wantVerdict(t, live.Failure(), ab.Counted) // its cell is long gone
	wantVerdict(t, old[2].Failure(), ab.Tripped)
}

// A success through such a permit clears the failures since, also when the
// permit was taken while other keys were failing.
//
// Checks I12.
func TestPermitsForAbsentKeysClear(t *testing.T) {
	for _, others := range []int{0, 1} {
		g := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: ab.Consecutive(2)}})
		fail(t, keyed(g, "other"), others)
		p := admit(t, keyed(g, "k"))
		wantVerdict(t, fail(t, keyed(g, "k"), 1), ab.Counted)
		wantVerdict(t, p.Success(), ab.Counted)
		wantVerdict(t, fail(t, keyed(g, "k"), 1), ab.Counted)
	}
}

// Once the key has opened, such a permit is late, even if the key has
// recovered and gone since. Other keys' permits are not.
//
// Checks I12.
func TestPermitsForAbsentKeysComeLate(t *testing.T) {
	g := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: ab.Consecutive(2)}})
	k, other := keyed(g, "k"), keyed(g, "other")
	old := []permit{admit(t, k), admit(t, k), admit(t, k)}
	others := []permit{admit(t, other), admit(t, other)}
	wantVerdict(t, fail(t, k, 2), ab.Tripped)
	wantVerdict(t, old[0].Failure(), ab.Late)
	wantVerdict(t, g.RecordSuccess("k"), ab.Recovered)
	if g.Len() != 0 {
		t.Fatal("the key is still stored")
	}
	for _, p := range old {
		wantVerdict(t, p.Failure(), ab.Late)
		wantVerdict(t, p.Success(), ab.Late)
	}
	if g.Len() != 0 {
		t.Fatal("late results have stored the key")
	}
	wantVerdict(t, others[0].Failure(), ab.Counted)
	wantVerdict(t, others[1].Failure(), ab.Tripped)
	wantVerdict(t, fail(t, k, 1), ab.Counted)
}

// After ResetAll all earlier results are late, for keys stored or not, and
// none of them stores a key.
func TestResetAllVoidsResults(t *testing.T) {
	g := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: ab.Consecutive(3)}})
	absent := admit(t, keyed(g, "absent"))
	fail(t, keyed(g, "failing"), 1)
	failing := admit(t, keyed(g, "failing"))
	fail(t, keyed(g, "recovered"), 1)
	admit(t, keyed(g, "recovered")).Success()
	healthy := admit(t, keyed(g, "recovered"))
	g.ResetAll()
	for _, p := range []permit{absent, failing, healthy} {
		wantVerdict(t, p.Success(), ab.Late)
		wantVerdict(t, p.Failure(), ab.Late)
		wantVerdict(t, p.Cancel(), ab.Late)
	}
	if n := g.Len(); n != 0 {
		t.Fatalf("Len %d, want 0", n)
	}
	wantVerdict(t, fail(t, keyed(g, "failing"), 2), ab.Counted)
}

// T55: nothing but time and success gets an open key out of the group.
//
// Reported bug 55, bytedance/gopkg: idle removal also of open ones.
func TestT55_SweepKeepsWhatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := ab.MustNewGroup(ab.GroupConfig[string]{
			Default:     ab.Config{Policy: ab.Consecutive(2), OpenTimeout: time.Minute, ProbeTimeout: time.Hour},
			ForgetAfter: -1,
		})
		for _, k := range []string{"open", "half-open", "recovered", "reset"} {
			fail(t, keyed(g, k), 2)
		}
		for _, k := range []string{"failed", "cleared"} {
			fail(t, keyed(g, k), 1)
		}
		time.Sleep(time.Minute)
		admit(t, keyed(g, "half-open"))
		admit(t, keyed(g, "recovered")).Success()
		g.Reset("reset")
		g.RecordSuccess("cleared")
		permit := admit(t, keyed(g, "recovered"))
		if n := g.Sweep(); n != 0 {
			t.Fatalf("Sweep removed %d keys", n)
		}
		left := slices.Sorted(keysOf(g))
		if want := []string{"failed", "half-open", "open"}; !slices.Equal(left, want) {
			t.Fatalf("%v are left, want %v", left, want)
		}
		wantVerdict(t, permit.Failure(), ab.Counted) // its key has left
		wantVerdict(t, fail(t, keyed(g, "recovered"), 1), ab.Tripped)
		time.Sleep(1000 * time.Hour)
		if n := g.Sweep(); n != 0 {
			t.Fatalf("Sweep removed %d keys that fail", n)
		}
	})
}

func TestPerKey(t *testing.T) {
	calls := 0
	g := ab.MustNewGroup(ab.GroupConfig[string]{
		Default: ab.Config{Policy: ab.Consecutive(9)},
		PerKey: func(k string) ab.Config {
			switch calls++; k {
			case "panic":
				panic("PerKey")
			case "wrong":
				return ab.Config{Probes: 99}
			case "fragile":
				return ab.Config{Name: k, Policy: ab.Consecutive(1), Classify: func(context.Context, error) ab.Outcome { return ab.Ignored }}
			}
			return ab.Config{Name: k, Policy: ab.Consecutive(2)}
		},
	})
	admit(t, keyed(g, "healthy")).Success()
	admit(t, keyed(g, "healthy")).Done(nil)
	if calls != 0 {
		t.Fatal("PerKey was called for a healthy key")
	}
	wantVerdict(t, admit(t, keyed(g, "fragile")).Done(errBoom), ab.Counted) // classified as ignored
	wantVerdict(t, fail(t, keyed(g, "fragile"), 1), ab.Tripped)
	calls = 0
	wantVerdict(t, admit(t, keyed(g, "usual")).Done(errBoom), ab.Counted)
	wantVerdict(t, admit(t, keyed(g, "usual")).Done(errBoom), ab.Tripped)
	if calls != 1 {
		t.Fatalf("PerKey was called %d times for one failing key, want 1", calls)
	}
	for k, s := range g.All() {
		if s.Name != k {
			t.Fatalf("name %q of key %q", s.Name, k)
		}
	}
	panics(t, "PerKey", func() { admit(t, keyed(g, "panic")).Failure() })
	panics(t, "PerKey", func() { admit(t, keyed(g, "panic")).Done(errBoom) })
	panics(t, "PerKey", func() { g.RecordFailure("panic") })
	if n := g.Len(); n != 2 {
		t.Fatalf("Len %d after panics, want 2", n)
	}
	wantVerdict(t, g.RecordFailure("wrong"), ab.Counted)
	wantVerdict(t, g.RecordFailure("other"), ab.Counted)
}

// T53: at any time a key has one cell, whoever inserts it.
//
// Reported bug 53, gobreaker, Dapr, hystrix-go: one key, two breakers.
// Checks I12.
func TestT53_OneCellPerKey(t *testing.T) {
	for range rounds(2000) {
		g := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: ab.Consecutive(100)}})
		together(4, func(int) {
			for range 5 {
				g.RecordFailure("k")
			}
		})
		for _, s := range g.All() {
			if s.Failures != 20 {
				t.Fatalf("%d failures, want 20", s.Failures)
			}
		}
	}
}

// T54: neither breakers nor keys have goroutines or timers.
//
// Reported bug 54, hystrix-go, mercari, Tyk: goroutines and timers leak.
func TestT54_NoGoroutines(t *testing.T) {
	before := runtime.NumGoroutine()
	g := ab.MustNewGroup(ab.GroupConfig[int]{Default: ab.Config{Policy: ab.Consecutive(1)}})
	for i := range 100 {
		fail(t, keyed(g, i), 1)
	}
	if n := runtime.NumGoroutine(); n > before {
		t.Fatalf("%d goroutines, %d before", n, before)
	}
}

func TestAllStops(t *testing.T) {
	var g ab.Group[int]
	for i := range 10 {
		g.RecordFailure(i)
	}
	seen := 0
	for k := range g.All() {
		g.RecordSuccess(k) // the loop body may use the group
		if seen++; seen == 3 {
			break
		}
	}
	if g.Len() != 7 {
		t.Fatalf("Len %d, want 7", g.Len())
	}
}
