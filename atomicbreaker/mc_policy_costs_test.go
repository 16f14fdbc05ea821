//go:build modelcheck

package atomicbreaker

import (
	"math"
	"testing"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker/internal/ring"
	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/tools/mc"
)

// Policies that are never met while costs are measured.
var (
	neverKOfN  = Config{Policy: KOfN(32, 32)}
	neverRate  = Config{Policy: FailureRate(1, math.MaxInt32, time.Minute)}
	neverCount = Config{Policy: FailureCount(ring.Exact, time.Minute)}
	neverSlow  = Config{Policy: SlowRate(1, time.Hour, math.MaxInt32, time.Minute)}
	neverAny   = Config{Policy: AnyOf(Consecutive(math.MaxInt32), FailureRate(1, math.MaxInt32, time.Minute))}
)

// What each policy costs, and what is done by hand. Windows make a call that
// succeeds write to a line of its own processor; in a Group those of a key that
// fails share one. A failure sums up all.
func TestCostsOfPolicies(t *testing.T) {
	var (
		nothing = func(*Breaker) {}
		ok      = func(b *Breaker) { p, _ := b.Allow(); p.Success() }
		fails   = func(b *Breaker) { p, _ := b.Allow(); p.Failure() }
		trips   = func(b *Breaker) { p, _ := b.Allow(); p.Trip(0); b.Reset() }
		forces  = func(b *Breaker) { b.ForceOpen() }
		asks    = func(b *Breaker) { b.Allow() }
		latch   = Config{Policy: Consecutive(1), OpenTimeout: -1}
		shadow  = Config{Policy: Consecutive(1), OpenTimeout: 24 * time.Hour, Shadow: true}
	)
	check := func(name string, c Config, before, op func(*Breaker), cost mc.Cost, moves ...float64) {
		t.Helper()
		mc.CheckCost(t, "Breaker, "+name, plain(c, before, op), cost, moves...)
	}
	check("KOfN: a call that succeeds", neverKOfN, nothing, ok, mc.Cost{Loads: 2}, 0)
	check("KOfN: one after a failure", Config{Policy: KOfN(2, 2)}, fails, ok, mc.Cost{Loads: 10, RMWs: 3}, 0)
	check("KOfN: a failure, and then a success", neverKOfN, nothing, func(b *Breaker) { fails(b); ok(b) }, mc.Cost{Loads: 16, RMWs: 6}, 8.25, 58.38, 516.59)
	check("FailureRate: a call that succeeds", neverRate, ok, ok, mc.Cost{Loads: 8, RMWs: 1, Clock: 1}, 0)
	check("FailureRate: a call that fails", neverRate, ok, fails, mc.Cost{Loads: 1033, RMWs: 1, Clock: 2}, 2, 8, 64)
	check("FailureCount: a call that succeeds", neverCount, fails, ok, mc.Cost{Loads: 2}, 0)
	check("SlowRate: a call that succeeds", neverSlow, ok, ok, mc.Cost{Loads: 9, RMWs: 1, Clock: 3}, 0)
	check("Consecutive or FailureRate: a call that succeeds", neverAny, ok, ok, mc.Cost{Loads: 8, RMWs: 1, Clock: 1}, 0)
	check("Trip by a call, and Reset", once, trips, trips, mc.Cost{Loads: 10, RMWs: 4, Clock: 1}, 4, 8.25, 64.47)
	check("Trip, and Reset", once, trips, func(b *Breaker) { b.Trip(0); b.Reset() }, mc.Cost{Loads: 8, RMWs: 4, Clock: 1}, 4, 20.43, 126.46)
	check("ForceOpen of what is", once, forces, forces, mc.Cost{Loads: 2}, 0)
	check("a call that is rejected by force", once, func(b *Breaker) { forces(b); asks(b) }, asks, mc.Cost{Loads: 4, RMWs: 1, Clock: 1}, 0)
	check("a call while Disabled", once, func(b *Breaker) { b.Disable() }, fails, mc.Cost{Loads: 6}, 0)
	check("a call that a shadow lets through", shadow, func(b *Breaker) { fails(b); asks(b) }, ok, mc.Cost{Loads: 4, RMWs: 1, Clock: 1}, 0)

	counted := plain(once, trips, func(b *Breaker) { b.Stats() })()
	if cost, want := mc.Measure(func() { counted(0) }), (mc.Cost{Loads: 2 + 6*atomics.Stripes()}); cost != want {
		t.Errorf("Stats cost %v, want %v", cost, want)
	}

	var (
		unused = func(*Group[string]) {}
		okK    = func(g *Group[string]) { p, _ := g.Allow(k); p.Success() }
		failsK = func(g *Group[string]) { p, _ := g.Allow(k); p.Failure() }
	)
	checkKey := func(name string, c Config, before, op func(*Group[string]), cost mc.Cost, moves ...float64) {
		t.Helper()
		mc.CheckCost(t, "Group, "+name, ofKey(c, before, op), cost, moves...)
	}
	checkKey("KOfN: a call that succeeds", neverKOfN, unused, okK, mc.Cost{Loads: 7}, 0)
	checkKey("FailureRate: a call of a healthy key", neverRate, unused, okK, mc.Cost{Loads: 7}, 0)
	checkKey("FailureRate: the first failure of a key", neverRate, unused, failsK, mc.Cost{Loads: 45, Stores: 2, RMWs: 7, TableWrites: 1, Clock: 2}, 4, 10.75, 66.97)
	checkKey("FailureRate: a call of a failing key that succeeds", neverRate, failsK, okK, mc.Cost{Loads: 24, RMWs: 1, TableReads: 1, Clock: 1}, 0)
	checkKey("FailureRate: a call that fails", neverRate, failsK, failsK, mc.Cost{Loads: 41, RMWs: 1, TableReads: 1, Clock: 2}, 4, 10.75, 66.97)
	checkKey("FailureCount: a call of a failing key that succeeds", neverCount, failsK, okK, mc.Cost{Loads: 22, TableReads: 1, Clock: 1}, 0)
	checkKey("FailureCount: Sweep of a failing key", neverCount, failsK, func(g *Group[string]) { g.Sweep() }, mc.Cost{Loads: 22, TableReads: 2, Clock: 1}, 0)
	checkKey("SlowRate: a call of a healthy key", neverSlow, unused, okK, mc.Cost{Loads: 15, Clock: 2}, 0)
	checkKey("FailureCount: a call that fails", neverCount, failsK, failsK, mc.Cost{Loads: 41, RMWs: 1, TableReads: 1, Clock: 2}, 4, 10.75, 66.97)
	checkKey("Consecutive or FailureRate: a call that fails", neverAny, failsK, failsK, mc.Cost{Loads: 40, RMWs: 2, TableReads: 1, Clock: 3}, 6, 14.75, 72.72)
	checkKey("Trip of a key that is open", latch, failsK, func(g *Group[string]) { g.Trip(k, 0) }, mc.Cost{Loads: 7, TableReads: 1, Clock: 2}, 0)
	checkKey("a call that is rejected by force", once, func(g *Group[string]) { g.ForceOpen(k); g.Allow(k) }, func(g *Group[string]) { g.Allow(k) }, mc.Cost{Loads: 13, RMWs: 1, TableReads: 1, Clock: 1}, 0)
}
