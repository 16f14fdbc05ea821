package locked_test

import (
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/bench/internal/locked"
	"github.com/latchfree/latchfree/shardedregistry"
)

// registry is what the benchmarks use of a registry.
type registry interface {
	Create(string, int) (shardedregistry.Version, error)
	Get(string) (int, bool)
	Lookup(string) (shardedregistry.Entry[string, int], bool)
	Update(string, func(int) (int, error)) (shardedregistry.Entry[string, int], error)
	UpdateIf(string, shardedregistry.Version, int) (shardedregistry.Version, error)
	Put(string, int) (shardedregistry.Version, error)
	Delete(string) (shardedregistry.Entry[string, int], bool)
	Len() int
}

// registries returns a fresh one of each kind, ours among them: the baselines
// must behave as it does.
func registries() map[string]registry {
	return map[string]registry{
		"latchfree": new(shardedregistry.Registry[string, int]),
		"mutex":     new(locked.MutexRegistry[string, int]),
		"rwmutex":   new(locked.RWMutexRegistry[string, int]),
		"syncmap":   new(locked.SyncMapRegistry[string, int]),
	}
}

func TestRegistries(t *testing.T) {
	for name, r := range registries() {
		t.Run(name, func(t *testing.T) {
			_, ok := r.Get("a")
			assert.False(t, ok)
			_, err := r.Update("a", func(v int) (int, error) { return v, nil })
			assert.ErrorIs(t, err, shardedregistry.ErrNotFound)
			_, err = r.UpdateIf("a", 1, 1)
			assert.ErrorIs(t, err, shardedregistry.ErrNotFound)

			v, err := r.Create("a", 10)
			require.NoError(t, err)
			_, err = r.Create("a", 11)
			assert.ErrorIs(t, err, shardedregistry.ErrExists)
			e, err := r.Update("a", func(v int) (int, error) { return v + 1, nil })
			require.NoError(t, err)
			assert.Equal(t, shardedregistry.Entry[string, int]{Key: "a", Value: 11, Version: v + 1}, e)
			_, err = r.UpdateIf("a", v, 12)
			assert.ErrorIs(t, err, shardedregistry.ErrConflict)
			_, err = r.UpdateIf("a", v+1, 12)
			require.NoError(t, err)
			_, err = r.Update("a", func(int) (int, error) { return 0, assert.AnError })
			assert.ErrorIs(t, err, assert.AnError)
			v, err = r.Put("a", 13)
			require.NoError(t, err)
			now, ok := r.Lookup("a")
			require.True(t, ok)
			assert.Equal(t, shardedregistry.Entry[string, int]{Key: "a", Value: 13, Version: v}, now)

			last, ok := r.Delete("a")
			require.True(t, ok)
			assert.Equal(t, now, last)
			_, ok = r.Delete("a")
			assert.False(t, ok)
			_, ok = r.Lookup("a")
			assert.False(t, ok)
			assert.Zero(t, r.Len())

			again, err := r.Create("a", 14)
			require.NoError(t, err)
			assert.Greater(t, again, v, "versions go on after a deletion")
			_, err = r.Put("b", 1)
			require.NoError(t, err)
			assert.Equal(t, 2, r.Len())
		})
	}
}

func TestRegistriesLoseNoUpdate(t *testing.T) {
	const each = 2000
	for name, r := range registries() {
		t.Run(name, func(t *testing.T) {
			_, err := r.Put("a", 0)
			require.NoError(t, err)
			var wg sync.WaitGroup
			workers := 2 * runtime.GOMAXPROCS(0)
			for range workers {
				wg.Go(func() {
					for range each {
						_, _ = r.Update("a", func(v int) (int, error) { return v + 1, nil })
					}
				})
			}
			wg.Wait()
			v, _ := r.Get("a")
			assert.Equal(t, workers*each, v)
		})
	}
}

// snapshots returns how each registry that can takes a snapshot: Get and Len
// of it.
func snapshots() map[string]func(registry) (func(string) (int, bool), int) {
	return map[string]func(registry) (func(string) (int, bool), int){
		"latchfree": func(r registry) (func(string) (int, bool), int) {
			s := r.(*shardedregistry.Registry[string, int]).Snapshot()
			return s.Get, s.Len()
		},
		"mutex": func(r registry) (func(string) (int, bool), int) {
			s := r.(*locked.MutexRegistry[string, int]).Snapshot()
			return s.Get, s.Len()
		},
		"rwmutex": func(r registry) (func(string) (int, bool), int) {
			s := r.(*locked.RWMutexRegistry[string, int]).Snapshot()
			return s.Get, s.Len()
		},
	}
}

func TestRegistriesSnapshot(t *testing.T) {
	all := registries()
	for name, snapshot := range snapshots() {
		t.Run(name, func(t *testing.T) {
			r := all[name]
			_, n := snapshot(r)
			require.Zero(t, n)
			_, err := r.Put("a", 1)
			require.NoError(t, err)
			get, n := snapshot(r)
			_, err = r.Put("a", 2)
			require.NoError(t, err)
			_, err = r.Put("b", 3)
			require.NoError(t, err)
			v, ok := get("a")
			assert.True(t, ok)
			assert.Equal(t, 1, v)
			_, ok = get("b")
			assert.False(t, ok)
			assert.Equal(t, 1, n)
		})
	}
}
