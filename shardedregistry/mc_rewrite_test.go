//go:build modelcheck

package shardedregistry_test

import (
	"fmt"
	"iter"
	"testing"

	"github.com/latchfree/latchfree/internal/mc"
	model "github.com/latchfree/latchfree/internal/model/shardedregistry"
	"github.com/latchfree/latchfree/shardedregistry"
)

// rewriter is what has all keys: a registry, also one of which a snapshot is being taken, or
// the model.
func rewriter(r registry) model.RewriteOps {
	if j, ok := r.(*joined); ok {
		return j.Registry
	}
	return r.(model.RewriteOps)
}

var clears = call{Name: "Clear", Do: func(r registry) any { return rewriter(r).Clear() }}

// replaces makes the registry contain keys, of one letter each, all with one value.
func replaces(keys string, v int) call {
	return call{Name: fmt.Sprintf("Replace(%s, %d)", keys, v), Do: func(r registry) any {
		return results(rewriter(r).Replace(pairs(keys, v)))
	}}
}

func pairs(keys string, v int) iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		for _, k := range keys {
			if !yield(string(k), v) {
				return
			}
		}
	}
}

func TestClearProtocols(t *testing.T) {
	for _, tt := range []struct {
		name    string
		cfg     mc.Config
		first   []call
		threads threads
	}{
		{"two readers", bounded, a2b2, threads{{clears}, {lookup, other(lookup)}, {other(lookup), lookup}}},
		{"a reading transaction", bounded, a2b2, threads{{clears}, {looks}}},
		{"Put", bounded, a2b2, threads{{clears}, {put(7), other(get)}}},
		{"Update", bounded, a2b2, threads{{clears}, {update(1), other(lookup)}}},
		{"Delete", bounded, a2b2, threads{{clears}, {remove}, {other(lookup), lookup}}},
		{"Create", bounded, a2, threads{{clears}, {other(create(7)), lookup}}},
		{"Create of both", bounded, nil, threads{{clears}, {create(1), other(create(2))}}},
		{"two Create", bounded, nil, threads{{clears}, {create(1)}, {other(create(2))}}},
		{"Create and a reader", bounded, a2, threads{{clears}, {other(create(7))}, {other(lookup), lookup}}},
		{"Delete, Create", bounded, a2, threads{{clears}, {remove, create(7)}}},
		{"two", bounded, a2, threads{{clears}, {clears}, {other(create(7))}}},
		{"two of two keys", bounded, a2b2, threads{{clears}, {clears}}},
		{"a transaction", bounded, a2b2, threads{{clears}, {moves("a", "b")}}},
		{"a transaction that creates", bounded, a2, threads{{clears}, {moves("a", "b")}}},
		{"a transaction that reads what is absent", bounded, a2, threads{{clears}, {copies("b", "a")}}},
		{"a transaction that creates both", bounded, nil, threads{{clears}, {inserts}}},
		{"crossing transactions", bounded, a2b2, threads{{clears}, {moves("a", "b")}, {moves("b", "a")}}},
		{"a transaction, and Put", bounded, a2b2, threads{{clears}, {moves("a", "b")}, {other(put(7))}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			transactProtocol(t, tt.cfg, func() registry { return twoShards() }, tt.first, tt.threads)
		})
	}
}

