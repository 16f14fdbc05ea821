package direct

import (
	"context"

	"example.com/consumer/shape"
	"example.com/consumer/wrapper"
	"github.com/latchfree/latchfree/oncecache"
)

func caches() []shape.Shape {
	const key = "postgres://plans@db-001:5432/tenant"
	ctx, n := context.Background(), 0
	var c oncecache.Cache[string, int]
	owner := oncecache.MustNew(oncecache.Config[string, int]{Close: func(string, int) error { return nil }})
	c.Set(key, 1)
	owner.Set(key, 1)
	create := func(context.Context, string) (int, error) { return 1, nil }
	return []shape.Shape{
		{"Get", 0, func() { c.Get(key) }},
		{"Get, absent", 0, func() { c.Get("absent") }},
		{"GetOrCreate", 0, func() { c.GetOrCreate(key, func() (int, error) { n++; return n, nil }) }},
		{"GetOrCreate through a generic wrapper", 0, func() {
			wrapper.Cached(&c, key, func() (int, error) { n++; return n, nil })
		}},
		{"GetOrCreateContext", 0, func() { c.GetOrCreateContext(ctx, key, create) }},
		{"Acquire, Release", 0, func() { l, _ := c.Acquire(ctx, key, create); l.Release() }},
		{"Acquire, Release, where values are closed", 0, func() { l, _ := owner.Acquire(ctx, key, create); l.Release() }},
		// The entry, and its flight.
		{"GetOrCreate of a new key, and Delete", 2, func() {
			c.GetOrCreate("new", func() (int, error) { n++; return n, nil })
			c.Delete("new")
		}},
	}
}
