//go:build !modelcheck

package shardedregistry_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

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

// Owners take locks, hold and renew them, and lose some. Nobody else gets a lock before its time
// is over, each owner's token is above those before, and in the end all locks are free.
func TestStressLeases(t *testing.T) {
	const locks, life = 4, 3 * time.Millisecond
	for name, c := range shapes(lasting(life)) {
		synctest.Test(t, func(t *testing.T) {
			r := shardedregistry.MustNew(c)
			var (
				tokens [locks]atomic.Uint64 // the highest that somebody got
				until  [locks]atomic.Int64  // before that time nobody gets the lock
				began  = time.Now()
			)
			hammer(t, 6, func(worker int) {
				rnd := rand.New(rand.NewPCG(uint64(worker), 1))
				for range iterations(300) {
					i := rnd.IntN(locks)
					called := time.Now()
					token, err := r.Create(key(i), worker)
					if err != nil {
						time.Sleep(time.Duration(rnd.IntN(4)) * time.Millisecond) // until timers fire
						continue
					}
					if now, before := int64(time.Since(began)), until[i].Load(); now < before {
						t.Errorf("%s: a lock is free %v too early", name, time.Duration(before-now))
					}
					if highest := tokens[i].Swap(uint64(token)); highest >= uint64(token) {
						t.Errorf("%s: token %d comes after %d", name, token, highest)
					}
					until[i].Store(int64(called.Add(life).Sub(began)))
					for rnd.IntN(3) > 0 {
						time.Sleep(time.Duration(rnd.IntN(4)) * time.Millisecond)
						called = time.Now()
						if err := r.Renew(key(i), token, life); err != nil {
							if !errors.Is(err, shardedregistry.ErrNotFound) && !errors.Is(err, shardedregistry.ErrConflict) {
								t.Error(err)
							}
							break
						}
						if e, ok := r.Lookup(key(i)); !ok && time.Since(called) < life || ok && e.Version < token {
							t.Errorf("%s: %v, %t after Renew", name, e, ok)
							break
						}
						if tokens[i].Load() == uint64(token) {
							until[i].Store(int64(called.Add(life).Sub(began)))
						}
					}
					if rnd.IntN(4) == 0 {
						until[i].Store(0)
						r.DeleteIf(key(i), token)
					}
				}
			})
			time.Sleep(life)
			synctest.Wait()
			if n, _ := shardedregistry.Scheduled(r); n != 0 || shardedregistry.Linked(r) != 0 {
				t.Errorf("%s: %d are scheduled, %d linked", name, n, shardedregistry.Linked(r))
			}
		})
	}
}

// Everything happens to entities that expire, and loops over Watch and WatchFrom follow: in the
// end they have what the registry has, and WatchFrom has yielded each version once.
func TestStressExpiry(t *testing.T) {
	within(t, func() { synctest.Test(t, stressExpiry) })
}

func stressExpiry(t *testing.T) {
	const keys = 20
	c := config{
		History: 1 << 18,
		Indexes: map[string]func(string, int) []string{"mod": func(_ string, v int) []string { return []string{fmt.Sprint(v % 3)} }},
		TTL: func(_ string, v int) time.Duration {
			if v%10 == 0 {
				return math.MaxInt64
			}
			return time.Duration(v%10) * time.Millisecond / 3
		},
	}
	r := shardedregistry.MustNew(c)
	ctx, cancel := context.WithCancel(t.Context())
	watched, changed := map[string]event{}, map[string]event{}
	go func() {
		for e := range r.Watch(ctx) {
			if e.Version <= watched[e.Key].Version {
				t.Errorf("Watch: %v comes after %v", e, watched[e.Key])
			}
			watched[e.Key] = e
		}
	}()
	go func() {
		for change, err := range r.WatchFrom(ctx, 0) {
			e := change.Event
			last, ok := changed[e.Key]
			if err != nil || e.Version <= last.Version || ok && !last.Deleted && e.Version != last.Version+1 || e.Expired && !e.Deleted {
				t.Errorf("WatchFrom: %v, %v comes after %v", e, err, last)
			}
			changed[e.Key] = e
		}
	}()
	synctest.Wait()
	hammer(t, 4, func(worker int) {
		rnd := rand.New(rand.NewPCG(uint64(worker), 2))
		for i := range iterations(4000) {
			k, v := key(rnd.IntN(keys)), rnd.IntN(1000)
			switch rnd.IntN(8) {
			case 0:
				r.Delete(k)
			case 1:
				e, _ := r.Lookup(k)
				r.Renew(k, e.Version, time.Duration(v)*time.Microsecond)
			case 2:
				r.Transact(func(tx *tx) error {
					old, _ := tx.Get(k)
					tx.Put(key(rnd.IntN(keys)), old)
					return tx.Put(k, v)
				})
			case 3:
				r.Snapshot()
			case 4:
				r.Update(k, func(old int) (int, error) { return old + 1, nil })
			default:
				r.Put(k, v)
			}
			if i%10 == 0 {
				time.Sleep(time.Millisecond)
			}
		}
	})
	for i := range keys { // the last change of each key, for the loops to see
		mustPut(t, r, key(i), 10)
	}
	synctest.Wait()
	cancel()
	synctest.Wait()
	for i := range keys {
		e, ok := r.Lookup(key(i))
		want := event{Key: e.Key, Value: e.Value, Version: e.Version}
		if !ok || watched[key(i)] != want || changed[key(i)] != want {
			t.Errorf("%v is there, Watch has yielded %v, WatchFrom %v", want, watched[key(i)], changed[key(i)])
		}
	}
	if left := shardedregistry.Overlooked(r); len(left) != 0 {
		t.Errorf("%v are overlooked", left)
	}
}

