//go:build !modelcheck

package shardedregistry_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/latchfree/latchfree/shardedregistry"
)

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
