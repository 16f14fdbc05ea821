//go:build modelcheck

package atomicbreaker

import (
	"math"
	"testing"
	"time"

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
