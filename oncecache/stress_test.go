//go:build !modelcheck

package oncecache_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/oncecache"
)

// instance is a value with a history.
type instance struct {
	key     int
	removed atomic.Int32 // how often the cache has handed it out as replaced or deleted
	set     bool         // by Set or SetIfAbsent, so that it must be accounted for
}

const (
	stressKeys    = 4
	stressWorkers = 6
)

func stressRounds() int {
	if testing.Short() {
		return 2000
	}
	return 25_000
}

// Creations of one key never overlap, whoever else fails, panics, exits or
// sets, as long as nobody deletes.
func TestStressCreationsDoNotOverlap(t *testing.T) {
	var c oncecache.Cache[int, *instance]
	var running [stressKeys]atomic.Int32
	together(stressWorkers, func(worker int) {
		r := rand.New(rand.NewPCG(1, uint64(worker)))
		for range stressRounds() / 4 {
			k, how := r.IntN(stressKeys), r.IntN(4)
			done := make(chan struct{})
			go func() { // one that may exit
				defer close(done)
				defer func() { recover() }()
				c.GetOrCreate(k, func() (*instance, error) {
					if n := running[k].Add(1); n != 1 {
						t.Errorf("%d creations of key %d at once", n, k)
					}
					runtime.Gosched()
					running[k].Add(-1)
					switch how {
					case 0:
						runtime.Goexit()
					case 1:
						panic("stress")
					case 2:
						return nil, errRefused
					}
					return &instance{key: k}, nil
				})
			}()
			<-done
			if v, ok := c.Get(k); ok && r.IntN(2) == 0 {
				oncecache.CompareAndDelete(&c, k, v)
			}
		}
	})
	if creating, _ := oncecache.Creating(&c); creating != 0 {
		t.Errorf("%d creations counted at the end", creating)
	}
}

// Every value that was set leaves the cache once, reported to one caller as
// replaced or deleted, or is still there at the end. No call returns a value
// of another key, or nothing without an error. Len comes out right.
func TestStressEveryValueIsAccountedFor(t *testing.T) {
	var c oncecache.Cache[int, *instance]
	sets := make([][]*instance, stressWorkers)
	left := func(k int, v *instance) {
		if v.key != k {
			t.Errorf("key %d had a value of key %d", k, v.key)
		}
		if n := v.removed.Add(1); n != 1 {
			t.Errorf("a value left the cache %d times", n)
		}
	}
	together(stressWorkers, func(worker int) {
		r := rand.New(rand.NewPCG(2, uint64(worker)))
		for range stressRounds() {
			k := r.IntN(stressKeys)
			switch r.IntN(10) {
			case 0:
				v := &instance{key: k, set: true}
				sets[worker] = append(sets[worker], v)
				if old, replaced := c.Set(k, v); replaced {
					left(k, old)
				}
			case 1:
				if v := (&instance{key: k, set: true}); stored(c.SetIfAbsent(k, v)) {
					sets[worker] = append(sets[worker], v)
				}
			case 2:
				if old, deleted := c.Delete(k); deleted {
					left(k, old)
				}
			case 3:
				if v, ok := c.Get(k); ok && oncecache.CompareAndDelete(&c, k, v) {
					left(k, v)
				}
			case 4:
				for k, v := range c.All() {
					if v.key != k {
						t.Errorf("All yields a value of key %d for key %d", v.key, k)
					}
				}
			default:
				fails := r.IntN(4) == 0
				v, err := c.GetOrCreate(k, func() (*instance, error) {
					runtime.Gosched()
					if fails {
						return nil, errRefused
					}
					return &instance{key: k}, nil
				})
				if (v == nil) == (err == nil) || err != nil && !errors.Is(err, errRefused) {
					t.Errorf("got %v, %v", v, err)
				}
				if v != nil && v.key != k {
					t.Errorf("key %d got a value of key %d", k, v.key)
				}
			}
		}
	})

	present := map[*instance]bool{}
	for _, v := range c.All() {
		present[v] = true
		if v.removed.Load() != 0 {
			t.Error("a value that left the cache is still there")
		}
	}
	for _, worker := range sets {
		for _, v := range worker {
			if v.removed.Load() == 0 && !present[v] {
				t.Error("a value that was set got lost")
			}
		}
	}
	creating, entries := oncecache.Creating(&c)
	if creating != 0 || entries != len(present) || c.Len() != len(present) {
		t.Errorf("%d values; %d entries, %d of them being created; Len() = %d", len(present), entries, creating, c.Len())
	}
}

