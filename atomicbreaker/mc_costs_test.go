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

// never is a policy that is never met while costs are measured.
var never = Config{Policy: Consecutive(math.MaxInt32)}

// once is a policy that the first failure meets, for long.
var once = Config{Policy: Consecutive(1), OpenTimeout: 24 * time.Hour}

// plain is what the user of a Breaker does, after some of it was done before.
func plain(c Config, before, op func(*Breaker)) func() func(int) {
	return func() func(int) {
		b := MustNew(c)
		before(b)
		return func(int) { op(b) }
	}
}

// ofKey is what the user of a key of a Group does. The first call makes the
// group state.
func ofKey(c Config, before, op func(*Group[string])) func() func(int) {
	return func() func(int) {
		g := MustNewGroup(GroupConfig[string]{Default: c})
		g.Allow(k)
		before(g)
		return func(int) { op(g) }
	}
}

// What a healthy call does to shared words: it reads.
func TestCosts(t *testing.T) {
	var (
		nothing = func(*Breaker) {}
		ok      = func(b *Breaker) { p, _ := b.Allow(); p.Success() }
		fails   = func(b *Breaker) { p, _ := b.Allow(); p.Failure() }
	)
	mc.CheckCost(t, "Breaker: a call that succeeds", plain(Config{}, nothing, ok), mc.Cost{Loads: 2}, 0)
	mc.CheckCost(t, "Breaker: a call that fails, below the threshold", plain(never, nothing, fails), mc.Cost{Loads: 3, RMWs: 1}, 3, 15, 127)
	mc.CheckCost(t, "Breaker: the first success after failures", plain(never, fails, ok), mc.Cost{Loads: 4, RMWs: 1}, 0)
	mc.CheckCost(t, "Breaker: a failure, and then a success", plain(never, nothing, func(b *Breaker) { fails(b); ok(b) }), mc.Cost{Loads: 7, RMWs: 2}, 3.5, 14.38, 112.48)
	mc.CheckCost(t, "Breaker: a call that is rejected", plain(once, func(b *Breaker) { fails(b); b.Allow() }, func(b *Breaker) { b.Allow() }), mc.Cost{Loads: 4, RMWs: 1, Clock: 1}, 0)
	mc.CheckCost(t, "Breaker: RecordSuccess while healthy", plain(Config{}, nothing, func(b *Breaker) { b.RecordSuccess() }), mc.Cost{Loads: 1}, 0)
	mc.CheckCost(t, "Breaker: RecordFailure, below the threshold", plain(never, nothing, func(b *Breaker) { b.RecordFailure() }), mc.Cost{Loads: 3, RMWs: 1}, 3, 15, 127)
	mc.CheckCost(t, "Breaker: IsOpen", plain(never, nothing, func(b *Breaker) { b.IsOpen() }), mc.Cost{Loads: 2}, 0)
	mc.CheckCost(t, "Breaker: State", plain(never, nothing, func(b *Breaker) { b.State() }), mc.Cost{Loads: 2}, 0)

	totals := Config{RecordTotals: true}
	mc.CheckCost(t, "Breaker: a call that succeeds, with totals", plain(totals, nothing, ok), mc.Cost{Loads: 7, RMWs: 1}, 0)

	var (
		unused = func(*Group[string]) {}
		okK    = func(g *Group[string]) { p, _ := g.Allow(k); p.Success() }
		failsK = func(g *Group[string]) { p, _ := g.Allow(k); p.Failure() }
	)
	mc.CheckCost(t, "Group: a call that succeeds", ofKey(never, unused, okK), mc.Cost{Loads: 7}, 0)
	mc.CheckCost(t, "Group: the same with totals", ofKey(totals, unused, okK), mc.Cost{Loads: 11, RMWs: 1}, 0)
	mc.CheckCost(t, "Group: the same while another key fails", ofKey(never, func(g *Group[string]) { g.RecordFailure(another) }, okK), mc.Cost{Loads: 11}, 0)
	mc.CheckCost(t, "Group: the same while a key of the same stripe fails", ofKey(never, func(g *Group[string]) { g.RecordFailure(twin) }, okK), mc.Cost{Loads: 19, TableReads: 2}, 0)
	mc.CheckCost(t, "Group: the first failure of a key", ofKey(never, unused, failsK), mc.Cost{Loads: 19, Stores: 2, RMWs: 5, TableWrites: 1, Clock: 1}, 2, 33, 367.25)
	mc.CheckCost(t, "Group: a call that fails, below the threshold", ofKey(never, failsK, failsK), mc.Cost{Loads: 17, RMWs: 1, TableReads: 1, Clock: 1}, 3, 27.38, 278.61)
	mc.CheckCost(t, "Group: the first success after failures", ofKey(never, failsK, okK), mc.Cost{Loads: 20, Stores: 1, RMWs: 4, TableReads: 1, TableWrites: 1}, 0)
	mc.CheckCost(t, "Group: a call that is rejected", ofKey(once, func(g *Group[string]) { failsK(g); g.Allow(k) }, func(g *Group[string]) { g.Allow(k) }), mc.Cost{Loads: 13, RMWs: 1, TableReads: 1, Clock: 1}, 0)
	mc.CheckCost(t, "Group: RecordSuccess of a healthy key", ofKey(never, unused, func(g *Group[string]) { g.RecordSuccess(k) }), mc.Cost{Loads: 2}, 0)
	mc.CheckCost(t, "Group: RecordFailure, below the threshold", ofKey(never, failsK, func(g *Group[string]) { g.RecordFailure(k) }), mc.Cost{Loads: 10, RMWs: 1, TableReads: 1, Clock: 1}, 5.5, 30, 254)
	mc.CheckCost(t, "Group: IsOpen of a healthy key", ofKey(never, unused, func(g *Group[string]) { g.IsOpen(k) }), mc.Cost{Loads: 3}, 0)
	mc.CheckCost(t, "Group: IsOpen of an open key", ofKey(once, failsK, func(g *Group[string]) { g.IsOpen(k) }), mc.Cost{Loads: 6, TableReads: 1, Clock: 1}, 0)
}

