//go:build modelcheck

package shardedregistry_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/internal/mc"
	model "github.com/latchfree/latchfree/internal/model/shardedregistry"
	"github.com/latchfree/latchfree/shardedregistry"
)

// told fails the execution unless what was seen of each key ends with what the key holds,
// and the versions of each key increase, by one if every change is seen.
func told(m *mc.M, r *names1, seen []news, every bool) {
	last := map[string]news{}
	for _, e := range seen {
		before, known := last[e.Key]
		if known && (e.Version <= before.Version || every && e.Version != before.Version+1) {
			m.Failf("%v comes after %v", e, before)
		}
		last[e.Key] = e
	}
	for _, key := range []string{"a", "b"} {
		now, ok := r.Lookup(key)
		e, known := last[key]
		switch {
		case !known && ok && now.Version > 1:
			m.Failf("%v is not told", now)
		case known && (e.Deleted == ok || ok && (e.Version != now.Version || e.Value != now.Value)):
			m.Failf("%v is told last, and %v, %v is there", e, now, ok)
		}
	}
}

var transactTold = []struct {
	name    string
	first   []call
	threads threads
}{
	{"moved", a2b2, threads{{moves("a", "b")}, {put(7)}}},
	{"moved and deleted", a2b2, threads{{moves("a", "b")}, {other(remove)}}},
	{"creates", a2, threads{{moves("a", "b")}, {other(create(7))}}},
	{"deletes", a1b1, threads{{moves("a", "b")}, {put(7)}}},
	{"deletes and creates", a1b1, threads{{moves("a", "b"), moves("b", "a")}}},
	{"over a deletion", a1b1, threads{{remove}, {copies("a", "b")}}},
	{"over a deletion that is created", a1b1, threads{{remove}, {moves("b", "a")}}},
	{"over a deletion, and Create", a1b1, threads{{remove}, {copies("a", "b")}, {create(7)}}},
	{"crossing", a2b2, threads{{moves("a", "b")}, {moves("b", "a")}}},
}

// A loop that watches sees how all keys end, whatever transactions come between.
func TestTransactWatched(t *testing.T) {
	for _, tt := range transactTold {
		t.Run(tt.name, func(t *testing.T) {
			cfg := bounded
			cfg.Operations = operations(tt.threads, "Watch")
			mc.Check(t, cfg, func(m *mc.M) {
				r := twoKeys(tt.first)()
				w := shardedregistry.Subscribe(r)
				var seen []news
				m.Go(func() { seen = w.Drain() })
				for _, calls := range tt.threads {
					doing(m, r, calls)
				}
				m.Final(func() {
					told(m, r, append(seen, w.Drain()...), false)
					w.Leave()
					clean(m, r)
				})
			})
		})
	}
}

// WatchFrom yields every change of each key in order.
func TestTransactStreamed(t *testing.T) {
	for _, tt := range transactTold {
		t.Run(tt.name, func(t *testing.T) {
			cfg := bounded
			if len(tt.threads) > 2 {
				cfg.Preemptions = 1
			}
			cfg.Operations = operations(tt.threads, "WatchFrom")
			mc.Check(t, cfg, func(m *mc.M) {
				r := remembered(64, tt.first)
				s := shardedregistry.OpenFeed(r)
				var seen []news
				m.Go(func() { seen, _ = s.Drain() })
				for _, calls := range tt.threads {
					doing(m, r, calls)
				}
				m.Final(func() {
					rest, lost := s.Drain()
					if lost {
						m.Failf("changes are lost")
					}
					told(m, r, append(seen, rest...), true)
					clean(m, r)
				})
			})
		})
	}
}

// A transaction creates a key over a dead cell that a loop has yet to look at, while Clear
// deletes: its versions go on from those of the dead one.
func TestTransactOverADeletionBesideClear(t *testing.T) {
	cfg := mc.Config{Mode: mc.Bounded, Preemptions: 3, Operations: "Put(b, 7) in a transaction ∥ Clear"}
	mc.Check(t, cfg, func(m *mc.M) {
		r := twoKeys(a2b2)()
		w := shardedregistry.Subscribe(r)
		r.Put("b", 3)
		seen := w.Drain()
		r.Delete("b")
		doing(m, r, []call{transacts("Put(b, 7)", func(tx model.TxOps) any { return tx.Put("b", 7) })})
		m.Go(func() { r.Clear() })
		m.Final(func() {
			if b, ok := r.Lookup("b"); ok && b.Version <= 3 {
				m.Failf("b has version %d again", b.Version)
			}
			told(m, r, append(seen, w.Drain()...), false)
			w.Leave()
			clean(m, r)
		})
	})
}

