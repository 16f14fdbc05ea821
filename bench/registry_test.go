package bench

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/bench/internal/headline"
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

// implementation is a registry that is compared.
type implementation struct {
	impl string
	make func() registry

	// snapshot takes a snapshot and returns its number of keys. A sync.Map
	// cannot take any.
	snapshot func(registry) int
}

// registries lists what is compared. Every one keeps versions.
var registries = []implementation{
	{
		"mutex", func() registry { return new(locked.MutexRegistry[string, action]) },
		func(r registry) int { return r.(*locked.MutexRegistry[string, action]).Snapshot().Len() },
	},
	{
		"rwmutex", func() registry { return new(locked.RWMutexRegistry[string, action]) },
		func(r registry) int { return r.(*locked.RWMutexRegistry[string, action]).Snapshot().Len() },
	},
	{
		"syncmap", func() registry { return new(locked.SyncMapRegistry[string, action]) },
		nil,
	},
	{
		"latchfree", func() registry { return new(shardedregistry.Registry[string, action]) },
		func(r registry) int { return r.(*shardedregistry.Registry[string, action]).Snapshot().Len() },
	},
}

// run runs f for the registry, filled with names once. Params may be empty, where
// b has them already.
func (c implementation) run(b *testing.B, params string, names []string, f func(b *testing.B, r registry)) {
	filled := sync.OnceValue(func() registry {
		r := c.make()
		for _, name := range names {
			if _, err := r.Create(name, action{Name: name}); err != nil {
				b.Fatal(err)
			}
		}
		return r
	})
	b.Run(strings.TrimPrefix(params+"/impl="+c.impl, "/"), func(b *testing.B) {
		r := filled()
		runtime.GC() // what filling has left behind is not part of the measurement
		b.ReportAllocs()
		b.ResetTimer()
		f(b, r)
	})
}

// eachRegistry runs f for every registry, filled with names.
func eachRegistry(b *testing.B, params string, names []string, f func(b *testing.B, r registry)) {
	for _, c := range registries {
		c.run(b, params, names, f)
	}
}

// eachSnapshots is eachRegistry for those that take snapshots.
func eachSnapshots(b *testing.B, params string, names []string, f func(b *testing.B, r registry, snapshot func(registry) int)) {
	for _, c := range registries {
		if c.snapshot != nil {
			c.run(b, params, names, func(b *testing.B, r registry) { f(b, r, c.snapshot) })
		}
	}
}

// registryMix is how many keys a registry has, and how many of a hundred operations read.
type registryMix struct {
	keys, read int
	zipf       bool
}

// registryMixes holds what we lose on one CPU, too: half of the operations update.
var registryMixes = []registryMix{
	{100, 100, false}, {100, 99, false}, {100, 90, false}, {100, 75, false}, {100, 50, false},
	{100, 90, true},
	{100_000, 100, false}, {100_000, 90, false}, {100_000, 50, false},
}

// BenchmarkRegistryMix reads some keys and updates others. An update counts
// the runs of an entity, so that every value is new.
func BenchmarkRegistryMix(b *testing.B) {
	for _, c := range registryMixes {
		order := "uniform"
		if c.zipf {
			order = "zipf"
		}
		b.Run(fmt.Sprintf("keys=%d/read=%d/order=%s", c.keys, c.read, order), func(b *testing.B) { // only what runs makes its keys
			names, streams := load.Names(c.keys), load.Uniform(c.keys, 100-c.read)
			if c.zipf {
				streams = load.Zipf(c.keys, 100-c.read)
			}
			eachRegistry(b, "", names, func(b *testing.B, r registry) {
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
		})
	}
}

// A case that we lose must not vanish, neither from here nor for a budget.
func TestRegistryMixes_HoldWhatWeLose(t *testing.T) {
	require.Contains(t, registryMixes, registryMix{100, 50, false})
	require.Contains(t, registryMixes, registryMix{100_000, 50, false})
	require.True(t, headline.Keeps("BenchmarkRegistryMix/keys=100000/read=50/order=uniform/impl=mutex"))
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
		before, _ := r.Get(names[0])
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := r.Update(names[0], run); err != nil {
					b.Error(err)
				}
			}
		})
		if a, _ := r.Get(names[0]); a.Runs-before.Runs != b.N {
			b.Errorf("%d of %d updates were kept", a.Runs-before.Runs, b.N)
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
	workers := max(8, runtime.NumCPU())
	for _, resident := range []int{100, 10_000} {
		names := load.Names(resident + workers*each)
		var worker atomic.Int32
		eachRegistry(b, fmt.Sprintf("keys=%d", resident), names[:resident], func(b *testing.B, r registry) {
			b.RunParallel(func(pb *testing.PB) {
				own := names[resident+each*(int(worker.Add(1))%workers):][:each]
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

// BenchmarkRegistrySnapshot takes snapshots while nobody else is at work.
func BenchmarkRegistrySnapshot(b *testing.B) {
	for _, keys := range []int{100, 10_000, 100_000} {
		eachSnapshots(b, fmt.Sprintf("keys=%d", keys), load.Names(keys), func(b *testing.B, r registry, snapshot func(registry) int) {
			for b.Loop() {
				if n := snapshot(r); n != keys {
					b.Fatalf("a snapshot has %d keys, want %d", n, keys)
				}
			}
		})
	}
}

// BenchmarkRegistryUpdateDuringSnapshots updates keys while one goroutine takes
// one snapshot after another, each right after the last.
func BenchmarkRegistryUpdateDuringSnapshots(b *testing.B) {
	for _, keys := range []int{100, 10_000} {
		names, streams := load.Names(keys), load.Uniform(keys, 100)
		eachSnapshots(b, fmt.Sprintf("keys=%d", keys), names, func(b *testing.B, r registry, snapshot func(registry) int) {
			var over atomic.Bool
			taken := make(chan int)
			go func() {
				n := 0
				for ; !over.Load(); n++ {
					snapshot(r)
				}
				taken <- n
			}()
			b.RunParallel(func(pb *testing.PB) {
				stream := streams.Stream()
				for pb.Next() {
					key, _ := stream.Next()
					if _, err := r.Update(names[key], run); err != nil {
						b.Error(err)
					}
				}
			})
			over.Store(true)
			n := <-taken
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "snapshots/s")
		})
	}
}
