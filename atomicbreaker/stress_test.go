//go:build !modelcheck

package atomicbreaker_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
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

// Of calls that all are among the last n, exactly one opens the breaker if so
// many fail, and none if one fewer does, in whatever order they end; and in a
// stay that does not end, bursts begin and end, again and again.
func TestStressLongHistories(t *testing.T) {
	const goroutines = 4
	for _, n := range []int{33, 64, 1024} {
		for _, k := range []int{2, 3, 8, n / 2, n} {
			t.Run(fmt.Sprintf("KOfN(%d, %d)", k, n), func(t *testing.T) {
				c := ab.Config{Policy: ab.KOfN(k, n), OpenTimeout: -1}
				b, g := ab.MustNew(c), ab.MustNewGroup(ab.GroupConfig[int]{Default: c})
				for round := range max(rounds(20_000)/n, 3) {
					failures := k - round%3 // k opens it
					stressCalls(t, allow(b), goroutines, n, failures, k, round)
					stressCalls(t, keyed(g, 1), goroutines, n, failures, k, round)
					s := b.Snapshot()
					if of := g.Snapshot(1); of.State != s.State || of.Failures != s.Failures {
						t.Fatalf("round %d: %+v and %+v", round, s, of)
					}
					if failures >= k {
						wantState(t, s.State, ab.Open)
						b.Reset()
						g.Reset(1)
						continue
					}
					if s.State != ab.Closed || s.Failures != max(failures, 0) {
						t.Fatalf("round %d: %+v after %d failures", round, s, failures)
					}
					together(goroutines, func(int) {
						for range (n + goroutines - 1) / goroutines {
							admit(t, b.Allow).Success()
							g.RecordSuccess(1)
						}
					})
					if s := b.Snapshot(); s.Failures != 0 || g.Len() != 0 {
						t.Fatalf("round %d: %+v, %d keys after %d successes", round, s, g.Len(), n)
					}
				}
				if err := g.CheckQuiet(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// stressCalls makes n calls at once, of which some fail, and checks that one
// opened the breaker if so many have.
func stressCalls(t *testing.T, allow allower, goroutines, n, failures, k, seed int) {
	r := rand.New(rand.NewPCG(uint64(seed), uint64(n)))
	calls := make([]bool, n)
	for i := range max(failures, 0) {
		calls[i] = true
	}
	r.Shuffle(n, func(i, j int) { calls[i], calls[j] = calls[j], calls[i] })
	permits := make([]permit, n)
	for i := range permits {
		permits[i] = admit(t, allow)
	}
	var tripped atomic.Int32
	together(goroutines, func(id int) {
		for i := id; i < n; i += goroutines {
			if reportOp(permits[i], calls[i]) == ab.Tripped {
				tripped.Add(1)
			}
			if i%64 == id {
				runtime.Gosched()
			}
		}
	})
	want := int32(0)
	if failures >= k {
		want = 1
	}
	if got := tripped.Load(); got != want {
		t.Fatalf("%d failures of %d have opened it, want %d", got, failures, want)
	}
}

// Whatever is done by hand and by Update meanwhile, each opening has one failure
// that has made it, a Snapshot never shows more failures than there can be, and
// in the end the breaker is healthy after n successes.
func TestStressLongHistoriesByHand(t *testing.T) {
	policies := []ab.Policy{ab.KOfN(5, 40), ab.KOfN(20, 1000), ab.KOfN(3, 9), ab.Consecutive(6), ab.AnyOf(ab.Consecutive(4), ab.KOfN(9, 90))}
	b := ab.MustNew(ab.Config{Policy: policies[0], OpenTimeout: -1})
	var tripped, reset atomic.Int64
	together(5, func(id int) {
		r := rand.New(rand.NewPCG(uint64(id), 7))
		for i := range rounds(30_000) {
			p, err := b.Allow()
			switch {
			case id == 0 && i%50 == 0:
				if err := b.Update(ab.Config{Policy: policies[r.IntN(len(policies))], OpenTimeout: -1}); err != nil {
					t.Error(err)
				}
			case id == 0 && i%171 == 0, err != nil:
				b.Reset()
				reset.Add(1)
			case id == 1 && i%3 == 0:
				if s := b.Snapshot(); s.Failures < 0 || s.Failures > 1024 || s.Streak > 1 {
					t.Errorf("%+v", s)
				}
			default:
				if reportOp(p, r.IntN(8) == 0) == ab.Tripped {
					tripped.Add(1)
				}
			}
		}
	})
	if s := b.Stats(); s.Opened != uint64(tripped.Load()) || s.Closed != uint64(reset.Load()) {
		t.Errorf("%+v, but %d failures have opened it, and %d resets", s, tripped.Load(), reset.Load())
	}
	b.Reset()
	update(t, b, ab.Config{Policy: ab.KOfN(900, 1000)})
	for i := range 1000 {
		reportOp(admit(t, b.Allow), i%2 == 0)
	}
	if s := b.Snapshot(); s.Failures != 500 {
		t.Errorf("%+v after 500 failures", s)
	}
	for range 1000 {
		admit(t, b.Allow).Success()
	}
	if s := b.Snapshot(); s.Failures != 0 {
		t.Errorf("%+v", s)
	}
}

// ears count what a listener is told of one breaker. A listener that is called
// twice at a time races on them.
type ears struct {
	last    ab.Event
	to      [3]int
	inside  bool
	trouble string
}

// hear also takes a first generation after a departure or a ResetAll.
func (e *ears) hear(v ab.Event) {
	switch {
	case e.inside:
		e.trouble = "two at a time"
	case v.From != e.last.To || v.Generation != e.last.Generation+1 && (v.Generation != 1 || v.From != ab.Closed):
		e.trouble = fmt.Sprintf("%v of generation %d after %v of %d", v, v.Generation, e.last, e.last.Generation)
	}
	e.inside = true
	e.last = v
	e.to[v.To]++
	runtime.Gosched()
	e.inside = false
}

// With everybody changing few breakers, whose listeners now and then panic or
// change something themselves, each listener is told of every change once and
// in order, and no goroutine stays behind.
//
// Reported bug 37, bytedance/gopkg, cep21/circuit: events out of order.
// Checks I19, I20, I21, I22.
func TestT37_StressListeners(t *testing.T) {
	before := runtime.NumGoroutine()
	for round := range rounds(40) {
		const keys = 3
		var heard [keys]ears
		var g *ab.Group[int]
		g = ab.MustNewGroup(ab.GroupConfig[int]{
			Default: ab.Config{Policy: ab.Consecutive(1 + round%2), OpenTimeout: time.Millisecond, MaxOpenTimeout: time.Millisecond, ProbeTimeout: 1},
			OnStateChange: func(k int, v ab.Event) {
				heard[k].hear(v)
				switch {
				case v.Generation%17 == 3:
					g.Reset(k)
				case v.Generation%31 == 5:
					panic(errBoom)
				}
			},
		})
		together(6, func(id int) {
			r := rand.New(rand.NewPCG(uint64(id), uint64(round)))
			for i := range 400 {
				func() {
					defer func() {
						if p := recover(); p != nil && p != any(errBoom) {
							panic(p)
						}
					}()
					k := r.IntN(keys)
					switch r.IntN(12) {
					case 0, 1:
						g.RecordFailure(k)
					case 2:
						g.RecordSuccess(k)
					case 3:
						g.Reset(k)
					case 4:
						if i%20 == 0 {
							g.ResetAll()
						}
					case 5:
						g.Sweep()
					default:
						p, err := g.Allow(k)
						if jitter(i); err == nil {
							[]func() ab.Verdict{p.Failure, p.Success, p.Cancel}[r.IntN(3)]()
						}
					}
				}()
			}
		})
		if err := g.CheckQuiet(); err != nil {
			t.Fatal(err)
		}
		for k := range heard {
			if heard[k].trouble != "" {
				t.Fatalf("key %d: %s", k, heard[k].trouble)
			}
			if s := g.State(k); s != heard[k].last.To && (s != ab.HalfOpen || heard[k].last.To != ab.Open) {
				t.Fatalf("key %d is %v, and the last event was %v", k, s, heard[k].last)
			}
		}
	}
	for runtime.NumGoroutine() > before {
		runtime.Gosched() // until together's have ended
	}
}

// Every Tripped is one event to Open, every Recovered one to Closed.
//
// Reported bug 38, Polly, rubyist/circuitbreaker: events twice or never.
func TestT38_StressEventsMatchVerdicts(t *testing.T) {
	for round := range rounds(60) {
		var heard ears
		b := ab.MustNew(ab.Config{Policy: ab.Consecutive(2), OpenTimeout: time.Millisecond, MaxOpenTimeout: time.Millisecond, Probes: 2, CloseAfter: 2, OnStateChange: heard.hear})
		var verdicts [4]atomic.Int64
		var resets atomic.Int64
		together(4, func(id int) {
			r := rand.New(rand.NewPCG(uint64(id), uint64(round)))
			for i := range 500 {
				if r.IntN(40) == 0 {
					b.Reset()
					resets.Add(1)
				}
				p, err := b.Allow()
				if jitter(i); err == nil {
					verdicts[[]func() ab.Verdict{p.Failure, p.Success}[r.IntN(2)]()].Add(1)
				}
			}
		})
		closings := verdicts[ab.Recovered].Load() + resets.Load()
		if heard.trouble != "" || int64(heard.to[ab.Open]) != verdicts[ab.Tripped].Load() || int64(heard.to[ab.Closed]) != closings {
			t.Fatalf("%s: events to %v, %d tripped, %d closed", heard.trouble, heard.to, verdicts[ab.Tripped].Load(), closings)
		}
		if gen := b.Snapshot().Generation; gen != heard.to[0]+heard.to[1]+heard.to[2] {
			t.Fatalf("%v events, generation %d", heard.to, gen)
		}
	}
}

// T1: while some close a key and others open it, whoever sees it open sees the
// whole time of that opening before it, and it is never half-open before that.
//
// Reported bug 1, Hystrix: a late closer erases the opening time.
func TestT1_StressOpenHasItsDeadline(t *testing.T) {
	n := rounds(20_000)
	g := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: ab.Consecutive(1), OpenTimeout: time.Hour}})
	var done atomic.Bool
	together(4, func(i int) {
		switch i {
		case 0:
			defer done.Store(true)
			for range n {
				g.RecordFailure("k")
			}
		case 1:
			for !done.Load() {
				g.RecordSuccess("k")
				runtime.Gosched()
			}
		case 2:
			for !done.Load() {
				g.Reset("k")
				if p, err := g.Allow("k"); err == nil {
					p.Failure()
				}
			}
		default:
			for !done.Load() {
				s := g.Snapshot("k")
				if s.State != ab.Closed && (s.State != ab.Open || s.Streak != 1 || s.RetryAfter < 50*time.Minute || s.RetryAfter > time.Hour+time.Millisecond) {
					t.Errorf("%+v", s)
				}
				runtime.Gosched()
			}
		}
	})
}

// T2: each opening lasts for its time, less a millisecond at most, also the one that
// begins when a probe has failed, with everybody asking to be admitted. One call is.
//
// Reported bug 2, Sentinel: open with the previous deadline.
func TestT2_StressOpeningsLast(t *testing.T) {
	const openTimeout = 2 * time.Millisecond
	n := rounds(100)
	b := ab.MustNew(ab.Config{Policy: ab.Consecutive(1), OpenTimeout: openTimeout, MaxOpenTimeout: openTimeout, ProbeTimeout: time.Hour})
	// By the generation of the probe: when its failure began, and when it had
	// been admitted. Each has one, so each is written once. When n probes have
	// failed, the other callers may be about to ask once more.
	const callers = 4
	failed := make([]time.Time, 2*(n+callers))
	admitted := make([]time.Time, len(failed))
	var probes atomic.Int64
	failed[0] = time.Now()
	fail(t, b.Allow, 1)
	together(callers, func(int) {
		for probes.Load() < int64(n) {
			p, err := b.Allow()
			if err != nil {
				runtime.Gosched()
				continue
			}
			at := time.Now()
			gen, probe := p.ProbeGeneration()
			if !probe || gen >= len(failed) {
				t.Errorf("probe %v of generation %d", probe, gen)
				return
			}
			admitted[gen] = at // a second probe would be a race
			failed[gen] = time.Now()
			if probes.Add(1); p.Failure() != ab.Tripped {
				t.Errorf("generation %d: the probe's failure has not opened it", gen)
			}
		}
	})
	for gen := 2; gen < 2*n; gen += 2 {
		if d := admitted[gen].Sub(failed[gen-2]); d <= openTimeout-time.Millisecond {
			t.Fatalf("generation %d: the breaker was open for %v", gen-1, d)
		}
	}
}

// T4: of the callers who find that the open time has passed, one makes the
// breaker half-open. The others go by what it is when they look again, also if
// it is closed by then: what they are admitted to is not a probe.
//
// Reported bug 4, autobreaker: a second caller assumes half-open.
func TestT4_StressWhoComesSecondLooksAgain(t *testing.T) {
	for round := range rounds(100) {
		b := ab.MustNew(ab.Config{Policy: ab.Consecutive(1), OpenTimeout: time.Millisecond})
		fail(t, b.Allow, 1)
		for b.State() != ab.HalfOpen {
			runtime.Gosched()
		}
		var probes atomic.Int32
		verdicts := make([]ab.Verdict, 4)
		together(4, func(i int) {
			jitter(i + round)
			for {
				if p, err := b.Allow(); err == nil {
					if _, probe := p.ProbeGeneration(); probe {
						probes.Add(1)
					}
					verdicts[i] = p.Success()
					return
				}
				runtime.Gosched()
			}
		})
		if c := tally(verdicts); probes.Load() != 1 || c[ab.Recovered] != 1 || c[ab.Counted] != 3 {
			t.Fatalf("%d probes, verdicts %v", probes.Load(), verdicts)
		}
		if got := b.Snapshot(); got.State != ab.Closed || got.Generation != 3 || got.InFlight != 0 {
			t.Fatalf("%+v", got)
		}
	}
}

// T7: a breaker that is seen to be closed has nothing left of what was before.
// The first failure after it is the first, and what closes the breaker does not
// take it away.
//
// Reported bug 7, Couchbase: clearing after closing erases new failures.
func TestT7_StressFirstFailureAfterAClosing(t *testing.T) {
	closings := map[string]func(g *ab.Group[string], probe permit){
		"RecordSuccess": func(g *ab.Group[string], _ permit) { g.RecordSuccess("k") },
		"Reset":         func(g *ab.Group[string], _ permit) { g.Reset("k") },
		"a probe":       func(_ *ab.Group[string], probe permit) { probe.Success() },
	}
	for name, closes := range closings {
		for _, policy := range []ab.Policy{ab.Consecutive(2), ab.KOfN(2, 9), ab.FailureCount(2, time.Hour)} {
			g := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: policy, OpenTimeout: time.Hour}})
			n := rounds(500)
			if name == "a probe" {
				n = rounds(50) // each waits for a millisecond
			}
			for round := range n {
				g.RecordFailure("k")
				g.RecordFailure("k")
				var probe permit
				if name == "a probe" {
					g.ResetAll()
					if probe = probeOf(t, g); g.State("k") != ab.HalfOpen {
						t.Fatalf("state %v", g.State("k"))
					}
				}
				var verdict ab.Verdict
				together(2, func(i int) {
					jitter(i + round)
					if i == 0 {
						closes(g, probe)
						return
					}
					for {
						if p, err := g.Allow("k"); err == nil {
							verdict = p.Failure()
							return
						}
						runtime.Gosched()
					}
				})
				wantVerdict(t, verdict, ab.Counted)
				wantState(t, g.State("k"), ab.Closed)
				wantVerdict(t, g.RecordFailure("k"), ab.Tripped) // the second
				g.ResetAll()
			}
		}
	}
}

