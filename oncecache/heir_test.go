//go:build !modelcheck

package oncecache_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/latchfree/latchfree/oncecache"
)

// Reported bug 13, Tailscale, net/http: a late caller gets the cancelled call's error.
// T13 tailscale #18919, T14 janos #4: when all have left, the creation is
// cancelled, but it stays the only one. An heir waits for its end, takes a
// late success (T21), and otherwise creates anew; it never gets the error of
// the creation that was cancelled.
func TestT13_Heirs(t *testing.T) {
	for _, tt := range endings {
		for _, plain := range []bool{false, true} {
			t.Run(tt.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var c oncecache.Cache[string, int]
					p := newPilot()
					a := asks(t, &c, p.create)
					flight := <-p.ctx
					b := asks(t, &c, nil)
					synctest.Wait()
					a.leave()
					b.leave()
					wantAll(t, []*call{a.call, b.call}, left)
					synctest.Wait()
					if !cancelled(flight) {
						t.Fatal("the creation is not cancelled")
					}

					next := newPilot()
					heirs := []*call{asks(t, &c, next.create).call, asks(t, &c, next.create).call}
					if plain {
						heirs = []*call{begins(&c, next), begins(&c, next)}
					}
					goner := asks(t, &c, nil)
					synctest.Wait()
					goner.leave()
					wantAll(t, []*call{goner.call}, left)
					if next.began != 0 {
						t.Fatal("an heir creates while the first creation runs")
					}
					wantLen(t, &c, 0)

					p.end <- tt.end
					synctest.Wait()
					want := result{value: 7}
					if tt.name != "value" {
						if next.began != 1 {
							t.Fatalf("%d heirs create, want 1", next.began)
						}
						next.end <- with(8)
						want = result{value: 8}
					}
					wantAll(t, heirs, want)
					wantGet(t, &c, "k", want.value)
					wantLen(t, &c, 1)
				})
			})
		}
	}
}

// begins asks by a plain GetOrCreate with a function of p.
func begins(c *oncecache.Cache[string, int], p *pilot) *call {
	return start(c, "k", func() (int, error) {
		p.began++
		return (<-p.end)()
	})
}

// Reported bug 17, pgx, puddle: dials are given up with their requests.
// T17 puddle #21: what has begun is finished if one caller never leaves: a call on a goroutine
// of its own, whose context does not end.
func TestT17_CreationGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c oncecache.Cache[string, int]
		p := newPilot()
		type tenant struct{}
		ctx, leave := context.WithCancel(context.WithValue(t.Context(), tenant{}, 7))
		go func() {
			if v, err := c.GetOrCreateContext(context.WithoutCancel(ctx), "k", p.create); v != 1 || err != nil {
				t.Errorf("the call that stays gets %d, %v", v, err)
			}
		}()
		flight := <-p.ctx
		asker := asks(t, &c, nil)
		synctest.Wait()
		leave()
		asker.leave()
		wantAll(t, []*call{asker.call}, left)
		synctest.Wait()
		if cancelled(flight) {
			t.Error("the creation is cancelled")
		}
		if flight.Value(tenant{}) != 7 {
			t.Error("the creation has lost the values of its context")
		}
		p.end <- with(1)
		synctest.Wait()
		wantGet(t, &c, "k", 1)
	})
}

// Delete hides a creation, and those who take part in it may leave as before.
func TestDeleteInFlightThenLeave(t *testing.T) {
	for _, tt := range endings {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var c oncecache.Cache[string, int]
				p := newPilot()
				a := asks(t, &c, p.create)
				flight := <-p.ctx
				b := asks(t, &c, nil)
				synctest.Wait()
				c.Delete("k")
				a.leave()
				wantAll(t, []*call{a.call}, left)
				if cancelled(flight) {
					t.Error("the creation is cancelled while somebody waits")
				}
				b.leave()
				wantAll(t, []*call{b.call}, left)
				synctest.Wait()
				if !cancelled(flight) {
					t.Error("the creation is not cancelled")
				}
				if v, err := c.GetOrCreate("k", with(50)); v != 50 || err != nil {
					t.Error(v, err)
				}
				p.end <- tt.end
				synctest.Wait()
				wantGet(t, &c, "k", 50)
			})
		})
	}
}