// What a loop is told of one key is there together with the rest of the transaction, and
// Wait sleeps until then.
func TestTransactWaited(t *testing.T) {
	cfg := bounded
	cfg.Operations = "Move(a, b) ∥ Wait(a), Lookup(b)"
	mc.Check(t, cfg, func(m *mc.M) {
		r := twoKeys(a2b2)()
		doing(m, r, []call{moves("a", "b")})
		m.Go(func() {
			a, err := r.Wait(context.Background(), "a", 1)
			if b, _ := r.Lookup("b"); err != nil || a.Version != 2 || b.Version != 2 {
				m.Failf("Wait(1) = %v, %v, where b is %v", a, err, b)
			}
		})
		m.Final(func() { clean(m, r) })
	})
}

// What is found by an index, and that no two keys have a unique value.
func TestTransactIndexes(t *testing.T) {
	swaps := transacts("Put(a, 2), Put(b, 1)", func(tx model.TxOps) any {
		tx.Put("a", 2)
		return tx.Put("b", 1)
	})
	swapsBack := transacts("Put(a, 1), Put(b, 2)", func(tx model.TxOps) any {
		tx.Put("a", 1)
		return tx.Put("b", 2)
	})
	renames := transacts("Put(a, 2), Delete(b)", func(tx model.TxOps) any {
		tx.Put("a", 2)
		return results(tx.Delete("b"))
	})
	gains := func(key string, v int) call {
		return transacts(fmt.Sprintf("Put(%s, %d) if 1", key, v), func(tx model.TxOps) any {
			was, _ := tx.Get("a")
			if was == 1 {
				tx.Put(key, v)
			}
			return was
		})
	}
	for _, tt := range []struct {
		name    string
		fresh   func() registry
		config  model.RegistryConfig
		first   []call
		threads threads
		cfg     mc.Config
	}{
		{"found", byDigits, plainDigits, a1b1, threads{{gains("a", 2)}, {by("1"), by("2")}, {put(3)}}, bounded},
		{"deleted", byDigits, plainDigits, a1b1, threads{{transacts("Delete(a)", func(tx model.TxOps) any { return results(tx.Delete("a")) })}, {by("1")}, {put(3)}}, bounded},
		{"unique", byUniqueDigits, uniqueDigits, []call{put(1)}, threads{{gains("b", 2)}, {put(2)}, {unique("2")}}, bounded},
		{"unique, two gain", byUniqueDigits, uniqueDigits, []call{put(1)}, threads{{gains("a", 2)}, {other(create(2))}, {unique("2")}}, bounded},
		{"unique, two transactions", byUniqueDigits, uniqueDigits, []call{put(1)}, threads{{gains("a", 2)}, {gains("b", 2)}}, bounded},
		{"unique, freed", byUniqueDigits, uniqueDigits, []call{put(1), other(create(2))}, threads{{gains("a", 3)}, {other(put(1))}, {unique("1")}}, bounded},
		{"unique, freed in the same", byUniqueDigits, uniqueDigits, []call{put(1), other(create(2))}, threads{{renames}, {unique("2")}, {other(remove)}}, bounded},
		{"unique, swapped", byUniqueDigits, uniqueDigits, []call{put(1), other(create(2))}, threads{{swaps}, {unique("1"), unique("2")}}, mc.Config{Mode: mc.Bounded, Preemptions: 3}},
		{"unique, swapped and back", byUniqueDigits, uniqueDigits, []call{put(1), other(create(2))}, threads{{swaps, swapsBack}, {unique("1")}}, mc.Config{Mode: mc.Bounded, Preemptions: 3}},
		{"unique, swapped with one that is pinned", func() registry {
			r := indexed(uniqueDigits)
			shardedregistry.Pinned(r, "b", "digit", "1") // as of a transaction that is about to unpin b
			return r
		}, uniqueDigits, []call{put(1), other(create(2))}, threads{{swaps}, {unique("1")}}, mc.Config{Mode: mc.Bounded, Preemptions: 3}},
		{"unique, swapped and taken", byUniqueDigits, uniqueDigits, []call{put(1), other(create(2))}, threads{{swaps}, {other(put(3))}, {put(2)}}, bounded},
	} {
		t.Run(tt.name, func(t *testing.T) {
			prepared := func(r registry) registry {
				for _, c := range tt.first {
					c.Do(r)
				}
				return r
			}
			config := tt.config
			config.Shards = 2
			after := []call{lookup, other(lookup), size, linked, by("1"), by("2"), remove, other(remove), pins}
			if strings.HasSuffix(tt.name, "pinned") {
				after = after[:len(after)-1]
			}
			mc.Linearizable(t, tt.cfg, mc.Program[registry]{
				New:     func() registry { return prepared(tt.fresh()) },
				Model:   func() registry { return prepared(model.NewRegistry(config)) },
				Threads: tt.threads,
				After:   after,
			})
		})
	}
}
