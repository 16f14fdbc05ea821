// Package functions is as package through, but mentions no type either that holds
// one of the four packages': where it does, the compiler knows all methods.
package functions

import (
	"context"

	"example.com/consumer/shape"
	"example.com/consumer/wrapper"
)

// Shapes returns all calls of this package.
func Shapes() []shape.Shape {
	const host, shard = "db-001.example.com", 1 << 40
	ctx, n := context.Background(), 0
	open := func(_ context.Context, name string) (int, error) { return len(name), nil }
	return []shape.Shape{
		{"through a function, Group.Do, a string", 0, func() {
			wrapper.DoHost(ctx, host, func(context.Context) error { n++; return nil })
		}},
		{"through a function, Group.Do without a result", 0, func() {
			wrapper.TryHost(ctx, host, func(context.Context) error { n++; return nil })
		}},
		{"through a function, Group.Do, an int", 0, func() {
			wrapper.DoShard(ctx, shard, func(context.Context) error { n++; return nil })
		}},
		{"through a function, Group.Allow, Success", 0, func() { wrapper.AskHost(host) }},
		{"through a function, Cache.Get", 0, func() { wrapper.Value("ann") }},
		{"through a function, GetOrCreate", 0, func() {
			wrapper.Open("ann", func() (int, error) { n++; return n, nil })
		}},
		{"through a function, GetOrCreate without results", 0, func() {
			wrapper.Warm("ann", func() (int, error) { n++; return n, nil })
		}},
		{"through a function, Acquire, Release", 0, func() { wrapper.Borrow(ctx, "ann", open) }},
		{"through a function, Registry.Get", 0, func() { wrapper.Age("ann") }},
		{"through a function, Ref.Get", 0, func() { wrapper.RootAge() }},
	}
}
