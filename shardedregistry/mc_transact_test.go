//go:build modelcheck

package shardedregistry_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/tools/mc"
	model "github.com/latchfree/latchfree/internal/tools/model/shardedregistry"
	"github.com/latchfree/latchfree/shardedregistry"
)

// transacts is a transaction; it returns what do returns, and the error of Transact.
func transacts(name string, do func(tx model.TxOps) any) call {
	return call{Name: name, Do: func(r registry) any {
		if j, ok := r.(*joined); ok {
			r = j.Registry
		}
		var got any
		err := model.Transact(r, func(tx model.TxOps) error { got = do(tx); return nil })
		return results(got, err)
	}}
}

// moves takes one from a key and adds it to another, which it creates, and deletes the
// first when it has nothing left.
func moves(from, to string) call {
	return transacts(fmt.Sprintf("Move(%s, %s)", from, to), func(tx model.TxOps) any {
		a, ok := tx.Lookup(from)
		if !ok {
			return false
		}
		b, _ := tx.Lookup(to)
		if a.Value == 1 {
			tx.Delete(from)
		} else {
			tx.Put(from, a.Value-1)
		}
		tx.Put(to, b.Value+1)
		return results(a, b)
	})
}

// looks reads both keys in a transaction.
var looks = transacts("Read", func(tx model.TxOps) any { return results(tx2(tx, "a"), tx2(tx, "b")) })

func tx2(tx model.TxOps, key string) any { return results(tx.Lookup(key)) }

// copies makes a key what another holds, which it only reads.
func copies(from, to string) call {
	return transacts(fmt.Sprintf("Copy(%s, %s)", from, to), func(tx model.TxOps) any {
		v, ok := tx.Get(from)
		if ok {
			tx.Put(to, v)
		} else {
			tx.Delete(to)
		}
		return results(v, ok)
	})
}

func transactProtocol(t *testing.T, cfg mc.Config, fresh func() registry, first []call, threads threads, after ...call) {
	t.Helper()
	prepared := func(r registry) registry {
		for _, c := range first {
			c.Do(r)
		}
		return r
	}
	mc.Linearizable(t, cfg, mc.Program[registry]{
		New:     func() registry { return prepared(fresh()) },
		Model:   func() registry { return prepared(twoShardsModel()) },
		Threads: threads,
		After:   append([]call{lookup, other(lookup), size, linked, put(9), other(remove), size, linked}, after...),
	})
}

var (
	a2b2 = []call{put(2), other(put(2))}
	a2   = []call{put(2)}
	a1b1 = []call{put(1), other(put(1))}
)

// Checks I21, I22, I23.

