//go:build !modelcheck

package shardedregistry_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/latchfree/latchfree/shardedregistry"
)

// iterations returns n, and much less under -short.
func iterations(n int) int {
	if testing.Short() {
		return n / 10
	}
	return n
}

// T1, T18: what a goroutine has created it finds at once, and keeps, while the
// tables grow and shrink under it.
func TestStressReadYourWrites(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 2})
	n := iterations(3000)
	for range 2 { // the second time after the tables have shrunk
		hammer(t, 4, func(worker int) {
			own := func(i int) string { return fmt.Sprintf("%d/%d", worker, i) }
			for i := range n {
				if _, err := r.Create(own(i), i); err != nil {
					t.Errorf("Create(%s) = %v", own(i), err)
					return
				}
				if v, ok := r.Get(own(i)); !ok || v != i {
					t.Errorf("Get(%s) = %v, %v after its creation", own(i), v, ok)
					return
				}
				if old := own(i / 2); i%2 == 1 {
					if _, ok := r.Get(old); !ok {
						t.Errorf("%s is lost", old)
						return
					}
				}
			}
		})
		if want := 4 * n; r.Len() != want || shardedregistry.Linked(r) != want {
			t.Fatalf("Len = %d, %d linked; want %d", r.Len(), shardedregistry.Linked(r), want)
		}
		// T2: everything is deleted from many goroutines.
		hammer(t, 4, func(worker int) {
			for i := range n {
				if _, ok := r.Delete(fmt.Sprintf("%d/%d", worker, i)); !ok {
					t.Errorf("%d/%d is lost", worker, i)
				}
			}
		})
		if r.Len() != 0 || shardedregistry.Linked(r) != 0 {
			t.Fatalf("Len = %d, %d linked; want none", r.Len(), shardedregistry.Linked(r))
		}
	}
}

// T17, T27: everybody does everything to few keys. Every success at a key has
// a version that no other success has, a change found what its version says,
// and what each goroutine sees of a key never goes back.
func TestStressVersions(t *testing.T) {
	const workers, keys = 6, 3
	n := iterations(6000)
	for name, hash := range map[string]func(int) uint64{
		"good hash":     nil,
		"constant hash": func(int) uint64 { return 0 },
	} {
		t.Run(name, func(t *testing.T) {
			r := shardedregistry.MustNew(shardedregistry.Config[int, int]{Shards: 2})
			if hash != nil {
				shardedregistry.SetHash(r, hash)
			}
			// What each version of each key was made as, by the success that
			// made it, and what it was seen as.
			var history [keys][]struct{ made, seen atomic.Int32 }
			for k := range history {
				history[k] = make([]struct{ made, seen atomic.Int32 }, 2*workers*n+2)
			}
			const alive, deleted = 1, 2
			var births, deaths [keys]atomic.Int64
			hammer(t, workers, func(worker int) {
				rnd := rand.New(rand.NewPCG(uint64(worker), 1))
				var seen [keys]shardedregistry.Version
				made := func(k int, v shardedregistry.Version, as int32) {
					if history[k][v].made.Swap(as) != 0 {
						t.Errorf("version %d of key %d was made twice", v, k)
					}
					if v <= seen[k] {
						t.Errorf("key %d has version %d after version %d", k, v, seen[k])
					}
					seen[k] = v
				}
				conflicts := func(k int, err error) {
					var conflict *shardedregistry.ConflictError
					if errors.As(err, &conflict) {
						history[k][conflict.Have].seen.Store(alive)
					}
				}
				for i := range n {
					k := rnd.IntN(keys)
					switch rnd.IntN(7) {
					case 0:
						if v, err := r.Create(k, i); err == nil {
							births[k].Add(1)
							made(k, v, alive)
						}
					case 1:
						if e, err := r.Update(k, func(v int) (int, error) { return v + 1, nil }); err == nil {
							made(k, e.Version, alive)
						}
					case 2:
						created := false
						e, err := createOrUpdate(r, k, func(v int, exists bool) (int, error) {
							created = !exists
							return v + 1, nil
						})
						if err != nil {
							t.Errorf("Compute = %v", err)
						}
						if created {
							births[k].Add(1)
						}
						made(k, e.Version, alive)
					case 3:
						if e, ok := r.Lookup(k); ok {
							v, err := r.UpdateIf(k, e.Version, i)
							if err == nil {
								made(k, v, alive)
								if v != e.Version+1 {
									t.Errorf("UpdateIf made version %d of %d", v, e.Version)
								}
							}
							conflicts(k, err)
						}
					case 4:
						if e, ok := r.Delete(k); ok {
							deaths[k].Add(1)
							made(k, e.Version+1, deleted)
						}
					case 5:
						if e, ok := r.Lookup(k); ok {
							err := r.DeleteIf(k, e.Version)
							if err == nil {
								deaths[k].Add(1)
								made(k, e.Version+1, deleted)
							}
							conflicts(k, err)
						}
					case 6:
						if e, ok := r.Lookup(k); ok {
							if e.Version < seen[k] {
								t.Errorf("Lookup of key %d went back from version %d to %d", k, seen[k], e.Version)
							}
							seen[k] = e.Version
							history[k][e.Version].seen.Store(alive)
						}
					}
				}
			})
			live := 0
			for k := range keys {
				for v := range history[k] {
					h := &history[k][v]
					if h.seen.Load() == alive && h.made.Load() != alive {
						t.Errorf("version %d of key %d was seen alive and made as %d", v, k, h.made.Load())
					}
				}
				_, ok := r.Get(k)
				if alive := births[k].Load() - deaths[k].Load(); alive != 0 && alive != 1 || ok != (alive == 1) {
					t.Errorf("key %d: %d creations and %d deletions succeeded; present: %v",
						k, births[k].Load(), deaths[k].Load(), ok)
				}
				if ok {
					live++
				}
			}
			if r.Len() != live || shardedregistry.Linked(r) != live {
				t.Errorf("Len = %d, %d linked; want %d", r.Len(), shardedregistry.Linked(r), live)
			}
		})
	}
}

