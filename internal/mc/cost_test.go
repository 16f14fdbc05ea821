//go:build modelcheck

package mc_test

import (
	"testing"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/mc"
	"github.com/latchfree/latchfree/internal/table"
)

func TestMeasure(t *testing.T) {
	var n atomics.Uint64
	var p atomics.Pointer[int]
	var mu atomics.Mutex
	m := table.New[int, int](func(k int, _ uint64) uint64 { return uint64(k) }, 0)
	one := 1
	for name, c := range map[string]struct {
		f    func()
		want mc.Cost
	}{
		"nothing":         {func() {}, mc.Cost{}},
		"load":            {func() { n.Load(); p.Load() }, mc.Cost{Loads: 2}},
		"store":           {func() { n.Store(1) }, mc.Cost{Stores: 1}},
		"failed cas":      {func() { n.CompareAndSwap(7, 8) }, mc.Cost{RMWs: 1}},
		"rmw":             {func() { n.Add(1); n.Or(1); p.Swap(nil) }, mc.Cost{RMWs: 3}},
		"mutex":           {func() { mu.Lock(); mu.Unlock() }, mc.Cost{Blocking: 2}},
		"clock":           {func() { atomics.Now() }, mc.Cost{Clock: 1}},
		"table hit":       {func() { m.Load(1) }, mc.Cost{TableReads: 1}},
		"table insert":    {func() { m.LoadOrStore(1, &one); m.LoadAndDelete(1) }, mc.Cost{TableReads: 2, TableWrites: 2}},
		"table no insert": {func() { m.LoadAndDelete(2) }, mc.Cost{TableReads: 1}},
	} {
		if got := mc.Measure(c.f); got != c.want {
			t.Errorf("%s costs %v, want %v", name, got, c.want)
		}
	}
}

func TestTransfers(t *testing.T) {
	type counters struct {
		shared atomics.Uint64
		_      atomics.CacheLinePad
		own    [64]struct {
			atomics.Uint64
			_ atomics.CacheLinePad
		}
		beside [64]atomics.Uint64 // eight to a line
		_      atomics.CacheLinePad
	}
	for name, c := range map[string]struct {
		op       func(*counters, int)
		at2      float64
		at64     float64
		explains string
	}{
		"load":       {func(c *counters, _ int) { c.shared.Load() }, 0, 0, "everyone has a copy"},
		"add":        {func(c *counters, _ int) { c.shared.Add(1) }, 1, 1, "the line moves to every writer"},
		"own line":   {func(c *counters, core int) { c.own[core].Add(1) }, 0, 0, "every writer owns its line"},
		"false":      {func(c *counters, core int) { c.beside[core].Add(1) }, 1, 1, "neighbours share a line"},
		"load + add": {func(c *counters, _ int) { c.shared.Load(); c.shared.Add(1) }, 1.5, 2, "fetched to read, then to write"},
	} {
		for cores, want := range map[int]float64{1: 0, 2: c.at2, 64: c.at64} {
			got := mc.Transfers(cores, func() *counters { return new(counters) }, c.op)
			if got < want-0.51 || got > want+0.51 || (want == 0) != (got == 0) {
				t.Errorf("%s at %d cores: %.2f transfers, want about %.2f: %s", name, cores, got, want, c.explains)
			}
		}
	}
}