// T25: everybody moves few keys between few values, creates and deletes them,
// while loops run. A loop yields nothing that does not match, no key twice, and
// every key that stays; and in the end each index is what the keys hold.
func TestStressIndexes(t *testing.T) {
	const workers, keys, stay = 4, 12, 40
	values := func(_ int, v int) []string { // one to three of eight
		return []string{fmt.Sprint(v % 8), fmt.Sprint(v / 8 % 8), fmt.Sprint(v / 64 % 8)}
	}
	distinct := func(_ int, v int) []string {
		seen := map[string]bool{}
		var all []string
		for _, s := range values(0, v) {
			if !seen[s] {
				seen[s] = true
				all = append(all, s)
			}
		}
		return all
	}
	for name, hash := range map[string]func(int) uint64{
		"good hash":     nil,
		"constant hash": func(int) uint64 { return 0 },
	} {
		t.Run(name, func(t *testing.T) {
			r := shardedregistry.MustNew(shardedregistry.Config[int, int]{
				Shards: 2, Indexes: map[string]func(int, int) []string{"digit": values},
			})
			if hash != nil {
				shardedregistry.SetHash(r, hash)
			}
			for i := range stay { // under 0, and moving between others
				mustPut(t, r, -1-i, 0)
			}
			n := iterations(4000)
			var writing atomic.Int32
			writing.Store(workers)
			hammer(t, workers+1, func(worker int) {
				rnd := rand.New(rand.NewPCG(uint64(worker), 7))
				if worker == workers {
					for writing.Load() > 0 {
						digit := fmt.Sprint(rnd.IntN(8))
						seen := map[int]bool{}
						for e := range r.ByIndex("digit", digit) {
							if seen[e.Key] {
								t.Errorf("ByIndex yields %d twice", e.Key)
							}
							seen[e.Key] = true
							if now := fmt.Sprint(values(0, e.Value)); !contains(values(0, e.Value), digit) {
								t.Errorf("ByIndex(%s) yields %d with %s", digit, e.Key, now)
							}
						}
						for i := range stay {
							if digit == "0" && !seen[-1-i] {
								t.Errorf("ByIndex left %d out", -1-i)
							}
						}
					}
					return
				}
				defer writing.Add(-1)
				for range n {
					k, v := rnd.IntN(keys), rnd.IntN(512)
					switch rnd.IntN(7) {
					case 0:
						r.Create(k, v)
					case 1:
						r.Update(k, func(int) (int, error) { return v, nil })
					case 2:
						r.Put(k, v)
					case 3:
						if e, ok := r.Lookup(k); ok {
							r.UpdateIf(k, e.Version, v)
						}
					case 4:
						r.Delete(k)
					case 5:
						if e, ok := r.Lookup(k); ok {
							r.DeleteIf(k, e.Version)
						}
					case 6:
						mustPut(t, r, -1-rnd.IntN(stay), v/8*8) // stays under 0
					}
				}
			})
			agree(t, r, map[string]func(int, int) []string{"digit": distinct}, nil)
		})
	}
}

