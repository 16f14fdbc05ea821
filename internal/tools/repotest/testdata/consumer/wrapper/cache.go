package wrapper

import (
	"context"

	"github.com/latchfree/latchfree/oncecache"
)

// Pool keeps a number for each name, and closes none.
type Pool struct {
	cache oncecache.Cache[string, int]
}

// Put is Cache.Set.
func (p *Pool) Put(name string, n int) { p.cache.Set(name, n) }

// Get is Cache.Get.
func (p *Pool) Get(name string) (int, bool) { return p.cache.Get(name) }

// Open is Cache.GetOrCreate.
func (p *Pool) Open(name string, open func() (int, error)) (int, error) {
	return p.cache.GetOrCreate(name, open)
}

// Warm is Cache.GetOrCreate without its results.
func (p *Pool) Warm(name string, open func() (int, error)) { p.cache.GetOrCreate(name, open) }

// OpenSum is Cache.GetOrCreate of a closure.
func (p *Pool) OpenSum(name string, a, b int) (int, error) {
	return p.cache.GetOrCreate(name, func() (int, error) { return a + b, nil })
}

// Opener returns Cache.GetOrCreate of a closure, in one.
func (p *Pool) Opener(open func(name string) (int, error)) func(name string) (int, error) {
	return func(name string) (int, error) {
		return p.cache.GetOrCreate(name, func() (int, error) { return open(name) })
	}
}

// OpenContext is Cache.GetOrCreateContext.
func (p *Pool) OpenContext(ctx context.Context, name string, open func(context.Context, string) (int, error)) (int, error) {
	return p.cache.GetOrCreateContext(ctx, name, open)
}

// Borrow is Cache.Acquire and Lease.Release.
func (p *Pool) Borrow(ctx context.Context, name string, open func(context.Context, string) (int, error)) (int, error) {
	l, err := p.cache.Acquire(ctx, name, open)
	if err != nil {
		return 0, err
	}
	defer l.Release()
	return l.Value(), nil
}

// Cached is Cache.GetOrCreate of any value.
func Cached[V any](c *oncecache.Cache[string, V], name string, create func() (V, error)) (V, error) {
	return c.GetOrCreate(name, create)
}
