//go:build modelcheck

package mc_test

import (
	"testing"
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/table"
	"github.com/latchfree/latchfree/internal/tools/mc"
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
		"nothing":    {func() {}, mc.Cost{}},
		"load":       {func() { n.Load(); p.Load() }, mc.Cost{Loads: 2}},
		"store":      {func() { n.Store(1) }, mc.Cost{Stores: 1}},
		"failed cas": {func() { n.CompareAndSwap(7, 8) }, mc.Cost{RMWs: 1}},
		"rmw":        {func() { n.Add(1); n.Or(1); p.Swap(nil) }, mc.Cost{RMWs: 3}},
		//lint:ignore SA2001 nothing is guarded
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

// What an operation does may depend on the time since another, and no count on the machine.
func TestTimeThatIsMeasuredIsOfReadings(t *testing.T) {
	since := func(begun time.Time) time.Duration {
		for real := time.Now(); time.Since(real) < time.Millisecond; {
		}
		return atomics.Since(begun)
	}
	mc.CheckCost(t, "an operation that looks at the clock", func() func(int) {
		before := atomics.Now()
		since(before)
		return func(int) {
			if d := atomics.Since(before); d >= time.Millisecond {
				t.Errorf("%v have passed", d)
			}
		}
	}, mc.Cost{Clock: 1}, 0)
	var d time.Duration
	if mc.Measure(func() { d = since(atomics.Now()) }); d <= 0 || d >= time.Millisecond {
		t.Errorf("%v have passed from one reading to the next", d)
	}
	if d := since(atomics.Now()); d < time.Millisecond {
		t.Errorf("%v have passed after it was measured", d)
	}
}

// counters are words that cores share in every way.
type counters struct {
	shared atomics.Uint64
	_      atomics.CacheLinePad
	own    [64]struct {
		atomics.Uint64
		_ atomics.CacheLinePad
	}
	beside [64]atomics.Uint64 // eight to a line
	_      atomics.CacheLinePad
	table  *table.Table[int, int]
}

func newCounters() *counters {
	c := &counters{table: table.New[int, int](func(k int, _ uint64) uint64 { return uint64(k) }, 0)}
	c.table.Swap(1, new(int))
	return c
}

func TestTransfers(t *testing.T) {
	for _, c := range []struct {
		name     string
		op       func(*counters, int)
		at2      float64
		at64     float64
		explains string
	}{
		{"load", func(c *counters, _ int) { c.shared.Load() }, 0, 0, "everyone has a copy"},
		{"add", func(c *counters, _ int) { c.shared.Add(1) }, 1, 1, "the line moves to every writer"},
		{"failing cas", func(c *counters, _ int) { c.shared.CompareAndSwap(1, 2) }, 1, 1, "it takes the line all the same"},
		{"own line", func(c *counters, core int) { c.own[core].Add(1) }, 0, 0, "every writer owns its line"},
		{"false", func(c *counters, core int) { c.beside[core].Add(1) }, 1, 1, "neighbours share a line"},
		{"load + add", func(c *counters, _ int) { c.shared.Load(); c.shared.Add(1) }, 1.5, 127.0 / 64, "fetched to read, then to write"},
		{"hit", func(c *counters, _ int) { c.table.LoadOrStore(1, nil) }, 0, 0, "a table looks first"},
		{"store in a table", func(c *counters, _ int) { c.table.Swap(1, new(int)) }, 1, 1, "the key's line moves to every writer"},
	} {
		for cores, want := range map[int]float64{1: 0, 2: c.at2, 64: c.at64} {
			if got := mc.Transfers(cores, newCounters, c.op); got != want {
				t.Errorf("%s at %d cores: %v transfers, want %v: %s", c.name, cores, got, want, c.explains)
			}
		}
	}
}

// Words of one object are in one line if they are close in it, wherever the
// allocator puts the object, and words of two objects never are.
func TestLinesAreThoseOfObjects(t *testing.T) {
	type small struct{ a, b, _ atomics.Uint64 }
	type tiny struct{ a atomics.Uint32 }
	type wide struct { // 80 bytes, whose objects begin anywhere in a line
		a    atomics.Uint64
		_    [7]*int
		b, _ atomics.Uint64
	}
	for range 20 {
		garbage := make([]*wide, 5)
		for i := range garbage {
			garbage[i] = new(wide)
		}
		if got := mc.Transfers(2, func() *small { return new(small) }, func(s *small, core int) {
			[]*atomics.Uint64{&s.a, &s.b}[core].Add(1)
		}); got != 1 {
			t.Fatalf("neighbours move %v lines, want 1", got)
		}
		if got := mc.Transfers(2, func() *wide { return new(wide) }, func(w *wide, core int) {
			[]*atomics.Uint64{&w.a, &w.b}[core].Add(1)
		}); got != 0 {
			t.Fatalf("words in two lines of an object move %v lines, want 0", got)
		}
		if got := mc.Transfers(2, func() [2]*small { return [2]*small{new(small), new(small)} }, func(s [2]*small, core int) {
			s[core].a.Add(1)
		}); got != 0 {
			t.Fatalf("two objects move %v lines, want 0", got)
		}
		if got := mc.Transfers(2, func() [2]*tiny { return [2]*tiny{new(tiny), new(tiny)} }, func(s [2]*tiny, core int) {
			s[core].a.Add(1)
		}); got != 0 {
			t.Fatalf("two tiny objects move %v lines, want 0", got)
		}
	}
}

// A word that is set before others know it brings its line into the cache of its core.
func TestTransfersOfWhatIsNew(t *testing.T) {
	type small struct{ p atomics.Pointer[int] }
	for name, c := range map[string]struct {
		op   func(s *small)
		want float64
	}{
		"set":                    {func(s *small) { atomics.InitPointer(&s.p, nil) }, 1},
		"set, read and replaced": {func(s *small) { atomics.InitPointer(&s.p, nil); s.p.Load(); s.p.Store(new(int)) }, 1},
		"read and replaced":      {func(s *small) { s.p.Load(); s.p.Store(new(int)) }, 2},
	} {
		if got := mc.Transfers(2, func() int { return 0 }, func(int, int) { c.op(new(small)) }); got != c.want {
			t.Errorf("%s: %v lines move, want %v", name, got, c.want)
		}
	}
	if got := mc.Measure(func() { atomics.InitPointer(new(atomics.Pointer[int]), nil) }); got != (mc.Cost{}) {
		t.Errorf("to set a word costs %v, want nothing", got)
	}
}

func TestCheckCost(t *testing.T) {
	read := func() func(int) { c := newCounters(); return func(int) { c.shared.Load() } }
	add := func() func(int) { c := newCounters(); return func(int) { c.shared.Load(); c.shared.Add(1) } }
	mc.CheckCost(t, "a load", read, mc.Cost{Loads: 1}, 0)
	mc.CheckCost(t, "an addition", add, mc.Cost{Loads: 1, RMWs: 1}, 1.5, 1.88, 1.98)
	probe := &recorder{TB: t}
	mc.CheckCost(probe, "a load", read, mc.Cost{Loads: 2}, 0, 0, 0.01)
	want := 2
	if testing.Short() {
		want = 1 // moves are not checked
	}
	if len(probe.errors) != want {
		t.Errorf("wrong costs are answered by %d errors, want %d", len(probe.errors), want)
	}
}

// Limits are those of a normal build while costs are measured, and only then.
func TestLimitsWhileMeasuring(t *testing.T) {
	limit := func() int { return atomics.Limit(100, 3) }
	measured := 0
	mc.Measure(func() { measured = limit() })
	mc.Transfers(2, func() int { return limit() }, func(limit, _ int) {
		if limit != 100 {
			panic("a small limit")
		}
	})
	if measured != 100 || limit() != 3 {
		t.Errorf("the limit is %d while costs are measured, and %d otherwise; want 100 and 3", measured, limit())
	}
}
