package locked_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

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

// The mutex baseline gives what ours gives to callers of several keys.
func TestCachesGetMany(t *testing.T) {
	refused := errors.New("connection refused")
	var ours oncecache.Cache[string, int]
	var mutex locked.MutexCache[string, int]
	for name, many := range map[string]func([]string, func([]string) (map[string]int, error)) (map[string]int, error){
		"latchfree": func(keys []string, create func([]string) (map[string]int, error)) (map[string]int, error) {
			return ours.GetOrCreateMany(context.Background(), keys,
				func(_ context.Context, keys []string) (map[string]int, error) { return create(keys) })
		},
		"mutex": mutex.GetOrCreateMany,
	} {
		t.Run(name, func(t *testing.T) {
			var asked []string
			create := func(keys []string) (map[string]int, error) {
				asked = append(asked, keys...)
				made := map[string]int{"unasked": 9}
				for _, k := range keys {
					if k != "none" {
						made[k] = len(k)
					}
				}
				return made, nil
			}
			got, err := many([]string{"a", "bb", "none"}, create)
			assert.NoError(t, err)
			assert.Equal(t, map[string]int{"a": 1, "bb": 2}, got)
			got, err = many([]string{"bb", "ccc"}, create)
			assert.NoError(t, err)
			assert.Equal(t, map[string]int{"bb": 2, "ccc": 3}, got)
			assert.Equal(t, []string{"a", "bb", "none", "ccc"}, asked)
			got, err = many([]string{"a", "dddd"}, func([]string) (map[string]int, error) { return nil, refused })
			assert.ErrorIs(t, err, refused)
			assert.Equal(t, map[string]int{"a": 1}, got)
			got, err = many([]string{"a", "bb"}, func([]string) (map[string]int, error) { panic("all are there") })
			assert.NoError(t, err)
			assert.Len(t, got, 2)
			assert.Panics(t, func() { _, _ = many([]string{"dddd"}, func([]string) (map[string]int, error) { panic("disk full") }) })
			got, err = many([]string{"dddd"}, create)
			assert.NoError(t, err)
			assert.Len(t, got, 1)
		})
	}
}

func TestCachesRefresh(t *testing.T) {
	refused := errors.New("connection refused")
	var ours oncecache.Cache[string, int]
	var mutex locked.MutexCache[string, int]
	for name, c := range map[string]struct {
		cache
		refresh func(string, func() (int, error)) (int, error)
	}{
		"latchfree": {&ours, func(k string, create func() (int, error)) (int, error) {
			return ours.Refresh(context.Background(), k, func(context.Context, string, int, bool) (int, error) { return create() })
		}},
		"mutex": {&mutex, mutex.Refresh},
	} {
		t.Run(name, func(t *testing.T) {
			c.Set("k", 1)
			v, err := c.refresh("k", gives(9, refused))
			assert.ErrorIs(t, err, refused)
			assert.Zero(t, v)
			v, err = c.refresh("k", func() (int, error) {
				old, _ := c.Get("k")
				assert.Equal(t, 1, old, "it serves meanwhile")
				return 2, nil
			})
			assert.NoError(t, err)
			assert.Equal(t, 2, v)
			v, _ = c.Get("k")
			assert.Equal(t, 2, v)
			v, err = c.refresh("k", func() (int, error) {
				c.Delete("k")
				return 3, nil
			})
			assert.NoError(t, err)
			assert.Equal(t, 3, v)
			_, ok := c.Get("k")
			assert.False(t, ok, "the deletion is not undone")
			v, err = c.refresh("k", gives(4, nil))
			assert.NoError(t, err)
			assert.Equal(t, 4, v, "it is created")
			_, err = c.refresh("k", func() (int, error) {
				c.Set("k", 5)
				return 6, nil
			})
			assert.NoError(t, err)
			v, _ = c.Get("k")
			assert.Equal(t, 5, v, "what was set is not undone")
			assert.Panics(t, func() { _, _ = c.refresh("k", func() (int, error) { panic("disk full") }) })

			// Callers share a call, or those who come later the next one.
			synctest.Test(t, func(t *testing.T) {
				var calls, returned atomic.Int32
				goOn := make(chan struct{})
				ask := func() {
					v, err := c.refresh("k", func() (int, error) {
						calls.Add(1)
						<-goOn
						return 7, nil
					})
					assert.NoError(t, err)
					assert.Equal(t, 7, v)
					returned.Add(1)
				}
				go ask()
				synctest.Wait()
				for range 3 {
					go ask()
				}
				synctest.Wait() // all of them wait for a call
				assert.Zero(t, returned.Load())
				close(goOn)
				synctest.Wait()
				assert.LessOrEqual(t, calls.Load(), int32(2), "they do not share a call")
				assert.EqualValues(t, 4, returned.Load())
			})
			v, _ = c.Get("k")
			assert.Equal(t, 7, v)
		})
	}
}
