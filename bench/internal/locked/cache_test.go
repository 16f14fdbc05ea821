package locked_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/latchfree/latchfree/bench/internal/locked"
	"github.com/latchfree/latchfree/oncecache"
)

// cache is what the caches have in common.
type cache interface {
	GetOrCreate(string, func() (int, error)) (int, error)
	Get(string) (int, bool)
	Set(string, int) (int, bool)
	Delete(string) (int, bool)
}

// caches returns a fresh one of each kind, ours among them: the baselines must
// behave as it does.
func caches() map[string]cache {
	return map[string]cache{
		"latchfree":  new(oncecache.Cache[string, int]),
		"mutex":      new(locked.MutexCache[string, int]),
		"rwmutex":    new(locked.RWMutexCache[string, int]),
		"syncmap":    new(locked.SyncMapCache[string, int]),
		"oncevalues": new(locked.OnceValuesCache[string, int]),
	}
}

func gives(v int, err error) func() (int, error) {
	return func() (int, error) { return v, err }
}

func TestCachesCreateOnce(t *testing.T) {
	for name, c := range caches() {
		t.Run(name, func(t *testing.T) {
			var created atomic.Int32
			var done sync.WaitGroup
			for range 8 {
				done.Go(func() {
					for range 100 {
						v, err := c.GetOrCreate("k", func() (int, error) { return int(created.Add(1)), nil })
						assert.NoError(t, err)
						assert.Equal(t, 1, v)
					}
				})
			}
			done.Wait()
		})
	}
}

func TestCachesDoNotKeepFailures(t *testing.T) {
	refused := errors.New("connection refused")
	for name, c := range caches() {
		t.Run(name, func(t *testing.T) {
			v, err := c.GetOrCreate("k", gives(9, refused))
			assert.Zero(t, v)
			assert.ErrorIs(t, err, refused)

			v, err = c.GetOrCreate("k", gives(1, nil))
			assert.NoError(t, err)
			assert.Equal(t, 1, v)
		})
	}
}

func TestCachesSurvivePanics(t *testing.T) {
	for name, c := range caches() {
		t.Run(name, func(t *testing.T) {
			assert.PanicsWithValue(t, "disk full", func() {
				c.GetOrCreate("k", func() (int, error) { panic("disk full") })
			})
			v, err := c.GetOrCreate("k", gives(1, nil))
			assert.NoError(t, err)
			assert.Equal(t, 1, v)
		})
	}
}

func TestCachesSetAndDelete(t *testing.T) {
	type result struct {
		v  int
		ok bool
	}
	of := func(v int, ok bool) result { return result{v, ok} }
	for name, c := range caches() {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, result{}, of(c.Get("k")))
			assert.Equal(t, result{}, of(c.Delete("k")))
			assert.Equal(t, result{}, of(c.Set("k", 1)))
			assert.Equal(t, result{1, true}, of(c.Set("k", 2)))
			assert.Equal(t, result{2, true}, of(c.Get("k")))
			v, err := c.GetOrCreate("k", gives(3, nil))
			assert.NoError(t, err)
			assert.Equal(t, 2, v)
			assert.Equal(t, result{2, true}, of(c.Delete("k")))
			assert.Equal(t, result{}, of(c.Get("k")))
		})
	}
}
