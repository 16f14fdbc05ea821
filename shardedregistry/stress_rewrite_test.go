//go:build !modelcheck

package shardedregistry_test

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/latchfree/latchfree/shardedregistry"
)

// The contents that Replace gives a registry: half of the keys, whose values are one number.
const rewrittenKeys = 72 // more than are read ahead

func generation(n int) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		for k := n % 2; k < rewrittenKeys; k += 2 {
			if !yield(k, n) {
				return
			}
		}
	}
}

// Nobody sees a part of a Replace or Clear: in snapshots and transactions. In the end all that
// watch know what there is.
func TestStressReplace(t *testing.T) {
	parity := map[string]func(int, int) []string{"parity": func(k, _ int) []string { return []string{fmt.Sprint(k % 2)} }}
	for name, config := range map[string]shardedregistry.Config[int, int]{
		"plain":         {Shards: 2},
		"constant hash": {Shards: 2},
		"history":       {History: 8},
		"indexes":       {Indexes: parity},
		"all":           {Indexes: parity, History: 16},
	} {
		t.Run(name, func(t *testing.T) {
			r := shardedregistry.MustNew(config)
			if name == "constant hash" {
				shardedregistry.SetHash(r, func(int) uint64 { return 1 })
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			watched, end := map[int]int{}, make(chan bool)
			var follower sync.WaitGroup
			follower.Go(func() {
				for state, e := range r.WatchSnapshot(ctx) {
					switch {
					case state != nil:
						maps.Copy(watched, maps.Collect(state.All()))
					case e.Deleted:
						delete(watched, e.Key)
					default:
						watched[e.Key] = e.Value
					}
					if e.Key == -1 {
						close(end)
						return
					}
				}
			})
			var running atomic.Int64
			running.Store(4)
			hammer(t, 6, func(worker int) {
				rnd := rand.New(rand.NewPCG(uint64(worker), 3))
				if worker >= 4 {
					for running.Load() > 0 {
						uniform(t, r, worker == 4)
					}
					return
				}
				defer running.Add(-1)
				for i := range iterations(600) {
					switch n := 4*i + worker; {
					case worker == 3:
						churn(t, r, rnd)
					case rnd.IntN(4) == 0:
						r.Clear()
					default:
						if err := r.Replace(generation(n)); err != nil {
							t.Error(err)
						}
					}
				}
			})
			uniform(t, r, true)
			mustPut(t, r, -1, 0)
			within(t, func() { <-end })
			follower.Wait()
			want := maps.Collect(r.All())
			if !maps.Equal(watched, want) {
				t.Errorf("there is %v, watched %v", want, watched)
			}
			r.Snapshot() // for what is left to the next one
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

// churn changes keys so that they still hold what some Replace gives: it deletes, or puts all
// again by a transaction.
func churn(t *testing.T, r *shardedregistry.Registry[int, int], rnd *rand.Rand) {
	k := rnd.IntN(rewrittenKeys)
	switch rnd.IntN(3) {
	case 0:
		r.Update(k, func(v int) (int, error) { return v, nil })
	case 1: // creates it, and deletes it again: in between others see one key more
		r.Create(rewrittenKeys+k, -1)
		r.Delete(rewrittenKeys + k)
	case 2:
		if err := r.Transact(func(tx *shardedregistry.Tx[int, int]) error {
			a, ok := tx.Get(k)
			if b, other := tx.Get((k + 2) % rewrittenKeys); ok != other || a != b {
				t.Errorf("a transaction sees %d, %v and %d, %v", a, ok, b, other)
			}
			if ok {
				tx.Put(k, a)
			}
			tx.Put(rewrittenKeys+k, -1)
			return nil
		}); err != nil {
			t.Error(err)
		}
	}
}

// uniform looks at all keys at one moment.
func uniform(t *testing.T, r *shardedregistry.Registry[int, int], snapshot bool) {
	seen := map[int]int{}
	if snapshot {
		seen = maps.Collect(r.Snapshot().All())
	} else if err := r.Transact(func(tx *shardedregistry.Tx[int, int]) error {
		clear(seen)
		for k := range rewrittenKeys {
			if v, ok := tx.Get(k); ok {
				seen[k] = v
			}
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	maps.DeleteFunc(seen, func(k, _ int) bool { return k >= rewrittenKeys })
	for _, v := range seen {
		if !maps.Equal(seen, maps.Collect(generation(v))) {
			t.Errorf("seen at one moment: %v", seen)
		}
		break
	}
}
