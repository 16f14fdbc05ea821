//go:build modelcheck

package shardedregistry_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/mc"
	"github.com/latchfree/latchfree/shardedregistry"
)

// Wait returns what the key holds in the end, or that it is absent, and leaves
// nothing.
func TestWaitProtocols(t *testing.T) {
	for _, tt := range []struct {
		name    string
		cfg     mc.Config
		first   []call
		threads threads
		since   []shardedregistry.Version // of each call of Wait
		want    []string                  // what it may return
	}{
		{"created", mc.Config{}, empty, threads{{create(1)}}, []shardedregistry.Version{0}, []string{"1 <nil>"}},
		{"changed", mc.Config{}, with7, threads{{put(1)}}, []shardedregistry.Version{1}, []string{"2 <nil>"}},
		{"changed twice", mc.Config{}, with7, threads{{put(1), put(2)}}, []shardedregistry.Version{2}, []string{"3 <nil>"}},
		{"two change", mc.Config{}, with7, threads{{put(1)}, {put(2)}}, []shardedregistry.Version{2}, []string{"3 <nil>"}},
		{"deleted", mc.Config{}, with7, threads{{remove}}, []shardedregistry.Version{1}, []string{"0 shardedregistry: key not found"}},
		{"deleted and created", mc.Config{}, with7, threads{{remove, create(5)}}, []shardedregistry.Version{1}, []string{"0 shardedregistry: key not found", "3 <nil>"}},
		{"absent, present", mc.Config{}, without, threads{{create(5)}, {get}}, []shardedregistry.Version{0}, []string{"3 <nil>"}},
		{"two wait", bounded, with7, threads{{put(1)}}, []shardedregistry.Version{1, 1}, []string{"2 <nil>"}},
		{"two wait for versions", bounded, with7, threads{{put(1), put(2)}}, []shardedregistry.Version{1, 2}, []string{"2 <nil>", "3 <nil>"}},
		{"beside another key", mc.Config{}, with7, threads{{put(1), other(create(2))}}, []shardedregistry.Version{1}, []string{"2 <nil>"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var others []string
			for _, since := range tt.since {
				others = append(others, fmt.Sprintf("Wait(%d)", since))
			}
			tt.cfg.Operations = operations(tt.threads, others...)
			mc.Check(t, tt.cfg, func(m *mc.M) {
				r := twoKeys(tt.first)()
				for _, since := range tt.since {
					m.Go(func() {
						e, err := r.Wait(context.Background(), "a", since)
						got := fmt.Sprint(e.Version, " ", err)
						for _, want := range tt.want {
							if got == want && e.Version != since {
								return
							}
						}
						m.Failf("Wait(%d) = %s", since, got)
					})
				}
				for _, calls := range tt.threads {
					doing(m, r, calls)
				}
				m.Final(func() { clean(m, r) })
			})
		})
	}
}

// A call of Wait that its context ends leaves nothing, and wins or loses.
func TestWaitIsCancelled(t *testing.T) {
	cfg := mc.Config{Operations: "Wait(ctx, 1) ∥ cancel ∥ Put"}
	mc.Check(t, cfg, func(m *mc.M) {
		r := twoKeys(with7)()
		ctx, cancel := atomics.WithCancelCause(context.Background())
		m.Go(func() {
			if e, err := r.Wait(ctx, "a", 1); (err != errTest || e.Version != 0) && (err != nil || e.Version != 2) {
				m.Failf("Wait = %v, %v", e, err)
			}
		})
		m.Go(func() { cancel(errTest) })
		doing(m, r, []call{put(1)})
		m.Final(func() { clean(m, r) })
	})
}
