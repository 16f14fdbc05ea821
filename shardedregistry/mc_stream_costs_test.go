//go:build modelcheck

package shardedregistry_test

import (
	"testing"

	"github.com/latchfree/latchfree/internal/mc"
	"github.com/latchfree/latchfree/shardedregistry"
)

// What Transitions cost a change when there is no stream, and with one. A read
// costs what it costs without.
func TestStreamCosts(t *testing.T) {
	r := streamed(with7)
	check := func(name string, do func(), want mc.Cost) {
		t.Helper()
		if got := mc.Measure(do); got != want {
			t.Errorf("%s costs %v, want %v", name, got, want)
		}
	}
	a := func() { r.Put("a", 8) }
	b := func() { r.Put("b", 8); r.Delete("b") }
	a()
	b()
	check("a Get", func() { r.Get("a") }, mc.Cost{Loads: 2, TableReads: 1})
	check("a Put", a, mc.Cost{Loads: 7, Stores: 3, RMWs: 1, TableReads: 1})
	check("a Put and a Delete of an absent key", b, mc.Cost{Loads: 19, Stores: 6, RMWs: 5, TableReads: 2, TableWrites: 2})
	s := shardedregistry.OpenStream(r, plenty)
	a()
	check("a Put of which a stream has a slip", a, mc.Cost{Loads: 20, Stores: 2, RMWs: 3, TableReads: 2})
	s.Drain()
	check("a Put of which a stream is told", a, mc.Cost{Loads: 22, Stores: 3, RMWs: 5, TableReads: 2})
	check("the look of a stream at one change", func() { s.Drain() }, mc.Cost{Loads: 15, Stores: 3, RMWs: 3, TableReads: 1})
	slow := shardedregistry.OpenStream(r, plenty)
	a()
	s.Drain()
	a()
	check("the look of a stream where another is slower", func() { s.Drain() }, mc.Cost{Loads: 17, Stores: 3, RMWs: 3, TableReads: 1})
	slow.Leave()
	s.Leave()
	check("a Put when it has left", a, mc.Cost{Loads: 7, Stores: 3, RMWs: 1, TableReads: 1})
	stuck := shardedregistry.OpenStream(r, 1)
	a()
	a()
	check("a Put when it has lagged", a, mc.Cost{Loads: 7, Stores: 3, RMWs: 1, TableReads: 1})
	stuck.Leave()
}
