//go:build !modelcheck

package atomicbreaker_test

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	ab "github.com/latchfree/latchfree/atomicbreaker"
)

// In no generation are there more probes in flight than allowed, whatever the
// schedule, and the breaker never stops taking probes (T3, T4, T30).
//
// Reported bug 3, autobreaker: half-opening uncounts a probe.
// Checks I3.
func TestT3_StressProbeLimit(t *testing.T) {
	const probes, goroutines = 2, 8
	c := ab.Config{Policy: ab.Consecutive(1), OpenTimeout: time.Millisecond, Probes: probes, CloseAfter: 20, ProbeTimeout: time.Hour}
	subjects := map[string]func() (allower, func() ab.Snapshot){
		"Breaker": func() (allower, func() ab.Snapshot) {
			b := ab.MustNew(c)
			return allow(b), b.Snapshot
		},
		"Group": func() (allower, func() ab.Snapshot) {
			g := ab.MustNewGroup(ab.GroupConfig[int]{Default: c})
			return keyed(g, 1), func() (s ab.Snapshot) {
				for _, s = range g.All() {
				}
				return s
			}
		},
	}
	for name, subject := range subjects {
		t.Run(name, func(t *testing.T) {
			for range rounds(300) {
				allow, snapshot := subject()
				var inFlight [64]atomic.Int32
				var recovered atomic.Int32
				fail(t, allow, 1)
				for snapshot().State != ab.HalfOpen { // for a millisecond
					runtime.Gosched()
				}
				together(goroutines, func(id int) {
					r := rand.New(rand.NewPCG(uint64(id), 1))
					for range 200 {
						p, err := allow()
						if err != nil {
							if !errors.Is(err, ab.ErrRejected) {
								t.Error(err)
							}
							runtime.Gosched()
							continue
						}
						gen, probe := p.ProbeGeneration()
						if probe {
							if n := inFlight[gen%64].Add(1); n > probes {
								t.Errorf("%d probes in flight in generation %d", n, gen)
							}
						}
						jitter(r.IntN(7))
						if probe {
							inFlight[gen%64].Add(-1)
						}
						switch r.IntN(4) {
						case 0:
							p.Cancel()
						default:
							if p.Success() == ab.Recovered {
								recovered.Add(1)
							}
						}
					}
				})
				if s := snapshot(); recovered.Load() != 1 || s.State != ab.Closed {
					t.Fatalf("%d successes recovered it: %+v", recovered.Load(), s)
				}
			}
		})
	}
}

// Every failure counts and every reset begins a generation: no write undoes
// another.
//
// Checks I2, I5.
func TestStressEveryWriteCounts(t *testing.T) {
	const goroutines = 4
	n := rounds(50_000)
	g := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: ab.Consecutive(1 << 30)}})
	b := ab.MustNew(ab.Config{Policy: ab.Consecutive(1 << 30)})
	together(goroutines, func(int) {
		for range n {
			admit(t, b.Allow).Failure()
			admit(t, keyed(g, "permit")).Failure()
			g.RecordFailure("record")
		}
	})
	got := []int{b.Snapshot().Failures}
	for _, s := range g.All() {
		got = append(got, s.Failures)
	}
	for _, failures := range got {
		if len(got) != 3 || failures != goroutines*n {
			t.Fatalf("%v failures, want %d each", got, goroutines*n)
		}
	}
	together(goroutines, func(int) {
		for range n {
			b.Reset()
		}
	})
	if gen := b.Snapshot().Generation; gen != goroutines*n {
		t.Fatalf("generation %d after %d resets", gen, goroutines*n)
	}
}

// A permit for a key that has just recovered is good: the departure of the
// key's cell was before it, however many help with that.
//
// Checks I11, I13.
func TestStressPermitsAfterADeparture(t *testing.T) {
	g := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: ab.Consecutive(3), OpenTimeout: -1}})
	for round := range rounds(20_000) {
		for range 3 {
			g.RecordFailure("k")
		}
		var verdicts [3]ab.Verdict
		together(4, func(i int) {
			if i == 3 {
				jitter(round)
				g.RecordSuccess("k")
				return
			}
			for {
				if p, err := g.Allow("k"); err == nil {
					verdicts[i] = p.Failure()
					return
				}
				runtime.Gosched()
			}
		})
		count := map[ab.Verdict]int{}
		for _, v := range verdicts {
			count[v]++
		}
		if count[ab.Counted] != 2 || count[ab.Tripped] != 1 {
			t.Fatalf("round %d: verdicts %v, want two counted and one tripped", round, verdicts)
		}
		g.RecordSuccess("k")
	}
}

