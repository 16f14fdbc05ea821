//go:build modelcheck

package shardedregistry_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/latchfree/latchfree/internal/tools/mc"
	model "github.com/latchfree/latchfree/internal/tools/model/shardedregistry"
	"github.com/latchfree/latchfree/shardedregistry"
)

const forever = time.Duration(math.MaxInt64)

// dueAbove is a TTL: values of 50 and more expire at once, and others never do.
func dueAbove(_ string, v int) time.Duration {
	if v >= 50 {
		return 0
	}
	return forever
}

// expiring returns an empty registry of one shard without timers.
func expiring(c shardedregistry.Config[string, int]) *names1 {
	c.Shards, c.TTL = 1, dueAbove
	r := shardedregistry.MustNew(c)
	shardedregistry.PauseTimers(r)
	return r
}

// expires is what a timer does for the key.
var expires = call{Name: "expire", Do: func(r registry) any {
	switch r := r.(type) {
	case *names1:
		shardedregistry.Expire(r, "a")
	case *model.Registry:
		r.Expire()
	}
	return nil
}}

func renew(version shardedregistry.Version, ttl time.Duration) call {
	return call{Name: fmt.Sprintf("Renew(%d, %v)", version, ttl > 0), Do: func(r registry) any {
		return fmt.Sprint(r.(model.ExpiryOps).Renew("a", version, ttl))
	}}
}

// txPut is a transaction that puts v, if the key is present or create.
func txPut(v int, create bool) call {
	return call{Name: fmt.Sprintf("Transact(%d, %t)", v, create), Do: func(r registry) any {
		found := false
		err := model.Transact(r, func(tx model.TxOps) error {
			if _, found = tx.Get("a"); found || create {
				return tx.Put("a", v)
			}
			return nil
		})
		return results(found, err)
	}}
}

// overlooked tells which keys timers will not look at when their deadline has come, and whether
// they will look at any that are not there.
var overlooked = call{Name: "overlooked", Do: func(r registry) any {
	if r, ok := r.(*names1); ok {
		n, _ := shardedregistry.Scheduled(r) // which checks the order
		return results(shardedregistry.Overlooked(r), n > r.Len())
	}
	return results([]string(nil), false)
}}

var with77 = []call{put(77)} // which expires when a timer looks

// Checks I26, I27, I28.

// A timer looks at a key that others read, replace, delete, create and renew. Some sequential
// order explains all results, and no deadline is overlooked.
func TestExpiryProtocols(t *testing.T) {
	for _, tt := range []struct {
		name    string
		cfg     mc.Config
		first   []call
		threads threads
	}{
		{"two look", mc.Config{}, with77, threads{{expires, get}, {expires, lookup}}},
		{"Put that lives", mc.Config{}, with77, threads{{expires}, {put(1), lookup}, {get}}},
		{"Put that expires", mc.Config{}, with77, threads{{expires}, {put(78), expires}}},
		{"Put of what lived", mc.Config{}, with7, threads{{expires, lookup}, {put(77), expires}}},
		{"Put of what lived, Delete", mc.Config{}, with7, threads{{put(77), get}, {remove, get}}},
		{"UpdateIf, DeleteIf", mc.Config{}, with77, threads{{expires}, {updateIf(1, 5)}, {removeIf(1)}}},
		{"Update", mc.Config{}, with77, threads{{expires}, {update(1), update(2)}}},
		{"delete and create", mc.Config{}, with77, threads{{expires}, {remove, create(79)}}},
		{"create again", mc.Config{}, with77, threads{{expires, create(5)}, {create(6), lookup}}},
		{"create what expires", mc.Config{}, empty, threads{{create(77), expires}, {create(78), expires}}},
		{"DeleteFunc", mc.Config{}, with77, threads{{expires}, {matching(80)}, {get}}},

		{"Renew", mc.Config{}, with77, threads{{expires, lookup}, {renew(1, forever), lookup}}},
		{"two Renew", mc.Config{}, with77, threads{{expires}, {renew(1, forever)}, {renew(1, 0)}}},
		{"Renew brings forward", mc.Config{}, with7, threads{{expires, lookup}, {renew(1, 0), expires, lookup}}},
		{"Renew, Put", mc.Config{}, with77, threads{{expires}, {renew(1, forever)}, {put(5)}}},
		{"Renew, Delete", mc.Config{}, with77, threads{{expires}, {renew(1, forever), get}, {remove}}},
		{"Renew, create", mc.Config{}, with77, threads{{expires, create(5)}, {renew(1, forever), renew(3, 0)}}},
		{"Renew of two versions", mc.Config{}, with7, threads{{put(77), expires}, {renew(1, 0), renew(2, forever)}}},

		{"Transact", bounded, with77, threads{{expires}, {txPut(5, false), lookup}}},
		{"Transact that expires", bounded, with7, threads{{expires, lookup}, {txPut(77, true), expires}}},
		{"Transact, Renew", bounded, with77, threads{{expires}, {txPut(5, true)}, {renew(1, forever)}}},
	} {
		for shape, c := range map[string]shardedregistry.Config[string, int]{
			"": {}, " with History": {History: 4},
		} {
			t.Run(tt.name+shape, func(t *testing.T) {
				prepared := func(r registry) registry {
					for _, c := range tt.first {
						c.Do(r)
					}
					return r
				}
				cfg := tt.cfg
				if c.History != 0 {
					cfg = bounded
				}
				mc.Linearizable(t, cfg, mc.Program[registry]{
					New: func() registry { return prepared(expiring(c)) },
					Model: func() registry {
						return prepared(model.NewRegistry(model.RegistryConfig{Shards: 1, TTL: dueAbove}))
					},
					Threads: tt.threads,
					After:   []call{overlooked, lookup, entries, size, linked, expires, lookup, linked, remove, create(9), overlooked, lookup, linked},
				})
			})
		}
	}
}

