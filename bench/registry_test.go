package bench

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/latchfree/latchfree/bench/internal/load"
	"github.com/latchfree/latchfree/bench/internal/locked"
	"github.com/latchfree/latchfree/shardedregistry"
)

// action is an entity of a realistic size.
type action struct {
	Name     string
	Argument *string
	Runs     int
}

// registry is what the benchmarks use of a registry.
type registry interface {
	Create(string, action) (shardedregistry.Version, error)
	Get(string) (action, bool)
	Lookup(string) (shardedregistry.Entry[string, action], bool)
	Update(string, func(action) (action, error)) (shardedregistry.Entry[string, action], error)
	UpdateIf(string, shardedregistry.Version, action) (shardedregistry.Version, error)
	Put(string, action) (shardedregistry.Version, error)
	Delete(string) (shardedregistry.Entry[string, action], bool)
}

// registries lists what is compared. Every one keeps versions.
var registries = []struct {
	impl string
	make func() registry
}{
	{"mutex", func() registry { return new(locked.MutexRegistry[string, action]) }},
	{"rwmutex", func() registry { return new(locked.RWMutexRegistry[string, action]) }},
	{"syncmap", func() registry { return new(locked.SyncMapRegistry[string, action]) }},
	{"latchfree", func() registry { return new(shardedregistry.Registry[string, action]) }},
}

// eachRegistry runs f for every registry, filled with names.
func eachRegistry(b *testing.B, params string, names []string, f func(b *testing.B, r registry)) {
	for _, c := range registries {
		b.Run(params+"/impl="+c.impl, func(b *testing.B) {
			r := c.make()
			for _, name := range names {
				if _, err := r.Create(name, action{Name: name}); err != nil {
					b.Fatal(err)
				}
			}
			runtime.GC() // what filling has left behind is not part of the measurement
			b.ReportAllocs()
			b.ResetTimer()
			f(b, r)
		})
	}
}

// BenchmarkRegistryMix reads some keys and updates others. An update counts
// the runs of an entity, so that every value is new.
func BenchmarkRegistryMix(b *testing.B) {
	for _, c := range []struct {
		keys, read int
		zipf       bool
	}{
		{100, 100, false}, {100, 99, false}, {100, 90, false}, {100, 75, false}, {100, 50, false},
		{100_000, 100, false}, {100_000, 90, false}, {100_000, 50, false},
		{100_000, 90, true},
	} {
		names, order, streams := load.Names(c.keys), "uniform", load.Uniform(c.keys, 100-c.read)
		if c.zipf {
			order, streams = "zipf", load.Zipf(c.keys, 100-c.read)
		}
		params := fmt.Sprintf("keys=%d/read=%d/order=%s", c.keys, c.read, order)
		eachRegistry(b, params, names, func(b *testing.B, r registry) {
			b.RunParallel(func(pb *testing.PB) {
				stream := streams.Stream()
				for pb.Next() {
					key, write := stream.Next()
					if !write {
						if _, ok := r.Get(names[key]); !ok {
							b.Error("a key is missing")
						}
						continue
					}
					if _, err := r.Update(names[key], run); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}

// run is the update of BenchmarkRegistryMix.
func run(a action) (action, error) {
	a.Runs++
	return a, nil
}

// BenchmarkRegistryUpdateHot has everybody update one entity.
func BenchmarkRegistryUpdateHot(b *testing.B) {
	names := load.Names(1)
	eachRegistry(b, "keys=1", names, func(b *testing.B, r registry) {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := r.Update(names[0], run); err != nil {
					b.Error(err)
				}
			}
		})
		if a, _ := r.Get(names[0]); a.Runs != b.N {
			b.Errorf("%d of %d updates were kept", a.Runs, b.N)
		}
	})
}

// BenchmarkRegistryUpdateIf reads an entity and changes it if it is still what
// was read, until that succeeds.
func BenchmarkRegistryUpdateIf(b *testing.B) {
	const keys = 100
	names, streams := load.Names(keys), load.Uniform(keys, 100)
	eachRegistry(b, "keys=100", names, func(b *testing.B, r registry) {
		b.RunParallel(func(pb *testing.PB) {
			stream := streams.Stream()
			for pb.Next() {
				key, _ := stream.Next()
				for {
					now, _ := r.Lookup(names[key])
					next, _ := run(now.Value)
					if _, err := r.UpdateIf(names[key], now.Version, next); err == nil {
						break
					}
				}
			}
		})
	})
}

// BenchmarkRegistryChurn creates an entity and deletes it again, each
// goroutine its own keys.
func BenchmarkRegistryChurn(b *testing.B) {
	const each = 1000
	for _, resident := range []int{100, 100_000} {
		names := load.Names(resident + 64*each)
		var worker atomic.Int32
		eachRegistry(b, fmt.Sprintf("keys=%d", resident), names[:resident], func(b *testing.B, r registry) {
			b.RunParallel(func(pb *testing.PB) {
				own := names[resident+each*int(worker.Add(1)%64):][:each]
				for i := 0; pb.Next(); i++ {
					name := own[i%each]
					if _, err := r.Create(name, action{Name: name}); err != nil {
						b.Error(err)
					}
					r.Delete(name)
				}
			})
		})
	}
}