func TestTransactProtocols(t *testing.T) {
	for _, tt := range []struct {
		name    string
		cfg     mc.Config
		first   []call
		threads threads
	}{
		{"two readers", mc.Config{}, a2b2, threads{{moves("a", "b")}, {lookup, other(lookup)}, {other(lookup), lookup}}},
		{"and a reading one", mc.Config{}, a2b2, threads{{moves("a", "b")}, {looks, looks}}},
		{"and Put", mc.Config{}, a2b2, threads{{moves("a", "b")}, {put(7), get}}},
		{"and two Put", bounded, a2b2, threads{{moves("a", "b")}, {put(7)}, {other(put(7))}}},
		{"and Update", mc.Config{}, a2b2, threads{{moves("a", "b")}, {update(1), other(update(1))}}},
		{"and Delete", mc.Config{}, a2b2, threads{{moves("a", "b")}, {other(remove)}, {lookup, other(lookup)}}},
		{"and Delete, Create", mc.Config{}, a2b2, threads{{moves("a", "b")}, {other(remove), other(create(7))}}},
		{"and UpdateIf", mc.Config{}, a2b2, threads{{moves("a", "b")}, {updateIf(1, 5), updateIf(1, 6)}}},
		{"that reads, and UpdateIf", mc.Config{}, a2b2, threads{{copies("a", "b")}, {updateIf(1, 5)}, {lookup}}},
		{"that reads, and DeleteIf", mc.Config{}, a2b2, threads{{copies("a", "b")}, {removeIf(1)}, {lookup, other(lookup)}}},
		{"creates", mc.Config{}, a2, threads{{moves("a", "b")}, {other(lookup), lookup}, {lookup, other(lookup)}}},
		{"creates, and is counted", mc.Config{}, a2, threads{{moves("a", "b")}, {undercounts, undercounts}}},
		{"creates, and Create", mc.Config{}, a2, threads{{moves("a", "b")}, {other(create(7))}, {other(lookup)}}},
		{"creates, and Create, Delete", mc.Config{}, a2, threads{{moves("a", "b")}, {other(create(7)), other(remove)}}},
		{"creates, and two Create", bounded, a2, threads{{moves("a", "b")}, {other(create(7))}, {other(put(8))}}},
		{"creates while the old is deleted", mc.Config{}, a1b1, threads{{moves("a", "b")}, {other(remove)}, {lookup}}},
		{"deletes", mc.Config{}, a1b1, threads{{moves("a", "b")}, {lookup, other(lookup)}, {create(7)}}},
		{"deletes, and Delete", mc.Config{}, a1b1, threads{{moves("a", "b")}, {remove}, {create(7)}}},
		{"reads what is absent", mc.Config{}, a2, threads{{copies("b", "a")}, {other(create(7))}, {lookup}}},
		{"reads what is absent, and Create, Delete", mc.Config{}, a2, threads{{copies("b", "a")}, {other(create(7)), other(remove)}}},
		{"both absent", mc.Config{}, nil, threads{{looks}, {create(1), remove, other(create(1))}}},
		{"both absent, the other way", mc.Config{}, nil, threads{{looks}, {other(create(1)), other(remove), create(1)}}},
		{"both absent, moving", mc.Config{}, a1b1, threads{{looks}, {remove, create(1), other(remove), remove}}},
		{"crossing", mc.Config{}, a2b2, threads{{moves("a", "b")}, {moves("b", "a")}}},
		{"crossing, seen", bounded, a2b2, threads{{moves("a", "b")}, {moves("b", "a")}, {lookup, other(lookup)}}},
		{"crossing, deleting", bounded, a1b1, threads{{moves("a", "b")}, {moves("b", "a")}}},
		{"skewed", mc.Config{}, a2b2, threads{{copies("a", "b")}, {copies("b", "a")}}},
		{"skewed where both are absent", bounded, a2, threads{{copies("a", "b")}, {copies("b", "a")}}},
		{"three", bounded, a2b2, threads{{moves("a", "b")}, {moves("b", "a")}, {moves("a", "b")}}},
		{"after another", bounded, a1b1, threads{{moves("a", "b"), moves("b", "a")}, {moves("b", "a")}}},
		{"two create", bounded, nil, threads{{inserts}, {inserts}, {lookup}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			transactProtocol(t, tt.cfg, func() registry { return twoShards() }, tt.first, tt.threads)
		})
	}
}

// undercounts reports whether Len leaves out b, which nobody deletes, beside a.
var undercounts = call{Name: "Get(b), Len", Do: func(r registry) any {
	_, ok := r.Get("b")
	return ok && r.Len() < 2
}}

// inserts creates two keys if both are absent.
var inserts = transacts("Insert", func(tx model.TxOps) any {
	a, inA := tx.Get("a")
	b, inB := tx.Get("b")
	if !inA && !inB {
		tx.Put("a", 1)
		tx.Put("b", 2)
	}
	return results(a, inA, b, inB)
})

// Two keys whose hashes are equal have no order, so transactions abort each other.
func TestTransactEqualHashes(t *testing.T) {
	sameHash := func() registry {
		r := twoShards()
		shardedregistry.SetHash(r, func(string) uint64 { return 1 << 63 })
		return r
	}
	for _, tt := range []struct {
		name    string
		first   []call
		threads threads
	}{
		{"crossing", a2b2, threads{{moves("a", "b")}, {moves("b", "a")}}},
		{"crossing another order", a2b2, threads{{moves("a", "b")}, {copies("b", "a")}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := bounded
			cfg.NoFurther = true // with more preemptions, the two abort each other until both give up
			transactProtocol(t, cfg, sameHash, tt.first, tt.threads)
		})
	}
}

