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

func mustAllow(t *testing.T, g *Group[string], k string) Permit {
	t.Helper()
	p, err := g.Allow(k)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Whoever killed a cell and stopped delays nobody: every operation helps to
// remove it, and sees the key as pristine.
func TestDeadCellsDelayNobody(t *testing.T) {
	ops := map[string]func(g *Group[string]){
		"Allow": func(g *Group[string]) {
			if v := mustAllow(t, g, "k").Failure(); v != Counted {
				t.Errorf("failure: %v", v)
			}
		},
		"RecordFailure": func(g *Group[string]) {
			if v := g.RecordFailure("k"); v != Counted {
				t.Errorf("failure: %v", v)
			}
		},
		"RecordSuccess": func(g *Group[string]) {
			if v := g.RecordSuccess("k"); v != Counted {
				t.Errorf("success: %v", v)
			}
		},
		"Reset": func(g *Group[string]) { g.Reset("k") },
		"Sweep": func(g *Group[string]) { g.Sweep() },
	}
	for name, op := range ops {
		t.Run(name, func(t *testing.T) {
			g := recovered(t, "k")
			dead := kill(t, g, "k")
			if s := g.State("k"); s != Closed {
				t.Errorf("state %v", s)
			}
			for k := range g.All() {
				t.Errorf("All yields the dead cell of %q", k)
			}
			op(g)
			if g.current().find("k") == dead {
				t.Error("the dead cell is still in the table")
			}
			if n, cells := g.current().linked.Load(), g.Len(); int(n) != cells {
				t.Errorf("%d cells are counted as linked, %d are", n, cells)
			}
		})
	}
}

// A cell's departure is recorded once, though many help, and those who come
// later do not void the permits given since.
func TestLateHelpersVoidNothing(t *testing.T) {
	g := recovered(t, "k")
	old := mustAllow(t, g, "other")
	dead := kill(t, g, "k")
	ks := g.current()
	ks.remove(dead)
	p := mustAllow(t, g, "k")
	first := ks.departures.last.Load()
	ks.remove(dead) // a helper that was stopped before it had begun
	ks.departures.append(dead.since.Load())
	if ks.departures.last.Load() != first {
		t.Fatal("one departure began two in the list")
	}
	if v := p.Failure(); v != Counted {
		t.Fatalf("verdict %v of a permit given after the departure", v)
	}
	if v := old.Failure(); v != Counted {
		t.Fatalf("verdict %v of another key's permit", v)
	}
}

// A call that a cell admitted stays good when the cell dies unchanged: its own
// departure does not void it, but that of a later cell does.
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
	c := g.current().find("k")
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

// A permit for an absent key that nobody reports for very long is late in the
// end, and keeps nothing alive.
func TestDeparturesAreDropped(t *testing.T) {
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
	depart(keptDepartures)
	if v := older.Failure(); v != Late {
		t.Fatalf("verdict %v after %d departures of other keys, want Late", v, 2*keptDepartures)
	}
	if n := old.since.next.Load(); n != old.since {
		t.Fatal("a dropped era still leads to later ones")
	}
	kept := 0
	l := &g.current().departures
	for d := l.oldest.Load(); d != nil; d = d.next.Load() {
		kept++
	}
	if kept > keptDepartures {
		t.Fatalf("%d departures are kept, want at most %d", kept, keptDepartures)
	}
}

// Many callers begin many departures, each several times at once: the list has each
// once, numbered without gaps.
func TestDeparturesAreAppendedOnce(t *testing.T) {
	const callers, count = 4, 500
	var l departures
	l.init(nil)
	first := l.last.Load()
	nodes := make([]*departure, count)
	for i := range nodes {
		nodes[i] = &departure{hash: uint64(i + 1)}
	}
	var wg sync.WaitGroup
	for caller := range callers {
		wg.Go(func() {
			for i := range nodes {
				// Two callers go up and two go down, and each asks for the
				// neighbour as well.
				if caller%2 == 1 {
					i = count - 1 - i
				}
				l.append(nodes[i])
				if n := nodes[i].number.Load(); n == 0 || l.last.Load().number.Load() < n {
					t.Errorf("era %d has not begun when begin returns", i)
				}
				l.append(nodes[(i+1)%count])
			}
		})
	}
	wg.Wait()
	seen := make(map[uint64]bool)
	n := uint64(1)
	for d := first.next.Load(); d != nil; d = d.next.Load() {
		if n++; seen[d.hash] || d.number.Load() != n {
			t.Fatalf("era %d of hash %d: number %d, seen before: %v", n, d.hash, d.number.Load(), seen[d.hash])
		}
		seen[d.hash] = true
	}
	if len(seen) != count {
		t.Fatalf("%d departures in the list, want %d", len(seen), count)
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
					c := g.current().find(1)
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

// Who has read the settings before an Update that remembers keys for longer still finds a
// key forgotten by them, and goes on.
func TestForgottenBySettingsOfBefore(t *testing.T) {
	for name, o := range map[string]Outcome{"failure": Failure, "success": Success} {
		g := MustNewGroup(GroupConfig[int]{Default: Config{Policy: Consecutive(2)}})
		g.RecordFailure(1)
		c := g.current().find(1)
		before := c.settings()
		c.touched.Store(int64(before.now() - 2*time.Hour))
		if err := g.Update(GroupConfig[int]{Default: Config{Policy: Consecutive(2)}, ForgetAfter: 24 * time.Hour}); err != nil {
			t.Fatal(err)
		}
		c.settings() // those of now
		done := make(chan step)
		go func() {
			was := word(c.word.Load())
			_, did := c.apply(was, was.stay(), result{outcome: o}, before)
			done <- did
		}()
		select {
		case did := <-done:
			if o == Failure && did.to.mode() != tombstone {
				t.Errorf("%s: %#x", name, did.to)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: the report does not end", name)
		}
	}
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
