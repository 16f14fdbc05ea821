package peers

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/latchfree/latchfree/bench/internal/load"
)

// tables lists what could hold the entities of a registry.
var tables = []struct {
	impl string
	make func() units
}{
	{"syncmap", func() units { return new(syncUnits) }},
	{"xsync3", func() units { return newXsync3Units() }},
	{"xsync4", func() units { return newXsync4Units() }},
	{"latchfree", func() units { return newLines() }},
}

// filled returns a function that returns a table with names, always the same.
func filled(b *testing.B, make func() units, names []string) func() units {
	return sync.OnceValue(func() units {
		t := make()
		for _, name := range names {
			if u := (&unit{value: &action{Name: name}}); !t.add(named(u, name)) {
				b.Fatal("a key is there already")
			}
		}
		return t
	})
}

func named(u *unit, name string) *unit {
	u.Key = name
	return u
}

// BenchmarkTableLoad finds units and reads their values.
func BenchmarkTableLoad(b *testing.B) {
	for _, keys := range []int{100, 10_000, 1_000_000} {
		names, streams := load.Names(keys), load.Uniform(keys, 0)
		for _, impl := range tables {
			filled := filled(b, impl.make, names)
			b.Run(fmt.Sprintf("keys=%d/impl=%s", keys, impl.impl), func(b *testing.B) {
				t := filled()
				runtime.GC() // what filling has left behind is not part of the measurement
				b.ReportAllocs()
				b.ResetTimer()
				b.RunParallel(func(pb *testing.PB) {
					for stream := streams.Stream(); pb.Next(); {
						key, _ := stream.Next()
						if u := t.load(names[key]); u == nil || u.value.Runs != 0 {
							b.Error("a key is missing")
						}
					}
				})
			})
		}
	}
}

// BenchmarkTableChurn adds and removes a unit among others. Each goroutine has
// keys of its own, for which the number of keys is a multiple of 64.
func BenchmarkTableChurn(b *testing.B) {
	for _, keys := range []int{128, 128 << 10} {
		all := load.Names(2 * keys)
		names, others := all[:keys], all[keys:]
		for _, impl := range tables {
			filled := filled(b, impl.make, names)
			b.Run(fmt.Sprintf("keys=%d/impl=%s", keys, impl.impl), func(b *testing.B) {
				t := filled()
				runtime.GC() // what filling has left behind is not part of the measurement
				next := make(chan int, 64)
				for i := range cap(next) {
					next <- i
				}
				b.ReportAllocs()
				b.ResetTimer()
				b.RunParallel(func(pb *testing.PB) {
					for i := <-next; pb.Next(); i = (i + 64) % len(others) {
						u := named(new(unit), others[i])
						if !t.add(u) || !t.remove(u) {
							b.Error("a key is another's")
						}
					}
				})
			})
		}
	}
}

// BenchmarkTableFill adds keys to an empty table. One operation is all of them.
func BenchmarkTableFill(b *testing.B) {
	for _, keys := range []int{100, 100_000} {
		names := load.Names(keys)
		for _, impl := range tables {
			b.Run(fmt.Sprintf("keys=%d/impl=%s", keys, impl.impl), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					t := impl.make()
					for _, name := range names {
						t.add(named(new(unit), name))
					}
				}
			})
		}
	}
}

// TestTables checks that all do the same for what the benchmarks ask.
func TestTables(t *testing.T) {
	for _, impl := range tables {
		t.Run(impl.impl, func(t *testing.T) {
			m := impl.make()
			first, second := named(new(unit), "a"), named(new(unit), "a")
			assert.Nil(t, m.load("a"))
			assert.False(t, m.remove(first))
			assert.True(t, m.add(first))
			assert.False(t, m.add(second))
			assert.Same(t, first, m.load("a"))
			assert.False(t, m.remove(second))
			assert.True(t, m.remove(first))
			assert.Nil(t, m.load("a"))
		})
	}
}