func contains(all []string, s string) bool {
	for _, each := range all {
		if each == s {
			return true
		}
	}
	return false
}

// Everybody wants the same few unique values for keys of their own. Nobody gets
// one that another has, and who has given one up can tell.
func TestStressUnique(t *testing.T) {
	const workers, values, each = 4, 3, 3
	unique := map[string]func(int, int) []string{"value": func(_ int, v int) []string {
		if v < 0 {
			return nil
		}
		return []string{fmt.Sprint(v % values), fmt.Sprint((v + 1) % values)}
	}}
	r := shardedregistry.MustNew(shardedregistry.Config[int, int]{Shards: 2, UniqueIndexes: unique})
	var owners [values]atomic.Int32 // who has the value, as far as it knows
	claim := func(v, by int) {
		for _, v := range []int{v % values, (v + 1) % values} {
			if !owners[v].CompareAndSwap(0, int32(by)) {
				t.Errorf("value %d was given to two", v)
			}
		}
	}
	release := func(v int) {
		owners[v%values].Store(0)
		owners[(v+1)%values].Store(0)
	}
	n := iterations(6000)
	var won atomic.Int64
	hammer(t, workers, func(worker int) {
		rnd := rand.New(rand.NewPCG(uint64(worker), 9))
		for range n {
			k, v := worker*each+rnd.IntN(each), rnd.IntN(values)
			var err error
			if e, ok := r.Lookup(k); ok { // nobody else changes k
				if e.Value >= 0 {
					release(e.Value)
					if rnd.IntN(2) == 0 {
						r.Delete(k)
					} else {
						mustPut(t, r, k, -1)
					}
				} else {
					_, err = r.UpdateIf(k, e.Version, v)
				}
				if e.Value >= 0 {
					continue
				}
			} else {
				_, err = r.Create(k, v)
			}
			if err == nil {
				claim(v, worker+1)
				won.Add(1)
			} else if !errors.Is(err, shardedregistry.ErrNotUnique) {
				t.Error(err)
			}
			if e, ok := r.LookupBy("value", fmt.Sprint(v)); ok && e.Value >= 0 && e.Value != v && (e.Value+1)%values != v {
				t.Errorf("LookupBy(%d) = %v", v, e)
			}
		}
	})
	if won.Load() < 10 {
		t.Errorf("only %d attempts succeeded", won.Load())
	}
	agree(t, r, nil, unique)
}

// Writers change, delete and create few keys; loops over WatchFrom break off and go on,
// and begin anew when they were overtaken. Versions and revisions increase, and in the end
// each has what the registry has.
func TestStressWatchFrom(t *testing.T) {
	const writers, loops, keys, last = 4, 4, 7, -1
	for _, history := range []int{1, 16, 4096} {
		r := shardedregistry.MustNew(shardedregistry.Config[int, int]{Shards: 2, History: history})
		n := iterations(2000)
		var writing atomic.Int32
		hammer(t, writers+loops, func(worker int) {
			rnd := rand.New(rand.NewPCG(uint64(worker), 1))
			if worker < writers {
				for i := range n {
					if k := rnd.IntN(keys); rnd.IntN(4) == 0 {
						r.Delete(k)
					} else {
						r.Put(k, worker*n+i)
					}
					if i%64 == 0 {
						runtime.Gosched()
					}
				}
				if writing.Add(1) == writers {
					r.Put(last, 1)
				}
				return
			}
			for { // begins anew
				state := r.Snapshot()
				view := maps.Collect(state.All())
				versions, yielded := map[int]shardedregistry.Version{}, map[int]shardedregistry.Event[int, int]{}
				for e := range state.Entries() {
					versions[e.Key] = e.Version
				}
				at, compacted := state.Revision(), false
				for view[last] == 0 && !compacted { // goes on
					for c, err := range r.WatchFrom(t.Context(), at) {
						if err != nil {
							if compacted = true; !errors.Is(err, shardedregistry.ErrCompacted) {
								t.Error(err)
								return
							}
							break
						}
						if c.Revision <= at {
							t.Errorf("revision %d after %d", c.Revision, at)
						}
						if before, ok := yielded[c.Key]; ok && (c.Version <= before.Version || !before.Deleted && c.Version != before.Version+1) {
							t.Errorf("%v comes after %v", c.Event, before)
						}
						yielded[c.Key] = c.Event
						if at = c.Revision; c.Version <= versions[c.Key] {
							continue // the snapshot may contain later changes than its revision
						}
						versions[c.Key] = c.Version
						apply(view, []shardedregistry.Event[int, int]{c.Event})
						if rnd.IntN(10) == 0 || c.Key == last {
							break
						}
					}
				}
				if compacted {
					continue
				}
				for k, v := range maps.Collect(r.All()) {
					if view[k] != v {
						t.Errorf("history %d: a loop has %v of key %d, want %d", history, view[k], k, v)
					}
				}
				if len(view) != r.Len() {
					t.Errorf("history %d: a loop has %v", history, view)
				}
				return
			}
		})
	}
}