// A timer looks at a key while Clear or Replace does, and each helps the other.
func TestExpiryMeetsClear(t *testing.T) {
	for _, tt := range []struct {
		name    string
		first   []call
		threads threads
	}{
		{"Clear", with77, threads{{expires}, {clears}, {get}}},
		{"Clear, create", with77, threads{{expires, create(78)}, {clears}}},
		{"Clear, Renew", with77, threads{{expires}, {clears}, {renew(1, forever)}}},
		{"Replace by what lives", with77, threads{{expires}, {replaces("a", 5), lookup}}},
		{"Replace by what expires", with77, threads{{expires}, {replaces("a", 78), expires}}},
		{"Replace, Renew", with77, threads{{renew(1, forever), renew(2, 0)}, {replaces("a", 5), lookup}}},
		{"Replace of what was deleted", without, threads{{expires}, {replaces("a", 77), expires}, {renew(3, forever)}}},
	} {
		for shape, c := range map[string]shardedregistry.Config[string, int]{
			"": {}, " with History": {History: 4},
		} {
			t.Run(tt.name+shape, func(t *testing.T) {
				prepared := func(r registry) registry {
					for _, c := range tt.first {
						c.Do(r)
					}
					return r
				}
				cfg := bounded
				if c.History != 0 {
					cfg.Preemptions = 1
				}
				mc.Linearizable(t, cfg, mc.Program[registry]{
					New: func() registry { return prepared(expiring(c)) },
					Model: func() registry {
						return prepared(model.NewRegistry(model.RegistryConfig{Shards: 1, TTL: dueAbove}))
					},
					Threads: tt.threads,
					After:   []call{overlooked, lookup, size, linked, expires, lookup, linked, remove, create(9), overlooked, linked},
				})
			})
		}
	}
}

// With timers, which fire at any time: in the end nothing that is due is there, and nothing
// is scheduled that will not expire.
func TestExpiryTimerProtocols(t *testing.T) {
	for _, tt := range []struct {
		name    string
		cfg     mc.Config
		first   []call
		threads threads
	}{
		{"Put", mc.Config{}, empty, threads{{put(77)}}},
		{"Put of two", bounded, empty, threads{{put(77)}, {put(78)}}},
		{"Put that lives, and that expires", bounded, with7, threads{{put(77)}, {put(5)}}},
		{"Put, Delete", bounded, with7, threads{{put(77)}, {remove}}},
		{"Put, Delete, Create", bounded, with7, threads{{put(77)}, {remove, create(78)}}},
		{"Renew twice", bounded, with7, threads{{renew(1, 0)}, {renew(1, forever)}}},
		{"Renew, Put", bounded, with7, threads{{renew(1, 0)}, {put(77)}}},
		{"Transact, Renew", bounded, with7, threads{{txPut(77, true)}, {renew(1, 0)}}},
		{"two keys", bounded, empty, threads{{put(77)}, {other(put(78))}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.cfg.Operations = operations(tt.threads, "timers")
			mc.Check(t, tt.cfg, func(m *mc.M) {
				r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 1, TTL: dueAbove})
				for _, c := range tt.first {
					c.Do(r)
				}
				for _, calls := range tt.threads {
					doing(m, r, calls)
				}
				m.Final(func() {
					e, ok := r.Lookup("a")
					n, _ := shardedregistry.Scheduled(r)
					if left := shardedregistry.Overlooked(r); ok && e.Value >= 50 || n != 0 || len(left) != 0 {
						m.Failf("%v, %t is left; %d scheduled, %v overlooked", e, ok, n, left)
					}
					if r.Len() != shardedregistry.Linked(r) {
						m.Failf("Len is %d, %d linked", r.Len(), shardedregistry.Linked(r))
					}
				})
			})
		})
	}
}

