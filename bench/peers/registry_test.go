package peers

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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

// run is an update that makes every value a new one.
func run(a action) (action, error) {
	a.Runs++
	return a, nil
}

// registry is what a bare map can offer of a registry.
type registry interface {
	Create(string, action) (shardedregistry.Version, error)
	Get(string) (action, bool)
	Update(string, func(action) (action, error)) (shardedregistry.Entry[string, action], error)
}

// registries lists what is compared. Every one keeps versions.
var registries = []struct {
	impl string
	make func() registry
}{
	{"mutex", func() registry { return new(locked.MutexRegistry[string, action]) }},
	{"syncmap", func() registry { return new(locked.SyncMapRegistry[string, action]) }},
	{"xsync3", func() registry { return newXsync3Registry[action]() }},
	{"xsync4", func() registry { return newXsync4Registry[action]() }},
	{"pointers", func() registry { return newPointersRegistry[action]() }},
	{"latchfree", func() registry { return new(shardedregistry.Registry[string, action]) }},
}

// BenchmarkRegistryMix reads some keys and updates others.
func BenchmarkRegistryMix(b *testing.B) {
	for _, c := range []struct{ keys, read int }{
		{100, 100}, {100, 99}, {100, 90}, {100, 75}, {100, 50},
		{100_000, 100}, {100_000, 99}, {100_000, 90}, {100_000, 75}, {100_000, 50},
	} {
		names, streams := load.Names(c.keys), load.Uniform(c.keys, 100-c.read)
		for _, impl := range registries {
			filled := sync.OnceValue(func() registry {
				r := impl.make()
				create(b, r, names)
				return r
			})
			b.Run(fmt.Sprintf("keys=%d/read=%d/order=uniform/impl=%s", c.keys, c.read, impl.impl), func(b *testing.B) {
				r := filled()
				runtime.GC() // what filling has left behind is not part of the measurement
				b.ReportAllocs()
				b.ResetTimer()
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
}

// TestRegistries checks that all do the same for what the benchmark asks.
func TestRegistries(t *testing.T) {
	for _, impl := range registries {
		t.Run(impl.impl, func(t *testing.T) {
			r := impl.make()
			_, ok := r.Get("a")
			assert.False(t, ok)
			_, err := r.Update("a", run)
			require.ErrorIs(t, err, shardedregistry.ErrNotFound)
			_, ok = r.Get("a")
			assert.False(t, ok, "a failed update creates nothing")

			v, err := r.Create("a", action{Name: "a"})
			require.NoError(t, err)
			_, err = r.Create("a", action{Name: "b"})
			require.ErrorIs(t, err, shardedregistry.ErrExists)
			e, err := r.Update("a", run)
			require.NoError(t, err)
			want := action{Name: "a", Runs: 1}
			assert.Equal(t, shardedregistry.Entry[string, action]{Key: "a", Value: want, Version: v + 1}, e)

			_, err = r.Update("a", func(action) (action, error) { return action{}, assert.AnError })
			require.ErrorIs(t, err, assert.AnError)
			got, ok := r.Get("a")
			assert.True(t, ok)
			assert.Equal(t, want, got, "an error changes nothing")
		})
	}
}

func TestRegistriesLoseNoUpdate(t *testing.T) {
	const workers, each = 4, 2000
	for _, impl := range registries {
		t.Run(impl.impl, func(t *testing.T) {
			r := impl.make()
			_, err := r.Create("a", action{})
			require.NoError(t, err)
			together(workers, func(int) {
				for range each {
					if _, err := r.Update("a", run); err != nil {
						t.Error(err)
					}
				}
			})
			a, _ := r.Get("a")
			assert.Equal(t, workers*each, a.Runs)
		})
	}
}
