//go:build modelcheck

package oncecache_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/latchfree/latchfree/internal/tools/mc"
	"github.com/latchfree/latchfree/oncecache"
)

type cache = oncecache.Cache[string, int]

// of is what the user of a cache with one value does.
func of(op func(*cache)) func() func(int) {
	return func() func(int) {
		c := new(cache)
		c.Set(key, 7)
		return func(int) { op(c) }
	}
}

// owning is of, where the cache owns its values.
func owning(op func(*cache)) func() func(int) {
	return func() func(int) {
		c := oncecache.MustNew(oncecache.Config[string, int]{Close: func(string, int) error { return nil }})
		c.Set(key, 7)
		return func(int) { op(c) }
	}
}

// changing is Set of a new value each time, where the cache owns its values.
func changing() func(int) {
	c := oncecache.MustNew(oncecache.Config[string, int]{Close: func(string, int) error { return nil }})
	n := 0
	c.Set(key, n)
	return func(int) {
		n++
		c.Set(key, n)
	}
}

// eachKey is what the user of a cache does with a new key each time.
func eachKey(op func(*cache, string)) func() func(int) {
	return eachKeyOf(oncecache.Config[string, int]{}, op)
}

// eachOwned is eachKey, where the cache owns its values.
func eachOwned(op func(*cache, string)) func() func(int) {
	return eachKeyOf(oncecache.Config[string, int]{Close: func(string, int) error { return nil }}, op)
}

func eachKeyOf(config oncecache.Config[string, int], op func(*cache, string)) func() func(int) {
	return func() func(int) {
		c := oncecache.MustNew(config)
		var used [64]int
		return func(core int) {
			used[core]++
			op(c, fmt.Sprint(core, " ", used[core]))
		}
	}
}