// notifiedTo is what the user of a key of a Group with a listener does.
func notifiedTo(c Config, before, op func(*Group[string])) func() func(int) {
	return func() func(int) {
		g := MustNewGroup(GroupConfig[string]{Default: c, OnStateChange: func(string, Event) {}})
		g.Allow(k)
		before(g)
		return func(int) { op(g) }
	}
}

// With a listener, a healthy call and one that is counted cost what they cost
// without. A change of state has to be told.
func TestCostsWithAListener(t *testing.T) {
	listening := func(c Config) Config {
		c.OnStateChange = func(Event) {}
		return c
	}
	var (
		nothing = func(*Breaker) {}
		ok      = func(b *Breaker) { p, _ := b.Allow(); p.Success() }
		fails   = func(b *Breaker) { p, _ := b.Allow(); p.Failure() }
		trips   = func(b *Breaker) { fails(b); b.Reset() }
	)
	mc.CheckCost(t, "Breaker with a listener: a call that succeeds", plain(listening(never), nothing, ok), mc.Cost{Loads: 2}, 0)
	mc.CheckCost(t, "Breaker with a listener: a call that fails, below the threshold", plain(listening(never), nothing, fails), mc.Cost{Loads: 3, RMWs: 1}, 3, 15, 127)
	mc.CheckCost(t, "Breaker with a listener: a call that is rejected", plain(listening(once), func(b *Breaker) { fails(b); b.Allow() }, func(b *Breaker) { b.Allow() }), mc.Cost{Loads: 4, RMWs: 1, Clock: 1}, 0)
	mc.CheckCost(t, "Breaker: a call that trips, and Reset", plain(once, trips, trips), mc.Cost{Loads: 11, RMWs: 4, Clock: 1}, 4, 12, 124)
	mc.CheckCost(t, "Breaker with a listener: a call that trips, and Reset", plain(listening(once), trips, trips), mc.Cost{Loads: 19, Stores: 2, RMWs: 8, Clock: 2}, 8.75, 11.91, 94.61)

	var (
		unused = func(*Group[string]) {}
		okK    = func(g *Group[string]) { p, _ := g.Allow(k); p.Success() }
		failsK = func(g *Group[string]) { p, _ := g.Allow(k); p.Failure() }
		tripsK = func(g *Group[string]) { g.RecordFailure(k); g.RecordSuccess(k) }
	)
	mc.CheckCost(t, "Group with a listener: a call that succeeds", notifiedTo(never, unused, okK), mc.Cost{Loads: 7}, 0)
	mc.CheckCost(t, "Group with a listener: the same while another key fails", notifiedTo(never, func(g *Group[string]) { g.RecordFailure(another) }, okK), mc.Cost{Loads: 11}, 0)
	mc.CheckCost(t, "Group with a listener: the same while a key of the same stripe fails", notifiedTo(never, func(g *Group[string]) { g.RecordFailure(twin) }, okK), mc.Cost{Loads: 19, TableReads: 2}, 0)
	mc.CheckCost(t, "Group with a listener: a call that fails, below the threshold", notifiedTo(never, failsK, failsK), mc.Cost{Loads: 17, RMWs: 1, TableReads: 1, Clock: 1}, 3, 27.38, 278.61)
	mc.CheckCost(t, "Group: a failure that trips, and RecordSuccess", ofKey(once, tripsK, tripsK), mc.Cost{Loads: 27, Stores: 5, RMWs: 11, Blocking: 2, TableReads: 1, TableWrites: 2, Clock: 3}, 14.5, 20, 20.88)
	mc.CheckCost(t, "Group with a listener: a failure that trips, and RecordSuccess", notifiedTo(once, tripsK, tripsK), mc.Cost{Loads: 39, Stores: 7, RMWs: 15, Blocking: 2, TableReads: 1, TableWrites: 2, Clock: 4}, 20.06, 10.29, 10.8)
}

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
