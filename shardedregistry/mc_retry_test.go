//go:build modelcheck

package shardedregistry_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/latchfree/latchfree/internal/mc"
	"github.com/latchfree/latchfree/shardedregistry"
)

// overtaken explores an Update of the key a by fn, which is given the number of
// its run, while another thread changes a several times, which must not fail. It
// requires an error of Update and a number of runs.
func overtaken(t *testing.T, cfg mc.Config, want error, runs int, fn func(r *shardedregistry.Registry[string, int], run int), others int) {
	t.Helper()
	cfg.Operations = fmt.Sprintf("Update ∥ %d × Put", others)
	mc.Check(t, cfg, func(m *mc.M) {
		r := oneShard()
		r.Put("a", 0)
		var err error
		ran := 0
		m.Go(func() {
			_, err = r.Update("a", func(v int) (int, error) {
				ran++
				fn(r, ran)
				return v, nil
			})
		})
		m.Go(func() {
			for range others {
				if _, err := r.Put("a", 1); err != nil && want == nil { // a selfish one overtakes it as often as the bound is here
					m.Failf("the other's Put = %v", err)
				}
			}
		})
		m.Final(func() {
			if !errors.Is(err, want) || ran < runs {
				m.Failf("Update = %v after %d runs, want %v after at least %d", err, ran, want, runs)
			}
		})
	})
}

// A function that changes its own key in every run is found out, whatever
// others do meanwhile.
func TestSelfishProtocols(t *testing.T) {
	for _, tt := range []struct {
		name   string
		cfg    mc.Config
		change func(r *shardedregistry.Registry[string, int], run int)
	}{
		{"Put", mc.Config{}, func(r *shardedregistry.Registry[string, int], run int) { r.Put("a", run) }},
		{"Update", mc.Config{}, func(r *shardedregistry.Registry[string, int], run int) {
			r.Update("a", func(v int) (int, error) { return v + run, nil })
		}},
		{"Delete and Put", mc.Config{Mode: mc.Bounded, Preemptions: 2}, func(r *shardedregistry.Registry[string, int], run int) {
			r.Delete("a")
			r.Put("a", run)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			overtaken(t, tt.cfg, shardedregistry.ErrTooManyRetries, shardedregistry.MaxAttempts, tt.change, 1)
		})
	}
}

// A function that changes its own key in fewer runs in a row is not, and
// neither is one that only others overtake.
func TestInnocentProtocols(t *testing.T) {
	for _, tt := range []struct {
		name   string
		guilty int // the last run in which the function changes its key
		others int
	}{
		{"contention", 0, 3},
		{"guilty once", 1, 2},
		{"guilty in all runs but the last two", shardedregistry.MaxAttempts - 2, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			overtaken(t, mc.Config{}, nil, 1+tt.guilty, func(r *shardedregistry.Registry[string, int], run int) {
				if run <= tt.guilty {
					r.Put("a", run)
				}
			}, tt.others)
		})
	}
}
