//go:build modelcheck

package oncecache_test

import (
	"context"
	"errors"
	"testing"

	"github.com/latchfree/latchfree/internal/mc"
	"github.com/latchfree/latchfree/oncecache"
)

// makes counts the creations of each of two keys.
type makes [2]mc.Tally

// create creates k, whose value is 10 k, and checks what it gets.
func (n *makes) create(m *mc.M, c *oncecache.Cache[int, int], k int) {
	if v, err := c.GetOrCreate(k, func() (int, error) { n[k].Add(1); return 10 * k, nil }); v != 10*k || err != nil {
		m.Failf("%d has %d, %v", k, v, err)
	}
}

// A spare serves one creation after another, while calls that have met an earlier one are not done:
// there is one spare, so that the creations of both keys use it.
func TestProtocolsOfSpares(t *testing.T) {
	type cache = *oncecache.Cache[int, int]
	for _, tt := range []struct {
		name    string
		explore extent
		others  []func(m *mc.M, c cache, n *makes)
		most    [2]int // how often each key may be created
		gone    int    // which key may have no value in the end, plus one
	}{
		{"GetOrCreate(0)", everything, []func(*mc.M, cache, *makes){
			func(m *mc.M, c cache, n *makes) { n.create(m, c, 0) },
		}, [2]int{1, 1}, 0},
		{"GetOrCreate(0) ∥ GetOrCreate(1)", twice, []func(*mc.M, cache, *makes){
			func(m *mc.M, c cache, n *makes) { n.create(m, c, 0) },
			func(m *mc.M, c cache, n *makes) { n.create(m, c, 1) },
		}, [2]int{1, 1}, 0},
		{"Delete(0)", everything, []func(*mc.M, cache, *makes){
			func(m *mc.M, c cache, n *makes) { c.Delete(0) },
		}, [2]int{1, 1}, 1},
		{"Set(0)", everything, []func(*mc.M, cache, *makes){
			func(m *mc.M, c cache, n *makes) { c.Set(0, 0) },
		}, [2]int{1, 1}, 0},
		{"Delete(0), GetOrCreate(0)", everything, []func(*mc.M, cache, *makes){
			func(m *mc.M, c cache, n *makes) { c.Delete(0); n.create(m, c, 0) },
		}, [2]int{2, 1}, 0},
		{"InFlight", everything, []func(*mc.M, cache, *makes){
			func(m *mc.M, c cache, n *makes) {
				for f := range c.InFlight() {
					if f.Key > 1 || f.Waiting != 0 {
						m.Failf("in flight: %v", f)
					}
				}
			},
		}, [2]int{1, 1}, 0},
		{"Len", everything, []func(*mc.M, cache, *makes){
			func(m *mc.M, c cache, n *makes) {
				if l := c.Len(); l > 2 {
					m.Failf("Len() = %d", l)
				}
			},
		}, [2]int{1, 1}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mc.Check(t, tt.explore.of("GetOrCreate(0), GetOrCreate(1) ∥ "+tt.name), func(m *mc.M) {
				var n makes
				c := new(oncecache.Cache[int, int])
				c.Len()
				c.Get(0)
				m.Go(func() { n.create(m, c, 0); n.create(m, c, 1) })
				for _, other := range tt.others {
					m.Go(func() { other(m, c, &n) })
				}
				m.Final(func() {
					left, pending := 0, oncecache.Pending(c)
					for k := range n {
						v, ok := c.Get(k)
						if made := n[k].Value(); v != 10*k && ok || !ok && tt.gone != k+1 || made > tt.most[k] {
							m.Failf("%d has %d, %t, and was created %d times", k, v, ok, made)
						}
						if ok {
							left++
						}
					}
					creating, entries := oncecache.Creating(c)
					if creating != 0 || pending != 0 || entries != left || c.Len() != left {
						m.Failf("%d entries, %d of them being created, %d pending, Len() = %d, want %d", entries, creating, pending, c.Len(), left)
					}
					if s := c.Stats(); s.Created != uint64(n[0].Value()+n[1].Value()) {
						m.Failf("%d are created, want %d and %d", s.Created, n[0].Value(), n[1].Value())
					}
				})
			})
		})
	}
}

// A creation that asks for its own key is told so, and nobody else, though the spare that knows its
// goroutine is used again at once.
func TestSparesKnowTheirCreators(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "GetOrCreate(0), GetOrCreate(1) in which GetOrCreate(1) ∥ GetOrCreate(0)"}, func(m *mc.M) {
		var n makes
		c := new(oncecache.Cache[int, int])
		c.Len()
		m.Go(func() {
			n.create(m, c, 0)
			_, err := c.GetOrCreate(1, func() (int, error) { return c.GetOrCreate(1, func() (int, error) { return 0, nil }) })
			if !errors.As(err, new(*oncecache.CycleError)) {
				m.Failf("1 has %v", err)
			}
		})
		m.Go(func() { n.create(m, c, 0) })
	})
}

// Close waits for nothing in a cache that was closed, whoever asks it for keys.
func TestClosedCacheHasNoPending(t *testing.T) {
	ended, end := context.WithCancel(context.Background())
	end()
	mc.Check(t, mc.Config{Operations: "GetOrCreate ∥ Close, in a cache that is closed"}, func(m *mc.M) {
		c := new(oncecache.Cache[int, int])
		if err := c.Close(ended); err != nil {
			m.Failf("Close() = %v", err)
		}
		m.Go(func() {
			if _, err := c.GetOrCreate(0, func() (int, error) { return 0, nil }); err != oncecache.ErrClosed {
				m.Failf("0 has %v", err)
			}
		})
		m.Go(func() {
			if err := c.Close(ended); err != nil {
				m.Failf("Close() = %v", err)
			}
		})
	})
}
