//go:build !modelcheck

package atomicbreaker_test

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	ab "github.com/latchfree/latchfree/atomicbreaker"
)

// Checks I8, I9: all tests of this file.

// A key that nobody calls is forgotten ForgetAfter its open time has passed, and
// is healthy when it is next called, whether or not anybody has swept.
func TestForgottenKeysAreHealthy(t *testing.T) {
	const open, after = time.Minute, 10 * time.Minute
	for name, then := range map[string]func(t *testing.T, g *ab.Group[string]){
		"Sweep": func(t *testing.T, g *ab.Group[string]) {
			if n := g.Sweep(); n != 1 || g.Len() != 0 {
				t.Errorf("Sweep removed %d keys, and %d are left", n, g.Len())
			}
		},
		"calls": func(t *testing.T, g *ab.Group[string]) {
			for range 3 { // not one probe only
				if admit(t, keyed(g, "k")); g.Len() != 0 {
					t.Fatal("it is stored, though healthy")
				}
			}
			wantVerdict(t, fail(t, keyed(g, "k"), 2), ab.Counted)
		},
		"RecordFailure": func(t *testing.T, g *ab.Group[string]) {
			wantVerdict(t, g.RecordFailure("k"), ab.Counted)
			wantVerdict(t, g.RecordFailure("k"), ab.Counted)
			wantVerdict(t, g.RecordFailure("k"), ab.Tripped)
		},
		"RecordSuccess": func(t *testing.T, g *ab.Group[string]) {
			wantVerdict(t, g.RecordSuccess("k"), ab.Counted)
			if g.Len() != 0 {
				t.Error("it is stored")
			}
		},
		"State": func(t *testing.T, g *ab.Group[string]) {
			wantState(t, g.State("k"), ab.Closed)
			if s := g.Snapshot("k"); s.Failures+s.Streak+s.InFlight != 0 || s.RetryAfter != 0 {
				t.Errorf("%+v", s)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := ab.MustNewGroup(ab.GroupConfig[string]{
					Default: ab.Config{Policy: ab.Consecutive(3), OpenTimeout: open}, ForgetAfter: after,
				})
				wantVerdict(t, fail(t, keyed(g, "k"), 3), ab.Tripped)
				time.Sleep(open + after - 1)
				wantState(t, g.State("k"), ab.HalfOpen)
				if n := g.Sweep(); n != 0 {
					t.Fatal("Sweep removed it too early")
				}
				time.Sleep(time.Nanosecond)
				then(t, g)
			})
		})
	}
}

// A half-open key is remembered while its probe has time, and ForgetAfter that. What the
// probe reports later is late, and leaves the key healthy.
func TestHalfOpenKeysAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := ab.MustNewGroup(ab.GroupConfig[string]{
			Default: ab.Config{Policy: ab.Consecutive(1), OpenTimeout: time.Second, ProbeTimeout: 10 * time.Minute}, ForgetAfter: time.Minute,
		})
		wantVerdict(t, fail(t, keyed(g, "k"), 1), ab.Tripped)
		time.Sleep(time.Second)
		p := admit(t, keyed(g, "k"))
		time.Sleep(11*time.Minute - 1)
		wantState(t, g.State("k"), ab.HalfOpen)
		time.Sleep(time.Nanosecond)
		wantState(t, g.State("k"), ab.Closed)
		wantVerdict(t, p.Failure(), ab.Late)
		if wantState(t, g.State("k"), ab.Closed); g.Len() != 0 {
			t.Error("it is stored")
		}
		wantVerdict(t, fail(t, keyed(g, "k"), 1), ab.Tripped)
		time.Sleep(time.Second)
		p = admit(t, keyed(g, "k"))
		time.Sleep(12 * time.Minute)
		if g.Sweep() != 1 {
			t.Error("Sweep left it")
		}
		wantVerdict(t, p.Failure(), ab.Late)
	})
}

