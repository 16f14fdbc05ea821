//go:build !modelcheck

package oncecache_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/oncecache"
)

// Reported bug 27, Guava: after invalidation during a refresh nothing loads.
// Everything is deleted while it is refreshed, and is created and
// refreshed afterwards as before.
func TestT27_DeletedDuringRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var closed atomic.Int32
		c := oncecache.MustNew(oncecache.Config[string, int]{Close: func(string, int) error { closed.Add(1); return nil }})
		const keys = 100
		name := func(i int) string { return fmt.Sprint("key ", i) }
		var refreshes []*call
		for i := range keys {
			c.Set(name(i), 1)
			refreshes = append(refreshes, startCall(func() (int, error) { return c.Refresh(t.Context(), name(i), anew(slowly(2, nil))) }))
		}
		synctest.Wait()
		for k := range c.Keys() {
			c.Delete(k)
		}
		if n := c.Len(); n != 0 {
			t.Errorf("%d keys", n)
		}
		for i := range keys {
			if v, err := c.GetOrCreateContext(t.Context(), name(i), makes(3)); v != 3 || err != nil {
				t.Fatal(v, err)
			}
		}
		wantAll(t, refreshes, result{value: 2}) // which is not kept
		for i := range keys {
			if v, err := c.Refresh(t.Context(), name(i), anew(slowly(4, nil))); v != 4 || err != nil {
				t.Fatal(v, err)
			}
		}
		wantLen(t, c, keys)
		if err := c.Close(t.Context()); err != nil || closed.Load() != 4*keys {
			t.Errorf("%v, %d closed, want %d", err, closed.Load(), 4*keys)
		}
	})
}

// Reported bug 28, Vitess, substrate, golang-lru: an evicted value is closed in use, or never.
// T28 Vitess, T30 BitFaster: in a cache that is too small and in a hurry, with
// refreshes, batches, timeouts and errors that are kept, each value is closed
// once, and never in use.
func TestT28_StressBounds(t *testing.T) {
	var made, closes atomic.Int32
	fresh := func(k int) *resource {
		made.Add(1)
		return &resource{key: k, closes: &closes}
	}
	create := func(_ context.Context, k int) (*resource, error) {
		for range rand.IntN(4) {
			runtime.Gosched()
		}
		if rand.IntN(8) == 0 {
			return nil, errRefused
		}
		return fresh(k), nil
	}
	for round := range 4 {
		config := oncecache.Config[int, *resource]{
			MaxEntries: 2, IdleTimeout: 1, // a sweep each millisecond
			Close:        func(_ int, r *resource) error { r.close(t); return nil },
			ErrorTTLFunc: func(int, error) time.Duration { return time.Duration(rand.IntN(3)-1) * 50 * time.Microsecond },
		}
		if round%2 == 1 {
			config.CreateTimeout = 20 * time.Microsecond
		}
		c := oncecache.MustNew(config)
		// ErrNotFound is what a batch has for others that leaves a key out.
		wanted := func(k int, r *resource, err error) {
			if (r == nil) == (err == nil) || r != nil && r.key != k ||
				err != nil && err != errRefused && err != oncecache.ErrCreateTimeout && err != context.Canceled && err != oncecache.ErrNotFound {
				t.Errorf("key %d has %v, %v", k, r, err)
			}
		}
		together(stressWorkers, func(worker int) {
			r := rand.New(rand.NewPCG(uint64(round), uint64(worker)))
			for range stressRounds() / 20 {
				k := r.IntN(8)
				ctx, leave := context.WithCancel(context.Background())
				if r.IntN(8) == 0 {
					go leave()
				}
				switch op := r.IntN(12); op {
				case 0:
					c.Set(k, fresh(k))
				case 1:
					c.Delete(k)
				case 2:
					oncecache.Sweep(c)
				case 3, 4:
					v, err := c.Refresh(ctx, k, anew(create))
					wanted(k, v, err)
				case 5:
					_, err := c.GetOrCreateMany(ctx, []int{k, (k + 1) % 8}, func(ctx context.Context, keys []int) (map[int]*resource, error) {
						made := map[int]*resource{9: fresh(9)}
						for _, k := range keys {
							if rand.IntN(4) > 0 {
								made[k] = fresh(k)
							}
						}
						return made, nil
					})
					if err != nil {
						for _, err := range unjoin(err) {
							wanted(k, nil, err)
						}
					}
				case 6:
					v, err := c.Wait(ctx, k)
					wanted(k, v, err)
				default:
					l, err := c.Acquire(ctx, k, create)
					if err != nil {
						wanted(k, nil, err)
						break
					}
					wanted(k, l.Value(), nil)
					l.Value().use(t)
					if op == 7 {
						l.Discard()
					} else {
						l.Release()
					}
				}
				leave()
			}
		})
		c.Set(10, fresh(10))
		if !comesTrue(func() bool { return c.Len() <= 2 }) { // creations that all have left may just be ending
			t.Fatalf("%d keys at the end", c.Len())
		}
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if m, n := made.Load(), closes.Load(); m != n {
			t.Fatalf("round %d: %d values made, %d closed", round, m, n)
		}
		if creating, entries := oncecache.Creating(c); entries != 0 || oncecache.Pending(c) != 0 {
			t.Errorf("%d creations, %d entries, %d pending at the end", creating, entries, oncecache.Pending(c))
		}
		// A timer may just have ended a creation. Close does not wait for it.
		if !comesTrue(func() bool { creating, _ := oncecache.Creating(c); return creating == 0 }) {
			t.Error("a creation is counted for ever")
		}
	}
}

