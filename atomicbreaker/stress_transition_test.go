//go:build !modelcheck

package atomicbreaker_test

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	ab "github.com/latchfree/latchfree/atomicbreaker"
)

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