// Whatever meets a forgotten key finds it healthy, whether or not anybody has swept: it
// leaves behind the same, and tells the listener the same, as if the key was new.
func TestForgottenKeysAreAsNew(t *testing.T) {
	const after = time.Hour
	type group = ab.Group[string]
	long := ab.AnyOf(ab.Consecutive(5), ab.KOfN(9, 100))
	windows := ab.AnyOf(ab.Consecutive(9), ab.FailureCount(5, 100*time.Hour), ab.FailureRate(0.5, 9, 100*time.Hour))
	report := func(g *group, failed bool) { // a permit of one's own
		if p, err := g.Allow("k"); err == nil {
			reportOp(p, failed)
		}
	}
	made := map[string]struct {
		policy ab.Policy
		make   func(g *group)
	}{
		"a row":            {ab.Consecutive(5), func(g *group) { fails(g, 4) }},
		"a history":        {ab.KOfN(5, 20), func(g *group) { fails(g, 4); g.RecordSuccess("k") }},
		"a long history":   {long, func(g *group) { fails(g, 4); g.RecordSuccess("k"); fails(g, 4) }},
		"windows":          {windows, func(g *group) { fails(g, 4); g.RecordSuccess("k") }},
		"a row after open": {ab.Consecutive(5), func(g *group) { g.Trip("k", 0); g.RecordSuccess("k"); fails(g, 4) }},
		"open":             {nil, func(g *group) { g.Trip("k", 0); g.Trip("k", time.Minute) }},
		"half-open":        {nil, func(g *group) { g.Trip("k", 0); g.HalfOpen("k"); g.Allow("k") }},
		"no probe yet":     {windows, func(g *group) { g.Trip("k", 0); g.HalfOpen("k") }},
	}
	meets := map[string]func(g *group, old []permit){
		"nothing":       func(*group, []permit) {},
		"Allow":         func(g *group, _ []permit) { g.Allow("k") },
		"a failure":     func(g *group, _ []permit) { report(g, true) },
		"a success":     func(g *group, _ []permit) { report(g, false) },
		"failures":      func(g *group, _ []permit) { fails(g, 5) },
		"RecordFailure": func(g *group, _ []permit) { g.RecordFailure("k") },
		"RecordSuccess": func(g *group, _ []permit) { g.RecordSuccess("k") },
		"Permit.Trip": func(g *group, _ []permit) {
			if p, err := g.Allow("k"); err == nil {
				p.Trip(0)
			}
		},
		"Trip":         func(g *group, _ []permit) { g.Trip("k", 0) },
		"Trip(1s)":     func(g *group, _ []permit) { g.Trip("k", time.Second) },
		"HalfOpen":     func(g *group, _ []permit) { g.HalfOpen("k") },
		"ForceOpen":    func(g *group, _ []permit) { g.ForceOpen("k") },
		"Disable":      func(g *group, _ []permit) { g.Disable("k") },
		"Reset":        func(g *group, _ []permit) { g.Reset("k") },
		"ResetAll":     func(g *group, _ []permit) { g.ResetAll() },
		"Sweep":        func(g *group, _ []permit) { g.Sweep() },
		"Update":       func(g *group, _ []permit) { g.Update(ab.GroupConfig[string]{ForgetAfter: after}) },
		"late failure": func(_ *group, old []permit) { end(old, permit.Failure) },
		"late success": func(_ *group, old []permit) { end(old, permit.Success) },
		"late Cancel":  func(_ *group, old []permit) { end(old, permit.Cancel) },
	}
	for name, m := range made {
		for meeting, meet := range meets {
			for _, listens := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/listens=%t", name, meeting, listens), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						var notified []string
						fresh := func() *group {
							c := ab.GroupConfig[string]{
								Default:     ab.Config{Policy: m.policy, OpenTimeout: time.Second, ProbeTimeout: time.Minute},
								ForgetAfter: after,
							}
							if listens {
								c.OnStateChange = func(_ string, e ab.Event) {
									e.Generation, e.At = 0, time.Time{}
									notified = append(notified, fmt.Sprintf("%+v", e))
								}
							}
							return ab.MustNewGroup(c)
						}
						old := fresh()
						m.make(old)
						permits := []permit{}
						if p, err := old.Allow("k"); err == nil && old.State("k") == ab.HalfOpen {
							permits = append(permits, p)
						}
						time.Sleep(2*time.Minute + after)
						notified = nil
						look := func(g *group) string {
							s := g.Snapshot("k")
							s.Generation = 0
							return fmt.Sprintf("%v %t %+v", g.State("k"), g.IsOpen("k"), s)
						}
						healthy := look(fresh())
						if s := look(old); s != healthy {
							t.Errorf("not forgotten: %s", s)
						}
						meet(old, permits)
						after := notified
						notified = nil
						g := fresh()
						meet(g, nil)
						if len(after) > len(notified) && (strings.Contains(after[0], "Forgotten") || meeting == "ResetAll") {
							after = after[1:] // of what was there
						}
						if got, want := look(old), look(g); got != want || fmt.Sprint(after) != fmt.Sprint(notified) {
							t.Errorf("forgotten: %s\n%v\n      new: %s\n%v", got, after, want, notified)
						}
						if err := old.CheckQuiet(); err != nil {
							t.Error(err)
						}
					})
				})
			}
		}
	}
}

func fails(g *ab.Group[string], n int) {
	for range n {
		g.RecordFailure("k")
	}
}

func end(permits []permit, how func(permit) ab.Verdict) {
	for _, p := range permits {
		how(p)
	}
}

