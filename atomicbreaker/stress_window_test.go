//go:build !modelcheck

package atomicbreaker_test

import (
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	ab "github.com/latchfree/latchfree/atomicbreaker"
)

// spin lets time pass outside of a bubble, where it does so by itself.
func spin(d time.Duration) {
	for began := time.Now(); time.Since(began) < d; {
		runtime.Gosched()
	}
}

func tally(verdicts []ab.Verdict) map[ab.Verdict]int {
	count := map[ab.Verdict]int{}
	for _, v := range verdicts {
		count[v]++
	}
	return count
}

// A key whose window is empty leaves while it fails again: no failure is lost,
// whether it comes before the key has left or after.
func TestStressKeysLeaveWhileTheyFail(t *testing.T) {
	// Something slow was there, and is long forgotten.
	g := ab.MustNewGroup(ab.GroupConfig[int]{
		Default: ab.Config{Policy: ab.AnyOf(ab.FailureCount(4, time.Hour), ab.SlowRate(1, 0, 1<<30, 1)), OpenTimeout: -1},
	})
	left := 0
	for round := range rounds(4000) {
		p := admit(t, keyed(g, round))
		spin(2 * time.Microsecond)
		wantVerdict(t, p.Success(), ab.Counted)
		if g.Len() != 1 {
			t.Fatalf("round %d: %d keys, want the slow one", round, g.Len())
		}
		early := admit(t, keyed(g, round))
		spin(20 * time.Microsecond)
		verdicts := make([]ab.Verdict, 4)
		var swept atomic.Int32
		together(6, func(i int) {
			jitter(i + round)
			switch {
			case i == 0:
				verdicts[i] = early.Failure()
			case i == 1:
				verdicts[i] = g.RecordFailure(round)
			case i < 4:
				verdicts[i] = admit(t, keyed(g, round)).Failure()
			default:
				for range 4 {
					swept.Add(int32(g.Sweep()))
				}
			}
		})
		left += int(swept.Load())
		// Whoever comes last sees all, and so may those who are there then.
		if c := tally(verdicts); c[ab.Tripped] != 1 || c[ab.Recovered] != 0 || !g.IsOpen(round) {
			t.Fatalf("round %d: verdicts %v, %+v", round, verdicts, g.Snapshot(round))
		}
		if err := g.CheckQuiet(); err != nil {
			t.Fatal(err)
		}
		g.ResetAll()
	}
	if left == 0 && runtime.GOMAXPROCS(0) > 1 && !testing.Short() {
		t.Error("no key has left meanwhile")
	}
}

// Of as many failures as it takes, on all processors, exactly one opens the
// breaker, with successes in between; and of one less none does.
func TestStressWindowsLoseNothing(t *testing.T) {
	const goroutines = 4
	n := max(rounds(400), 2) // so that the last of every goroutine is a failure
	for _, short := range []int{0, 1} {
		for round := range rounds(60) {
			c := ab.Config{Policy: ab.FailureCount(goroutines*n+short, time.Hour), OpenTimeout: -1}
			if round%2 == 1 {
				c.Policy = ab.AnyOf(ab.FailureRate(0.5, 2*goroutines*n+2*short, time.Hour), ab.Consecutive(1<<30))
			}
			b := ab.MustNew(c)
			g := ab.MustNewGroup(ab.GroupConfig[string]{Default: c})
			g.RecordFailure("k") // so that successes count from now on
			var tripped, keyTripped atomic.Int32
			together(goroutines, func(i int) {
				r := rand.New(rand.NewPCG(uint64(i), uint64(round)))
				for j := range n {
					admit(t, b.Allow).Success()
					admit(t, keyed(g, "k")).Success()
					jitter(r.IntN(99))
					if admit(t, b.Allow).Failure() == ab.Tripped {
						tripped.Add(1)
					}
					if i+j > 0 && g.RecordFailure("k") == ab.Tripped { // the first was before
						keyTripped.Add(1)
					}
				}
			})
			if a, b := tripped.Load(), keyTripped.Load(); a != int32(1-short) || b != int32(1-short) {
				t.Fatalf("%v: %d failures opened it, and %d the key, want %d", c.Policy, a, b, 1-short)
			}
		}
	}
}

