//go:build modelcheck

package cowchangeset_test

import (
	"context"
	"errors"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/internal/mc"
)

// A store that is a Pruner is told of all that was forgotten, in order and although
// nobody waits for it; with failures, when somebody tries again.
func TestPrunerProtocols(t *testing.T) {
	ctx := context.Background()
	type world struct {
		m       *mc.M
		tracker *cowchangeset.Tracker[int]
		store   *forgetful
	}
	prune := func(w world) { w.tracker.Prune(1) }
	pruneOne := func(w world) { w.tracker.Prune(2) }
	start := func(w world) {
		if _, err := w.tracker.Start(ctx); err != nil {
			w.m.Failf("Start: %v", err)
		}
	}
	flush := func(w world) {
		first := w.tracker.FirstOrdinal()
		err := w.tracker.Flush(ctx)
		if err != nil && !errors.Is(err, errDisk) {
			w.m.Failf("Flush: %v", err)
		}
		if w.store.mu.Lock(); err == nil && first > 1 && w.store.before < first {
			w.m.Failf("flushed, and the store has forgotten what is before %d, not %d", w.store.before, first)
		}
		w.store.mu.Unlock()
	}
	few := func(n int) mc.Config { return mc.Config{Mode: mc.Bounded, Preemptions: n} }
	for operations, tt := range map[string]struct {
		cfg     mc.Config
		faults  []string
		threads []func(world)
	}{
		"Prune(1) ∥ Prune(2)":                         {mc.Config{}, nil, []func(world){prune, pruneOne}},
		"Prune(2), Prune(1) ∥ Prune(1)":               {few(1), nil, []func(world){func(w world) { pruneOne(w); prune(w) }, prune}},
		"Prune(1) ∥ Start, Prune(1)":                  {few(0), nil, []func(world){prune, func(w world) { start(w); prune(w) }}},
		"Prune(1), Flush ∥ Prune(2)":                  {mc.Config{}, nil, []func(world){func(w world) { prune(w); flush(w) }, pruneOne}},
		"Prune(2) ∥ Prune(1), Flush; the store fails": {few(1), []string{"Prune"}, []func(world){pruneOne, func(w world) { prune(w); flush(w) }}},
	} {
		t.Run(operations, func(t *testing.T) {
			tt.cfg.Operations = operations
			mc.Check(t, tt.cfg, func(m *mc.M) {
				w := world{m: m}
				w.tracker, w.store = forgetting(cowchangeset.Config[int]{StoreTimeout: -1})
				for range 3 {
					start(w)
				}
				if err := w.tracker.Flush(ctx); err != nil {
					m.Failf("%v", err)
				}
				step(m, w.store.memory, tt.faults...)
				for _, do := range tt.threads {
					m.Go(func() { do(w) })
				}
				m.Final(func() {
					if len(tt.faults) > 0 {
						w.store.faults(nil)
						flush(w)
					}
					if first := w.tracker.FirstOrdinal(); first == 1 || w.store.before != first {
						m.Failf("the first one is number %d, and the store has forgotten what is before %d", first, w.store.before)
					}
					for _, s := range w.store.blunders() {
						m.Failf("the tracker's mistake: %s, after %q", s, w.store.called())
					}
				})
			})
		})
	}
}