// Failures that did not open a key go with the next sweep, and not while
// anything is reported for it.
func TestFailingKeysAreForgotten(t *testing.T) {
	for name, p := range map[string]ab.Policy{
		"Consecutive": ab.Consecutive(9), "KOfN": ab.KOfN(9, 30), "FailureRate": ab.FailureRate(1, 9, 24*time.Hour),
		"any": ab.AnyOf(ab.Consecutive(9), ab.FailureCount(9, 100*time.Hour)),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: p}}) // an hour
				fail(t, keyed(g, "k"), 1)
				for range 3 {
					time.Sleep(time.Hour - 1)
					if g.Sweep() != 0 {
						t.Fatal("Sweep removed a key that has failed within the hour")
					}
					fail(t, keyed(g, "k"), 1)
				}
				inFlight := admit(t, keyed(g, "k"))
				time.Sleep(time.Hour / 2)
				admit(t, keyed(g, "k")).Cancel() // which nobody remembers
				time.Sleep(time.Hour / 2)
				if n := g.Sweep(); n != 1 || g.Len() != 0 {
					t.Fatalf("Sweep removed %d keys, %d are left", n, g.Len())
				}
				wantVerdict(t, inFlight.Failure(), ab.Counted) // it is not the key's that are forgotten
				if s := g.Snapshot("k"); name != "FailureRate" && s.Failures != 1 {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}

// A call that began before its closed key was forgotten is the first to count then.
func TestForgottenBeforeTheFailure(t *testing.T) {
	for name, p := range map[string]ab.Policy{
		"Consecutive": ab.Consecutive(9), "KOfN": ab.KOfN(9, 30), "long": ab.KOfN(9, 99), "FailureRate": ab.FailureRate(1, 9, 24*time.Hour),
		"any": ab.AnyOf(ab.Consecutive(9), ab.FailureCount(9, 100*time.Hour)),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: p}}) // an hour
				wantVerdict(t, fail(t, keyed(g, "k"), 8), ab.Counted)
				inFlight := admit(t, keyed(g, "k"))
				time.Sleep(time.Hour)
				wantVerdict(t, inFlight.Failure(), ab.Counted)
				wantVerdict(t, fail(t, keyed(g, "k"), 7), ab.Counted)
				wantVerdict(t, fail(t, keyed(g, "k"), 1), ab.Tripped)
			})
		})
	}
}

// A half-open key is not forgotten while it is called, however long it takes to decide.
func TestProbesKeepAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := ab.MustNewGroup(ab.GroupConfig[string]{
			Default: ab.Config{OpenTimeout: time.Second, ProbeTimeout: time.Second, CloseAfter: 20}, ForgetAfter: time.Minute,
		})
		g.HalfOpen("k")
		for i := range 19 {
			time.Sleep(30 * time.Second)
			if s := g.Snapshot("k"); s.State != ab.HalfOpen || s.Successes != i {
				t.Fatalf("after %d probes: %+v", i, s)
			}
			wantVerdict(t, admit(t, keyed(g, "k")).Success(), ab.Counted)
		}
		time.Sleep(30 * time.Second)
		wantVerdict(t, admit(t, keyed(g, "k")).Success(), ab.Recovered)
	})
}

// Of several windows the longest says which results a key remembers, wherever it
// stands: successes in it keep the key.
func TestTheLongestWindowKeepsAKey(t *testing.T) {
	hour, second := ab.FailureRate(0.5, 99, time.Hour), ab.FailureRate(0.5, 99, time.Second)
	for _, p := range []ab.Policy{ab.AnyOf(hour, second), ab.AnyOf(second, hour), ab.AnyOf(second, hour, second)} {
		synctest.Test(t, func(t *testing.T) {
			g := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: p}, ForgetAfter: time.Minute})
			fail(t, keyed(g, "k"), 1)
			for i := range 20 {
				time.Sleep(30 * time.Second)
				if n := g.Sweep(); n != 0 || g.Len() != 1 {
					t.Fatalf("%v: forgotten after %d successes", p, i)
				}
				admit(t, keyed(g, "k")).Success()
			}
			if c := g.Snapshot("k").Window; fmt.Sprint(p) == fmt.Sprint(ab.AnyOf(hour, second)) && (c.Calls != 21 || c.Failures != 1) {
				t.Errorf("%v: %+v", p, c)
			}
		})
	}
}

// KOfN is exact: calls that succeed keep the failures among the last ones.
func TestSuccessesKeepHistories(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: ab.KOfN(2, 32)}})
		fail(t, keyed(g, "k"), 1)
		for range 30 {
			time.Sleep(50 * time.Minute)
			admit(t, keyed(g, "k")).Success()
			if g.Sweep() != 0 {
				t.Fatal("Sweep removed a key with a failure among its last calls")
			}
		}
		wantVerdict(t, fail(t, keyed(g, "k"), 1), ab.Tripped)
	})
}

