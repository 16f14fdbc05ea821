//go:build modelcheck

package oncecache_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/tools/mc"
	"github.com/latchfree/latchfree/oncecache"
)

// Of those who wait for each other in a circle one gives up, and all end.
func TestProtocolsOfCycles(t *testing.T) {
	for _, tt := range []struct {
		name  string
		how   extent
		other [][]int // what the creations of keys 0, 1, … ask for
		from  []int   // the threads' keys
		want  int     // how many give up
	}{
		{"one of one", everything, [][]int{{0}}, []int{0}, 1},
		{"one goroutine", everything, [][]int{{1}, {0}}, []int{0}, 1},
		{"two goroutines", everything, [][]int{{1}, {0}}, []int{0, 1}, 1},
		{"two, one asks for a third key", everything, [][]int{{1}, {2}, {}}, []int{0, 1}, 0},
		{"two, and one behind them", twice, [][]int{{1}, {0}, {0}}, []int{0, 1, 2}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mc.Check(t, tt.how.of(fmt.Sprintf("from %v, which ask for %v", tt.from, tt.other)), func(m *mc.M) {
				var c oncecache.Cache[int, int]
				var gave mc.Tally
				var create func(context.Context, int) (int, error)
				create = func(ctx context.Context, k int) (int, error) {
					for _, o := range tt.other[k] {
						_, err := c.GetOrCreateContext(context.WithoutCancel(ctx), o, create)
						if cycle := new(oncecache.CycleError); errors.As(err, &cycle) {
							gave.Add(1)
						} else if err != nil {
							m.Failf("%v", err)
						}
					}
					return k, nil
				}
				for _, k := range tt.from {
					m.Go(func() {
						if v, err := c.GetOrCreateContext(context.Background(), k, create); v != k || err != nil {
							m.Failf("%d: %d, %v", k, v, err)
						}
					})
				}
				m.Final(func() {
					if n := gave.Value(); n != tt.want {
						m.Failf("%d give up, want %d", n, tt.want)
					}
				})
			})
		})
	}
}

// The function of one creation may ask for others on several goroutines at once.
// If one of these asks back, somebody gives up, and all end.
func TestProtocolsOfParallelCreations(t *testing.T) {
	for _, back := range []bool{false, true} {
		name := "one asks for two"
		if back {
			name += ", of which one asks back"
		}
		t.Run(name, func(t *testing.T) {
			mc.Check(t, mc.Config{Operations: "GetOrCreateContext: " + name}, func(m *mc.M) {
				var c oncecache.Cache[int, int]
				cycles := 0
				var create func(context.Context, int) (int, error)
				ask := func(ctx context.Context, k int) {
					v, err := c.GetOrCreateContext(context.WithoutCancel(ctx), k, create)
					if cycle := new(oncecache.CycleError); errors.As(err, &cycle) {
						cycles++
					} else if v != k || err != nil {
						m.Failf("%d: %d, %v", k, v, err)
					}
				}
				create = func(ctx context.Context, k int) (int, error) {
					switch {
					case k == 0:
						ended := atomics.MakeEvent()
						atomics.Go(func() {
							ask(ctx, 1)
							ended.Fire()
						})
						ask(ctx, 2)
						ended.Wait()
					case k == 1 && back:
						ask(ctx, 0)
					}
					return k, nil
				}
				m.Go(func() { ask(context.Background(), 0) })
				m.Final(func() {
					if back != (cycles == 1) {
						m.Failf("%d give up", cycles)
					}
				})
			})
		})
	}
}
