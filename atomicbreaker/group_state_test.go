//go:build !modelcheck

package atomicbreaker

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// recovered returns a group whose key has tripped and recovered, and whose cell
// is about to be retired.
func recovered(t *testing.T, k string) *Group[string] {
	t.Helper()
	g := MustNewGroup(GroupConfig[string]{Default: Config{Policy: Consecutive(2)}})
	g.RecordFailure(k)
	g.RecordFailure(k)
	linger(g, k)
	return g
}

func mustAllow(t *testing.T, g *Group[string], k string) GroupPermit[string] {
	t.Helper()
	p, err := g.Allow(k)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A call that a cell admitted stays good when the cell dies unchanged: its own
// departure does not void it, but that of a later cell does.
//
// Checks I12.
func TestPermitsOutliveTheirCells(t *testing.T) {
	g := recovered(t, "k")
	p, q, r := mustAllow(t, g, "k"), mustAllow(t, g, "k"), mustAllow(t, g, "k")
	kill(t, g, "k")
	if v := p.Failure(); v != Counted {
		t.Fatalf("verdict %v after the cell died, want Counted", v)
	}
	if v := q.Failure(); v != Tripped {
		t.Fatalf("verdict %v, want Tripped", v)
	}
	g.RecordSuccess("k")
	if v := r.Failure(); v != Late {
		t.Fatalf("verdict %v after a later cell came and went, want Late", v)
	}
}

// A probe is late when its cell has died, also if the generations went round
// meanwhile and the cell died in the probe's own.
func TestProbesDoNotOutliveTheirCells(t *testing.T) {
	g := recovered(t, "k")
	c := g.current().cells.Load("k")
	end := word(c.word.Load())
	c.word.Store(uint64(end | halfOpen<<modeShift | 1<<streakShift))
	probe := mustAllow(t, g, "k")
	c.word.Store(uint64(end))
	kill(t, g, "k")
	if v := probe.Failure(); v != Late {
		t.Fatalf("verdict %v, want Late", v)
	}
}

// Calls admitted while the key was absent stay good like those that a cell
// admitted.
//
// Checks I12.
func TestPermitsForAbsentKeysOutliveCells(t *testing.T) {
	g := MustNewGroup(GroupConfig[string]{Default: Config{Policy: Consecutive(2)}})
	p, q, r := mustAllow(t, g, "k"), mustAllow(t, g, "k"), mustAllow(t, g, "k")
	report := func(report func() Verdict, want Verdict) {
		t.Helper()
		if v := report(); v != want {
			t.Fatalf("verdict %v, want %v", v, want)
		}
	}
	g.RecordFailure("k")
	linger(g, "k")
	kill(t, g, "k")
	report(p.Failure, Counted)
	report(q.Success, Counted)
	report(r.Cancel, Counted)
	g.RecordFailure("k")
	g.RecordFailure("k")
	linger(g, "k")
	kill(t, g, "k")
	report(r.Success, Late)
	report(r.Failure, Late)
}

// A permit for an absent key that nobody reports for very long is late in the end.
func TestDeparturesAreForgotten(t *testing.T) {
	g := MustNewGroup(GroupConfig[int]{Default: Config{Policy: Consecutive(1)}})
	depart := func(n int) {
		for i := range n {
			g.RecordFailure(i)
			g.RecordSuccess(i)
		}
	}
	old, _ := g.Allow(-1)
	older, _ := g.Allow(-2)
	depart(keptDepartures - 1)
	if v := old.Failure(); v != Tripped {
		t.Fatalf("verdict %v after %d departures of other keys, want Tripped", v, keptDepartures-1)
	}
	depart(1)
	if v := older.Failure(); v != Late {
		t.Fatalf("verdict %v after %d departures of other keys, want Late", v, keptDepartures)
	}
}

// Permits count departures modulo 2^20.
func TestDeparturesGoRound(t *testing.T) {
	for _, before := range []uint64{genMask - 1, genMask, genMask + 1, 5*(genMask+1) - 1} {
		g := MustNewGroup(GroupConfig[string]{Default: Config{Policy: Consecutive(1)}})
		g.current().departures.count.Store(before)
		p, q := mustAllow(t, g, "k"), mustAllow(t, g, "other")
		g.RecordFailure("k")
		g.RecordSuccess("k")
		g.RecordFailure("third")
		g.RecordSuccess("third")
		if v := p.Failure(); v != Late {
			t.Errorf("%v of a key that has departed, after %d others", v, before)
		}
		if v := q.Failure(); v != Tripped {
			t.Errorf("%v of a key that has not departed, after %d others", v, before)
		}
	}
}

// While many keys depart, nobody misses the departure of a key, nor sees one of a key that
// has not departed.
func TestStressDepartures(t *testing.T) {
	const callers, count = 4, 2000
	var d departures
	var wg sync.WaitGroup
	for caller := range callers {
		wg.Go(func() {
			for i := range count {
				since := d.count.Load()
				mine, others := uint64(1+caller*count+i), uint64(1+callers*count)
				if n := d.add(mine); n <= since || d.count.Load() < n {
					t.Errorf("departure %d after %d", n, since)
				}
				if !d.departed(since, mine) {
					t.Errorf("departure of %d after %d is missed", mine, since)
				}
				if now := d.count.Load(); now-since < keptDepartures/2 && d.departed(now, others) && d.count.Load()-now < keptDepartures {
					t.Errorf("%d departed after %d", others, now)
				}
			}
		})
	}
	wg.Wait()
	if n := d.count.Load(); n != callers*count {
		t.Errorf("%d departures", n)
	}
}

// Of failures that find a key forgotten, all at once, none is lost: as many as it takes
// open the breaker once, and one less does not.
func TestStressForgottenKeysLoseNothing(t *testing.T) {
	const callers = 4
	for name, p := range map[string]func(n int) Policy{
		"row": func(n int) Policy { return Consecutive(n) }, "history": func(n int) Policy { return KOfN(n, 9) }, "long": func(n int) Policy { return KOfN(n, 99) },
		"count": func(n int) Policy { return FailureCount(n, 100*time.Hour) }, "rate": func(n int) Policy { return FailureRate(1, n, 100*time.Hour) },
		"both": func(n int) Policy { return AnyOf(Consecutive(n), FailureCount(n+5, 100*time.Hour)) },
	} {
		for _, spare := range []int{0, 1} {
			t.Run(fmt.Sprintf("%s/spare=%d", name, spare), func(t *testing.T) {
				for range 300 {
					g := MustNewGroup(GroupConfig[int]{Default: Config{Policy: p(callers + spare), OpenTimeout: -1}})
					for range callers + spare - 1 {
						g.RecordFailure(1)
					}
					inFlight, _ := g.Allow(1)
					c := g.current().cells.Load(1)
					c.touched.Store(int64(c.settings().now() - 2*time.Hour))
					var ready, done sync.WaitGroup
					var tripped atomic.Int32
					ready.Add(callers)
					for i := range callers {
						done.Go(func() {
							ready.Done()
							ready.Wait()
							report := func() Verdict { return g.RecordFailure(1) }
							if i == 0 {
								report = inFlight.Failure
							}
							if report() == Tripped {
								tripped.Add(1)
							}
						})
					}
					done.Wait()
					if n := tripped.Load(); int(n) != 1-spare || g.IsOpen(1) != (spare == 0) {
						t.Fatalf("%d of %d failures have opened it: %+v", n, callers, g.Snapshot(1))
					}
					g.mustBeQuiet(t)
				}
			})
		}
	}
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

// Who has read the settings before an Update that remembers keys for longer retires a key
// that is forgotten by them, or it would find it so for ever.
func TestForgottenBySettingsOfBefore(t *testing.T) {
	g := MustNewGroup(GroupConfig[int]{Default: Config{Policy: Consecutive(2)}})
	g.RecordFailure(1)
	c := g.current().cells.Load(1)
	before := c.set.Load()
	c.touched.Store(int64(before.now() - 2*time.Hour))
	longer, err := GroupConfig[int]{Default: Config{Policy: Consecutive(2)}, ForgetAfter: 24 * time.Hour}.compile()
	if err != nil {
		t.Fatal(err)
	}
	g.current().adopt(longer.shared)
	g.current().use(longer)
	was := word(c.word.Load())
	if c.retireStale(was, c.set.Load()) {
		t.Error("retired by the settings of now")
	}
	if _, _, did := c.forget(was, was, before); !did || word(c.word.Load()).mode() != tombstone {
		t.Errorf("%t, and %#x is left", did, c.word.Load())
	}
}