func TestReplaceProtocols(t *testing.T) {
	for _, tt := range []struct {
		name    string
		first   []call
		threads threads
	}{
		{"a key by another", a2, threads{{replaces("b", 3)}, {lookup, other(lookup)}, {other(lookup), lookup}}},
		{"both", a2b2, threads{{replaces("ab", 3)}, {lookup, other(lookup)}}},
		{"nothing by both", nil, threads{{replaces("ab", 3)}, {other(lookup), lookup}}},
		{"Put", a2, threads{{replaces("ab", 3)}, {put(7), other(get)}}},
		{"Put, and Delete of what was created", a2, threads{{replaces("ab", 3), other(remove)}, {put(7), other(get)}}},
		{"Delete", a2b2, threads{{replaces("ab", 3)}, {remove, lookup}}},
		{"Delete, Create", a2, threads{{replaces("a", 3)}, {remove, create(7)}}},
		{"Create", a2, threads{{replaces("b", 3)}, {other(create(7)), lookup}}},
		{"Create of a third", nil, threads{{replaces("a", 3)}, {other(create(7))}, {lookup, other(lookup)}}},
		{"two", a2, threads{{replaces("b", 3)}, {replaces("a", 4)}}},
		{"Clear", a2, threads{{replaces("ab", 3)}, {clears}}},
		{"a transaction", a2b2, threads{{replaces("ab", 3)}, {moves("a", "b")}}},
		{"a transaction that creates", a2, threads{{replaces("ab", 3)}, {moves("a", "b")}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			transactProtocol(t, bounded, func() registry { return twoShards() }, tt.first, tt.threads)
		})
	}
}

// A snapshot shows all of a Clear or Replace or nothing, whenever it begins.
//
// Where a creation has stored a plain record after a snapshot's last look, and the key changes
// before the snapshot has left, what the key held is left to the next snapshot. So one is taken
// afterwards.
func TestClearSnapshots(t *testing.T) {
	for _, tt := range []struct {
		name    string
		first   []call
		threads threads
	}{
		{"Clear", a2b2, threads{{clears}, {snapshot}}},
		{"Clear and Create", a2, threads{{clears}, {snapshot}, {other(create(7))}}},
		{"Clear and Put", a2b2, threads{{clears}, {snapshot}, {put(7)}}},
		{"Clear and a transaction", a2, threads{{clears}, {snapshot}, {moves("a", "b")}}},
		{"Replace", a2, threads{{replaces("b", 3)}, {snapshot}}},
		{"Replace of both", a2b2, threads{{replaces("ab", 3)}, {snapshot}}},
		{"Replace, Clear", a2, threads{{replaces("b", 3), clears}, {snapshot}}},
		{"Replace and Get", a2, threads{{replaces("b", 3)}, {snapshot}, {other(get), get}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			first := func(r registry) registry {
				for _, c := range tt.first {
					c.Do(r)
				}
				return r
			}
			mc.Linearizable(t, bounded, mc.Program[registry]{
				New:     func() registry { return first(twoShards()) },
				Model:   func() registry { return first(twoShardsModel()) },
				Threads: tt.threads,
				After:   []call{snapshot, lookup, other(lookup), size, linked, put(9), other(remove), size, linked, traces},
			})
		})
		t.Run(tt.name+" while it is taken", func(t *testing.T) {
			fresh := func() registry { return &joined{Registry: twoShards()} }
			first := append(tt.first[:len(tt.first):len(tt.first)], begin)
			transactProtocol(t, bounded, fresh, first, tt.threads, finish, traces)
		})
	}
}

// Two keys with the same hash, and two in the same shard.
func TestClearEqualHashes(t *testing.T) {
	for _, tt := range []struct {
		name    string
		first   []call
		threads threads
	}{
		{"a transaction", a2b2, threads{{clears}, {moves("a", "b")}}},
		{"a transaction that creates", a2, threads{{clears}, {moves("a", "b")}, {other(lookup)}}},
		{"Replace", a2, threads{{replaces("b", 3)}, {moves("a", "b")}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sameHash := func() registry {
				r := twoShards()
				shardedregistry.SetHash(r, func(string) uint64 { return 1 << 63 })
				return r
			}
			mc.Linearizable(t, bounded, mc.Program[registry]{
				New: func() registry {
					r := sameHash()
					for _, c := range tt.first {
						c.Do(r)
					}
					return r
				},
				Model: func() registry {
					r := newModel()
					for _, c := range tt.first {
						c.Do(r)
					}
					return r
				},
				Threads: tt.threads,
				After:   []call{lookup, other(lookup), size, linked, other(remove), size, linked},
			})
		})
	}
}