// What somebody has set by hand, or until Reset, is not forgotten, and neither is
// anything with a negative ForgetAfter.
func TestNotForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: ab.Consecutive(1)}, ForgetAfter: time.Minute})
		g.ForceOpen("forced")
		g.Disable("disabled")
		g.Trip("latched", -1)
		for _, never := range []time.Duration{-1, math.MinInt64} {
			h := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: ab.Consecutive(2), OpenTimeout: time.Second}, ForgetAfter: never})
			fail(t, keyed(h, "open"), 2)
			fail(t, keyed(h, "failing"), 1)
			time.Sleep(10_000 * time.Hour)
			if n := h.Sweep(); n != 0 || h.Len() != 2 {
				t.Errorf("ForgetAfter %v: Sweep removed %d keys", never, n)
			}
			wantState(t, h.State("open"), ab.HalfOpen)
		}
		if n := g.Sweep(); n != 0 || g.Len() != 3 {
			t.Errorf("Sweep removed %d keys", n)
		}
		wantState(t, g.State("forced"), ab.ForcedOpen)
		wantState(t, g.State("disabled"), ab.Disabled)
		wantState(t, g.State("latched"), ab.Open)
	})
}

// Pods come and go, and each that dies has opened its breaker. Their places in
// the open quota come back without Sweep, a sixty-fourth of ForgetAfter late.
func TestQuotaComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const after = 64 * time.Minute
		g := ab.MustNewGroup(ab.GroupConfig[int]{
			Default: ab.Config{Policy: ab.Consecutive(2), OpenTimeout: time.Second, MaxOpenTimeout: time.Second},
			MaxOpen: 20, ForgetAfter: after,
		})
		opened := 0
		for k := 1000; k < 1100; k++ {
			if fail(t, keyed(g, k), 2) == ab.Tripped {
				opened++
			}
		}
		if opened != 20 {
			t.Fatalf("%d opened", opened)
		}
		wantVerdict(t, fail(t, keyed(g, 1), 9), ab.Counted)
		time.Sleep(after + time.Second)
		withheld := g.Stats().Withheld
		wantVerdict(t, fail(t, keyed(g, 2), 2), ab.Counted) // too late by this one
		wantVerdict(t, fail(t, keyed(g, 2), 1), ab.Tripped)
		if n := g.Stats().Withheld - withheld; n != 1 {
			t.Errorf("%d openings were withheld after they were forgotten", n)
		}
		for k := 1000; k < 1100; k++ {
			wantState(t, g.State(k), ab.Closed)
		}
		if err := g.CheckQuiet(); err != nil {
			t.Error(err)
		}
	})
}

// Of failures for which there is no place, one in a sixty-fourth of ForgetAfter sweeps.
func TestWithheldFailuresSweepRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const after = 64 * time.Minute
		g := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: ab.Consecutive(2)}, MaxOpen: 1, ForgetAfter: after})
		g.Trip("open", -1)
		fail(t, keyed(g, "k"), 2) // withheld, like all that follow
		fail(t, keyed(g, "forgotten"), 1)
		for range 2 {
			time.Sleep(after/2 - time.Second/2)
			fail(t, keyed(g, "k"), 1)
		}
		// The last has swept, too early by a second. A sweep allocates.
		if n := testing.AllocsPerRun(10, func() { g.RecordFailure("k") }); n != 0 {
			t.Errorf("%v allocations for a failure at the time of a sweep", n)
		}
		const half = time.Second / 2
		for at := time.Duration(0); at <= time.Minute; at += half {
			if n := g.Len(); n != 3 && at < time.Minute || n != 2 && at == time.Minute {
				t.Fatalf("%d keys after %v", n, at)
			}
			time.Sleep(half)
			fail(t, keyed(g, "k"), 1)
		}
	})
}

// A sweep that a listener's panic ends was the one of its time: the next failure does not sweep.
func TestWithheldFailuresPanicRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := ab.MustNewGroup(ab.GroupConfig[string]{
			Default: ab.Config{Policy: ab.Consecutive(1)}, MaxOpen: 1, ForgetAfter: time.Hour,
			OnStateChange: func(_ string, e ab.Event) {
				if e.To == ab.Closed {
					panic("a listener")
				}
			},
		})
		g.Trip("open", -1)
		g.Trip("a", time.Second)
		time.Sleep(time.Second)
		g.Trip("b", time.Second)
		time.Sleep(time.Hour)
		panics(t, "a listener", func() { g.RecordFailure("k") }) // sweeps a
		time.Sleep(2 * time.Second)
		wantVerdict(t, g.RecordFailure("k"), ab.Counted)
		time.Sleep(time.Minute)
		panics(t, "a listener", func() { g.RecordFailure("k") }) // sweeps b
	})
}

// Keys that fail once and are never called again do not pile up, without Sweep
// and without settings.
func TestDeadKeysDoNotPileUp(t *testing.T) {
	for name, failures := range map[string]int{"failing": 1, "open": 5} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var g ab.Group[int]
				most := 0
				for k := range 20_000 {
					fail(t, keyed(&g, k), failures)
					time.Sleep(time.Minute)
					most = max(most, g.Len())
				}
				if most > 200 { // 61 to 70 are remembered at any time
					t.Errorf("%d keys at once", most)
				}
			})
		})
	}
}

