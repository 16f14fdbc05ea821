//go:build modelcheck

package atomicbreaker

import (
	"testing"

	"github.com/latchfree/latchfree/internal/mc"
)

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