// Openings and closings alternate, so of n failures and successes without
// permits, as many trip as recover, give or take the last.
func TestStressTripsAndRecoveriesAlternate(t *testing.T) {
	for range rounds(2000) {
		g := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: ab.Consecutive(2), OpenTimeout: -1}})
		var trips, recoveries atomic.Int32
		together(4, func(id int) {
			r := rand.New(rand.NewPCG(uint64(id), 2))
			for range 50 {
				if r.IntN(3) == 0 {
					if g.RecordSuccess("k") == ab.Recovered {
						recoveries.Add(1)
					}
				} else if g.RecordFailure("k") == ab.Tripped {
					trips.Add(1)
				}
				jitter(r.IntN(20))
			}
		})
		want := recoveries.Load()
		if g.IsOpen("k") {
			want++
		}
		if trips.Load() != want {
			t.Fatalf("%d trips, %d recoveries, open %v", trips.Load(), recoveries.Load(), g.IsOpen("k"))
		}
		if err := g.CheckQuiet(); err != nil {
			t.Fatal(err)
		}
	}
}

// No failure through a permit for an absent key is lost, while other keys
// come, trip, recover and go, and sweeps run.
func TestStressFailuresOfAbsentKeys(t *testing.T) {
	for round := range rounds(4000) {
		g := ab.MustNewGroup(ab.GroupConfig[int]{
			Default: ab.Config{Policy: ab.Consecutive(4)},
			PerKey: func(k int) ab.Config {
				if k == 0 {
					return ab.Config{Policy: ab.Consecutive(4)}
				}
				return ab.Config{Policy: ab.Consecutive(1)}
			},
		})
		var verdicts [4]ab.Verdict
		together(7, func(i int) {
			switch {
			case i < len(verdicts):
				p := admit(t, keyed(g, 0))
				jitter(i + round)
				verdicts[i] = p.Failure()
			case i < 6:
				for range 10 {
					g.RecordFailure(i)
					g.RecordSuccess(i)
					g.Sweep()
				}
			default:
				for range 10 {
					admit(t, keyed(g, -1)).Success()
					g.Reset(-2)
				}
			}
		})
		count := map[ab.Verdict]int{}
		for _, v := range verdicts {
			count[v]++
		}
		if count[ab.Tripped] != 1 || count[ab.Counted] != 3 || !g.IsOpen(0) {
			t.Fatalf("verdicts %v, open %v", count, g.IsOpen(0))
		}
		if err := g.CheckQuiet(); err != nil {
			t.Fatal(err)
		}
	}
}

// A failure admitted before a reset either comes before it, and is cleared, or
// is late. Either way nothing is left of it (T7, T15).
//
// Reported bug 15, defect report: a concurrent reset is lost.
// Checks I12.
func TestStressResetAgainstOldFailures(t *testing.T) {
	resets := map[string]func(g *ab.Group[string]){
		"Reset":    func(g *ab.Group[string]) { g.Reset("k") },
		"ResetAll": func(g *ab.Group[string]) { g.ResetAll() },
	}
	for name, reset := range resets {
		t.Run(name, func(t *testing.T) {
			for _, before := range []int{0, 1} { // the key is absent, or has a cell
				g := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: ab.Consecutive(3)}})
				for round := range rounds(5000) {
					for range before {
						g.RecordFailure("k")
					}
					var permits [3]permit
					for i := range permits {
						permits[i] = admit(t, keyed(g, "k"))
					}
					together(4, func(i int) {
						jitter(i + round)
						if i < len(permits) {
							permits[i].Failure()
						} else {
							reset(g)
						}
					})
					if g.Len() != 0 || g.State("k") != ab.Closed {
						t.Fatalf("round %d: Len %d, state %v after a reset", round, g.Len(), g.State("k"))
					}
				}
				if err := g.CheckQuiet(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// With all operations on few keys at once, nothing stays behind: when every
// key has had a success, the group is empty.
//
// Checks I12.
func TestStressEverything(t *testing.T) {
	g := ab.MustNewGroup(ab.GroupConfig[int]{
		Default: ab.Config{Policy: ab.Consecutive(2), OpenTimeout: time.Millisecond, MaxOpenTimeout: time.Millisecond, ProbeTimeout: time.Millisecond},
	})
	together(6, func(id int) {
		r := rand.New(rand.NewPCG(uint64(id), 3))
		var held []permit
		for i := range rounds(40_000) {
			k := r.IntN(3)
			switch r.IntN(14) {
			case 0:
				g.RecordFailure(k)
			case 1:
				g.RecordSuccess(k)
			case 2:
				g.Reset(k)
			case 3:
				if i%16 == 0 {
					g.ResetAll()
				}
			case 4:
				g.Sweep()
			case 5:
				for range g.All() {
				}
			default:
				if p, err := g.Allow(k); err == nil {
					held = append(held, p)
				}
				if len(held) > 4 || r.IntN(2) == 0 && len(held) > 0 {
					p := held[0]
					held = held[1:]
					[]func() ab.Verdict{p.Failure, p.Success, p.Cancel}[r.IntN(3)]()
				}
			}
		}
	})
	if err := g.CheckQuiet(); err != nil {
		t.Fatal(err)
	}
	for k := range 3 {
		g.RecordSuccess(k)
	}
	for g.Sweep() > 0 || g.Len() > 0 { // the clock moves on by itself
		runtime.Gosched()
		if t.Context().Err() != nil {
			t.Fatal("the group does not become empty")
		}
	}
	if err := g.CheckQuiet(); err != nil {
		t.Fatal(err)
	}
}
