package breaker_test

import (
	"context"
	"testing"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/cluster/breaker"
	"github.com/latchfree/latchfree/cluster/internal/natstest"
)

// One operation is a healthy call through a group of one replica, or through a group
// that knows no others.
func BenchmarkHealthyCall(b *testing.B) {
	ctx, call := context.Background(), func(context.Context) error { return nil }
	b.Run("impl=cluster", func(b *testing.B) {
		g, err := breaker.NewGroup(natstest.Start(b, 1).JetStream(), breaker.Config[string]{Stream: "hints"})
		if err != nil {
			b.Fatal(err)
		}
		defer g.Close()
		for b.Loop() {
			g.Do(ctx, "db-1", call)
		}
	})
	b.Run("impl=local", func(b *testing.B) {
		var g atomicbreaker.Group[string]
		for b.Loop() {
			g.Do(ctx, "db-1", call)
		}
	})
}

// One operation is a trip, until another replica has heard of it, and a reset.
func BenchmarkTripHeard(b *testing.B) {
	for _, servers := range []int{1, 3} {
		b.Run(map[int]string{1: "servers=1", 3: "servers=3"}[servers], func(b *testing.B) {
			c := natstest.Start(b, servers)
			group := func() *breaker.Group[string] {
				g, err := breaker.NewGroup(c.JetStream(), breaker.Config[string]{Stream: "hints", StreamReplicas: servers})
				if err != nil {
					b.Fatal(err)
				}
				b.Cleanup(g.Close)
				if err := g.Wait(context.Background()); err != nil {
					b.Fatal(err)
				}
				return g
			}
			x, y := group(), group()
			for b.Loop() {
				x.ForceOpen("db")
				for y.State("db") != atomicbreaker.ForcedOpen {
				}
				x.Reset("db")
				for y.State("db") != atomicbreaker.Closed {
				}
			}
		})
	}
}