// A writer changes one key after the other to the same value, over and over.
// Every snapshot shows an instant between two changes, no goroutine's snapshots
// go back, and what they showed once stays what they show.
func TestStressSnapshot(t *testing.T) {
	const pairs, takings = 2, 2
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 8})
	for p := range pairs {
		mustPut(t, r, fmt.Sprint("first ", p), 0)
		mustPut(t, r, fmt.Sprint("second ", p), 0)
	}
	n := iterations(1500)
	var over atomic.Int32
	hammer(t, pairs+takings, func(worker int) {
		if worker < pairs {
			defer over.Add(1)
			first, second := fmt.Sprint("first ", worker), fmt.Sprint("second ", worker)
			for i := 1; i <= n; i++ {
				r.Put(first, i)
				r.Update(second, func(int) (int, error) { return i, nil })
			}
			return
		}
		var last [pairs]int
		var kept *shardedregistry.Snapshot[string, int]
		var showed int
		for over.Load() < pairs {
			s := r.Snapshot()
			if s.Len() != 2*pairs {
				t.Errorf("a snapshot has %d keys, want %d", s.Len(), 2*pairs)
				return
			}
			for p := range pairs {
				a, _ := s.Get(fmt.Sprint("first ", p))
				b, _ := s.Get(fmt.Sprint("second ", p))
				if b > a || a > b+1 {
					t.Errorf("a snapshot has %d in the key that is changed first and %d in the second", a, b)
				}
				if a+b < last[p] {
					t.Errorf("a snapshot went back from %d to %d", last[p], a+b)
				}
				last[p] = a + b
			}
			if kept != nil {
				if now, _ := kept.Get("first 0"); now != showed {
					t.Errorf("a snapshot changed from %d to %d", showed, now)
				}
			}
			kept, showed = s, 0
			showed, _ = s.Get("first 0")
		}
	})
	if n := shardedregistry.Kept(r); n != 0 {
		t.Errorf("%d old records are kept", n)
	}
}

// While keys come and go, tables grow and shrink, and a goroutine moves a token
// from key to key, creating the next before it deletes the last, every snapshot
// has the token at one place or at two, contains what its collector has done, and
// all of what stays.
func TestStressSnapshotChurn(t *testing.T) {
	const stay, each, movers = 100, 300, 2
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 2})
	for i := range stay {
		mustPut(t, r, key(i), i)
	}
	token := func(i int) string { return fmt.Sprint("token ", i) }
	mustPut(t, r, token(0), 0)
	snapshots := iterations(60)
	var over atomic.Bool
	hammer(t, movers+2, func(worker int) {
		switch {
		case worker < movers:
			for !over.Load() {
				for i := range each {
					r.Create(fmt.Sprint(worker, "/", i), i)
				}
				for i := range each {
					r.Delete(fmt.Sprint(worker, "/", i))
				}
			}
		case worker == movers:
			for i := 0; !over.Load(); i++ {
				r.Create(token((i+1)%50), i+1)
				r.Delete(token(i % 50))
			}
		default:
			defer over.Store(true)
			for n := range snapshots {
				mustPut(t, r, "mine", n)
				s := r.Snapshot()
				if v, _ := s.Get("mine"); v != n {
					t.Errorf("a snapshot has %d, where its taker has put %d", v, n)
				}
				for i := range stay {
					if v, ok := s.Get(key(i)); !ok || v != i {
						t.Errorf("a snapshot has %d, %v for %s", v, ok, key(i))
					}
				}
				var tokens []int
				for i := range 50 {
					if v, ok := s.Get(token(i)); ok {
						tokens = append(tokens, v)
					}
				}
				if len(tokens) < 1 || len(tokens) > 2 {
					t.Errorf("a snapshot has the tokens %v, want one or two", tokens)
				}
			}
		}
	})
	r.Snapshot() // takes away what was created and deleted behind the last one
	if kept, linked := shardedregistry.Kept(r), shardedregistry.Linked(r); kept != 0 || linked != r.Len() {
		t.Errorf("%d old records are kept, and %d cells linked for %d keys", kept, linked, r.Len())
	}
}

