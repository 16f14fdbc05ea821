//go:build modelcheck

package shardedregistry_test

import (
	"fmt"
	"testing"

	"github.com/latchfree/latchfree/internal/mc"
	"github.com/latchfree/latchfree/shardedregistry"
)

// parities is what the users of a registry do that is indexed by parity and has
// keys under both.
func parities(op func(r *names, core, turn int)) func() func(int) {
	return func() func(int) {
		parity := indexes{"parity": func(_ string, v int) []string { return []string{fmt.Sprint(v & 1)} }}
		r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 64, Indexes: parity})
		r.Put("a", 7)
		r.Put("even", 0)
		r.Put("odd", 1)
		for core := range 64 {
			r.Put(fmt.Sprint(core), 0)
		}
		var turns [64]int
		return func(core int) { turns[core]++; op(r, core, turns[core]) }
	}
}

// What an index costs those who read, those who change nothing that it is about,
// and those who do, each with a key of its own.
func TestIndexCosts(t *testing.T) {
	mc.CheckCost(t, "Get", parities(func(r *names, _, _ int) { r.Get("a") }), mc.Cost{Loads: 2, TableReads: 1}, 0)
	mc.CheckCost(t, "Put that stays under its value", parities(func(r *names, _, _ int) { r.Put("a", 9) }), mc.Cost{Loads: 4, RMWs: 1, TableReads: 1}, 2, 4.63, 32.48)
	mc.CheckCost(t, "Put that moves", parities(func(r *names, core, turn int) { r.Put(fmt.Sprint(core), turn) }), mc.Cost{Loads: 6, RMWs: 3, TableReads: 3}, 4, 5, 67.83)
	mc.CheckCost(t, "ByIndex of one key", func() func(int) {
		r := indexed(shardedregistry.Config[string, int]{Indexes: indexes{"digit": digits}})
		r.Put("a", 1)
		return func(int) {
			for range r.ByIndex("digit", "1") {
			}
		}
	}, mc.Cost{Loads: 3, TableReads: 2}, 0)
	mc.CheckCost(t, "ByIndex of none", func() func(int) {
		r := indexed(shardedregistry.Config[string, int]{Indexes: indexes{"digit": digits}})
		return func(int) {
			for range r.ByIndex("digit", "1") {
			}
		}
	}, mc.Cost{Loads: 1, TableReads: 1}, 0)
	unique := indexed(shardedregistry.Config[string, int]{UniqueIndexes: indexes{"digit": digits}})
	unique.Put("a", 1)
	unique.Put("b", 2)
	for _, c := range []struct {
		name string
		do   func()
		want mc.Cost
	}{
		{"Put that gains a unique value", func() { unique.Put("a", 3) }, mc.Cost{Loads: 5, Stores: 1, RMWs: 2, Blocking: 2, TableReads: 5, TableWrites: 2}},
		{"Put that gains one that is taken", func() { unique.Put("a", 2) }, mc.Cost{Loads: 6, Blocking: 2, TableReads: 3}},
		{"Delete, and Create", func() { unique.Delete("a"); unique.Create("a", 1) }, mc.Cost{Loads: 13, Stores: 1, RMWs: 5, Blocking: 2, TableReads: 6, TableWrites: 4}},
		{"LookupBy", func() { unique.LookupBy("digit", "2") }, mc.Cost{Loads: 3, TableReads: 2}},
	} {
		if got := mc.Measure(c.do); got != c.want {
			t.Errorf("%s costs %v, want %v", c.name, got, c.want)
		}
	}
}
