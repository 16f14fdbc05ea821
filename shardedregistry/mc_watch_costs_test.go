//go:build modelcheck

package shardedregistry_test

import (
	"testing"

	"github.com/latchfree/latchfree/internal/mc"
	"github.com/latchfree/latchfree/shardedregistry"
)

// What a change costs while somebody watches or waits. Without, it is one load
// more: see TestCosts.
func TestWatchCosts(t *testing.T) {
	put := func(r *names) mc.Cost { return mc.Measure(func() { r.Put("a", 8) }) }
	check := func(name string, got, want mc.Cost) {
		t.Helper()
		if got != want {
			t.Errorf("a Put %s costs %v, want %v", name, got, want)
		}
	}

	r := newNames()
	w := shardedregistry.Subscribe(r)
	r.Put("a", 8)
	check("of which a watcher has a slip", put(r), mc.Cost{Loads: 7, RMWs: 1, TableReads: 2})
	w.Drain()
	check("of which a watcher is told", put(r), mc.Cost{Loads: 9, RMWs: 3, TableReads: 2})
	w.Drain()
	woken := w.Doze()
	r.Put("a", 8)
	if !woken() {
		t.Error("a Put did not wake a watcher that slept")
	}
	w.Drain()
	check("of which a watcher is told that has slept", put(r), mc.Cost{Loads: 9, RMWs: 3, TableReads: 2})
	w.Drain()
	second := shardedregistry.Subscribe(r)
	r.Put("a", 8)
	w.Drain()
	second.Drain()
	check("of which two watchers are told", put(r), mc.Cost{Loads: 13, RMWs: 5, TableReads: 2})
	check("of which two watchers have slips", put(r), mc.Cost{Loads: 9, RMWs: 1, TableReads: 2})
	second.Leave()
	w.Leave()
	check("when they have left", put(r), mc.Cost{Loads: 4, RMWs: 1, TableReads: 1})

	leave := shardedregistry.Await(r)
	check("while others wait for another key", put(r), mc.Cost{Loads: 5, RMWs: 1, TableReads: 2})
	leave()
	check("when nobody waits", put(r), mc.Cost{Loads: 4, RMWs: 1, TableReads: 1})
}