// A listener is told of each key that was open, in order, and may leave; a key
// that was only failing had nothing to tell.
func TestForgottenKeysAreNotified(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		notified := map[string]string{}
		angry := false
		g := ab.MustNewGroup(ab.GroupConfig[string]{
			Default: ab.Config{Policy: ab.Consecutive(2), OpenTimeout: time.Second},
			OnStateChange: func(k string, e ab.Event) {
				notified[k] += fmt.Sprintf("%v>%v %v; ", e.From, e.To, e.Reason)
				if angry {
					panic("listener")
				}
			},
		})
		for _, k := range []string{"a", "b", "c"} {
			fail(t, keyed(g, k), 2)
		}
		fail(t, keyed(g, "failing"), 1)
		time.Sleep(2 * time.Hour)
		angry = true
		panics(t, "listener", func() { g.Sweep() })
		want := "Closed>Open Threshold; Open>Closed Forgotten; "
		for _, k := range []string{"a", "b", "c"} {
			if notified[k] != want {
				t.Errorf("%s: told %q", k, notified[k])
			}
		}
		if notified["failing"] != "" || g.Len() != 0 {
			t.Errorf("%q, %d keys", notified["failing"], g.Len())
		}
		if err := g.CheckQuiet(); err != nil {
			t.Error(err)
		}
		angry = false
		fail(t, keyed(g, "a"), 2)
		time.Sleep(2 * time.Hour)
		admit(t, keyed(g, "a")).Success()
		if want += want; notified["a"] != want {
			t.Errorf("told %q", notified["a"])
		}
	})
}

