//go:build !modelcheck

package atomicbreaker_test

import (
	"testing"
	"testing/synctest"
	"time"

	ab "github.com/latchfree/latchfree/atomicbreaker"
)

// A key that windows remember leaves when nothing bad is left in them, not
// before.
func TestKeysLeaveWithTheirWindows(t *testing.T) {
	const window = time.Minute
	policies := map[string]ab.Policy{
		"FailureCount": ab.FailureCount(9, window),
		"FailureRate":  ab.FailureRate(1, 9, window),
		"any":          ab.AnyOf(ab.FailureCount(99, time.Second), ab.FailureRate(1, 9, window), ab.SlowRate(1, time.Second, 9, time.Millisecond)),
	}
	for name, p := range policies {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: p}})
				swept := func(want int) {
					t.Helper()
					if n := g.Sweep(); n != want {
						t.Fatalf("Sweep: %d keys, want %d", n, want)
					}
				}
				for _, k := range []string{"a", "b"} {
					wantVerdict(t, g.RecordFailure(k), ab.Counted)
				}
				time.Sleep(window / 2)
				wantVerdict(t, g.RecordFailure("b"), ab.Counted)
				for _, k := range []string{"a", "b"} { // they do not hasten it
					for range 3 {
						wantVerdict(t, g.RecordSuccess(k), ab.Counted)
					}
				}
				time.Sleep(window / 2)
				swept(0)
				time.Sleep(slack(window))
				swept(1) // a has nothing left in its window
				time.Sleep(window)
				swept(1)
				if err := g.CheckQuiet(); err != nil || g.Len() != 0 {
					t.Fatalf("%v, %d keys", err, g.Len())
				}
			})
		})
	}
}

// Slow calls keep a key as failures do, also if none has failed.
func TestKeysLeaveWithTheirSlowCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: ab.SlowRate(1, time.Second, 9, time.Minute)}})
		p := admit(t, keyed(g, "k"))
		time.Sleep(2 * time.Second)
		p.Success()
		time.Sleep(time.Minute)
		if g.Sweep() != 0 || g.Len() != 1 {
			t.Fatal("Sweep removed a key with a slow call in its window")
		}
		time.Sleep(slack(time.Minute))
		if g.Sweep() != 1 || g.Len() != 0 {
			t.Fatal("Sweep left a key with nothing in its window")
		}
	})
}

// What is counted in the word keeps a key as well, whatever the window says.
func TestKeysStayForTheirCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: ab.AnyOf(ab.Consecutive(3), ab.FailureCount(9, time.Second))}, ForgetAfter: -1})
		h := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: ab.AnyOf(ab.KOfN(2, 3), ab.FailureCount(9, time.Second))}, ForgetAfter: -1})
		g.RecordFailure("k")
		h.RecordFailure("k")
		time.Sleep(time.Hour)
		if g.Sweep()+h.Sweep() != 0 {
			t.Fatal("Sweep removed a key with a failure in its count")
		}
		g.RecordSuccess("k")
		for range 2 {
			h.RecordSuccess("k")
			if h.Sweep() != 0 {
				t.Fatal("Sweep removed a key with a failure among the last three")
			}
		}
		h.RecordSuccess("k")
		if g.Len() != 0 { // without Sweep: nothing bad was reported for longer than the window
			t.Fatal("a key stayed that is healthy")
		}
		if h.Sweep() != 1 {
			t.Fatal("Sweep left a key that is healthy")
		}
	})
}

// So do failures among the last calls, however many these are, until the last of
// them is forgotten.
func TestKeysStayForTheirLog(t *testing.T) {
	for _, calls := range []string{"x", "xx", "x.x", "x.x..x"} {
		g := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: ab.KOfN(9, 40)}})
		for range 3 {
			for _, c := range calls {
				reportOp(admit(t, keyed(g, "k")), c == 'x')
			}
			for i := range 40 {
				if g.Sweep() != 0 || g.Len() != 1 || g.Snapshot("k").Failures == 0 {
					t.Fatalf("%d keys, %+v, %d calls after %s", g.Len(), g.Snapshot("k"), i, calls)
				}
				g.RecordSuccess("k")
			}
			if g.Len() != 0 {
				t.Fatal("a key stayed that is healthy")
			}
		}
		if err := g.CheckQuiet(); err != nil {
			t.Error(err)
		}
	}
	// With nobody to call it, it is forgotten all the same.
	synctest.Test(t, func(t *testing.T) {
		g := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: ab.KOfN(9, 40)}, ForgetAfter: time.Hour})
		for _, c := range "x.x." {
			reportOp(admit(t, keyed(g, "k")), c == 'x')
		}
		time.Sleep(time.Hour - time.Second)
		wantVerdict(t, g.RecordSuccess("k"), ab.Counted) // which leaves its failures
		time.Sleep(time.Hour - time.Second)
		if g.Sweep() != 0 {
			t.Error("forgotten too early")
		}
		time.Sleep(2 * time.Second)
		if g.Sweep() != 1 || g.Len() != 0 {
			t.Error("not forgotten")
		}
	})
}

