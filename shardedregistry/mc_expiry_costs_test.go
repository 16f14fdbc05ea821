//go:build modelcheck

package shardedregistry_test

import (
	"testing"
	"time"

	"github.com/latchfree/latchfree/internal/mc"
	"github.com/latchfree/latchfree/shardedregistry"
)

// leased returns a registry with a key that has a time to live. Its timers do not run: the model does not say what starting one costs.
func leased(life time.Duration) *names {
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 64, TTL: func(string, int) time.Duration { return life }})
	shardedregistry.PauseTimers(r)
	r.Put("a", 7)
	return r
}

// What a time to live costs: those who read, nothing; a change that puts the deadline off, and
// a renewal, no mutex. Those who renew one key all change its deadline.
func TestExpiryCosts(t *testing.T) {
	shared := func(op func(*names)) func() func(int) {
		return func() func(int) {
			r := leased(time.Hour)
			return func(int) { op(r) }
		}
	}
	mc.CheckCost(t, "Get", shared(func(r *names) { r.Get("a") }), mc.Cost{Loads: 2, TableReads: 1}, 0)
	mc.CheckCost(t, "Put that puts the deadline off", shared(func(r *names) { r.Put("a", 8) }), mc.Cost{Loads: 6, RMWs: 1, TableReads: 1, Clock: 1}, 3, 10.5, 98.15)
	mc.CheckCost(t, "Renew", shared(func(r *names) { r.Renew("a", 1, time.Hour) }), mc.Cost{Loads: 5, RMWs: 1, TableReads: 1, Clock: 1}, 1.5, 1.88, 1.98)

	r := leased(time.Hour)
	other := leased(forever)
	check := func(name string, do func(), want mc.Cost) {
		t.Helper()
		if got := mc.Measure(do); got != want {
			t.Errorf("%s costs %v, want %v", name, got, want)
		}
	}
	check("Create", func() { r.Create("b", 1) }, mc.Cost{Loads: 8, Stores: 1, RMWs: 2, Blocking: 2, TableReads: 1, TableWrites: 1, Clock: 1})
	check("Delete", func() { r.Delete("b") }, mc.Cost{Loads: 7, Stores: 1, RMWs: 3, Blocking: 2, TableReads: 1, TableWrites: 1})
	check("Create of what does not expire", func() { other.Create("b", 1) }, mc.Cost{Loads: 7, RMWs: 2, TableReads: 1, TableWrites: 1})
	check("Renew that brings the deadline forward", func() { r.Renew("a", 1, time.Minute) }, mc.Cost{Loads: 6, Stores: 1, RMWs: 1, Blocking: 2, TableReads: 1, Clock: 1})
}