// probeOf opens a key and returns its probe, which has no rival.
func probeOf(t *testing.T, g *ab.Group[string]) permit {
	t.Helper()
	g.Trip("k", 1)
	for g.State("k") != ab.HalfOpen {
		runtime.Gosched()
	}
	return admit(t, keyed(g, "k"))
}

// T8: whoever reports one of the failures that could have opened the breaker
// finds it open, and not only the one who has opened it.
//
// Reported bug 8, Hystrix: the losing opener is told "closed".
func TestT8_StressAllWhoFailFindItOpen(t *testing.T) {
	for round := range rounds(2000) {
		c := ab.Config{Policy: []ab.Policy{ab.Consecutive(1), ab.KOfN(1, 2), ab.FailureCount(1, time.Hour)}[round%3]}
		b, g := ab.MustNew(c), ab.MustNewGroup(ab.GroupConfig[int]{Default: c})
		var permits [2][3]permit
		for i := range 3 {
			permits[0][i], permits[1][i] = admit(t, b.Allow), admit(t, keyed(g, 1))
		}
		together(3, func(i int) {
			r := rand.New(rand.NewPCG(uint64(i), uint64(round)))
			jitter(r.IntN(7))
			v, w := permits[0][i].Failure(), permits[1][i].Failure()
			if s := b.State(); s != ab.Open || v != ab.Tripped && v != ab.Late {
				t.Errorf("%v after a failure that was %v", s, v)
			}
			if w != ab.Tripped && w != ab.Late || !g.IsOpen(1) {
				t.Errorf("%v after a failure that was %v", g.State(1), w)
			}
		})
	}
}

