//go:build !modelcheck

package shardedregistry_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/latchfree/latchfree/shardedregistry"
)

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
			streamed := map[int]int{}
			if config.History != 0 {
				var stream func(shardedregistry.Event[int, int])
				streamed, stream = follower()
				streamed[0] = total
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
						stream(e.Event)
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
			if !maps.Equal(watched, want) || config.History != 0 && !maps.Equal(streamed, want) {
				t.Errorf("there is %v, watched %v, streamed %v", want, watched, streamed)
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