// Nothing but the window makes a key leave: neither ForceOpen nor Disable nor
// open times pass.
func TestSweepKeepsWhatIsSetByHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: ab.FailureCount(2, time.Second), OpenTimeout: time.Second}, ForgetAfter: -1})
		g.ForceOpen("forced")
		g.Disable("disabled")
		g.Trip("tripped", 0)
		fail(t, keyed(g, "failed"), 2)
		time.Sleep(100 * time.Hour)
		if n := g.Sweep(); n != 0 || g.Len() != 4 {
			t.Fatalf("Sweep removed %d keys, and %d are left", n, g.Len())
		}
		wantState(t, g.State("forced"), ab.ForcedOpen)
		wantState(t, g.State("disabled"), ab.Disabled)
		wantState(t, g.State("tripped"), ab.HalfOpen)
		for _, k := range []string{"forced", "disabled", "tripped", "failed"} {
			g.Reset(k)
		}
		g.Sweep()
		if err := g.CheckQuiet(); err != nil || g.Len() != 0 {
			t.Fatalf("%v, %d keys", err, g.Len())
		}
	})
}

// Inserts sweep: keys whose windows are empty do not pile up, whether or not
// anybody calls Sweep, and those with failures stay.
func TestInsertsSweepWindows(t *testing.T) {
	for _, perKey := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := ab.Config{Policy: ab.FailureCount(2, time.Second)}
			c := ab.GroupConfig[int]{Default: s}
			if perKey {
				c = ab.GroupConfig[int]{PerKey: func(int) ab.Config { return s }}
			}
			g := ab.MustNewGroup(c)
			most := 0
			for i := range 5000 {
				wantVerdict(t, g.RecordFailure(i), ab.Counted)
				time.Sleep(50 * time.Millisecond) // some 20 keys have failures
				most = max(most, g.Len())
			}
			if most > 64 {
				t.Fatalf("up to %d keys were stored, want at most 64", most)
			}
			for i := 4985; i < 5000; i++ {
				wantVerdict(t, g.RecordFailure(i), ab.Tripped) // no failure was lost
			}
		})
	}
}

// Inserts go on sweeping after the listener has panicked in a sweep of theirs.
func TestInsertsSweepAfterAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ends := true
		g := ab.MustNewGroup(ab.GroupConfig[int]{
			Default:     ab.Config{Policy: ab.Consecutive(1), OpenTimeout: time.Second},
			ForgetAfter: time.Second,
			OnStateChange: func(_ int, e ab.Event) {
				if e.Reason == ab.ReasonForgotten && ends {
					ends = false
					panic("listener")
				}
			},
		})
		sixtyFour := func(from int) { // of which the last finds the others forgotten
			for k := from; k < 63; k++ {
				g.RecordFailure(k)
			}
			time.Sleep(3 * time.Second)
			g.RecordFailure(63 + from)
		}
		panics(t, "listener", func() { sixtyFour(0) })
		sixtyFour(1) // and the one that is left
		if n := g.Len(); n != 1 {
			t.Fatalf("%d keys are stored after a sweep, want 1", n)
		}
	})
}

// A failure through a permit counts, when the cell that gave it has left with
// its windows.
//
// Checks I12.
func TestPermitsOutliveWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: ab.FailureCount(2, time.Minute)}})
		g.RecordFailure("k")
		p, q := admit(t, keyed(g, "k")), admit(t, keyed(g, "k"))
		for range 3 {
			time.Sleep(2 * time.Minute)
			g.Sweep()
		}
		if g.Len() != 0 {
			t.Fatal("the key is still there")
		}
		wantVerdict(t, p.Failure(), ab.Counted)
		wantVerdict(t, q.Failure(), ab.Tripped)
	})
}

// A key of which nothing is left stays until its events have been delivered, also if a
// sweep meets it before.
func TestSweepWithAListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &ab.Group[string]{}
		swept := 0
		g = ab.MustNewGroup(ab.GroupConfig[string]{
			Default: ab.Config{Policy: ab.FailureCount(2, time.Second)},
			OnStateChange: func(k string, e ab.Event) {
				if e.To == ab.Closed {
					g.RecordFailure(k)
					time.Sleep(time.Minute)
					swept += g.Sweep()
				}
			},
		})
		fail(t, keyed(g, "k"), 2)
		g.Reset("k")
		if swept != 0 || g.Len() != 0 {
			t.Fatalf("%d keys left before their events were delivered, %d stay", swept, g.Len())
		}
		if err := g.CheckQuiet(); err != nil {
			t.Fatal(err)
		}
	})
}