// A listener may command its key, also if what has failed meanwhile is forgotten by then:
// the key waits for that very listener.
func TestForgottenKeysObeyTheirListener(t *testing.T) {
	for want, obey := range map[ab.State]func(*ab.Group[string]){
		ab.Closed:     func(g *ab.Group[string]) { g.Reset("k") },
		ab.Open:       func(g *ab.Group[string]) { g.Trip("k", 0) },
		ab.HalfOpen:   func(g *ab.Group[string]) { g.HalfOpen("k") },
		ab.ForcedOpen: func(g *ab.Group[string]) { g.ForceOpen("k") },
		ab.Disabled:   func(g *ab.Group[string]) { g.Disable("k") },
	} {
		t.Run(want.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var g *ab.Group[string]
				var seen log
				g = ab.MustNewGroup(ab.GroupConfig[string]{OnStateChange: func(k string, e ab.Event) {
					if seen.add(e); len(seen) == 1 {
						g.RecordFailure(k)
						time.Sleep(2 * time.Hour)
						obey(g)
						wantState(t, g.State(k), want)
					}
				}})
				g.Reset("k")
				if inOrder(t, seen); len(seen) != 2 || seen[1].To != want || seen[1].Failures != 0 {
					t.Errorf("seen %v", seen)
				}
				if err := g.CheckQuiet(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A key whose window is empty leaves with its next success, without Sweep.
func TestEmptyWindowsLeaveBySuccess(t *testing.T) {
	const window = time.Minute
	for name, p := range map[string]ab.Policy{
		"FailureCount": ab.FailureCount(9, window), "FailureRate": ab.FailureRate(1, 9, window),
		"SlowRate": ab.SlowRate(1, time.Hour, 9, window), "any": ab.AnyOf(ab.Consecutive(9), ab.FailureRate(1, 9, window)),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: p}})
				if name == "SlowRate" {
					p := admit(t, keyed(g, "k"))
					time.Sleep(2 * time.Hour)
					p.Success()
				} else {
					fail(t, keyed(g, "k"), 1)
				}
				admit(t, keyed(g, "k")).Success()
				time.Sleep(window)
				admit(t, keyed(g, "k")).Success()
				if g.Len() != 1 {
					t.Fatal("it left while it had something in its window")
				}
				time.Sleep(slack(window))
				admit(t, keyed(g, "k")).Success()
				if g.Len() != 0 {
					t.Fatal("it stayed with nothing in its window")
				}
				if err := g.CheckQuiet(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A key that is stored keeps nothing alive that it was cut from.
func TestMemoryOfStoredKeys(t *testing.T) {
	type host string
	const n, size = 100, 1 << 20
	heap := func() (m runtime.MemStats) {
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m
	}
	g := ab.MustNewGroup(ab.GroupConfig[host]{Default: ab.Config{Policy: ab.AnyOf(ab.Consecutive(5), ab.SlowRate(1, time.Hour, 9, time.Hour))}})
	var h ab.Group[string]
	before := heap().HeapAlloc
	for i := range n {
		url := fmt.Sprintf("host-%d/%s", i, strings.Repeat("x", size))
		key, _, _ := strings.Cut(url, "/")
		fail(t, keyed(g, host(key)), 1)
		fail(t, keyed(&h, key), 1)
	}
	if after := heap().HeapAlloc; after > before+n*size/10 {
		t.Errorf("%d keys keep %d MB", n, (after-before)>>20)
	}
	if s := h.Snapshot("host-7"); s.Failures != 1 || g.Len() != n {
		t.Errorf("%+v, %d keys", s, g.Len())
	}
	runtime.KeepAlive(g)
}

// A result that forgets its key is late, and counted as that, though the listener panics.
func TestLateThoughTheListenerPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := ab.MustNewGroup(ab.GroupConfig[string]{
			Default: ab.Config{OpenTimeout: time.Second}, ForgetAfter: time.Minute,
			OnStateChange: func(_ string, e ab.Event) {
				if e.Reason == ab.ReasonForgotten {
					panic("oops")
				}
			},
		})
		g.Trip("k", 0)
		time.Sleep(2 * time.Second)
		probe, err := g.Allow("k")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		func() {
			defer func() {
				if p := recover(); p != "oops" {
					t.Errorf("the listener panics, and the caller gets %v", p)
				}
			}()
			probe.Success()
		}()
		if s := g.Stats(); s.Late != 1 {
			t.Errorf("%d late results, want 1", s.Late)
		}
	})
}

// ResetAll tells nobody of keys that were forgotten while they were closed.
func TestResetAllOfForgottenKeys(t *testing.T) {
	for _, p := range []ab.Policy{ab.Consecutive(5), ab.KOfN(5, 100), ab.FailureCount(2, time.Second)} {
		synctest.Test(t, func(t *testing.T) {
			notified := map[string]int{}
			g := ab.MustNewGroup(ab.GroupConfig[string]{
				Default: ab.Config{Policy: p}, ForgetAfter: time.Minute,
				OnStateChange: func(k string, _ ab.Event) { notified[k]++ },
			})
			g.RecordFailure("long ago")
			time.Sleep(time.Hour)
			g.RecordFailure("now")
			g.ResetAll()
			if notified["long ago"] != 0 || notified["now"] != 1 {
				t.Errorf("%v: told %v, want of one key", p, notified)
			}
			if n := g.Len(); n != 0 {
				t.Errorf("%v: %d keys are left", p, n)
			}
		})
	}
}

// survives calls f, which may panic.
func survives(f func()) {
	defer func() { recover() }()
	f()
}

// Nothing but Update asks a PerKey that has gone wrong for a stored key: neither a call
// nor a sweep, nor a result, which gives its slot back, nor an observer.
func TestBadPerKeyHarmsNobody(t *testing.T) {
	for name, leave := range map[string]func(){"panic": func() { panic("PerKey") }, "exit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			g := ab.MustNewGroup(ab.GroupConfig[string]{})
			g.Trip("open", time.Hour)
			g.HalfOpen("probing")
			p := admit(t, keyed(g, "probing"))
			asked := 0
			goexit(func() {
				survives(func() {
					g.Update(ab.GroupConfig[string]{PerKey: func(string) ab.Config { asked++; leave(); return ab.Config{} }})
				})
			})
			if asked != 2 {
				t.Errorf("PerKey was called %d times, want 2", asked)
			}
			if n := g.Sweep(); n != 0 {
				t.Errorf("Sweep removed %d keys", n)
			}
			for range g.All() {
			}
			wantState(t, g.State("open"), ab.Open)
			wantVerdict(t, p.Success(), ab.Recovered)
			reject(t, keyed(g, "open"), ab.ErrOpen)
			g.ResetAll()
			if err := g.CheckQuiet(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Who forgets a key and then runs a TripFunc tells of the one before it begins the
// other: so nobody waits for the function, and nothing is lost if that leaves.
func TestForgottenKeysAreNotifiedBeforeTripFuncs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		notified, block := 0, make(chan struct{})
		what := func() {}
		g := ab.MustNewGroup(ab.GroupConfig[string]{
			Default:       ab.Config{OpenTimeout: time.Second, Policy: ab.TripFunc(time.Minute, 0, func(ab.Counts) bool { what(); return false })},
			OnStateChange: func(string, ab.Event) { notified++ },
		})
		want := func(n int) {
			t.Helper()
			if notified != n {
				t.Errorf("%d events, want %d", notified, n)
			}
			notified = 0
		}
		for _, leave := range []func(){func() { panic("trip") }, runtime.Goexit} {
			g.Trip("k", 0)
			time.Sleep(2 * time.Hour)
			what = leave
			goexit(func() { survives(func() { g.RecordFailure("k") }) })
			want(2)
			g.Trip("k", 0)
			g.Reset("k")
			want(2)
		}
		g.Trip("k", 0)
		time.Sleep(2 * time.Hour)
		what = func() { <-block }
		go g.RecordFailure("k")
		synctest.Wait()
		g.ForceOpen("k")
		want(3)
		close(block)
		synctest.Wait()
		g.Reset("k")
		if err := g.CheckQuiet(); err != nil {
			t.Error(err)
		}
	})
}

// Errors of calls that were admitted after Update are classified by what it says,
// also if nothing else has needed the key's settings since.
func TestUpdateOfClassify(t *testing.T) {
	c := ab.GroupConfig[string]{Default: ab.Config{Policy: ab.Consecutive(2)}}
	g := ab.MustNewGroup(c)
	g.RecordFailure("k")
	c.Default.Classify = func(context.Context, error) ab.Outcome { return ab.Ignored }
	updateGroup(t, g, c)
	wantVerdict(t, admit(t, keyed(g, "k")).Done(errBoom), ab.Counted)
	wantState(t, g.State("k"), ab.Closed)
}

// A TripFunc that takes longer than its window is asked once, and the failure stays counted.
func TestTripFuncsOutliveTheirWindow(t *testing.T) {
	for name, leave := range map[string]func(){"returns": func() {}, "panic": func() { panic("trip") }, "exit": runtime.Goexit} {
		want := "failures 1, Closed"
		if name == "returns" {
			want = "failures 0, Open"
		}
		for _, direct := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var g *ab.Group[string]
					asked := 0
					g = ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{
						Policy: ab.AnyOf(ab.Consecutive(3), ab.TripFunc(time.Millisecond, 0, func(ab.Counts) bool {
							asked++
							time.Sleep(time.Second)
							g.Sweep()
							leave()
							return true
						})),
					}})
					report := func() { g.RecordFailure("k") }
					if !direct {
						p := admit(t, keyed(g, "k"))
						report = func() { p.Failure() }
					}
					done := make(chan struct{})
					go func() {
						defer close(done)
						survives(report)
					}()
					<-done
					s := g.Snapshot("k")
					if got := fmt.Sprintf("failures %d, %v", s.Failures, s.State); got != want || asked != 1 {
						t.Errorf("asked %d times, %s, want %s", asked, got, want)
					}
				})
			})
		}
	}
}