// A snapshot shows all of a transaction or nothing, whenever it begins.
func TestTransactSnapshots(t *testing.T) {
	for _, tt := range []struct {
		name    string
		cfg     mc.Config
		first   []call
		threads threads
	}{
		{"whole", bounded, a2b2, threads{{moves("a", "b")}, {snapshot}}},
		{"created", bounded, a2, threads{{moves("a", "b")}, {snapshot}}},
		{"deleted", bounded, a1b1, threads{{moves("a", "b")}, {snapshot}}},
		{"read only", bounded, a2, threads{{copies("b", "a")}, {snapshot}, {other(create(1))}}},
		{"and Get", bounded, a2b2, threads{{moves("a", "b")}, {snapshot}, {get, other(put(5))}}},
		{"and Peek", bounded, a2b2, threads{{moves("a", "b")}, {snapshot}, {peek, other(put(5))}}},
		{"and Get of what is deleted", bounded, a1b1, threads{{moves("a", "b")}, {snapshot}, {other(get), put(5)}}},
		{"crossing", bounded, a2b2, threads{{moves("a", "b")}, {moves("b", "a")}, {snapshot}}},
		{"in another", bounded, a2b2, threads{{moves("a", "b")}, {snapshot}, {snapshot}}},
		{"re-created", bounded, a1b1, threads{{moves("a", "b"), moves("b", "a")}, {snapshot}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			transactProtocol(t, tt.cfg, func() registry { return twoShards() }, tt.first, tt.threads, traces)
		})
	}
}

// What a snapshot that has joined sees of transactions that begin later.
func TestTransactWhileASnapshotIsTaken(t *testing.T) {
	for _, tt := range []struct {
		name    string
		first   []call
		threads threads
	}{
		{"moved", a2b2, threads{{moves("a", "b")}, {snapshot}, {lookup, other(lookup)}}},
		{"moved and changed", a2b2, threads{{moves("a", "b")}, {snapshot}, {put(7), other(lookup)}}},
		{"created", a2, threads{{moves("a", "b")}, {snapshot}, {other(create(7))}}},
		{"deleted", a1b1, threads{{moves("a", "b")}, {snapshot}, {create(7)}}},
		{"there and back", a1b1, threads{{moves("a", "b"), moves("b", "a")}, {snapshot}}},
		{"over a deleted one", a1b1, threads{{remove, copies("a", "b")}, {snapshot}, {create(3)}}},
		{"over a deleted one, created", a1b1, threads{{remove, moves("b", "a")}, {snapshot}, {create(3)}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fresh := func() registry { return &joined{Registry: twoShards()} }
			first := append(tt.first[:len(tt.first):len(tt.first)], begin)
			transactProtocol(t, bounded, fresh, first, tt.threads, finish, traces)
		})
	}
}

// A transaction puts a cell in the place of a dead one that a snapshot needs, and gives up. The
// snapshot is over before the cell is dead again, or after: one of the two takes it away.
func TestTransactGivenUpOverADeletion(t *testing.T) {
	restores := transacts("Put(a, 3) if b is 2", func(tx model.TxOps) any {
		b, _ := tx.Get("b")
		if b == 2 {
			tx.Put("a", 3)
		}
		return b
	})
	first := []call{put(2), other(put(2)), begin, remove}
	fresh := func() registry {
		r := &joined{Registry: twoShards()}
		for _, c := range first {
			c.Do(r)
		}
		return r
	}
	snapshotProtocol(t, bounded, fresh, first, threads{{restores}, {finish}, {other(put(5))}}, traces, lookup, other(lookup))
}

// One that helps a transaction puts its cell into the table while the owner gives up, and looks
// for the cell there before, or after.
func TestTransactGivenUpBesideAHelper(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "the end of a transaction that has failed ∥ Put(7)"}, func(m *mc.M) {
		r := twoShards()
		r.Put("a", 1)
		m.Go(shardedregistry.GivenUp(r, "a", "b", 2))
		m.Go(func() { r.Put("a", 7) })
		m.Final(func() {
			a, _ := r.Lookup("a")
			if n := shardedregistry.Intents(r); n > 0 || a.Value != 7 || r.Len() != int(a.Version)-1 || shardedregistry.Linked(r) != r.Len() {
				m.Failf("a is %v; Len = %d, %d linked, %d intents", a, r.Len(), shardedregistry.Linked(r), n)
			}
		})
	})
}

// notified fails the execution unless what was seen of each key ends with what the key holds,
// and the versions of each key increase, by one if every change is seen.
func notified(m *mc.M, r *names1, seen []news, every bool) {
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

var transactNotified = []struct {
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
	for _, tt := range transactNotified {
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
					notified(m, r, append(seen, w.Drain()...), false)
					w.Leave()
					clean(m, r)
				})
			})
		})
	}
}