type bank = shardedregistry.Registry[int, int]

// The accounts of a bank and what they have together. Those that have nothing are absent.
const (
	accounts = 8
	total    = 4 * accounts
)

// pay moves an amount if there is enough, creates an account that gets something, and
// deletes one that has nothing left.
func pay(r *bank, from, to, amount int) error {
	return r.Transact(func(tx *shardedregistry.Tx[int, int]) error {
		has, _ := tx.Get(from)
		switch {
		case has < amount:
			return nil
		case has == amount:
			tx.Delete(from)
		default:
			tx.Put(from, has-amount)
		}
		gets, _ := tx.Get(to)
		return tx.Put(to, gets+amount)
	})
}

// Money is neither lost nor made, for anybody who looks: in snapshots, in transactions, and
// in the end for loops over Watch and WatchFrom.
func TestStressTransact(t *testing.T) {
	mod3 := map[string]func(int, int) []string{"mod": func(_, v int) []string { return []string{fmt.Sprint(v % 3)} }}
	for name, config := range map[string]shardedregistry.Config[int, int]{
		"plain":         {Shards: 2},
		"constant hash": {Shards: 2},
		"history":       {History: 1 << 18},
		"indexes":       {Indexes: mod3},
		"all":           {Indexes: mod3, History: 1 << 18},
	} {
		t.Run(name, func(t *testing.T) {
			r := shardedregistry.MustNew(config)
			if name == "constant hash" {
				shardedregistry.SetHash(r, func(int) uint64 { return 1 })
			}
			mustPut(t, r, 0, total)

			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			var followers, seeing sync.WaitGroup // the loops, and those that have not seen the end
			follower := func() (balances map[int]int, see func(shardedregistry.Event[int, int])) {
				balances = map[int]int{}
				seeing.Add(1)
				return balances, func(e shardedregistry.Event[int, int]) {
					if balances[e.Key] = e.Value; e.Deleted {
						delete(balances, e.Key)
					}
					if e.Key == accounts {
						seeing.Done()
					}
				}
			}
			watched, watch := follower()
			followers.Go(func() {
				for state, e := range r.WatchSnapshot(ctx) {
					if state != nil {
						maps.Copy(watched, maps.Collect(state.All()))
					} else {
						watch(e)
					}
				}
			})
			changed := map[int]int{}
			if config.History != 0 {
				var follow func(shardedregistry.Event[int, int])
				changed, follow = follower()
				changed[0] = total
				next := map[int]shardedregistry.Version{}
				from := r.Revision()
				followers.Go(func() {
					for e, err := range r.WatchFrom(ctx, from) {
						if want := next[e.Key]; err != nil || want != 0 && e.Version != want {
							t.Errorf("WatchFrom yields %v, %v, want version %d", e, err, want)
						}
						if next[e.Key] = e.Version + 1; e.Deleted {
							next[e.Key] = 0 // a creation may begin anywhere above
						}
						follow(e.Event)
					}
				})
			}

			var running atomic.Int64
			running.Store(4)
			n := iterations(5000)
			hammer(t, 6, func(worker int) {
				rnd := rand.New(rand.NewPCG(uint64(worker), 2))
				if worker >= 4 {
					for running.Load() > 0 {
						audit(t, r, worker == 4)
					}
					return
				}
				defer running.Add(-1)
				for range n {
					if err := pay(r, rnd.IntN(accounts), rnd.IntN(accounts), 1+rnd.IntN(3)); err != nil {
						t.Error(err)
						return
					}
				}
			})
			audit(t, r, true)
			mustPut(t, r, accounts, 0)
			within(t, seeing.Wait)
			stop()
			followers.Wait()
			want := maps.Collect(r.All())
			if !maps.Equal(watched, want) || config.History != 0 && !maps.Equal(changed, want) {
				t.Errorf("there is %v, watched %v, changed %v", want, watched, changed)
			}
			if n := len(want); r.Len() != n || shardedregistry.Linked(r) != n || shardedregistry.Kept(r) != 0 {
				t.Errorf("Len() = %d, %d linked, %d kept, want %d and 0", r.Len(), shardedregistry.Linked(r), shardedregistry.Kept(r), n)
			}
			if config.Indexes != nil {
				if _, keys, pins := shardedregistry.Pins(r); keys != len(want) || pins != len(want) {
					t.Errorf("%d keys with %d pins, want %d", keys, pins, len(want))
				}
			}
		})
	}
}

