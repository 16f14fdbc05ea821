//go:build modelcheck

package cowchangeset_test

import (
	"context"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/internal/mc"
)

// Whoever is refused is told what was decided, and not what was the case before.
func TestAbortProtocols(t *testing.T) {
	ctx := context.Background()
	type world struct {
		m        *mc.M
		c        *cowchangeset.Changeset[int]
		appliers int
		applied  mc.Tally
	}
	apply := func(result error) func(*world) {
		return func(w *world) {
			err := w.c.Apply(ctx, func(context.Context, cowchangeset.Final[int]) error { return result })
			switch {
			case err == result:
				if w.applied.Add(1); result == nil && w.c.Reason() != nil {
					w.m.Failf("applied, and aborted")
				}
			case err == cowchangeset.ErrAborted && w.c.Reason() != nil:
			case (err == cowchangeset.ErrApplying || err == cowchangeset.ErrApplied) && w.appliers > 1:
			default:
				w.m.Failf("Apply: %v", err)
			}
		}
	}
	abort := func(w *world) {
		switch err := w.c.Abort(ctx, errDisk); {
		case err == nil && w.c.Reason() == errDisk:
		case err == cowchangeset.ErrApplying && w.appliers > 0:
		case err == cowchangeset.ErrApplied && w.appliers > 0 && w.c.Applied() == cowchangeset.AllApplied:
		default:
			w.m.Failf("Abort: %v, because of %v", err, w.c.Reason())
		}
	}
	for operations, tt := range map[string]struct {
		cfg      mc.Config
		appliers int
		threads  []func(*world)
	}{
		"Apply ∥ Abort":                {mc.Config{}, 1, []func(*world){apply(nil), abort}},
		"Apply(error) ∥ Abort":         {mc.Config{}, 1, []func(*world){apply(errDisk), abort}},
		"Abort ∥ Abort":                {mc.Config{}, 0, []func(*world){abort, abort}},
		"Apply(error) ∥ Abort ∥ Abort": {mc.Config{}, 1, []func(*world){apply(errDisk), abort, abort}},
		"Apply ∥ Apply(error) ∥ Abort": {mc.Config{}, 2, []func(*world){apply(nil), apply(errDisk), abort}},
		"Apply(error), Apply ∥ Abort":  {mc.Config{}, 1, []func(*world){func(w *world) { apply(errDisk)(w); apply(nil)(w) }, abort}},
		"Apply(error), Abort ∥ Apply":  {mc.Config{}, 2, []func(*world){func(w *world) { apply(errDisk)(w); abort(w) }, apply(nil)}},
	} {
		t.Run(operations, func(t *testing.T) {
			tt.cfg.Operations = operations
			mc.Check(t, tt.cfg, func(m *mc.M) {
				w := &world{m: m, appliers: tt.appliers}
				w.c, _ = new(cowchangeset.Tracker[int]).Start(ctx)
				w.c.Seal(ctx) // that is explored elsewhere
				for _, do := range tt.threads {
					m.Go(func() { do(w) })
				}
			})
		})
	}
	t.Run("Abort ∥ Reason, Record", func(t *testing.T) {
		mc.Check(t, mc.Config{Operations: "Abort ∥ Reason, Record"}, func(m *mc.M) {
			c, _ := new(cowchangeset.Tracker[int]).Start(ctx)
			m.Go(func() { c.Abort(ctx, errDisk) })
			m.Go(func() {
				switch why := c.Reason(); why {
				case nil:
				case errDisk:
					if _, err := c.Record(1); err != cowchangeset.ErrSealed {
						m.Failf("recorded into what is aborted")
					}
				default:
					m.Failf("aborted because of %v", why)
				}
			})
		})
	})
}
