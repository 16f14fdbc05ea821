//go:build !modelcheck

package shardedregistry_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/latchfree/latchfree/shardedregistry"
)

// What users have reported of other registries and maps, and the tests that would fail if it
// were so here. Those that are about nothing else are in this file.
//
// Reported bug 1, xsync: entries are lost while a table grows: `TestStressReadYourWrites`.
// Reported bug 2, xsync: a table shrinks too far: out of range: `TestT2_ShrinkAndGrow`, `TestStressReadYourWrites`.
// Reported bug 3, xsync: a key is there, or yielded, twice: `TestStressLoops`.
// Reported bug 4, xsync: a lost wake-up, a mutex never unlocked: `TestT4_EveryStressHasAWatchdog`, `TestStressFirstUse`.
// Reported bug 5, xsync, orcaman: a function that panics leaves a bucket locked: `TestFunctionLeaves`, `TestLoopBodyLeaves`, `TestDeleteFuncLeaves`.
// Reported bug 6, xsync: a slow initialiser blocks another key: `TestFunctionBlocks`.
// Reported bug 7, ConcurrentHashMap, Guava, Caffeine, xsync: a function that uses the map never ends: `TestFunctionCallsBack`, `TestFunctionKeepsChangingItsKey`, `TestDeleteFuncCallsBack`.
// Reported bug 8, xsync: a map is copied by value: `TestNoCopy`.
// Reported bug 9, xsync: keys can be chosen with equal hashes: `TestBadHashes`, `TestT9_SimilarKeys`.
// Reported bug 10, xsync, sync.Map: look-ups and loops allocate: `TestAllocations`, `TestIterationAllocatesPerShard`.
// Reported bug 11, xsync: tables shrink repeatedly, others wait: `TestT11_ReadersWhileTablesShrink`.
// Reported bug 12, xsync: a NaN is stored again and again: `TestInvalidKeys`.
// Reported bug 13, xsync: the size is negative for a moment: `TestStressLoops`, `TestLenIsNeverTooSmall`.
// Reported bug 14, haxmap: a key set after its deletion is not there: `TestDeleteCreateGet`.
// Reported bug 15, haxmap, cornelk: creators of one key get different values: `TestReportConcurrently`, `TestT19_StressGetOrCreate`.
// Reported bug 16, haxmap, csmap: a deletion in a loop stops insertions: `TestChangeInLoop`.
// Reported bug 17, haxmap: a change succeeds on a deleted entry: `TestStressVersions`, `TestDeleterStalls`, `TestRefOfADeletionThatStalls`.
// Reported bug 18, cornelk: a new key is not found while the index grows: `TestStressReadYourWrites`.
// Reported bug 19, cornelk: GetOrInsert loses keys, Len is too large: `TestT19_StressGetOrCreate`.
// Reported bug 20, orcaman: a loop left early holds its locks: `TestLeaveLoopEarly`.
// Reported bug 21, orcaman, tidwall, csmap: a loop's body must not change the map: `TestChangeInLoop`.
// Reported bug 22, sync.Map: deleting an absent key orders no memory. No test: finding a key absent orders nothing, as documented.
// Reported bug 23, Ctrie: snapshots change: sizeless tokens share an address: `TestSnapshotNeverChanges`, `TestValuesWithoutSize`, `TestStressSnapshotChurn`.
// Reported bug 24, go-memdb, go-immutable-radix, Consul: watches fire wrongly, miss the last change, leak: `TestWatchProtocols`, `TestStressWatch`, `TestWatchLeavesNothing`, `TestStressWait`.
// Reported bug 25, client-go: wrong keys, remains of failures, empty sets in indexes: `TestIndexProtocols`, `TestByIndexSeveralValues`, `TestStressIndexes`, `TestRejected`, `TestIndexMemory`.
// Reported bug 26, libcuckoo, junction, orcaman: odd, zero, large capacities hang: `TestT26_AnyNumberOfShards`, `TestT26_EmptyShardsAreSmall`, `TestInvalidSizes`.
// Reported bug 27, etcd, any map with versions: a key created again has an old version: `TestVersionsIncreaseForEver`, `TestStressVersions`, `TestStressRecreate`.
// Reported bug 28, etcd: a watch of a prefix fires for the key at its end: `TestFilters`.
// Reported bug 29, etcd: an event between list and watch is missed: `TestListThenWatch`, `TestListThenWatchProtocols`.
// Reported bug 30, etcd: compaction is wrong by one: `TestCompaction`.
// Reported bug 31, client-go: after "too old", the next list is too old again: `TestBeginAnewAfterCompaction`.
// Reported bug 32, etcd: a slow watcher delays others, or the writers: `TestWatcherStalls`, `TestMatchingBlocks`.

// Very many goroutines delete what a table has grown for, and create it again.
func TestT2_ShrinkAndGrow(t *testing.T) {
	const workers = 100
	each := iterations(1000)
	r := shardedregistry.MustNew(shardedregistry.Config[int, int]{Shards: 1})
	for range 2 {
		for i := range workers * each {
			if _, err := r.Create(i, i); err != nil {
				t.Fatal(err)
			}
		}
		hammer(t, workers, func(worker int) {
			for i := worker * each; i < (worker+1)*each; i++ {
				if e, ok := r.Delete(i); !ok || e.Value != i {
					t.Errorf("Delete(%d) = %v, %v", i, e, ok)
				}
			}
		})
		if r.Len() != 0 || shardedregistry.Linked(r) != 0 {
			t.Fatalf("Len = %d, %d linked; want none", r.Len(), shardedregistry.Linked(r))
		}
	}
}

