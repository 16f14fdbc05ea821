//go:build modelcheck

package shardedregistry_test

import (
	"fmt"
	"testing"

	"github.com/latchfree/latchfree/internal/mc"
	model "github.com/latchfree/latchfree/internal/model/shardedregistry"
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
			transactProtocol(t, bounded, sameHash, tt.first, tt.threads)
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
