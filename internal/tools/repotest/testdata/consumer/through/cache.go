package through

import (
	"context"

	"example.com/consumer/shape"
	"example.com/consumer/wrapper"
)

func caches() []shape.Shape {
	const name = "postgres://plans@db-001:5432/tenant"
	ctx, n := context.Background(), 0
	p := new(wrapper.Pool)
	p.Put(name, 1)
	opener := p.Opener(func(name string) (int, error) { n++; return n, nil })
	open := func(_ context.Context, name string) (int, error) { return len(name), nil }
	return []shape.Shape{
		{"Get", 0, func() { p.Get(name) }},
		{"Get, absent", 0, func() { p.Get("absent") }},
		{"GetOrCreate", 0, func() { p.Open(name, func() (int, error) { n++; return n, nil }) }},
		{"GetOrCreate without results", 0, func() { p.Warm(name, func() (int, error) { n++; return n, nil }) }},
		{"GetOrCreate in a loop", 0, func() {
			for i := range 3 {
				p.Open(name, func() (int, error) { n += i; return n, nil })
			}
		}},
		{"GetOrCreate of the wrapper's closure", 0, func() { p.OpenSum(name, n, n) }},
		{"GetOrCreate in a closure of the wrapper's", 0, func() { opener(name) }},
		{"GetOrCreateContext", 0, func() { p.OpenContext(ctx, name, open) }},
		{"Acquire, Release", 0, func() { p.Borrow(ctx, name, open) }},
	}
}