// A stress that gets stuck says so: all of them run under a watchdog.
func TestT4_EveryStressHasAWatchdog(t *testing.T) {
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, name := range files {
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || !strings.HasPrefix(fn.Name.Name, "Test") || !strings.Contains(fn.Name.Name, "Stress") {
				continue
			}
			found++
			body := string(text[fset.Position(fn.Pos()).Offset:fset.Position(fn.End()).Offset])
			if !strings.Contains(body, "hammer(t, ") && !strings.Contains(body, "within(t, ") {
				t.Errorf("%s: %s runs without a watchdog", name, fn.Name.Name)
			}
		}
	}
	if found < 10 {
		t.Errorf("found only %d stress tests", found)
	}
}

// Keys that differ by little are spread as well as others, over the shards and
// within each.
func TestT9_SimilarKeys(t *testing.T) {
	const n = 64 * 256
	for name, key := range map[string]func(i int) any{
		"numbers":              func(i int) any { return i },
		"multiples of 2^32":    func(i int) any { return uint64(i) << 32 },
		"one bit and another":  func(i int) any { return uint64(1)<<(i%64) ^ uint64(i/64)<<(i%7) ^ uint64(i) },
		"a common prefix":      func(i int) any { return strings.Repeat("x", 100) + fmt.Sprint(i) },
		"a common suffix":      func(i int) any { return fmt.Sprint(i) + strings.Repeat("x", 100) },
		"characters that swap": func(i int) any { return string([]byte{byte(i), byte(i >> 8), byte(i >> 4)}) },
		"arrays":               func(i int) any { return [4]int{i % 2, 0, i / 2, 0} },
		"keys of one tenant":   func(i int) any { return scoped{"plans", fmt.Sprint(i)} },
	} {
		t.Run(name, func(t *testing.T) {
			r := shardedregistry.MustNew(shardedregistry.Config[any, int]{Shards: 64})
			var top, low [64]int
			seen := map[any]bool{}
			for i := range n {
				if k := key(i); !seen[k] {
					seen[k] = true
					h := shardedregistry.Hash(r, k)
					top[h>>58]++
					low[h%64]++
					mustPut(t, r, k, i)
				}
			}
			if r.Len() != len(seen) {
				t.Errorf("Len = %d, want %d", r.Len(), len(seen))
			}
			mean := len(seen) / 64
			for i := range 64 {
				if max(top[i], low[i]) > 2*mean || min(top[i], low[i]) < mean/2 {
					t.Fatalf("of %d keys, %d have the top bits %d and %d the low ones", len(seen), top[i], i, low[i])
				}
			}
		})
	}
}

// Keys that stay are found while the tables around them shrink.
func TestT11_ReadersWhileTablesShrink(t *testing.T) {
	const stay, readers = 16, 2
	n := iterations(30_000)
	r := shardedregistry.MustNew(shardedregistry.Config[int, int]{Shards: 2})
	for i := range n {
		mustPut(t, r, i, i)
	}
	var over atomic.Bool
	hammer(t, readers+1, func(worker int) {
		if worker == readers {
			defer over.Store(true)
			for i := stay; i < n; i++ {
				r.Delete(i)
			}
			return
		}
		for i := 0; !over.Load(); i++ {
			if v, ok := r.Get(i % stay); !ok || v != i%stay {
				t.Errorf("Get(%d) = %v, %v", i%stay, v, ok)
				return
			}
		}
	})
	if r.Len() != stay {
		t.Errorf("Len = %d, want %d", r.Len(), stay)
	}
}

// Any number of shards works: those that are no power of two, one, and very
// many.
func TestT26_AnyNumberOfShards(t *testing.T) {
	for _, shards := range []int{0, 1, 2, 3, 5, 7, 31, 33, 100, 1000, 1<<16 - 1, 1 << 16} {
		t.Run(fmt.Sprint(shards), func(t *testing.T) {
			r := shardedregistry.MustNew(shardedregistry.Config[int, int]{Shards: shards})
			const keys = 300
			for i := range keys {
				if _, err := r.Create(i, i); err != nil {
					t.Fatal(err)
				}
			}
			loop := 0
			for k, v := range r.All() {
				if loop++; k != v {
					t.Errorf("All yields %d with %d", k, v)
				}
			}
			for i := range keys {
				wantValue(t, r, i, i)
				r.Delete(i)
			}
			if loop != keys || r.Len() != 0 || shardedregistry.Linked(r) != 0 {
				t.Errorf("a loop yielded %d keys; Len = %d, %d linked", loop, r.Len(), shardedregistry.Linked(r))
			}
		})
	}
	for _, shards := range []int{-1, 1<<16 + 1} {
		if _, err := shardedregistry.New(shardedregistry.Config[int, int]{Shards: shards}); err == nil {
			t.Errorf("New with %d shards gives no error", shards)
		}
	}
}

// Shards that nobody uses take a word each.
func TestT26_EmptyShardsAreSmall(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r := shardedregistry.MustNew(shardedregistry.Config[int, int]{Shards: 1 << 16})
	r.Len()
	r.Get(1)
	runtime.ReadMemStats(&after)
	if bytes := after.TotalAlloc - before.TotalAlloc; bytes > 1<<20 {
		t.Errorf("an empty registry of 65,536 shards takes %d bytes", bytes)
	}
	if n := shardedregistry.UsedShards(r); n != 0 {
		t.Errorf("%d shards are used before any key was created", n)
	}
	mustPut(t, r, 1, 1)
	if n := shardedregistry.UsedShards(r); n != 1 {
		t.Errorf("%d shards are used after one key was created", n)
	}
}
