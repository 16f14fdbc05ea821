//go:build modelcheck

package shardedregistry_test

import (
	"context"
	"errors"
	"testing"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/tools/mc"
	model "github.com/latchfree/latchfree/internal/tools/model/shardedregistry"
	"github.com/latchfree/latchfree/shardedregistry"
)

// remembered returns a registry with two keys of their own shards after calls, that
// remembers n changes.
func remembered(n int, first []call) *names1 {
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 2, History: n})
	shardedregistry.SetHash(r, func(k string) uint64 { return uint64(k[0]-'a') << 63 })
	for _, c := range first {
		c.Do(r)
	}
	return r
}

// readOn runs a loop over WatchFrom until the key a has version until, which must be the
// last one that there will be, and returns the last version and whether the loop ended with
// ErrCompacted instead. Revisions must increase, and each version of a life must come once.
func readOn(m *mc.M, r *names1, after shardedregistry.Revision, last, until shardedregistry.Version, filters ...shardedregistry.Filter[string]) (v shardedregistry.Version, compacted bool) {
	at, seen := after, false // whether last was yielded, and not as a deletion
	for c, err := range r.WatchFrom(context.Background(), after, filters...) {
		if err != nil {
			if !errors.Is(err, shardedregistry.ErrCompacted) {
				m.Failf("the loop ends with %v", err)
			}
			return last, true
		}
		if c.Revision <= at {
			m.Failf("revision %d comes after %d", c.Revision, at)
		}
		if at = c.Revision; c.Key != "a" {
			continue
		}
		if c.Version < last || seen && c.Version != last+1 {
			m.Failf("version %d comes after %d", c.Version, last)
		}
		if last, seen = c.Version, !c.Deleted; last == until {
			break
		}
	}
	return last, false
}

// Checks I24, I25.

// A loop that begins before changes sees how the key ends, whoever changes it, and however
// late a change is remembered.
func TestWatchFromProtocols(t *testing.T) {
	for _, tt := range []struct {
		name    string
		cfg     mc.Config
		first   []call
		threads threads
		until   shardedregistry.Version
	}{
		{"a change", mc.Config{}, with7, threads{{put(1)}}, 2},
		{"changes", mc.Config{}, with7, threads{{put(1), put(2)}}, 3},
		{"two change", mc.Config{}, with7, threads{{put(1)}, {put(2)}}, 3},
		{"two change several times", mc.Config{Mode: mc.Bounded, Preemptions: 1}, with7, threads{{put(1), put(3)}, {put(2), put(4)}}, 5},
		{"three change", mc.Config{Mode: mc.Bounded, Preemptions: 1}, with7, threads{{put(1)}, {put(2)}, {update(3)}}, 4},
		{"two change, and another key", bounded, with7, threads{{put(1)}, {other(put(2)), put(2)}}, 3},
		{"created", mc.Config{}, empty, threads{{create(1)}}, 1},
		{"deleted", mc.Config{}, with7, threads{{remove}}, 2},
		{"deleted and created", mc.Config{}, with7, threads{{remove, create(5)}}, 3},
		{"created by another", bounded, with7, threads{{remove}, {appends(5)}}, 0},
		{"comes and goes", bounded, with7, threads{{remove}, {put(5), remove}}, 0},
		{"read by a transaction", bounded, a2b2, threads{{put(1)}, {copies("a", "b")}}, 0},
		{"read by a transaction that may abort", bounded, a2b2, threads{{put(1)}, {copies("a", "b")}, {other(put(3))}}, 0},
		{"deleted, and read as absent", bounded, a2b2, threads{{remove}, {copies("a", "b")}}, 0},
		{"deleted, and read as absent by a transaction that may abort", bounded, a2b2, threads{{remove}, {copies("a", "b")}, {other(put(3))}}, 0},
		{"stored by a transaction", bounded, a2b2, threads{{put(1)}, {copies("b", "a")}}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.cfg.Operations = operations(tt.threads, "WatchFrom")
			mc.Check(t, tt.cfg, func(m *mc.M) {
				r := remembered(8, tt.first)
				begin := r.Snapshot().Revision()
				if tt.until != 0 {
					m.Go(func() { readOn(m, r, begin, 0, tt.until) })
				}
				for _, calls := range tt.threads {
					doing(m, r, calls)
				}
				m.Final(func() {
					rr := shardedregistry.OpenRevisions(r, begin)
					var last shardedregistry.Change[string, int]
					for {
						c, err := rr.Next()
						if err != nil {
							m.Failf("%v", err)
						}
						if c.Revision == 0 {
							break
						}
						if c.Key != "a" {
							continue
						}
						alive := last.Revision != 0 && !last.Deleted
						if c.Version <= last.Version || alive && c.Version != last.Version+1 {
							m.Failf("%v comes after %v", c, last)
						}
						last = c
					}
					if e, ok := r.Lookup("a"); ok == last.Deleted || ok && e.Version != last.Version {
						m.Failf("the last change is %v, and the key holds %v, %v", last, e, ok)
					}
				})
			})
		})
	}
}

