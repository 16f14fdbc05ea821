//go:build !modelcheck

package shardedregistry_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/shardedregistry"
)

// Owners take locks, hold and renew them, and lose some. Nobody else gets a lock before its time
// is over, each owner's token is above those before, and in the end all locks are free.
func TestStressLeases(t *testing.T) {
	const locks, life = 4, 3 * time.Millisecond
	for name, c := range layouts(lasting(life)) {
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
	watched, streamed := map[string]event{}, map[string]event{}
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
			last, ok := streamed[e.Key]
			if err != nil || e.Version <= last.Version || ok && !last.Deleted && e.Version != last.Version+1 || e.Expired && !e.Deleted {
				t.Errorf("WatchFrom: %v, %v comes after %v", e, err, last)
			}
			streamed[e.Key] = e
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
		if !ok || watched[key(i)] != want || streamed[key(i)] != want {
			t.Errorf("%v is there, Watch has yielded %v, WatchFrom %v", want, watched[key(i)], streamed[key(i)])
		}
	}
	if left := shardedregistry.Overlooked(r); len(left) != 0 {
		t.Errorf("%v are overlooked", left)
	}
}
