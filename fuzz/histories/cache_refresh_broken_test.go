//go:build !modelcheck

package histories_test

import (
	"context"
	"sync"
	"testing"

	"github.com/latchfree/latchfree/fuzz/internal/history"
	"github.com/latchfree/latchfree/oncecache"
)

func TestBrokenRefreshHistories(t *testing.T) {
	real := func() realCache { return realCache{new(oncecache.Cache[int, int])} }
	for name, broken := range map[string]func() refresher{
		"a Refresh that sets":           func() refresher { return setsAnew{real()} },
		"a Refresh that comes too late": func() refresher { return &sharesLate{realCache: real()} },
		"a Refresh of its own":          func() refresher { return refreshesAlone{real()} },
		"a Wait that does not wait":     func() refresher { return waitsNot{real()} },
		"many, looked for and then set": func() refresher { return manyInTwoSteps{real()} },
		"one left out that is kept":     func() refresher { return keepsNothing{real()} },
	} {
		t.Run(name, func(t *testing.T) { history.Reject(t, refreshTrial(false, broken)) })
	}
	t.Run("an eviction of what is created", func(t *testing.T) {
		history.Reject(t, refreshTrial(true, func() refresher { return evictsCreations{newBounded()} }))
	})
	t.Run("what has gone comes back", func(t *testing.T) {
		history.Reject(t, refreshTrial(true, func() refresher { return &comesBack{realCache: newBounded()} }))
	})
}

type refreshOne = func(ctx context.Context, k, old int, exists bool) (int, error)

// setsAnew replaces what has come meanwhile.
type setsAnew struct{ realCache }

func (c setsAnew) Refresh(ctx context.Context, k int, create refreshOne) (int, error) {
	old, ok := c.Get(k)
	if !ok {
		return c.realCache.Refresh(ctx, k, create)
	}
	v, err := create(ctx, k, old, true)
	if err == nil {
		c.Set(k, v)
	}
	return v, err
}

// sharesLate gives the last result to one who comes when it is over.
type sharesLate struct {
	realCache
	last sync.Map
}

func (c *sharesLate) Refresh(ctx context.Context, k int, create refreshOne) (int, error) {
	if v, ok := c.last.LoadAndDelete(k); ok {
		return v.(int), nil
	}
	v, err := c.realCache.Refresh(ctx, k, create)
	if err == nil {
		c.last.Store(k, v)
	}
	return v, err
}

// refreshesAlone does not share a call.
type refreshesAlone struct{ realCache }

func (c refreshesAlone) Refresh(ctx context.Context, k int, create refreshOne) (int, error) {
	old, ok := c.Get(k)
	if !ok {
		return c.realCache.Refresh(ctx, k, create)
	}
	v, err := create(ctx, k, old, true)
	if err == nil && c.CompareAndDelete(k, old) {
		c.SetIfAbsent(k, v)
	}
	return v, err
}

type waitsNot struct{ realCache }

func (c waitsNot) Wait(_ context.Context, k int) (int, error) {
	if v, ok := c.Get(k); ok {
		return v, nil
	}
	return 0, oncecache.ErrNotFound
}

type createMany = func(context.Context, []int) (map[int]int, error)

type manyInTwoSteps struct{ realCache }

func (c manyInTwoSteps) GetOrCreateMany(ctx context.Context, keys []int, create createMany) (map[int]int, error) {
	found, missing := map[int]int{}, []int{}
	for _, k := range keys {
		if v, ok := c.Get(k); ok {
			found[k] = v
		} else {
			missing = append(missing, k)
		}
	}
	if len(missing) == 0 {
		return found, nil
	}
	made, err := create(ctx, missing)
	if err != nil {
		return found, err
	}
	for k, v := range made {
		c.Set(k, v)
		found[k] = v
	}
	return found, nil
}

// keepsNothing makes a value of what was left out.
type keepsNothing struct{ realCache }

func (c keepsNothing) GetOrCreateMany(ctx context.Context, keys []int, create createMany) (map[int]int, error) {
	found, err := c.realCache.GetOrCreateMany(ctx, keys, create)
	for _, k := range keys {
		if _, ok := found[k]; !ok && err == nil {
			c.SetIfAbsent(k, 1)
		}
	}
	return found, err
}

// evictsCreations lets another key go at each Set, even one in flight.
type evictsCreations struct{ realCache }

func (c evictsCreations) Set(k, v int) (int, bool) {
	c.Delete((k + 1) % cacheKeys)
	return c.realCache.Set(k, v)
}

// comesBack finds what was there once if nothing is.
type comesBack struct {
	realCache
	seen sync.Map
}

func (c *comesBack) Get(k int) (int, bool) {
	v, ok := c.realCache.Get(k)
	if ok {
		c.seen.Store(k, v)
	} else if old, there := c.seen.LoadAndDelete(k); there {
		return old.(int), true
	}
	return v, ok
}