// WatchFrom yields every change of each key in order.
func TestTransactRemembered(t *testing.T) {
	for _, tt := range transactNotified {
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
					notified(m, r, append(seen, rest...), true)
					clean(m, r)
				})
			})
		})
	}
}

// A loop is told of a key late, by the Put of a value that was deleted before the loop began, and looks at it
// while a transaction is about to create it again: until that is decided, there is nothing to see.
func TestTransactBesideALateNotification(t *testing.T) {
	cfg := mc.Config{Mode: mc.Bounded, Preemptions: 2, Operations: "Put(b, 3), Watch ∥ Delete(b), Put(a, 7) and Put(b, 7) in a transaction"}
	mc.Check(t, cfg, func(m *mc.M) {
		r := twoKeys(nil)()
		var loop atomics.Pointer[shardedregistry.Watcher[string, int]]
		var seen []news
		m.Go(func() {
			r.Put("b", 3)
			if w := loop.Load(); w != nil {
				seen = w.Drain()
			}
		})
		m.Go(func() {
			r.Delete("b")
			w := shardedregistry.Subscribe(r)
			loop.Store(&w)
			r.Transact(puts(7, "a", "b"))
		})
		m.Final(func() {
			w := loop.Load()
			notified(m, r, append(seen, w.Drain()...), false)
			w.Leave()
			clean(m, r)
		})
	})
}

// Transactions that only read a key, which they find absent, tell nobody of it who has come after the
// calls that changed it had returned: neither of a deletion that another transaction puts back, as a loop
// needs it still, nor as late helpers of one that was in progress.
func TestTransactTellsNobodyNew(t *testing.T) {
	reads := transacts("Get(a), Put(b, 3)", func(tx model.TxOps) any { tx.Get("a"); return tx.Put("b", 3) })
	for _, tt := range []struct {
		name          string
		watched       bool // by a loop that has not come to a
		before, calls []call
		threads       threads
	}{
		{"that others put back", true, []call{remove}, nil, threads{{reads}, {reads}}},
		{"in progress, that a loop needs", true, nil, []call{remove}, threads{{reads}}},
		{"in progress, that nobody needs", false, nil, []call{remove}, threads{{reads}}},
		{"in progress, and Create", false, nil, []call{remove, create(5)}, threads{{reads}}},
		{"in progress, and Create, needed", true, nil, []call{remove, create(5)}, threads{{reads}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := bounded
			cfg.Operations = operations(append(threads{append(slices.Clip(tt.calls), call{Name: "Watch"})}, tt.threads...))
			mc.Check(t, cfg, func(m *mc.M) {
				r := twoKeys(a2b2)()
				if tt.watched {
					shardedregistry.Subscribe(r)
				}
				for _, c := range tt.before {
					c.Do(r)
				}
				var loop atomics.Pointer[shardedregistry.Watcher[string, int]]
				begin := func() {
					for _, c := range tt.calls {
						c.Do(r)
					}
					w := shardedregistry.SubscribeTo(r, "a")
					loop.Store(&w)
				}
				if len(tt.calls) > 0 {
					m.Go(begin)
				} else {
					begin()
				}
				for _, calls := range tt.threads {
					doing(m, r, calls)
				}
				m.Final(func() {
					if seen := loop.Load().Drain(); seen != nil {
						m.Failf("a loop that began afterwards sees %v", seen)
					}
				})
			})
		})
	}
}