// Whoever takes part in a creation that ends in a value, and everyone after,
// holds that one value, until the caller that knows it removes it.
func TestStressOneInstancePerGeneration(t *testing.T) {
	var c oncecache.Cache[string, *instance]
	for round := range stressRounds() / 10 {
		k := fmt.Sprint("key ", round%3)
		var created atomic.Int32
		var got [stressWorkers]*instance
		together(stressWorkers, func(worker int) {
			got[worker], _ = c.GetOrCreate(k, func() (*instance, error) {
				created.Add(1)
				return &instance{}, nil
			})
		})
		if n := created.Load(); n != 1 {
			t.Fatalf("round %d: %d creations", round, n)
		}
		for _, v := range got {
			if v != got[0] {
				t.Fatalf("round %d: two values", round)
			}
		}
		var removed atomic.Int32
		together(stressWorkers, func(worker int) {
			if oncecache.CompareAndDelete(&c, k, got[worker]) {
				removed.Add(1)
			}
		})
		if n := removed.Load(); n != 1 {
			t.Fatalf("round %d: one value removed %d times", round, n)
		}
	}
}

// CompareAndDelete finds a value that is there all the time, even while equal
// ones take its place.
func TestStressCompareAndDeleteOfEqualValues(t *testing.T) {
	var c oncecache.Cache[string, int]
	var stop atomic.Bool
	together(2, func(worker int) {
		if worker == 0 {
			for !stop.Load() {
				c.Set("k", 1)
				c.Set("k", 1)
				runtime.Gosched() // at -cpu 1 the other worker waits for this
			}
			return
		}
		defer stop.Store(true)
		for range stressRounds() / 4 {
			for {
				if _, ok := c.Get("k"); ok {
					break
				}
				runtime.Gosched()
			}
			if !oncecache.CompareAndDelete(&c, "k", 1) {
				t.Error("CompareAndDelete missed a value that nobody else removes")
				return
			}
		}
	})
}

// What fails at the same moment is counted once each: errors, also those that
// are kept, until they are removed; panics; and creations that time out.
func TestStressFailuresAreCounted(t *testing.T) {
	n := stressRounds()
	kept := oncecache.MustNew(oncecache.Config[int, int]{ErrorTTLFunc: func(_ int, err error) time.Duration {
		if err == errRefused {
			return -1
		}
		return 0
	}})
	together(stressWorkers, func(worker int) {
		for i := range n {
			k := worker + i*stressWorkers
			kept.GetOrCreate(k, failing)
			kept.Delete(k)
		}
	})
	if left := oncecache.Kept(kept); left != 0 {
		t.Errorf("%d errors are kept, of none", left)
	}
	together(stressWorkers, func(worker int) {
		for range n / 10 {
			func() {
				defer func() { recover() }()
				kept.GetOrCreate(worker, func() (int, error) { panic("stress") })
			}()
		}
	})
	if got := kept.Stats(); got.Failed != uint64(stressWorkers*n) || got.Panicked != uint64(stressWorkers*(n/10)) {
		t.Errorf("%d errors are counted, and %d panics, of %d and %d", got.Failed, got.Panicked, stressWorkers*n, stressWorkers*(n/10))
	}

	synctest.Test(t, func(t *testing.T) {
		brief := oncecache.MustNew(oncecache.Config[int, int]{CreateTimeout: time.Minute})
		var callers sync.WaitGroup
		for k := range n {
			callers.Go(func() {
				brief.GetOrCreateContext(t.Context(), k, func(ctx context.Context, _ int) (int, error) {
					<-ctx.Done()
					return 0, ctx.Err()
				})
			})
		}
		callers.Wait()
		synctest.Wait()
		if got := brief.Stats().TimedOut; got != uint64(n) {
			t.Errorf("%d are counted, of %d", got, n)
		}
	})
}

// Who waits is counted, and who has left is not.
func TestStressWaitersAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c oncecache.Cache[int, int]
		want := func(n int) {
			t.Helper()
			synctest.Wait()
			for f := range c.InFlight() {
				if f.Waiting != n {
					t.Errorf("%d wait, of %d", f.Waiting, n)
				}
			}
		}
		finish := make(chan struct{})
		go c.GetOrCreate(1, func() (int, error) { <-finish; return 1, nil })
		synctest.Wait()
		ctx, leave := context.WithCancel(t.Context())
		var callers sync.WaitGroup
		for range stressRounds() {
			callers.Go(func() { c.Wait(ctx, 1) })
		}
		want(stressRounds())
		leave()
		callers.Wait()
		want(0)
		close(finish)
	})
}