// Updates and calls at once: no failure is lost from the count, whatever else
// changes (T62).
//
// Reported bug 62, cep21/circuit: one operation, two configurations.
func TestT62_StressUpdateLosesNothing(t *testing.T) {
	const goroutines = 3
	n := rounds(20_000)
	configs := []ab.Config{
		{Name: "a", Policy: ab.Consecutive(1 << 30)},
		{Name: "b", Policy: ab.AnyOf(ab.Consecutive(1<<29), ab.FailureCount(500_000, time.Hour))},
		{Name: "c", Policy: ab.AnyOf(ab.Consecutive(1<<28), ab.SlowRate(1, time.Hour, 1<<30, time.Second)), Shadow: true},
	}
	b := ab.MustNew(configs[0])
	together(goroutines+1, func(i int) {
		for j := range n {
			if i == goroutines {
				b.Update(configs[j%len(configs)])
			} else if v := admit(t, b.Allow).Failure(); v != ab.Counted {
				t.Errorf("verdict %v", v)
			}
		}
	})
	if got := b.Snapshot().Failures; got != goroutines*n {
		t.Fatalf("%d failures, want %d", got, goroutines*n)
	}
}

// Each operation goes by one configuration: what an event says is all of the
// same (T62).
//
// Reported bug 62, cep21/circuit: one operation, two configurations.
func TestT62_StressEventsAreOfOneConfiguration(t *testing.T) {
	times := map[string]time.Duration{"a": time.Hour, "b": 2 * time.Hour, "c": 3 * time.Hour}
	var events []ab.Event // of listeners of which one runs at a time
	config := func(name string) ab.Config {
		return ab.Config{Name: name, Policy: ab.Consecutive(1), OpenTimeout: times[name], Shadow: name == "c", OnStateChange: func(e ab.Event) {
			events = append(events, e)
		}}
	}
	b := ab.MustNew(config("a"))
	together(4, func(i int) {
		for j := range rounds(5000) {
			switch {
			case i == 0:
				b.Update(config(string(rune('a' + j%3))))
			case i == 1:
				b.Reset()
			default:
				if p, err := b.Allow(); err == nil {
					p.Failure()
				}
			}
		}
	})
	inOrder(t, events)
	for _, e := range events {
		if e.To == ab.Open && e.OpenFor != times[e.Name] || e.Shadow != (e.Name == "c") {
			t.Fatalf("%+v", e)
		}
	}
}

// However Updates, resets and results interleave, a breaker whose policy has a
// window counts successes in it in the end.
func TestStressUpdatesAndResets(t *testing.T) {
	rate, count := ab.Config{Policy: ab.FailureRate(1, 1, time.Hour)}, ab.Config{Policy: ab.Consecutive(9)}
	for round := range rounds(4000) {
		b := ab.MustNew(count)
		together(4, func(i int) {
			jitter(i + round)
			switch i {
			case 0:
				b.Update(rate)
			case 1:
				b.Reset()
			case 2:
				b.Trip(-1)
				b.Reset()
			default:
				admitted, err := b.Allow()
				if err == nil {
					admitted.Success()
				}
			}
		})
		if b.State() != ab.Closed {
			b.Reset()
			continue
		}
		wantVerdict(t, admit(t, b.Allow).Success(), ab.Counted)
		wantVerdict(t, admit(t, b.Allow).Failure(), ab.Counted) // not all calls have failed
		b.Update(count)
		wantVerdict(t, admit(t, b.Allow).Success(), ab.Counted)
		wantVerdict(t, fail(t, b.Allow, 8), ab.Counted)
	}
}

// From ForceOpen to Reset no call is let through, whatever is under way
// (T63).
//
// Reported bug 63, cep21/circuit: forced open still probes.
func TestT63_StressForcedMeansForced(t *testing.T) {
	g := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{
		Policy: ab.AnyOf(ab.FailureCount(3, time.Hour), ab.Consecutive(2)), OpenTimeout: time.Millisecond, MaxOpenTimeout: time.Millisecond, Jitter: 1, ProbeTimeout: 1,
	}})
	var times atomic.Uint64 // odd while the key is forced open
	n := rounds(3000)
	var done atomic.Bool
	together(5, func(i int) {
		if i == 0 {
			defer done.Store(true)
			for range n {
				g.ForceOpen("k")
				times.Add(1)
				runtime.Gosched()
				if s := g.State("k"); s != ab.ForcedOpen {
					t.Errorf("state %v", s)
					return
				}
				times.Add(1)
				g.Reset("k")
				runtime.Gosched()
			}
			return
		}
		r := rand.New(rand.NewPCG(uint64(i), 4))
		for !done.Load() {
			before := times.Load()
			p, err := g.Allow("k")
			if err == nil && before%2 == 1 && times.Load() == before {
				t.Error("a call was let through")
				return
			}
			switch r.IntN(6) {
			case 0:
				g.RecordSuccess("k")
			case 1:
				p.Success()
			case 2:
				p.Cancel()
			case 3:
				p.Failure()
			case 4:
				g.Sweep()
			default:
				g.RecordFailure("k")
			}
			jitter(r.IntN(30))
		}
	})
	g.Reset("k")
	g.Sweep()
	if err := g.CheckQuiet(); err != nil || g.State("k") != ab.Closed {
		t.Fatalf("%v, %v", err, g.State("k"))
	}
}