// A snapshot and a loop over Watch, while an entity expires.
func TestExpirySeenProtocols(t *testing.T) {
	t.Run("Snapshot", func(t *testing.T) {
		mc.Check(t, mc.Config{Operations: "expire, Create ∥ Snapshot, Lookup", Mode: mc.Bounded, Preemptions: 2}, func(m *mc.M) {
			r := expiring(shardedregistry.Config[string, int]{})
			r.Put("a", 77)
			m.Go(func() {
				shardedregistry.Expire(r, "a")
				r.Create("a", 5)
			})
			m.Go(func() {
				e, ok := r.Snapshot().Lookup("a")
				now, there := r.Lookup("a")
				if ok && e.Value != 77 && e.Value != 5 || ok && there && now.Version < e.Version || ok && e.Version == 3 && !there {
					m.Failf("the snapshot has %v, %t, and then there is %v, %t", e, ok, now, there)
				}
			})
			m.Final(func() {
				if kept, n := shardedregistry.Kept(r), shardedregistry.Linked(r); kept != 0 || n != 1 {
					m.Failf("%d records are kept, %d linked", kept, n)
				}
			})
		})
	})
	// What was created and has expired while the snapshot was taken is in it, if its cut says so.
	t.Run("Snapshot of a short life", func(t *testing.T) {
		mc.Check(t, mc.Config{Operations: "Create(a), Put(b, 2), Put(b, 1), expire(a) ∥ Snapshot", Mode: mc.Bounded, Preemptions: 3}, func(m *mc.M) {
			r := expiring(shardedregistry.Config[string, int]{})
			r.Put("b", 1)
			m.Go(func() {
				r.Create("a", 77)
				r.Put("b", 2)
				r.Put("b", 1)
				shardedregistry.Expire(r, "a")
			})
			m.Go(func() {
				s := r.Snapshot()
				a, ok := s.Get("a")
				if b, _ := s.Get("b"); b == 2 && (!ok || a != 77) {
					m.Failf("the snapshot has b at 2, and %d, %t at a", a, ok)
				}
			})
		})
	})
	t.Run("Watch", func(t *testing.T) {
		mc.Check(t, mc.Config{Operations: "expire ∥ Renew(1, forever) ∥ Put(9) ∥ Watch", Mode: mc.Bounded, Preemptions: 2}, func(m *mc.M) {
			r := expiring(shardedregistry.Config[string, int]{})
			r.Put("a", 77)
			w := shardedregistry.Subscribe(r)
			m.Go(func() { shardedregistry.Expire(r, "a") })
			m.Go(func() { r.Renew("a", 1, forever) })
			m.Go(func() {
				defer w.Leave()
				w.Run(context.Background(), func(e news) bool {
					if e.Deleted && !e.Expired || !e.Deleted && e.Expired {
						m.Failf("%v", e)
					}
					return e.Value != 9
				})
			})
			m.Go(func() { r.Put("a", 9) })
			m.Final(func() { clean(m, r) })
		})
	})
}

// A timer that takes a cell out of its schedule beside its deleter leaves the alarm closed: a writer that stalled before puts no
// dead cell back.
func TestExpiryLateWriter(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "a timer ∥ Delete"}, func(m *mc.M) {
		r := expiring(shardedregistry.Config[string, int]{})
		r.Put("a", 77)
		late := shardedregistry.Stored(r, "a", 78)
		m.Go(func() { shardedregistry.ExpireAll(r) })
		doing(m, r, []call{remove})
		m.Final(func() {
			late()
			if n, _ := shardedregistry.Scheduled(r); n != 0 || r.Len() != 0 || shardedregistry.Linked(r) != 0 {
				m.Failf("%d cells are in the schedules; Len is %d, %d linked", n, r.Len(), shardedregistry.Linked(r))
			}
		})
	})
}

// What was restored, and expires before Restore has returned, keeps its version, as that of its deletion is kept.
func TestRestoreBesideTimers(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "Restore ∥ timers"}, func(m *mc.M) {
		var r *names1
		m.Go(func() {
			var err error
			if r, err = shardedregistry.Restore(shardedregistry.Config[string, int]{Shards: 1, TTL: dueAbove}, 0,
				slices.Values([]shardedregistry.Entry[string, int]{{Key: "a", Value: 77, Version: 10}})); err != nil {
				m.Failf("%v", err)
			}
		})
		m.Final(func() {
			if v, err := r.Put("a", 5); v != 12 || err != nil {
				m.Failf("version %d, %v follows 10 and its deletion", v, err)
			}
		})
	})
}