// comesTrue waits for what others do soon.
func comesTrue(condition func() bool) bool {
	for began := time.Now(); !condition(); runtime.Gosched() {
		if time.Since(began) > time.Minute {
			return false
		}
	}
	return true
}

// unjoin returns the errors that err joins, or err.
func unjoin(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}

// Reported bug 29, any-sync: closed twice; removed while loading, callers hang.
// However many remove a value at once, by whatever means, it leaves
// once and is closed once, when Close has waited for it at the latest: a renewal
// that Close calls off goes on without its caller, and closes what it replaces.
func TestT29_StressRemoversMeet(t *testing.T) {
	for round := range stressRounds() / 20 {
		var closes atomic.Int32
		c := oncecache.MustNew(oncecache.Config[string, int]{MaxEntries: 1, Close: func(_ string, v int) error {
			if v == 1 {
				closes.Add(1)
			}
			return nil
		}})
		var leases [3]oncecache.Lease[string, int]
		for i := range leases {
			var err error
			if leases[i], err = c.Acquire(t.Context(), "k", makes(1)); err != nil {
				t.Fatal(err)
			}
		}
		leases[2].Release()
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		removers := []func(){
			func() { c.Delete("k") },
			func() { oncecache.CompareAndDelete(c, "k", 1) },
			func() { c.Set("k", 2) },
			func() { c.Set("l", 3) }, // evicts
			leases[0].Discard,
			leases[1].Discard,
			func() { c.Refresh(t.Context(), "k", anew(makes(4))) },
			func() {
				if round%2 == 0 {
					c.Close(ended)
				}
			},
		}
		together(len(removers), func(i int) { removers[i]() })
		if err := c.Close(t.Context()); err != nil || oncecache.Pending(c) != 0 {
			t.Fatal(err, oncecache.Pending(c))
		}
		if n := closes.Load(); n != 1 {
			t.Fatalf("closed %d times", n)
		}
	}
}

// Reported bug 29, any-sync: closed twice; removed while loading, callers hang.
// An entry that is being created may be removed by any means, which report
// what was there, and nobody hangs.
func TestT29_RemovedInFlight(t *testing.T) {
	for name, tt := range map[string]struct {
		remove func(c *oncecache.Cache[string, int])
		want   result
	}{
		"Delete":           {func(c *oncecache.Cache[string, int]) { c.Delete("k") }, result{value: 7}},
		"CompareAndDelete": {func(c *oncecache.Cache[string, int]) { oncecache.CompareAndDelete(c, "k", 0) }, result{value: 7}},
		"Set":              {func(c *oncecache.Cache[string, int]) { c.Set("k", 8) }, result{value: 8}},
		"Sweep":            {func(c *oncecache.Cache[string, int]) { oncecache.Sweep(c) }, result{value: 7}},
		"MaxEntries": {func(c *oncecache.Cache[string, int]) {
			for i := range 10 {
				c.Set(fmt.Sprint(i), i)
			}
		}, result{value: 7}},
		"IdleTimeout": {func(*oncecache.Cache[string, int]) { time.Sleep(10 * time.Minute) }, result{value: 7}},
		"Close": {func(c *oncecache.Cache[string, int]) {
			ended, cancel := context.WithCancel(context.Background())
			cancel()
			c.Close(ended)
		}, result{err: oncecache.ErrClosed}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := oncecache.MustNew(oncecache.Config[string, int]{MaxEntries: 2, IdleTimeout: time.Minute})
				p := newPilot()
				calls := []*call{asks(t, c, p.create).call}
				<-p.ctx
				calls = append(calls, asks(t, c, nil).call, start(c, "k", unexpected(t)))
				synctest.Wait()
				for range 3 {
					tt.remove(c)
				}
				p.end <- with(7)
				wantAll(t, calls, tt.want)
				if err := c.Close(t.Context()); err != nil || oncecache.Pending(c) != 0 {
					t.Error(err, oncecache.Pending(c))
				}
			})
		})
	}
}