// What probes have shown stays shown when Update makes one failure decide.
func TestUpdateOfProbeFailureRate(t *testing.T) {
	c := probing(9, 5, time.Minute)
	c.ProbeFailureRate = 1
	b := ab.MustNew(c)
	b.HalfOpen()
	for range 4 {
		wantVerdict(t, admit(t, b.Allow).Failure(), ab.Counted)
	}
	c.ProbeFailureRate = 0
	update(t, b, c)
	wantVerdict(t, admit(t, b.Allow).Success(), ab.Tripped)
}

// A ForgetAfter that becomes shorter gives places of the open quota back in its own
// time.
func TestUpdateOfHowLongKeysStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := ab.GroupConfig[string]{Default: ab.Config{Policy: ab.Consecutive(1), OpenTimeout: time.Second}, MaxOpen: 1, ForgetAfter: 300 * 24 * time.Hour}
		g := ab.MustNewGroup(c)
		g.Trip("gone", 0)
		wantVerdict(t, g.RecordFailure("k"), ab.Counted) // withheld
		c.ForgetAfter = time.Minute
		updateGroup(t, g, c)
		time.Sleep(2 * time.Minute)
		wantVerdict(t, g.RecordFailure("k"), ab.Counted)
		wantVerdict(t, g.RecordFailure("k"), ab.Tripped)
	})
}

// A key with a probe in flight is remembered for as long as that has its slot, though Update
// has made ProbeTimeout shorter.
func TestUpdateForgetsNoProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := ab.GroupConfig[string]{Default: ab.Config{ProbeTimeout: time.Hour}, ForgetAfter: time.Minute}
		g := ab.MustNewGroup(c)
		g.HalfOpen("k")
		admit(t, keyed(g, "k"))
		c.Default.ProbeTimeout = time.Second
		updateGroup(t, g, c)
		time.Sleep(time.Hour - 1)
		wantState(t, g.State("k"), ab.HalfOpen)
		time.Sleep(1)
		wantState(t, g.State("k"), ab.Closed)
	})
}

// A key that only waits for its listener leaves when that has returned, though a call that
// says nothing has ended since.
func TestKeysLeaveAfterTheirListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g *ab.Group[string]
		g = ab.MustNewGroup(ab.GroupConfig[string]{
			Default: ab.Config{Policy: ab.FailureCount(9, time.Minute)},
			OnStateChange: func(k string, _ ab.Event) {
				fail(t, keyed(g, k), 1)
				p := admit(t, keyed(g, k))
				time.Sleep(2 * time.Minute)
				g.Sweep()
				wantVerdict(t, p.Cancel(), ab.Counted)
				if g.Len() != 1 {
					t.Error("it has left before its event was delivered")
				}
			},
		})
		if g.Reset("k"); g.Len() != 0 {
			t.Error("it is stored")
		}
	})
}

