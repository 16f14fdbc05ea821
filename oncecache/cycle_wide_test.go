//go:build !modelcheck

package oncecache_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/latchfree/latchfree/oncecache"
)

var errGoesOn = errors.New("goes on")

// A creation that waits for many others at once is found by way of each of them,
// the oldest and the newest, whichever have ended meanwhile.
func TestCyclesOfWideWaits(t *testing.T) {
	const wide = 40
	for every := range 4 { // of the waits, one in so many ends soon
		t.Run(fmt.Sprint(every), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var c oncecache.Cache[int, int]
				var ask [wide]chan bool
				var waits [wide]*call
				ready, end := make(chan struct{}), make(chan struct{})
				root := startCall(func() (int, error) {
					return c.GetOrCreateContext(t.Context(), -1, func(ctx context.Context, _ int) (int, error) {
						for k := range wide {
							ask[k] = make(chan bool)
							waits[k] = startCall(func() (int, error) {
								return c.GetOrCreateContext(ctx, k, func(ctx context.Context, k int) (int, error) {
									if <-ask[k] {
										return c.Wait(ctx, -1)
									}
									return k, nil
								})
							})
							synctest.Wait()
							if ended := k - 1; every > 0 && k%every == 0 && ended >= 0 {
								ask[ended] <- false
								synctest.Wait()
							}
						}
						close(ready)
						<-end
						return 0, errGoesOn
					})
				})
				<-ready
				for k := range wide {
					select {
					case <-waits[k].done:
						continue
					default:
					}
					ask[k] <- true
					wantCycle(t, waits[k].wait(t).err, k, -1, k)
				}
				close(end)
				wantAll(t, []*call{root}, result{err: errGoesOn})
			})
		})
	}
}

// Whoever looks for a cycle comes to each creation once, however many ways lead
// there: here 2 to the power of 40.
func TestCyclesOfManyWays(t *testing.T) {
	const layers = 40
	synctest.Test(t, func(t *testing.T) {
		var c oncecache.Cache[int, int]
		end := make(chan struct{})
		var below func(ctx context.Context, k int) (int, error)
		below = func(ctx context.Context, k int) (int, error) {
			next := (k/2 + 1) * 2
			if next >= 2*layers {
				<-end
				return 1, nil
			}
			left := startCall(func() (int, error) { return c.GetOrCreateContext(ctx, next, below) })
			right := startCall(func() (int, error) { return c.GetOrCreateContext(ctx, next+1, below) })
			wantAll(t, []*call{left, right}, result{value: 1})
			return 1, nil
		}
		top := startCall(func() (int, error) { return c.GetOrCreateContext(t.Context(), 0, below) })
		synctest.Wait()
		looks := startCall(func() (int, error) {
			return c.GetOrCreateContext(t.Context(), -1, func(ctx context.Context, _ int) (int, error) { return c.Wait(ctx, 0) })
		})
		synctest.Wait()
		close(end)
		wantAll(t, []*call{top, looks}, result{value: 1})
	})
}
