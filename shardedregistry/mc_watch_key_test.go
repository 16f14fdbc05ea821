//go:build modelcheck

package shardedregistry_test

import (
	"testing"

	"github.com/latchfree/latchfree/internal/mc"
	"github.com/latchfree/latchfree/shardedregistry"
)

// A loop that is told of one key only sees how that ends, and nothing is kept or left for
// it at others: what is deleted leaves the table, and old records are forgotten, while the
// loop has not ended.
func TestLoopOfOneKeyProtocols(t *testing.T) {
	for _, tt := range []struct {
		name    string
		stream  mc.Config
		threads threads
		held    []int
	}{
		{"a change of each", mc.Config{}, threads{{other(put(1)), put(1)}}, []int{7, 1}},
		{"changes of both", mc.Config{}, threads{{other(put(1)), other(put(2))}, {put(1)}}, []int{7, 1}},
		{"the other is deleted", mc.Config{}, threads{{put(1)}, {other(remove)}}, []int{7, 1}},
		{"the other comes and goes", mc.Config{}, threads{{other(remove), other(create(5)), put(1)}}, []int{7, 1}},
		{"both are deleted", bounded, threads{{other(remove), remove}}, []int{7, 0}},
	} {
		t.Run(tt.name+", Watch", func(t *testing.T) {
			mc.Check(t, mc.Config{Operations: operations(tt.threads, "Watch of a")}, func(m *mc.M) {
				r := twoKeys(both7)()
				w := shardedregistry.SubscribeTo(r, "a")
				m.Go(func() { follow(m, w, 2, tt.held...) })
				for _, calls := range tt.threads {
					doing(m, r, calls)
				}
				m.Final(func() { clean(m, r) })
			})
		})
		t.Run(tt.name+", WatchFrom", func(t *testing.T) {
			tt.stream.Operations = operations(tt.threads, "WatchFrom of a")
			mc.Check(t, tt.stream, func(m *mc.M) {
				r := remembered(64, both7)
				from := r.Revision()
				m.Go(func() { readOn(m, r, from, 1, 2, shardedregistry.Keys("a")) })
				for _, calls := range tt.threads {
					doing(m, r, calls)
				}
				m.Final(func() { clean(m, r) })
			})
		})
	}
}