// A key that was forgotten, and waits for its listener, leaves after that, though Update brings windows
// meanwhile: what is in those of an earlier stay is not its.
func TestKeysLeaveThoughUpdateBringsWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g *ab.Group[string]
		windows := ab.GroupConfig[string]{
			Default:       ab.Config{Policy: ab.FailureCount(9, time.Hour)},
			OnStateChange: func(string, ab.Event) {},
		}
		g = ab.MustNewGroup(windows)
		fail(t, keyed(g, "k"), 1)
		updateGroup(t, g, ab.GroupConfig[string]{
			Default: ab.Config{Policy: ab.Consecutive(9)}, ForgetAfter: time.Minute,
			OnStateChange: func(k string, _ ab.Event) {
				fail(t, keyed(g, k), 1)
				time.Sleep(2 * time.Minute)
				g.Sweep()
				updateGroup(t, g, windows)
			},
		})
		fail(t, keyed(g, "k"), 1)
		if g.Reset("k"); g.Len() != 0 {
			t.Error("it is stored")
		}
	})
}

// Events of ResetAll are of the settings that hold then.
func TestResetAllTellsByNewSettings(t *testing.T) {
	var names []string
	c := ab.GroupConfig[string]{Default: ab.Config{Name: "old"}, OnStateChange: func(_ string, e ab.Event) { names = append(names, e.Name) }}
	g := ab.MustNewGroup(c)
	g.Trip("k", 0)
	c.Default.Name = "new"
	updateGroup(t, g, c)
	g.ResetAll()
	if len(names) != 2 || names[1] != "new" {
		t.Errorf("names %q", names)
	}
}

// Calls come from a window that counts them, where there is one.
func TestSnapshotOfSeveralWindows(t *testing.T) {
	b := ab.MustNew(ab.Config{Policy: ab.AnyOf(ab.FailureCount(100, time.Minute), ab.FailureRate(1, 100, time.Minute))})
	fail(t, b.Allow, 1)
	admit(t, b.Allow).Success()
	if w := b.Snapshot().Window; w != (ab.Counts{Calls: 2, Failures: 1}) {
		t.Errorf("%+v", w)
	}
}

// A half-open key is not open, however long that might take.
func TestHalfOpenIsNotOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{OpenTimeout: 300 * 24 * time.Hour, ProbeTimeout: time.Minute}, ForgetAfter: time.Hour})
		g.HalfOpen("k")
		admit(t, keyed(g, "k"))
		if s := g.Snapshot("k"); s.State != ab.HalfOpen || s.RetryAfter != 0 || s.InFlight != 1 {
			t.Errorf("%+v", s)
		}
		time.Sleep(3 * time.Hour)
		wantState(t, g.State("k"), ab.Closed)
	})
}

// An Update that makes open times, or those of probes, shorter for a key ends none that has begun.
func TestUpdateKeepsDeadlinesOfPerKey(t *testing.T) {
	const long = 10 * time.Hour
	for name, later := range map[string]ab.Config{
		"open":  {OpenTimeout: time.Second, ProbeTimeout: long},
		"probe": {OpenTimeout: long, ProbeTimeout: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				per := func(c ab.Config) ab.GroupConfig[string] {
					return ab.GroupConfig[string]{Default: ab.Config{OpenTimeout: time.Second, ProbeTimeout: time.Second}, PerKey: func(string) ab.Config { return c }}
				}
				g := ab.MustNewGroup(per(ab.Config{OpenTimeout: long, ProbeTimeout: long, Probes: 1}))
				g.Trip("k", 0)
				g.HalfOpen("probed")
				admit(t, keyed(g, "probed"))
				if err := g.Update(per(later)); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Hour)
				reject(t, keyed(g, "k"), ab.ErrOpen)
				reject(t, keyed(g, "probed"), ab.ErrTooManyProbes)
			})
		})
	}
}

// A half-open key that has had no probe is forgotten in time, at any age of its group: its word has no
// deadline of a probe that could lie ahead.
func TestHalfOpenWithoutAProbeIsForgotten(t *testing.T) {
	for age := time.Duration(0); age < 80*time.Hour; age += 8 * time.Hour {
		synctest.Test(t, func(t *testing.T) {
			c := ab.GroupConfig[string]{Default: ab.Config{ProbeTimeout: 30 * time.Hour}, ForgetAfter: time.Hour}
			g := ab.MustNewGroup(c)
			c.Default.ProbeTimeout = time.Second
			if err := g.Update(c); err != nil {
				t.Fatal(err)
			}
			time.Sleep(age)
			g.HalfOpen("k")
			time.Sleep(time.Hour)
			wantState(t, g.State("k"), ab.HalfOpen)
			time.Sleep(2 * time.Second)
			if s := g.State("k"); s != ab.Closed {
				t.Errorf("after %v it is %v", age, s)
			}
		})
	}
}