// audit looks at all accounts at one moment.
func audit(t *testing.T, r *bank, snapshot bool) {
	sum := 0
	if snapshot {
		for _, v := range r.Snapshot().All() {
			sum += v
		}
	} else if err := r.Transact(func(tx *shardedregistry.Tx[int, int]) error {
		sum = 0
		for k := range accounts {
			v, _ := tx.Get(k)
			sum += v
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	if sum != total {
		t.Errorf("the accounts have %d, want %d", sum, total)
	}
}

// Writers change, delete and create few keys, and other keys come and go; loops
// of all kinds watch, some slowly, some not for long. The versions that a loop
// yields for a key increase, and in the end each has what the registry has.
func TestStressWatch(t *testing.T) {
	const writers, watchers, keys = 3, 3, 5
	r := shardedregistry.MustNew(shardedregistry.Config[int, int]{Shards: 2})
	n := iterations(4000)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	busy, done := context.WithCancel(ctx) // until the writers are done
	defer done()
	const last = -1 // the key that ends the loops
	var begun atomic.Int32
	var writing atomic.Int32
	hammer(t, writers+watchers+2, func(worker int) {
		switch {
		case worker < writers:
			for begun.Load() < watchers { // so that all see something
				runtime.Gosched()
			}
			rnd := rand.New(rand.NewPCG(uint64(worker), 1))
			for i := range n {
				k := rnd.IntN(keys)
				switch rnd.IntN(4) {
				case 0:
					r.Delete(k)
				case 1:
					own := keys + worker*n + i // comes and goes
					r.Create(own, i)
					r.Delete(own)
				default:
					r.Put(k, worker*n+i)
				}
				if i%64 == 0 {
					runtime.Gosched()
				}
			}
			if writing.Add(1) == writers {
				r.Put(last, 1)
				done()
			}
		case worker < writers+watchers:
			view := map[int]int{}
			versions := map[int]shardedregistry.Version{}
			for state, e := range r.WatchSnapshot(ctx) {
				if state != nil {
					for entry := range state.Entries() {
						view[entry.Key], versions[entry.Key] = entry.Value, entry.Version
					}
					begun.Add(1)
					continue
				}
				if e.Version <= versions[e.Key] {
					t.Errorf("key %d: version %d after %d", e.Key, e.Version, versions[e.Key])
				}
				if _, shown := view[e.Key]; e.Deleted && !shown {
					t.Errorf("the deletion of %d is yielded, which was not shown", e.Key)
				}
				versions[e.Key] = e.Version
				if apply(view, []shardedregistry.Event[int, int]{e}); e.Key == last {
					break
				}
				if worker == writers {
					runtime.Gosched()
				}
			}
			// What the loop had not come to when the last key came: nothing that
			// was changed before it, except what came with it.
			for state := range r.WatchSnapshot(ctx) {
				if want := maps.Collect(state.All()); ctx.Err() == nil && !maps.Equal(view, want) {
					t.Errorf("a loop has %v, want %v", view, want)
				}
				break
			}
		default: // loops that end soon, and snapshots
			for busy.Err() == nil {
				seen := 0
				for range r.Watch(busy) {
					if seen++; seen == worker || r.Len() == 0 {
						break
					}
				}
				r.Snapshot()
			}
		}
	})
	wantTraces(t, r)
	if n := shardedregistry.Kept(r); n != 0 {
		t.Errorf("%d old records are kept", n)
	}
}

// Goroutines pass a number on by waiting for each other's keys, while others
// wait for a key that comes and goes.
func TestStressWait(t *testing.T) {
	const ring = 3
	r := shardedregistry.MustNew(shardedregistry.Config[int, int]{Shards: 2})
	n := iterations(3000)
	var over atomic.Bool
	hammer(t, ring+3, func(worker int) {
		switch {
		case worker < ring:
			var since shardedregistry.Version
			for i := range n {
				if worker > 0 || i > 0 { // the first one begins
					e, err := r.Wait(t.Context(), (worker+ring-1)%ring, since)
					if want := i + 1; err != nil || worker > 0 && e.Value != want || worker == 0 && e.Value != i {
						t.Errorf("goroutine %d waits for %d and finds %v, %v", worker, want, e, err)
						return
					}
					since = e.Version
				}
				r.Put(worker, i+1)
			}
			over.Store(true)
			r.Put(-1, 0)
		case worker == ring:
			for !over.Load() {
				r.Put(-1, 1)
				r.Delete(-1)
			}
			r.Put(-1, 1)
		default:
			for !over.Load() {
				e, err := r.Wait(t.Context(), -1, 0)
				if err != nil {
					t.Errorf("Wait = %v", err)
				}
				if e, err := r.Wait(t.Context(), -1, e.Version-1); err == nil && e.Version == 0 {
					t.Errorf("Wait = %v, %v", e, err)
				}
			}
		}
	})
	wantTraces(t, r)
}

// A thousand loops, each of a few keys or a prefix, come and go while eight goroutines
// write; others stay. Versions increase, no loop is told of a key that is not its own, and
// those that stay have in the end what the registry has.
func TestStressWatchFilters(t *testing.T) {
	const writers, tenants, each, loops = 8, 20, 3, 1000
	r := shardedregistry.MustNew(shardedregistry.Config[string, int]{Shards: 2})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := iterations(1000)
	name := func(tenant, i int) string { return fmt.Sprintf("tenant %d/%d", tenant, i) }
	last := func(tenant int) string { return name(tenant, each) } // the key that ends the loops of a tenant
	var begun, writing atomic.Int32
	hammer(t, writers+tenants+2, func(worker int) {
		rnd := rand.New(rand.NewPCG(uint64(worker), 1))
		switch {
		case worker < writers:
			for begun.Load() < tenants {
				runtime.Gosched()
			}
			for i := range n {
				k := name(rnd.IntN(tenants), rnd.IntN(each))
				if rnd.IntN(4) == 0 {
					r.Delete(k)
				} else {
					r.Put(k, worker*n+i)
				}
				if i%64 == 0 {
					runtime.Gosched()
				}
			}
			if writing.Add(1) == writers {
				for tenant := range tenants {
					r.Put(last(tenant), 1)
				}
			}
		case worker < writers+tenants: // stays
			tenant := worker - writers
			prefix := fmt.Sprintf("tenant %d/", tenant)
			f := shardedregistry.Prefix(prefix)
			if tenant%2 == 0 {
				f = shardedregistry.Keys(name(tenant, 0), name(tenant, 1), name(tenant, 2), last(tenant))
			}
			view := map[string]int{}
			versions := map[string]shardedregistry.Version{}
			for state, e := range r.WatchSnapshot(ctx, f) {
				if state != nil {
					begun.Add(1)
					continue
				}
				if !strings.HasPrefix(e.Key, prefix) {
					t.Errorf("a loop of %q is told of %q", prefix, e.Key)
				}
				if e.Version <= versions[e.Key] {
					t.Errorf("%q: version %d after %d", e.Key, e.Version, versions[e.Key])
				}
				versions[e.Key] = e.Version
				if apply(view, []shardedregistry.Event[string, int]{e}); e.Key == last(tenant) {
					break
				}
			}
			for state := range r.WatchSnapshot(ctx, f) {
				if want := maps.Collect(state.All()); !maps.Equal(view, want) {
					t.Errorf("a loop of %q has %v, want %v", prefix, view, want)
				}
				break
			}
		default: // come and go
			var open []shardedregistry.Watcher[string, int]
			for i := 0; writing.Load() < writers || i < loops; i++ {
				f := shardedregistry.Keys(name(rnd.IntN(tenants), rnd.IntN(each)), fmt.Sprint("absent ", i))
				if i%3 == 0 {
					f = shardedregistry.Prefix(fmt.Sprintf("tenant %d", rnd.IntN(tenants)))
				}
				open = append(open, shardedregistry.SubscribeFiltered(r, f))
				if len(open) > loops/2 {
					at := rnd.IntN(len(open))
					open[at].Drain()
					open[at].Leave()
					open = slices.Delete(open, at, at+1)
				}
			}
			for _, w := range open {
				w.Leave()
			}
		}
	})
	wantTraces(t, r)
}