// A loop that is overtaken says so, and misses nothing otherwise; the caller begins anew
// with a snapshot, and sees how the key ends.
func TestWatchFromOvertaken(t *testing.T) {
	for _, tt := range []struct {
		name    string
		n       int
		cfg     mc.Config
		threads threads
		until   shardedregistry.Version
	}{
		{"one is remembered", 1, mc.Config{}, threads{{put(1), put(2)}}, 3},
		{"one, of two writers", 1, bounded, threads{{put(1)}, {other(put(2))}}, 2},
		{"two are remembered", 2, mc.Config{}, threads{{put(1), other(put(2)), put(3)}}, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.cfg.Operations = operations(tt.threads, "WatchFrom: Snapshot, WatchFrom")
			mc.Check(t, tt.cfg, func(m *mc.M) {
				r := remembered(tt.n, with7)
				begin := r.Snapshot().Revision()
				m.Go(func() {
					last, compacted := readOn(m, r, begin, 1, tt.until)
					for compacted {
						s := r.Snapshot()
						e, _ := s.Lookup("a")
						if e.Version < last {
							m.Failf("a snapshot has version %d after %d", e.Version, last)
						}
						if last = e.Version; last == tt.until {
							return
						}
						last, compacted = readOn(m, r, s.Revision(), last, tt.until)
					}
				})
				for _, calls := range tt.threads {
					doing(m, r, calls)
				}
			})
		})
	}
}

// beginsTooLate begins a loop after a revision. If that is forgotten, another loop could have begun later only.
func beginsTooLate(m *mc.M, r *names1, after shardedregistry.Revision) {
	_, err := shardedregistry.OpenRevisions(r, after).Next()
	var late *shardedregistry.CompactedError
	if errors.As(err, &late) && late.Oldest <= late.Revision {
		m.Failf("a loop that began at %d could have begun at %d", late.Revision, late.Oldest)
	}
}

// A loop that is too late is told where another one could have begun, also by the slot of a
// change that is not the last one yet. A loop from the beginning waits for no writer.
func TestTooLateForOneThatStalls(t *testing.T) {
	for _, from := range []string{"a revision", "the beginning"} {
		t.Run("from "+from, func(t *testing.T) {
			calls := threads{{put(1), put(2)}}
			mc.Check(t, mc.Config{Operations: operations(calls, "WatchFrom "+from)}, func(m *mc.M) {
				r := remembered(1, with7)
				begin := r.Snapshot().Revision()
				if from == "the beginning" {
					begin = 0
				}
				doing(m, r, calls[0])
				m.Go(func() { beginsTooLate(m, r, begin) })
			})
		})
	}
}

// The same with two slots, where the change that stalls is not in the slot of the next one.
func TestTooLateForOneOfTwo(t *testing.T) {
	calls := threads{{put(1), put(2), put(3), put(4)}}
	mc.Check(t, mc.Config{Operations: operations(calls, "WatchFrom a revision, two are remembered")}, func(m *mc.M) {
		r := remembered(2, with7)
		begin := r.Snapshot().Revision()
		doing(m, r, calls[0])
		m.Go(func() { beginsTooLate(m, r, begin) })
	})
}

// A revision that the registry is about to reach is unknown until then, and has no change after it at first.
func TestWatchFromARevisionThatComes(t *testing.T) {
	calls := threads{{put(1)}}
	mc.Check(t, mc.Config{Operations: operations(calls, "WatchFrom the next revision")}, func(m *mc.M) {
		r := remembered(1, with7)
		next := r.Revision() + 1
		doing(m, r, calls[0])
		m.Go(func() {
			c, err := shardedregistry.OpenRevisions(r, next).Next()
			var unknown *shardedregistry.UnknownRevisionError
			if c.Revision != 0 || err != nil && !errors.As(err, &unknown) {
				m.Failf("%v, %v", c, err)
			}
		})
	})
}

