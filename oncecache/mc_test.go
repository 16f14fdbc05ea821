//go:build modelcheck

package oncecache_test

import (
	"context"
	"testing"

	"github.com/latchfree/latchfree/internal/table"
	"github.com/latchfree/latchfree/internal/tools/mc"
	"github.com/latchfree/latchfree/oncecache"
)

// What comes before a protocol.
var (
	unused = []action{}
	empty  = []action{get}
	with7  = []action{set(7)}
)

// Everything that two or three callers of one key may do to each other. What
// is required is written at protocol; nobody waits for ever, because that
// would be a deadlock.
func TestProtocols(t *testing.T) {
	type threads = [][]action
	for _, tt := range []struct {
		name    string
		first   []action
		threads threads
	}{
		{"first use", unused, threads{{create(1)}, {create(2)}}},
		{"first use by Set", unused, threads{{set(1)}, {get, set(2)}, {all}}},
		{"two create", empty, threads{{create(1, inError, inPanic, inGoexit)}, {create(2, inError, inPanic, inGoexit)}}},
		{"three create", empty, threads{{create(1, inError)}, {create(2, inError)}, {create(3)}}},
		{"retry after a failure", empty, threads{{create(1, inError, inPanic), create(2)}, {create(3, inError), get}}},

		{"Set", empty, threads{{create(1, inError, inPanic, inGoexit)}, {create(2)}, {set(5)}}},
		{"Set and Get", empty, threads{{create(1, inError)}, {set(5)}, {get, get}}},
		{"Set and Set", empty, threads{{create(1, inError)}, {set(5)}, {set(6)}}},
		{"Set, Set and a waiter", empty, threads{{create(1), get}, {create(2)}, {set(5), set(6)}}},
		{"Set of a value", with7, threads{{create(1)}, {set(5)}, {set(6), get}}},

		{"Delete", empty, threads{{create(1, inError, inPanic, inGoexit)}, {create(2)}, {remove}}},
		{"Delete and Get", empty, threads{{create(1, inError)}, {remove}, {get, get}}},
		{"Delete and Delete", empty, threads{{create(1, inError)}, {remove}, {remove, get}}},
		{"Delete and Set", empty, threads{{create(1, inError)}, {remove}, {set(5), get}}},
		{"Set, Delete and a waiter", empty, threads{{create(1)}, {create(2)}, {set(5), remove}}},
		{"Delete of a value", with7, threads{{create(1)}, {remove, get}, {set(5)}}},

		{"SetIfAbsent", empty, threads{{create(1, inError)}, {setIfAbsent(5), get}, {get}}},
		{"SetIfAbsent and Delete", empty, threads{{create(1, inError)}, {setIfAbsent(5)}, {remove}}},
		{"SetIfAbsent twice", empty, threads{{setIfAbsent(5)}, {setIfAbsent(6)}, {create(1)}}},
		{"CompareAndDelete", empty, threads{{create(1)}, {compareAndDelete(1), get}, {set(1)}}},
		{"CompareAndDelete twice", with7, threads{{compareAndDelete(7)}, {compareAndDelete(7)}, {create(7)}}},
		{"CompareAndDelete of equal values", with7, threads{{compareAndDelete(7)}, {set(7), set(7)}}},
		{"CompareAndDelete and Set", with7, threads{{compareAndDelete(7)}, {set(5)}, {get}}},
		{"CompareAndDelete, Delete and a new creation", with7, threads{{compareAndDelete(7)}, {remove, create(1)}}},
		{"CompareAndDelete and Delete", empty, threads{{create(1)}, {compareAndDelete(1)}, {remove, set(1)}}},
		{"All", empty, threads{{create(1, inError)}, {all}, {set(5)}}},
		{"All of a value", with7, threads{{all}, {remove, create(1)}}},
	} {
		t.Run(tt.name, func(t *testing.T) { protocol(t, tt.first, tt.threads...) })
	}
	t.Run("Delete, Set and a waiter", func(t *testing.T) {
		protocolOf(t, twice, empty, threads{{create(1)}, {create(2)}, {remove, set(5)}}...)
	})
}