// T27 where it is tightest: a creation right behind the deletion of the same
// key must see the floor that the deletion has raised.
func TestStressRecreate(t *testing.T) {
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 1})
	n := iterations(20_000)
	created := make([]atomic.Bool, 4*n+2)
	var over atomic.Bool
	hammer(t, 2, func(worker int) {
		if worker == 1 {
			for !over.Load() {
				if _, ok := r.Delete("a"); !ok {
					runtime.Gosched()
				}
			}
			return
		}
		defer over.Store(true)
		for range n {
			v, err := r.Create("a", 1)
			for err != nil {
				runtime.Gosched()
				v, err = r.Create("a", 1)
			}
			if created[v].Swap(true) {
				t.Errorf("two creations have version %d", v)
			}
		}
	})
}

// T3, T13, T19: while some keys come and go, a loop yields every key that
// stays, none twice and none that was never there, and Len stays in bounds.
func TestStressLoops(t *testing.T) {
	const stay, each, movers = 300, 500, 3
	r := shardedregistry.MustNew(shardedregistry.Config[int, int]{Shards: 2})
	for i := range stay {
		mustPut(t, r, i, i)
	}
	loops := iterations(200)
	var over atomic.Bool
	hammer(t, movers+1, func(worker int) {
		if worker == movers {
			defer over.Store(true)
			for range loops {
				seen := map[int]bool{}
				for k, v := range r.All() {
					if seen[k] {
						t.Errorf("All yielded %d twice", k)
					}
					if k != v || k < 0 || k >= stay+movers*each {
						t.Errorf("All yielded %d with value %d", k, v)
					}
					seen[k] = true
				}
				for k := range stay {
					if !seen[k] {
						t.Errorf("All left %d out", k)
					}
				}
				if n := r.Len(); n < stay || n > stay+movers*each {
					t.Errorf("Len = %d with %d keys that stay and %d that move", n, stay, movers*each)
				}
			}
			return
		}
		first := stay + worker*each
		for !over.Load() {
			for i := range each { // the tables grow
				r.Create(first+i, first+i)
			}
			for i := range each { // and shrink
				r.Delete(first + i)
			}
		}
	})
	if r.Len() != stay {
		t.Errorf("Len = %d, want the %d keys that stay", r.Len(), stay)
	}
}

// Goroutines that are the first to use a registry agree on its tables.
func TestStressFirstUse(t *testing.T) {
	for range iterations(300) {
		var r shardedregistry.Registry[int, int]
		hammer(t, 4, func(worker int) {
			if _, err := r.Create(worker, worker); err != nil {
				t.Error(err)
			}
			createOrUpdate(&r, -1, func(n int, _ bool) (int, error) { return n + 1, nil })
		})
		wantValue(t, &r, -1, 4)
		if n := r.Len(); n != 5 {
			t.Fatalf("Len = %d, want 5", n)
		}
	}
}
