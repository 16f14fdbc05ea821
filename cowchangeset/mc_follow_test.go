//go:build modelcheck

package cowchangeset_test

import (
	"context"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/tools/mc"
)

// A Follow of a tracker sleeps while there is nothing, also while nothing has been
// started after what is sealed, and misses neither an entry nor a Start.
func TestTrackerFollowProtocols(t *testing.T) {
	ctx := context.Background()
	type tracker = *cowchangeset.Tracker[int]
	follows := func(m *mc.M, tr tracker) {
		want := 1
		for r, e := range tr.Follow(ctx, cowchangeset.Receipt{}) {
			if e != want || int(r.Ordinal) < e {
				m.Failf("a Follow has seen %d at %v, want %d", e, r, want)
			}
			if want++; want == 3 {
				return
			}
		}
	}
	start := func(_ *mc.M, tr tracker) { tr.Start(ctx) }
	both := func(_ *mc.M, tr tracker) { tr.Start(ctx); tr.Record(2) }
	few := func(n int) mc.Config { return mc.Config{Mode: mc.Bounded, Preemptions: n} }
	type threads = []func(*mc.M, tracker)
	for name, tt := range map[string]struct {
		cfg     mc.Config
		sealed  bool // before they begin, and otherwise by a Start
		threads threads
	}{
		"Follow ∥ Start, Record":                    {mc.Config{}, false, threads{follows, both}},
		"Seal, and Follow ∥ Start, Record":          {mc.Config{}, true, threads{follows, both}},
		"Seal, and Follow ∥ Start ∥ Start, Record":  {few(2), true, threads{follows, start, both}},
		"Seal, and Follow ∥ Follow ∥ Start, Record": {few(2), true, threads{follows, follows, both}},
	} {
		t.Run(name, func(t *testing.T) {
			tt.cfg.Operations = name
			mc.Check(t, tt.cfg, func(m *mc.M) {
				tr := new(cowchangeset.Tracker[int])
				c, _ := tr.Start(ctx)
				tr.Record(1)
				if tt.sealed {
					c.Seal(ctx)
				}
				for _, do := range tt.threads {
					m.Go(func() { do(m, tr) })
				}
			})
		})
	}
	t.Run("Follow(ctx) ∥ cancel ∥ Start", func(t *testing.T) {
		mc.Check(t, mc.Config{Operations: "Follow(ctx) ∥ cancel ∥ Start"}, func(m *mc.M) {
			tr := new(cowchangeset.Tracker[int])
			ended, end := atomics.WithCancel(ctx)
			m.Go(func() {
				for range tr.Follow(ended, cowchangeset.Receipt{}) {
				}
			})
			m.Go(func() { end() })
			m.Go(func() { tr.Start(ctx) })
		})
	})
}

// Once the tracker is known to have moved on, no Follow sleeps that waits for that, also
// where the Start stalls before it has woken them.
func TestStartNotifiesAll(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "Start ∥ Current of a sleeping Follow"}, func(m *mc.M) {
		ctx := context.Background()
		tr := new(cowchangeset.Tracker[int])
		c, _ := tr.Start(ctx)
		c.Seal(ctx)
		woken := tr.Sleep()
		m.Go(func() { tr.Start(ctx) })
		m.Go(func() {
			if c, _ := tr.Current(); c.Ordinal() == 2 && !woken() {
				m.Failf("number 2 is the latest, and somebody sleeps")
			}
		})
	})
}

// A goroutine that has the next changeset can record there, and its entries are in a
// trail that it takes afterwards: the changeset before is sealed, and the tracker has
// moved on.
func TestNextProtocols(t *testing.T) {
	ctx := context.Background()
	for name, others := range map[string]int{"Start ∥ Next, Record, Trail": 1, "Start ∥ Start ∥ Next, Record, Trail": 2} {
		t.Run(name, func(t *testing.T) {
			cfg := mc.Config{Operations: name}
			if others > 1 {
				cfg.Mode, cfg.Preemptions = mc.Bounded, 2
			}
			mc.Check(t, cfg, func(m *mc.M) {
				tr := new(cowchangeset.Tracker[int])
				c, _ := tr.Start(ctx)
				for range others {
					m.Go(func() { tr.Start(ctx) })
				}
				m.Go(func() {
					n := c.Next()
					if n == nil {
						return
					}
					if _, err := c.Record(1); err != cowchangeset.ErrSealed {
						m.Failf("Record into the one before: %v", err)
					}
					if _, err := n.Record(2); err == nil && tr.Trail().Len() != 1 {
						m.Failf("a trail does not have what was recorded before it")
					}
				})
			})
		})
	}
}