// A change whose caller has stalled takes the place of no later one: the last is always there.
func TestLastChangeStays(t *testing.T) {
	calls := threads{{put(1), put(2)}, {other(put(3))}}
	mc.Check(t, mc.Config{Operations: operations(calls)}, func(m *mc.M) {
		r := remembered(1, with7)
		for _, calls := range calls {
			doing(m, r, calls)
		}
		m.Final(func() {
			last := r.Revision()
			if c, err := shardedregistry.OpenRevisions(r, last-1).Next(); err != nil || c.Revision != last {
				m.Failf("%v, %v, want the change %d", c, err, last)
			}
		})
	})
}

// What comes between a list and the watch after it is not missed.
func TestListThenWatchProtocols(t *testing.T) {
	for _, tt := range []struct {
		name    string
		first   []call
		threads threads
		until   shardedregistry.Version
	}{
		{"changed", with7, threads{{put(1)}}, 2},
		{"created", empty, threads{{create(1)}}, 1},
		{"deleted and created", with7, threads{{remove, create(5)}}, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := bounded
			cfg.Operations = operations(tt.threads, "Snapshot, WatchFrom")
			mc.Check(t, cfg, func(m *mc.M) {
				r := remembered(8, tt.first)
				m.Go(func() {
					s := r.Snapshot()
					if e, _ := s.Lookup("a"); e.Version < tt.until {
						readOn(m, r, s.Revision(), e.Version, tt.until)
					}
				})
				for _, calls := range tt.threads {
					doing(m, r, calls)
				}
			})
		})
	}
}

// What History costs a change.
func TestHistoryCosts(t *testing.T) {
	r := remembered(8, with7)
	plain := twoKeys(with7)()
	measure := func(r *names1) mc.Cost { return mc.Measure(func() { r.Put("a", 8) }) }
	measure(r)
	with, without := measure(r), measure(plain)
	without.Loads, without.RMWs = without.Loads+5, without.RMWs+3
	if with != without {
		t.Errorf("a Put with History costs %v, want %v", with, without)
	}
}

// stalledDeletion is a deletion whose caller has stalled before it was dated, while a snapshot is taken.
type stalledDeletion struct {
	r      *names1
	key    string
	staged atomics.Uint32
	taking shardedregistry.Taking[string, int]
	rest   func()
}

// stage stores the deletion, once.
func (d *stalledDeletion) stage() {
	if d.rest != nil {
		return
	}
	d.r.Put(d.key, 7)
	d.taking = shardedregistry.Join(d.r)
	d.rest = shardedregistry.Kill(d.r, d.key)
	d.staged.Store(1)
}

// watch begins a loop that makes a cut when it finds the deletion, and looks whether that is before the cut.
func (d *stalledDeletion) watch(m *mc.M) {
	m.Go(func() {
		if d.staged.Load() == 0 {
			return
		}
		rr := shardedregistry.OpenRevisions(d.r, 0)
		for {
			c, err := rr.Next()
			if err != nil {
				m.Failf("%v", err)
			}
			if c.Revision == 0 {
				return
			}
			if !c.Deleted {
				continue
			}
			d.taking.Collect()
			if e, ok := d.taking.Found().Lookup(d.key); ok && e.Version < c.Version {
				m.Failf("%v is yielded, and a later cut has %v", c, e)
			}
			return
		}
	})
	m.Final(func() {
		d.rest()
		d.taking.Leave()
	})
}

// What a loop over WatchFrom yields has taken effect, also a deletion that a creator remembers because its deleter has stalled
// before it was dated: the cuts that follow are after it.
func TestWhatIsRememberedHasTakenEffect(t *testing.T) {
	mc.Check(t, mc.Config{Mode: mc.Bounded, Preemptions: 2, Operations: "the rest of Create(5) ∥ WatchFrom, the rest of Snapshot"}, func(m *mc.M) {
		d := &stalledDeletion{key: "a"}
		d.r = shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 2, History: 8, Check: func(_ string, v int) error {
			if v == 5 { // the creator has found the key absent
				d.stage()
			}
			return nil
		}})
		doing(m, d.r, []call{create(5)})
		d.watch(m)
	})
}

// The same of a transaction that finds the deletion of a key that it has read.
func TestWhatATransactionRemembersHasTakenEffect(t *testing.T) {
	mc.Check(t, mc.Config{Mode: mc.Bounded, Preemptions: 2, Operations: "the rest of Get(b), Put(a, 3) in a transaction ∥ WatchFrom, the rest of Snapshot"}, func(m *mc.M) {
		d := &stalledDeletion{key: "b", r: remembered(8, with7)}
		doing(m, d.r, []call{transacts("Get(b), Put(a, 3)", func(tx model.TxOps) any {
			_, _ = tx.Get("b") // which is absent
			d.stage()
			return tx.Put("a", 3)
		})})
		d.watch(m)
	})
}
