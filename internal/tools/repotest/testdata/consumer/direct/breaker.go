package direct

import (
	"context"
	"time"

	"example.com/consumer/shape"
	"example.com/consumer/wrapper"
	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/atomicbreaker/throttle"
)

func breakers() []shape.Shape {
	const host, shard = "db-001.example.com", 1 << 40
	ctx, n := context.Background(), 0
	var b, open atomicbreaker.Breaker
	var client wrapper.Client
	var backend throttle.Throttle
	var hosts atomicbreaker.Group[string]
	var shards atomicbreaker.Group[int]
	open.Trip(time.Hour)
	hosts.Trip("down", time.Hour)
	shards.Trip(1, time.Hour)
	return []shape.Shape{
		{"Allow, Success", 0, func() { p, _ := b.Allow(); p.Success() }},
		{"Allow, Done", 0, func() { p, _ := b.Allow(); p.Done(nil) }},
		{"Allow, Failure, Allow, Success", 0, func() { p, _ := b.Allow(); p.Failure(); p, _ = b.Allow(); p.Success() }},
		{"Execute", 0, func() { atomicbreaker.Execute(&b, func() (int, error) { n++; return n, nil }) }},
		{"Execute in a loop", 0, func() {
			for i := range 3 {
				atomicbreaker.Execute(&b, func() (int, error) { n += i; return n, nil })
			}
		}},
		{"Execute, deferred", 0, func() {
			defer atomicbreaker.Execute(&b, func() (int, error) { n++; return n, nil })
		}},
		{"Execute through a generic wrapper", 0, func() {
			wrapper.Fetch(&client, func() (float64, error) { n++; return 0, nil })
		}},
		{"ExecuteContext", 0, func() {
			atomicbreaker.ExecuteContext(ctx, &b, func(context.Context) (int, error) { n++; return n, nil })
		}},
		{"Do", 0, func() { b.Do(ctx, func(context.Context) error { n++; return nil }) }},
		{"Throttle.Do", 0, func() { backend.Do(ctx, func(context.Context) error { n++; return nil }) }},
		{"Group.Allow, Success, a string", 0, func() { p, _ := hosts.Allow(host); p.Success() }},
		{"Group.Allow, Success, an int", 0, func() { p, _ := shards.Allow(shard); p.Success() }},
		{"Group.Do, a string", 0, func() { hosts.Do(ctx, host, func(context.Context) error { n++; return nil }) }},
		{"Group.Do, an int", 0, func() { shards.Do(ctx, shard, func(context.Context) error { n++; return nil }) }},
		{"Group.Do through a generic wrapper", 0, func() {
			wrapper.DoKey(ctx, &hosts, host, func(context.Context) error { n++; return nil })
		}},
		{"Allow, rejected", 0, func() { open.Allow() }},
		{"Execute, rejected", 0, func() { atomicbreaker.Execute(&open, func() (int, error) { n++; return n, nil }) }},
		{"ExecuteResult", 0, func() {
			atomicbreaker.ExecuteResult(ctx, &b, func(context.Context) (int, error) { n++; return n, nil },
				func(int, error) atomicbreaker.Outcome { n++; return atomicbreaker.Success })
		}},
		{"ExecuteContext, rejected", 0, func() {
			atomicbreaker.ExecuteContext(ctx, &open, func(context.Context) (int, error) { n++; return n, nil })
		}},
		{"Do, rejected", 0, func() { open.Do(ctx, func(context.Context) error { n++; return nil }) }},
		{"Group.Allow, rejected, a string", 0, func() { hosts.Allow("down") }},
		{"Group.Allow, rejected, an int", 0, func() { shards.Allow(1) }},
		{"Group.Do, rejected", 0, func() { hosts.Do(ctx, "down", func(context.Context) error { n++; return nil }) }},
	}
}