// A transaction helps a Delete that has told a loop, which ends meanwhile.
func TestTransactHelpsWhileALoopEnds(t *testing.T) {
	cfg := mc.Config{Mode: mc.Bounded, Preemptions: 2, Operations: "Delete(b) ∥ Put(b, 7) in a transaction ∥ the end of a Watch"}
	mc.Check(t, cfg, func(m *mc.M) {
		r := twoKeys(a2b2)()
		w := shardedregistry.Subscribe(r)
		r.Put("b", 3)
		w.Drain()
		m.Go(func() { r.Delete("b") })
		doing(m, r, []call{transacts("Put(b, 7)", func(tx model.TxOps) any { return tx.Put("b", 7) })})
		m.Go(w.Leave)
		m.Final(func() { clean(m, r) })
	})
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
			notified(m, r, append(seen, w.Drain()...), false)
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

// A transaction reads two keys that are never absent together, though each is absent whenever it
// is looked at. Their floors hide that: in each shard another key was deleted at a high version,
// after the key had been created and before its floor is read. So floor is not raised when the
// key is deleted. Only a second look, when floor is known, finds the key.
func TestTransactAbsentBehindFloors(t *testing.T) {
	const a, c, b, d = "a", "c", "b", "d" // a and c are in one shard, and b and d in the other
	cfg := mc.Config{Operations: "Read ∥ Create(a), Delete(b), floor of a, Create(b), floor of b, Delete(a), Create(a), Delete(b)"}
	mc.Check(t, cfg, func(m *mc.M) {
		r := twoShards()
		for _, k := range []string{c, d} {
			for range 10 {
				r.Put(k, 1)
			}
		}
		r.Put(b, 1)
		raises := map[string]func(){c: shardedregistry.Kill(r, c), d: shardedregistry.Kill(r, d)}
		m.Go(func() {
			var inA, inB bool
			if err := model.Transact(r, func(tx model.TxOps) error {
				_, inA = tx.Get(a)
				_, inB = tx.Get(b)
				return nil
			}); err != nil || !inA && !inB {
				m.Failf("Read = %t, %t, %v", inA, inB, err)
			}
		})
		m.Go(func() {
			r.Create(a, 1)
			r.Delete(b)
			raises[c]()
			r.Create(b, 1)
			raises[d]()
			r.Delete(a)
			r.Create(a, 1)
			r.Delete(b)
		})
	})
}

// A transaction says that a value is taken only if the key that it has found absent was absent while another had the value. Here b
// has it only while a is present.
func TestTransactTakenWhilePresent(t *testing.T) {
	cfg := mc.Config{Mode: mc.Bounded, Preemptions: 3}
	cfg.Operations = "Put(4), Put(1) of b, the rest of a transaction that puts 1 ∥ Put(2) of b, Delete, Put(4), Put(1) of b"
	mc.Check(t, cfg, func(m *mc.M) {
		r := indexed(uniqueDigits)
		var staged atomics.Uint32
		m.Go(func() {
			err := r.Transact(func(tx *shardedregistry.Tx[string, int]) error {
				if _, ok := tx.Get("a"); ok {
					return nil
				}
				if staged.Load() == 0 {
					r.Put("a", 4)
					r.Put("b", 1)
					staged.Store(1)
				}
				return tx.Put("a", 1)
			})
			if errors.Is(err, shardedregistry.ErrNotUnique) {
				m.Failf("Transact = %v", err)
			}
		})
		m.Go(func() {
			if staged.Load() == 0 {
				return
			}
			for _, c := range []call{other(put(2)), remove, put(4), other(put(1))} {
				c.Do(r)
			}
		})
	})
}

// A transaction that reads one absent key sees no value that another key had only while that one was present.
func TestTransactReadsWhileAbsent(t *testing.T) {
	cfg := mc.Config{Mode: mc.Bounded, Preemptions: 2}
	cfg.Operations = "Put, Put of b, the rest of a transaction that reads both ∥ Put of b, Delete"
	mc.Check(t, cfg, func(m *mc.M) {
		r := indexed(shardedregistry.Config[string, int]{})
		var staged atomics.Uint32
		m.Go(func() {
			r.Transact(func(tx *shardedregistry.Tx[string, int]) error {
				_, ok := tx.Get("a")
				if staged.Load() == 0 {
					r.Put("a", 1)
					r.Put("b", 1)
					staged.Store(1)
				}
				if v, _ := tx.Get("b"); !ok && v == 1 {
					m.Failf("b has 1, and a is absent")
				}
				return nil
			})
		})
		m.Go(func() {
			if staged.Load() != 0 {
				r.Put("b", 2)
				r.Delete("a")
			}
		})
	})
}

// puts puts a value for keys in a transaction.
func puts(v int, keys ...string) func(tx *shardedregistry.Tx[string, int]) error {
	return func(tx *shardedregistry.Tx[string, int]) error {
		for _, k := range keys {
			tx.Put(k, v)
		}
		return nil
	}
}

// A transaction that has committed and stalls has one date, whoever dates its records: a snapshot shows all of it or nothing.
func TestTransactDatedByReaders(t *testing.T) {
	cfg := bounded
	cfg.Operations = "Get ∥ Get of b, the rest of Snapshot"
	mc.Check(t, cfg, func(m *mc.M) {
		r := twoKeys(a2b2)()
		taking := shardedregistry.Join(r)
		rest := shardedregistry.Begun(r, puts(5, "a", "b"))()
		doing(m, r, []call{get})
		m.Go(func() {
			r.Get("b")
			taking.Collect()
			s := taking.Found()
			a, _ := s.Get("a")
			if b, _ := s.Get("b"); a != b {
				m.Failf("a snapshot has %d and %d", a, b)
			}
		})
		m.Final(func() {
			rest()
			taking.Leave()
		})
	})
}

// A transaction that has committed is not aborted by one whose keys have the same hash.
func TestTransactAbortsNoneThatHasCommitted(t *testing.T) {
	cfg := bounded
	cfg.NoFurther = true // as in TestTransactEqualHashes
	cfg.Operations = "a transaction ∥ the end of another"
	mc.Check(t, cfg, func(m *mc.M) {
		r := twoShards()
		shardedregistry.SetHash(r, func(string) uint64 { return 1 << 63 })
		for _, c := range a2b2 {
			c.Do(r)
		}
		var want shardedregistry.Version = 2
		decide := shardedregistry.Begun(r, puts(5, "a", "b"))
		m.Go(func() {
			if err := r.Transact(puts(6, "a", "b")); err != nil {
				m.Failf("%v", err)
			}
		})
		m.Go(func() {
			if decide()() {
				want++
			}
		})
		m.Final(func() {
			a, _ := r.Lookup("a")
			if b, _ := r.Lookup("b"); a.Version != want || b.Version != want || a.Value != b.Value {
				m.Failf("%v and %v are left, want version %d", a, b, want)
			}
		})
	})
}

// A transaction that creates a key in the place of a dead one is handed its subscriptions. The loop may end meanwhile.
func TestTransactHandsSubscriptionsOn(t *testing.T) {
	put5 := transacts("Put(a, 5)", func(tx model.TxOps) any { return tx.Put("a", 5) })
	cfg := bounded
	cfg.Operations = "Put(a, 5) in a transaction ∥ leave"
	mc.Check(t, cfg, func(m *mc.M) {
		r := twoKeys(with7)()
		w := shardedregistry.Subscribe(r)
		remove.Do(r) // the cell stays for w
		doing(m, r, []call{put5})
		m.Go(w.Leave)
		m.Final(func() { clean(m, r) })
	})
}

// One that helps a transaction puts its cell in the place of a dead one while the owner gives up. A loop that has yet to look at
// the deletion sees it.
func TestTransactGivenUpOverADeletionBesideAHelper(t *testing.T) {
	cfg := bounded
	cfg.Operations = "Put(7) ∥ the end of a transaction that has failed"
	mc.Check(t, cfg, func(m *mc.M) {
		r := twoKeys([]call{put(1)})()
		rest := shardedregistry.GivenUp(r, "a", "b", 2)
		other(create(3)).Do(r)
		w := shardedregistry.Subscribe(r)
		other(remove).Do(r) // the cell stays for w
		doing(m, r, []call{put(7)})
		m.Go(rest)
		m.Final(func() {
			notified(m, r, append([]news{{Key: "b", Version: 1, Value: 3}}, w.Drain()...), false)
			w.Leave()
			clean(m, r)
		})
	})
}

// A creator that meets an intent finishes its transaction, and takes it for no record.
func TestTransactFinishedByACreator(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "Create(7) of b, which a transaction creates"}, func(m *mc.M) {
		r := twoKeys(a2)()
		rest := shardedregistry.Begun(r, puts(5, "a", "b"))
		m.Go(func() {
			if _, err := r.Create("b", 7); !errors.Is(err, shardedregistry.ErrExists) {
				m.Failf("Create = %v", err)
			}
		})
		m.Final(func() {
			if !rest()() || r.Len() != 2 {
				m.Failf("the transaction is lost")
			}
		})
	})
}

// A transaction that stores nothing only reads, also where it deletes what is absent.
func TestTransactDeletesWhatIsAbsent(t *testing.T) {
	r := twoKeys(a2)()
	if got := mc.Measure(func() {
		r.Transact(func(tx *shardedregistry.Tx[string, int]) error {
			tx.Get("a")
			tx.Delete("b")
			return nil
		})
	}); got.RMWs != 0 || got.TableWrites != 0 {
		t.Errorf("it costs %+v", got)
	}
}
