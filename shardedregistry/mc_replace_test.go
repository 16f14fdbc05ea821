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

// replacing is what has Clear and Replace: a registry, also one of which a snapshot is being
// taken, or the model.
func replacing(r registry) model.ReplaceOps {
	if j, ok := r.(*joined); ok {
		return j.Registry
	}
	return r.(model.ReplaceOps)
}

var clears = call{Name: "Clear", Do: func(r registry) any { return replacing(r).Clear() }}

// replaces makes the registry contain keys, of one letter each, all with one value.
func replaces(keys string, v int) call {
	return call{Name: fmt.Sprintf("Replace(%s, %d)", keys, v), Do: func(r registry) any {
		return results(replacing(r).Replace(pairs(keys, v), nil))
	}}
}

// replacesLess is replaces, and leaves a value that is less as it is.
func replacesLess(keys string, v int) call {
	return call{Name: fmt.Sprintf("Replace(%s, %d) unless less", keys, v), Do: func(r registry) any {
		return results(replacing(r).Replace(pairs(keys, v), func(a, b int) bool { return a < b }))
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

// What Clear and Replace do to one key is one change of it.
func TestReplaceProtocols(t *testing.T) {
	for _, tt := range []struct {
		name    string
		first   []call
		threads threads
	}{
		{"Clear and update", with7, threads{{clears}, {update(1)}, {lookup}}},
		{"Clear, delete and create", with7, threads{{clears}, {remove, create(5)}}},
		{"Clear and create", empty, threads{{clears}, {create(5), update(1)}}},
		{"two clear", with7, threads{{clears}, {clears}, {create(5)}}},
		{"Replace and update", with7, threads{{replaces("a", 3)}, {update(1)}, {lookup}}},
		{"Replace, delete and create", with7, threads{{replaces("a", 3)}, {remove, create(5)}}},
		{"Replace and create", without, threads{{replaces("a", 3), lookup}, {create(5), update(1)}}},
		{"Replace by nothing", with7, threads{{replaces("", 3)}, {put(5), remove}}},
		{"two replace", with7, threads{{replaces("a", 3)}, {replaces("a", 4)}, {remove}}},
		{"Replace and Clear", with7, threads{{replaces("a", 3)}, {clears}, {lookup}}},
		{"equal", with7, threads{{replacesLess("a", 8)}, {put(9)}, {lookup}}},
		{"equal and deleted", with7, threads{{replacesLess("a", 8)}, {remove, create(9)}}},
	} {
		t.Run(tt.name, func(t *testing.T) { protocol(t, oneShard, tt.first, tt.threads) })
	}
}

// A Clear beside a transaction deletes each key before or after it, and nothing is left behind.
func TestClearBesideTransactions(t *testing.T) {
	for _, tt := range []struct {
		name  string
		first []call
		tx    call
	}{
		{"of two keys", a2b2, moves("a", "b")},
		{"that creates", a2, moves("a", "b")},
		{"that creates both", nil, inserts},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := bounded
			cfg.Operations = tt.tx.Name + " ∥ Clear"
			mc.Check(t, cfg, func(m *mc.M) {
				r := twoShards()
				for _, c := range tt.first {
					c.Do(r)
				}
				before := r.Len()
				doing(m, r, []call{tt.tx})
				deleted := 0
				m.Go(func() { deleted = r.Clear() })
				m.Final(func() {
					if n := shardedregistry.Linked(r); n != r.Len() || shardedregistry.Intents(r) != 0 || deleted > before+2 {
						m.Failf("%d keys, %d linked, %d deleted of %d", r.Len(), n, deleted, before)
					}
					if r.Clear(); r.Len() != 0 || shardedregistry.Linked(r) != 0 {
						m.Failf("%d keys, %d linked after Clear", r.Len(), shardedregistry.Linked(r))
					}
				})
			})
		})
	}
}