// Create functions that use the cache for their own key.
func TestProtocolsWithin(t *testing.T) {
	type threads = [][]action
	for _, tt := range []struct {
		name    string
		threads threads
	}{
		{"Delete", threads{{createWith([]action{remove, get}, 1, inError)}, {create(2)}}},
		{"Set", threads{{createWith([]action{set(5), get}, 1, inPanic)}, {create(2)}}},
		{"Delete and GetOrCreate", threads{{createWith([]action{remove, create(3)}, 1, inError)}, {create(2)}}},
		{"GetOrCreate, or Set", threads{{createWith([]action{create(3)}, 1, inError)}, {set(5)}}},
	} {
		t.Run(tt.name, func(t *testing.T) { protocol(t, empty, tt.threads...) })
	}
}

// dictionary is the report's, of numbered engines: see defect_report_test.go.
type dictionary struct{ engines *table.Table[string, int] }

func newDictionary() *dictionary {
	keys := table.NewKeys[string]()
	return &dictionary{table.New[string, int](keys.Hasher("dictionary"), 0)}
}

// GetOrCreate is what both modules do.
func (d *dictionary) GetOrCreate(url string, create func() (*int, error)) (*int, error) {
	if e := d.engines.Load(url); e != nil {
		return e, nil
	}
	e, err := create()
	d.engines.Swap(url, e)
	return e, err
}

// oneEngine is what the report wants: two modules that ask for the engine of
// one URL hold one engine.
func oneEngine[C interface {
	GetOrCreate(string, func() (*int, error)) (*int, error)
}](fresh func() C) func(*mc.M) {
	return func(m *mc.M) {
		engines := fresh()
		var held [2]*int
		for module := range held {
			m.Go(func() {
				held[module], _ = engines.GetOrCreate(memory, func() (*int, error) { return new(int), nil })
			})
		}
		m.Final(func() {
			if held[0] == nil || held[0] != held[1] {
				m.Failf("two engines for one URL")
			}
		})
	}
}

// The window of the report.
var modules = mc.Config{Operations: "GetOrCreate ∥ GetOrCreate"}

func TestReport_DictionaryMakesTwoEngines(t *testing.T) {
	mc.Refute(t, modules, "two engines for one URL", oneEngine(newDictionary))
}

func TestReport_CacheMakesOneEngine(t *testing.T) {
	mc.Check(t, modules, oneEngine(func() *oncecache.Cache[string, *int] { return new(oncecache.Cache[string, *int]) }))
}

// Whoever looks at a cache that is about to be used or refreshed for the first time, sees what was there before, or what comes.
func TestLooksBeforeAll(t *testing.T) {
	type cache = *oncecache.Cache[int, int]
	flights := func(c cache) (n int) {
		for range c.InFlight() {
			n++
		}
		return n
	}
	known := func(c cache) (n int) {
		if _, ok := c.Info(1); ok {
			n++
		}
		return n
	}
	for name, tt := range map[string]struct {
		first, next func(c cache)
		look        func(c cache) int
		most        int
	}{
		"Set and Len":          {nil, func(c cache) { c.Set(1, 1) }, cache.Len, 1},
		"Set and Stats":        {nil, func(c cache) { c.Set(1, 1) }, func(c cache) int { return int(c.Stats().Created) }, 0},
		"Set and InFlight":     {nil, func(c cache) { c.Set(1, 1) }, flights, 0},
		"Refresh and Len":      {func(c cache) { c.Set(1, 1) }, refresh, cache.Len, 2}, // one begins
		"Refresh and InFlight": {func(c cache) { c.Set(1, 1) }, refresh, flights, 1},
		"Set and Info":         {nil, func(c cache) { c.Set(1, 1) }, known, 1},
		"Refresh, which fails, and Info": {func(c cache) { c.Set(1, 1) }, func(c cache) {
			_, _ = c.Refresh(context.Background(), 1, anew(func(context.Context, int) (int, error) { return failing() }))
		}, known, 1},
	} {
		t.Run(name, func(t *testing.T) {
			mc.Check(t, mc.Config{Operations: name + ", the first"}, func(m *mc.M) {
				var c oncecache.Cache[int, int]
				if tt.first != nil {
					tt.first(&c)
				}
				m.Go(func() { tt.next(&c) })
				m.Go(func() {
					if n := tt.look(&c); n > tt.most {
						m.Failf("%d, of at most %d", n, tt.most)
					}
				})
			})
		})
	}
}

func refresh(c *oncecache.Cache[int, int]) {
	_, _ = c.Refresh(context.Background(), 1, anew(makesTwo))
}
