//go:build modelcheck

package shardedregistry_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/internal/mc"
	"github.com/latchfree/latchfree/shardedregistry"
)

// suspicion explores an Update of the key a by fn, which is given the number of
// its run, while another thread changes a several times, which must not fail. It
// requires an error of Update and a number of runs.
func suspicion(t *testing.T, cfg mc.Config, want error, runs int, fn func(r *shardedregistry.Registry[string, int], run int), others int) {
	t.Helper()
	cfg.Operations = fmt.Sprintf("Update ∥ %d × Upsert", others)
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
				if _, err := r.Upsert("a", func(v int, _ bool) (int, error) { return v + 1, nil }); err != nil {
					m.Failf("the other's Upsert = %v", err)
				}
			}
		})
		m.Final(func() {
			if !errors.Is(err, want) || ran < runs {
				m.Failf("Update = %v after %d runs, want %v after at least %d", err, ran, want, runs)
			}
			if n := shardedregistry.Suspects(r); n != 0 {
				m.Failf("%d suspects are still listed", n)
			}
		})
	})
}

// A function that changes its own key in every run is found out, whatever
// others do meanwhile.
func TestSelfishProtocols(t *testing.T) {
	runs := shardedregistry.Patience + shardedregistry.Proofs
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
			suspicion(t, tt.cfg, shardedregistry.ErrTooManyRetries, runs, tt.change, 1)
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
		{"guilty while listed", shardedregistry.Patience + shardedregistry.Proofs - 1, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			suspicion(t, mc.Config{}, nil, 1+tt.guilty, func(r *shardedregistry.Registry[string, int], run int) {
				if run <= tt.guilty {
					r.Put("a", run)
				}
			}, tt.others)
		})
	}
}

// A function that fails, panics or exits in any of its runs leaves nothing
// listed.
func TestDetectorLeavesProtocol(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "Update that fails, panics or exits ∥ Update"}, func(m *mc.M) {
		r := oneShard()
		r.Put("a", 0)
		m.Go(func() {
			defer func() { recover() }()
			r.Update("a", func(v int) (int, error) {
				r.Put("a", v)
				return 99, m.Fault(mc.Error, mc.Panic, mc.Goexit)
			})
		})
		m.Go(func() {
			if _, err := r.Update("a", func(v int) (int, error) { return v + 1, nil }); err != nil {
				m.Failf("the other's Update = %v", err)
			}
		})
		m.Final(func() {
			if n := shardedregistry.Suspects(r); n != 0 {
				m.Failf("%d suspects are still listed", n)
			}
			if e, _ := r.Lookup("a"); e.Value == 99 {
				m.Failf("%v is what a function left with that never succeeds", e)
			}
		})
	})
}

// However listings meet, each detector is caught by its own changes of its own
// key, and by no others.
func TestDetectorListProtocol(t *testing.T) {
	for _, tt := range []struct {
		name string
		cfg  mc.Config
		keys []string // of the detectors
	}{
		{"of one key", mc.Config{}, []string{"a", "a"}},
		{"of two keys", mc.Config{}, []string{"a", "b"}},
		{"three", mc.Config{Mode: mc.Bounded, Preemptions: 2}, []string{"a", "b", "a"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.cfg.Operations = "list, UpdateIf(a): suspect of " + strings.Join(tt.keys, " ∥ of ")
			mc.Check(t, tt.cfg, func(m *mc.M) {
				r := oneShard()
				r.Put("a", 0)
				for _, mine := range tt.keys {
					m.Go(func() {
						shardedregistry.Listed(r, mine, func(own *bool) {
							e, _ := r.Lookup("a")
							if _, err := r.UpdateIf("a", e.Version, 1); *own != (err == nil && mine == "a") {
								m.Failf("a suspect of %s is caught: %v, when its change of a gave %v", mine, *own, err)
							}
						})
					})
				}
				m.Final(func() {
					if n := shardedregistry.Suspects(r); n != 0 {
						m.Failf("%d suspects are still listed", n)
					}
				})
			})
		})
	}
}

// A detector is caught by a creation of its key if that was its own.
func TestDetectorCreatesProtocol(t *testing.T) {
	cfg := mc.Config{Operations: "Listed(a): Create ∥ Create"}
	mc.Check(t, cfg, func(m *mc.M) {
		r := oneShard()
		m.Go(func() {
			shardedregistry.Listed(r, "a", func(own *bool) {
				if _, err := r.Create("a", 1); *own != (err == nil) {
					m.Failf("a suspect is caught: %v, when its creation gave %v", *own, err)
				}
			})
		})
		m.Go(func() { r.Create("a", 2) })
	})
}
