//go:build !modelcheck

package histories_test

import (
	"errors"
	"runtime"
	"sync"
	"testing"

	"github.com/latchfree/latchfree/fuzz/internal/history"
	"github.com/latchfree/latchfree/oncecache"
)

func TestBrokenCacheHistories(t *testing.T) {
	real := func() realCache { return realCache{new(oncecache.Cache[int, int])} }
	for name, broken := range map[string]func() cache{
		"a look before the creation":        func() cache { return lookThenCreate{real()} },
		"a result kept after Delete":        func() cache { return keepsResults{real()} },
		"an error kept for the next caller": func() cache { return &keepsErrors{realCache: real()} },
		"no error after a panic":            func() cache { return noPanicError{real()} },
		"a SetIfAbsent in two steps":        func() cache { return tornSetIfAbsent{real()} },
		"a CompareAndDelete in two steps":   func() cache { return tornCompareAndDelete{real()} },
		"a Get from the past":               func() cache { return &staleGet{realCache: real()} },
	} {
		t.Run(name, func(t *testing.T) { history.Reject(t, cacheTrial(broken)) })
	}
}

// lookThenCreate is the cache of the report that oncecache answers.
type lookThenCreate struct{ realCache }

func (c lookThenCreate) GetOrCreate(k int, create func() (int, error)) (int, error) {
	if v, ok := c.Get(k); ok {
		return v, nil
	}
	v, err := create()
	if err != nil {
		return 0, err
	}
	c.Set(k, v)
	return v, nil
}

type keepsResults struct{ realCache }

func (c keepsResults) GetOrCreate(k int, create func() (int, error)) (int, error) {
	created := false
	v, err := c.realCache.GetOrCreate(k, func() (int, error) { created = true; return create() })
	if created && err == nil {
		c.Set(k, v)
	}
	return v, err
}

type keepsErrors struct {
	realCache
	errs sync.Map
}

func (c *keepsErrors) GetOrCreate(k int, create func() (int, error)) (int, error) {
	if err, ok := c.errs.LoadAndDelete(k); ok {
		return 0, err.(error)
	}
	v, err := c.realCache.GetOrCreate(k, create)
	if err != nil {
		c.errs.Store(k, err)
	}
	return v, err
}

type noPanicError struct{ realCache }

func (c noPanicError) GetOrCreate(k int, create func() (int, error)) (int, error) {
	v, err := c.realCache.GetOrCreate(k, create)
	if errors.As(err, new(*oncecache.PanicError)) {
		return 0, nil
	}
	return v, err
}

type tornSetIfAbsent struct{ realCache }

func (c tornSetIfAbsent) SetIfAbsent(k, v int) (int, bool) {
	if actual, stored := c.realCache.SetIfAbsent(k, v); !stored {
		return actual, false
	}
	c.Delete(k)
	runtime.Gosched()
	c.Set(k, v)
	return v, true
}

type tornCompareAndDelete struct{ realCache }

func (c tornCompareAndDelete) CompareAndDelete(k, v int) bool {
	if now, ok := c.Get(k); !ok || now != v {
		return false
	}
	runtime.Gosched()
	c.Delete(k)
	return true
}

// staleGet returns now and then what an earlier Get has seen.
type staleGet struct {
	realCache
	seen sync.Map
}

func (c *staleGet) Get(k int) (int, bool) {
	if v, ok := c.seen.LoadAndDelete(k); ok {
		return v.(int), true
	}
	v, ok := c.realCache.Get(k)
	if ok {
		c.seen.Store(k, v)
	}
	return v, ok
}