// What a hit does to shared words: it reads.
func TestCosts(t *testing.T) {
	one := func() (int, error) { return 1, nil }
	ctx := context.Background()
	refuse := func(context.Context, string) (int, error) { return failing() }
	mc.CheckCost(t, "GetOrCreate of a present key", of(func(c *cache) { c.GetOrCreate(key, failing) }), mc.Cost{Loads: 2, TableReads: 1}, 0)
	mc.CheckCost(t, "GetOrCreateContext of a present key", of(func(c *cache) { c.GetOrCreateContext(ctx, key, refuse) }), mc.Cost{Loads: 2, TableReads: 1}, 0)
	mc.CheckCost(t, "Acquire of a present key, and Release", of(func(c *cache) { l, _ := c.Acquire(ctx, key, refuse); l.Release() }), mc.Cost{Loads: 2, TableReads: 1}, 0)
	mc.CheckCost(t, "the same, where the cache closes values", owning(func(c *cache) { l, _ := c.Acquire(ctx, key, refuse); l.Release() }), mc.Cost{Loads: 4, RMWs: 2, TableReads: 1}, 0)
	mc.CheckCost(t, "Get of a present key", of(func(c *cache) { c.Get(key) }), mc.Cost{Loads: 2, TableReads: 1}, 0)
	mc.CheckCost(t, "Peek of a present key", of(func(c *cache) { c.Peek(key) }), mc.Cost{Loads: 2, TableReads: 1}, 0)
	mc.CheckCost(t, "Load of a present key", ofConfig(oncecache.Config[string, int]{Create: refuse}, func(c *cache) { c.Load(ctx, key) }), mc.Cost{Loads: 2, TableReads: 1}, 0)
	mc.CheckCost(t, "Get of an absent key", of(func(c *cache) { c.Get("absent") }), mc.Cost{Loads: 1, TableReads: 1}, 0)
	mc.CheckCost(t, "GetOrCreate that creates", eachKey(func(c *cache, k string) { c.GetOrCreate(k, one) }), mc.Cost{Loads: 3, Stores: 2, RMWs: 4, TableReads: 1, TableWrites: 1, Clock: 1}, 7)
	mc.CheckCost(t, "GetOrCreate, whose function asks for its key", eachKey(func(c *cache, k string) {
		c.GetOrCreate(k, func() (int, error) { return c.GetOrCreate(k, one) })
	}), mc.Cost{Loads: 13, Stores: 1, RMWs: 5, Blocking: 1, TableReads: 3, TableWrites: 2, Clock: 1}, 9)
	mc.CheckCost(t, "Acquire that creates, and Release, where the cache closes values", eachOwned(func(c *cache, k string) {
		l, _ := c.Acquire(ctx, k, func(context.Context, string) (int, error) { return 1, nil })
		l.Release()
	}), mc.Cost{Loads: 3, Stores: 5, RMWs: 6, TableReads: 1, TableWrites: 1, Clock: 1}, 9)
	mc.CheckCost(t, "GetOrCreateMany that creates one", eachKey(func(c *cache, k string) {
		c.GetOrCreateMany(ctx, []string{k}, func(context.Context, []string) (map[string]int, error) { return map[string]int{k: 1}, nil })
	}), mc.Cost{Loads: 6, Stores: 4, RMWs: 7, TableReads: 1, TableWrites: 1, Clock: 1}, 8)
	mc.CheckCost(t, "Set of a present key", of(func(c *cache) { c.Set(key, 7) }), mc.Cost{Loads: 6, Stores: 1, TableWrites: 1}, 3)
	mc.CheckCost(t, "Set of a present key, whose value the cache closes", changing, mc.Cost{Loads: 12, Stores: 1, RMWs: 7, Blocking: 4, TableReads: 2, TableWrites: 1}, 7, 11.68, 122.34)
	mc.CheckCost(t, "Set of an absent key", eachKey(func(c *cache, k string) { c.Set(k, 7) }), mc.Cost{Loads: 3, Stores: 1, TableWrites: 1}, 2)
	mc.CheckCost(t, "SetIfAbsent of a present key", of(func(c *cache) { c.SetIfAbsent(key, 8) }), mc.Cost{Loads: 2, TableReads: 1}, 0)
	mc.CheckCost(t, "CompareAndDelete of another value", of(func(c *cache) { oncecache.CompareAndDelete(c, key, 8) }), mc.Cost{Loads: 2, TableReads: 1}, 0)
	mc.CheckCost(t, "Delete of an absent key", of(func(c *cache) { c.Delete("absent") }), mc.Cost{Loads: 1, TableReads: 1}, 0)
	mc.CheckCost(t, "Delete of a key whose last value is in use, with CloseBeforeCreate", func() func(int) {
		c := oncecache.MustNew(oncecache.Config[string, int]{CloseBeforeCreate: true, Close: func(string, int) error { return nil }})
		c.Set(key, 7)
		_, _ = c.Acquire(ctx, key, refuse)
		c.Delete(key)
		return func(int) { c.Delete(key) }
	}, mc.Cost{Loads: 2, TableReads: 1}, 0)
	mc.CheckCost(t, "Set, and Delete", eachKey(func(c *cache, k string) { c.Set(k, 7); c.Delete(k) }), mc.Cost{Loads: 7, Stores: 1, TableReads: 1, TableWrites: 2}, 2)
	mc.CheckCost(t, "All of one key", of(func(c *cache) {
		for range c.All() {
		}
	}), mc.Cost{Loads: 2, TableReads: 2}, 0)
	mc.CheckCost(t, "Len", of(func(c *cache) { c.Len() }), mc.Cost{Loads: 3, TableReads: 1}, 0)
	bounds := oncecache.Config[string, int]{MaxEntries: 10}
	mc.CheckCost(t, "Get of a present key, in a cache with bounds", ofConfig(bounds, func(c *cache) { c.Get(key) }), mc.Cost{Loads: 2, TableReads: 1}, 0)
	mc.CheckCost(t, "GetOrCreate of a present key, in a cache with bounds", ofConfig(bounds, func(c *cache) { c.GetOrCreate(key, failing) }), mc.Cost{Loads: 2, TableReads: 1}, 0)
	mc.CheckCost(t, "Acquire of a present key, and Release, in a cache with bounds", ofConfig(bounds, func(c *cache) { l, _ := c.Acquire(ctx, key, refuse); l.Release() }), mc.Cost{Loads: 6, RMWs: 2, TableReads: 1}, 0)
	mc.CheckCost(t, "Set of an absent key, in a cache that is full", func() func(int) {
		set := eachKeyOf(oncecache.Config[string, int]{MaxEntries: 1}, func(c *cache, k string) { c.Set(k, 7) })()
		set(0)
		return set
	}, mc.Cost{Loads: 18, RMWs: 5, Blocking: 4, TableReads: 1, TableWrites: 2, Clock: 1}, 9)
	records := oncecache.Config[string, int]{RecordStats: true}
	mc.CheckCost(t, "GetOrCreate of a present key, with RecordStats", ofConfig(records, func(c *cache) { c.GetOrCreate(key, failing) }), mc.Cost{Loads: 3, RMWs: 1, TableReads: 1}, 0)
	mc.CheckCost(t, "Get of an absent key, with RecordStats", ofConfig(records, func(c *cache) { c.Get("absent") }), mc.Cost{Loads: 1, RMWs: 1, TableReads: 1}, 0)
	mc.CheckCost(t, "GetOrCreate that creates, with RecordStats", eachKeyOf(records, func(c *cache, k string) { c.GetOrCreate(k, one) }), mc.Cost{Loads: 3, Stores: 2, RMWs: 6, TableReads: 1, TableWrites: 1, Clock: 2}, 8)
	expires := oncecache.Config[string, int]{TTLFunc: func(string, int) time.Duration { return math.MaxInt64 }} // there is no timer here
	mc.CheckCost(t, "Get of a present key, in a cache with a TTL", ofConfig(expires, func(c *cache) { c.Get(key) }), mc.Cost{Loads: 2, TableReads: 1}, 0)
	mc.CheckCost(t, "Peek of a present key, in a cache with a TTL", ofConfig(expires, func(c *cache) { c.Peek(key) }), mc.Cost{Loads: 2, TableReads: 1}, 0)
	mc.CheckCost(t, "Set of a present key, in a cache with a TTL", ofConfig(expires, func(c *cache) { c.Set(key, 8) }), mc.Cost{Loads: 8, RMWs: 2, Blocking: 4, TableWrites: 1, Clock: 1}, 5)
	kept := oncecache.Config[string, int]{ErrorTTLFunc: func(string, error) time.Duration { return -1 }}
	mc.CheckCost(t, "GetOrCreate of a key whose error is kept", failedOf(kept, func(c *cache) { c.GetOrCreate(key, one) }), mc.Cost{Loads: 8, TableReads: 1}, 0)
}

// ofConfig is of with settings.
func ofConfig(config oncecache.Config[string, int], op func(*cache)) func() func(int) {
	return func() func(int) {
		c := oncecache.MustNew(config)
		c.Set(key, 7)
		c.Get(key)
		return func(int) { op(c) }
	}
}

// failedOf is ofConfig, where the key has failed.
func failedOf(config oncecache.Config[string, int], op func(*cache)) func() func(int) {
	return func() func(int) {
		c := oncecache.MustNew(config)
		c.GetOrCreate(key, failing)
		return func(int) { op(c) }
	}
}