// T25: of an old result and the probe's that are reported at once, the probe's
// counts, and its place is given back once.
//
// Reported bug 25, Bazel: old result and probe both end the trial.
func TestT25_StressOldResultsAndTheTrial(t *testing.T) {
	g := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: ab.Consecutive(1), CloseAfter: 2, ProbeTimeout: time.Hour}})
	for round := range rounds(60) {
		old := [3]permit{admit(t, keyed(g, "k")), admit(t, keyed(g, "k")), admit(t, keyed(g, "k"))}
		probe := probeOf(t, g)
		var mu sync.Mutex
		count := map[ab.Verdict]int{}
		together(4, func(i int) {
			jitter(i + round)
			p := probe
			report := permit.Success
			if i > 0 {
				p, report = old[i-1], everyReport(round+i)
			}
			v := report(p)
			mu.Lock()
			defer mu.Unlock()
			count[v]++
		})
		if got := g.Snapshot("k"); count[ab.Counted] != 1 || count[ab.Late] != 3 || got.State != ab.HalfOpen || got.InFlight != 0 || got.Successes != 1 {
			t.Fatalf("verdicts %v, %+v", count, got)
		}
		wantVerdict(t, admit(t, keyed(g, "k")).Success(), ab.Recovered)
	}
}

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
