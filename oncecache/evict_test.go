//go:build !modelcheck

package oncecache_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/oncecache"
)

// sorted returns the keys that have a value.
func sorted[K string | int, V any](c *oncecache.Cache[K, V]) []K { return slices.Sorted(c.Keys()) }

// SIEVE: what has been used since the hand passed stays, of the rest the oldest
// goes, and the hand goes on where it was.
func TestMaxEntriesIsSieve(t *testing.T) {
	c := oncecache.MustNew(oncecache.Config[int, int]{MaxEntries: 4})
	for k := range 4 {
		c.Set(k, k)
	}
	c.Get(0)
	c.Get(2)
	for i, want := range [][]int{
		{0, 2, 3, 4}, // the hand passes 0 and takes 1
		{0, 2, 4, 5}, // passes 2 and takes 3
		{0, 2, 5, 6}, // takes 4, which came after it had begun
		{0, 2, 6, 7}, // takes 5
		{0, 2, 7, 8}, // takes 6
	} {
		if c.Set(4+i, 0); !slices.Equal(sorted(c), want) {
			t.Fatalf("after %d: %v, want %v", 4+i, sorted(c), want)
		}
	}
	if got := c.Stats().Evicted; got != 5 || c.Len() != 4 {
		t.Errorf("%d evicted, %d left", got, c.Len())
	}
}

// An entry that a lease holds stays, even if there are too many then.
func TestLeasedEntriesAreNotEvicted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var closed []int
		c := oncecache.MustNew(oncecache.Config[int, int]{MaxEntries: 2, Close: func(k, _ int) error {
			mu.Lock()
			defer mu.Unlock()
			closed = append(closed, k)
			return nil
		}})
		same := func(_ context.Context, k int) (int, error) { return k, nil }
		var leases [5]oncecache.Lease[int, int]
		for k := range leases {
			var err error
			if leases[k], err = c.Acquire(context.Background(), k, same); err != nil {
				t.Fatal(err)
			}
			synctest.Wait() // who creates evicts, after the caller was told
		}
		if c.Len() != 5 || closed != nil {
			t.Fatalf("%d left, %v closed", c.Len(), closed)
		}
		for i := range leases {
			leases[i].Release()
		}
		c.Set(9, 9)
		synctest.Wait()
		if c.Len() != 2 || len(closed) != 4 {
			t.Errorf("%d left, %v closed", c.Len(), closed)
		}
		if err := c.Close(t.Context()); err != nil || len(closed) != 6 {
			t.Errorf("%v, %v closed", err, closed)
		}
	})
}

func TestIdleTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // two may be closed at a time
		closed := map[string]time.Duration{}
		began := time.Now()
		c := oncecache.MustNew(oncecache.Config[string, int]{IdleTimeout: time.Minute, Close: func(k string, _ int) error {
			mu.Lock()
			defer mu.Unlock()
			closed[k] = time.Since(began)
			return nil
		}})
		c.Set("idle", 1)
		c.Set("used", 2)
		l, _ := c.Acquire(context.Background(), "leased", func(context.Context, string) (int, error) { return 3, nil })
		for range 10 {
			time.Sleep(29 * time.Second)
			c.Get("used")
		}
		synctest.Wait()
		if got := sorted(c); fmt.Sprint(got) != "[leased used]" {
			t.Fatalf("%v are left", got)
		}
		if d := closed["idle"]; d < time.Minute || d > 91*time.Second {
			t.Errorf("closed after %v", d)
		}
		l.Release()
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		if c.Len() != 0 || len(closed) != 3 {
			t.Errorf("%d left, closed %v", c.Len(), closed)
		}
	})
}

// A value that takes the place of another of its key makes no other go.
func TestReplacedEntriesMakeRoom(t *testing.T) {
	c := oncecache.MustNew(oncecache.Config[int, int]{MaxEntries: 2})
	c.Set(1, 1)
	c.Set(2, 2)
	c.Set(2, 3)
	if got := sorted(c); !slices.Equal(got, []int{1, 2}) {
		t.Errorf("after Set: %v", got)
	}
	if v, err := c.Refresh(t.Context(), 2, anew(func(context.Context, int) (int, error) { return 4, nil })); v != 4 || err != nil {
		t.Error(v, err)
	}
	if got := sorted(c); !slices.Equal(got, []int{1, 2}) || c.Stats().Evicted != 0 {
		t.Errorf("after Refresh: %v", got)
	}
}

// Whatever becomes of the value that makes room for a new one, the old one of
// the key is closed.
func TestClosedThoughEvictionExits(t *testing.T) {
	for name, replace := range map[string]func(context.Context, *oncecache.Cache[int, int]){
		"Set": func(_ context.Context, c *oncecache.Cache[int, int]) { c.Set(2, 5) },
		"Refresh": func(ctx context.Context, c *oncecache.Cache[int, int]) {
			c.Refresh(ctx, 2, anew(func(context.Context, int) (int, error) { return 5, nil }))
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			var closed []int
			c := oncecache.MustNew(oncecache.Config[int, int]{MaxEntries: 2, Close: func(_, v int) error {
				mu.Lock()
				closed = append(closed, v)
				mu.Unlock()
				if v == 1 {
					runtime.Goexit()
				}
				return nil
			}})
			l, _ := c.Acquire(context.Background(), 1, func(_ context.Context, k int) (int, error) { return k, nil })
			l2, _ := c.Acquire(context.Background(), 3, func(_ context.Context, k int) (int, error) { return k, nil })
			synctest.Wait() // they have taken their places
			c.Set(2, 2)     // one too many
			l.Release()
			done := make(chan struct{})
			go func() { defer close(done); replace(t.Context(), c) }()
			<-done
			synctest.Wait()
			mu.Lock()
			if slices.Sort(closed); !slices.Equal(closed, []int{1, 2}) {
				t.Errorf("%s: closed %v", name, closed)
			}
			mu.Unlock()
			l2.Release()
			if c.Close(t.Context()); oncecache.Pending(c) != 0 {
				t.Errorf("%s: %d are pending", name, oncecache.Pending(c))
			}
		})
	}
}

// A lease of a value that nobody closes is a use of it.
func TestAcquireIsUse(t *testing.T) {
	c := oncecache.MustNew(oncecache.Config[int, int]{MaxEntries: 2})
	c.Set(1, 1)
	c.Set(2, 2)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	l, err := c.Acquire(ended, 1, func(context.Context, int) (int, error) { panic("not asked") })
	if err != nil || l.Value() != 1 {
		t.Fatal(err)
	}
	l.Release()
	if c.Set(3, 3); !slices.Equal(sorted(c), []int{1, 3}) {
		t.Errorf("%v are left", sorted(c))
	}
}

// So is getting an error that is kept.
func TestKeptErrorsAreUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := oncecache.MustNew(oncecache.Config[int, int]{
			IdleTimeout:  time.Minute,
			ErrorTTLFunc: func(int, error) time.Duration { return time.Hour },
		})
		calls := 0
		for range 20 {
			if v, err := c.GetOrCreate(1, func() (int, error) { calls++; return failing() }); err != errRefused {
				t.Errorf("%d, %v", v, err)
			}
			if v, ok := c.Get(1); ok {
				t.Errorf("its value is %d", v)
			}
			time.Sleep(20 * time.Second)
		}
		if calls != 1 {
			t.Errorf("%d calls", calls)
		}
	})
}

// There is one timer, even if an entry comes while the last one is closed, which
// does not delay it.
func TestIdleTimeoutHasOneTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var mu sync.Mutex
		var closed []time.Duration
		c := oncecache.MustNew(oncecache.Config[int, int]{IdleTimeout: time.Minute, Close: func(int, int) error {
			mu.Lock()
			closed = append(closed, time.Since(began))
			mu.Unlock()
			time.Sleep(10 * time.Second)
			return nil
		}})
		c.Set(1, 1)
		time.Sleep(65 * time.Second)
		c.Set(2, 2) // starts a timer
		time.Sleep(33 * time.Second)
		c.Set(3, 3)
		time.Sleep(time.Hour)
		mu.Lock()
		defer mu.Unlock()
		if got := fmt.Sprint(closed); got != "[1m0s 2m5s 2m38s]" {
			t.Errorf("closed at %s", got)
		}
	})
}

// Who holds a lease uses the value until the lease ends.
func TestIdleTimeoutBeginsWhenTheLeaseEnds(t *testing.T) {
	for _, held := range []time.Duration{59, 41, 79} {
		synctest.Test(t, func(t *testing.T) {
			c := oncecache.MustNew(oncecache.Config[string, int]{IdleTimeout: 40 * time.Second, Close: func(string, int) error { return nil }})
			l, _ := c.Acquire(t.Context(), "k", makes(1))
			time.Sleep(held * time.Second) // sweeps every 20 seconds found it in use
			l.Release()
			released := time.Now()
			for c.Len() == 1 {
				time.Sleep(time.Second)
			}
			if idle := time.Since(released); idle < 40*time.Second || idle > 61*time.Second {
				t.Errorf("removed %v after its last use", idle)
			}
			c.Close(t.Context())
		})
	}
}

// Without an IdleTimeout no value is swept, however long it was not used.
func TestSweepWithoutIdleTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var zero oncecache.Cache[string, int]
		if n := oncecache.Sweep(&zero); n != 0 {
			t.Errorf("%d removed from an empty cache", n)
		}
		for _, config := range []oncecache.Config[string, int]{{}, {MaxEntries: 3}} {
			c := oncecache.MustNew(config)
			c.Set("a", 1)
			c.Set("b", 2)
			c.Get("a")
			for range 3 {
				time.Sleep(24 * time.Hour)
				if n := oncecache.Sweep(c); n != 0 || c.Len() != 2 {
					t.Errorf("%+v: %d removed, %d left", config, n, c.Len())
				}
			}
		}
	})
}

// A Close function that panics, or ends its goroutine, ends neither the sweeps nor
// the closing of what goes with it and after it.
func TestSweepsGoOnWhateverCloseDoes(t *testing.T) {
	for name, end := range map[string]func(){
		"panics":         func() { panic("disk full") },
		"exits":          runtime.Goexit,
		"panics and nil": func() { panic(nil) }, //nolint:govet // the point
		"hangs a while":  func() { time.Sleep(10 * time.Hour) },
	} {
		for _, limit := range []int{1, 0} {
			synctest.Test(t, func(t *testing.T) {
				c := oncecache.MustNew(config{IdleTimeout: time.Minute, Close: func(_ string, v int) error {
					if v%2 == 0 {
						end()
					}
					return nil
				}})
				if limit > 0 {
					oncecache.LimitClosers(c, limit)
				}
				closed := uint64(0)
				for round := range 5 {
					for i := range 6 {
						c.Set(fmt.Sprint(round, " ", i), i)
					}
					closed += 6
					time.Sleep(2 * time.Minute)
					if n := c.Len(); n != 0 {
						t.Fatalf("%s: %d values are left in round %d", name, n, round)
					}
					if got := c.Stats().Closed; got != closed && name != "hangs a while" {
						t.Errorf("%s: %d are closed in round %d, want %d", name, got, round, closed)
					}
				}
				if err := c.Close(t.Context()); (err == nil) != (name == "hangs a while") || c.Stats().Closed != closed || oncecache.Pending(c) != 0 {
					t.Errorf("%s: %v, %d closed, want %d", name, err, c.Stats().Closed, closed)
				}
			})
		}
	}
}

// What has to make room is counted once, whoever else makes room.
func TestStressEvictedAreCounted(t *testing.T) {
	c := oncecache.MustNew(oncecache.Config[int, int]{MaxEntries: 4})
	n := stressRounds() / 5
	together(stressWorkers, func(worker int) {
		for i := range n {
			c.Set(worker*n+i, i)
		}
	})
	if got, want := c.Stats().Evicted, uint64(stressWorkers*n-c.Len()); got != want {
		t.Errorf("%d are counted, of %d", got, want)
	}
}

// A value that has to go while a Refresh makes it anew goes as the new one: what
// is refreshed all the time, and never used, does not stay.
func TestRefreshSavesNothingFromEviction(t *testing.T) {
	for _, used := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			var closed []int
			c := oncecache.MustNew(oncecache.Config[string, int]{IdleTimeout: time.Minute, Close: func(_ string, v int) error {
				mu.Lock()
				defer mu.Unlock()
				closed = append(closed, v)
				return nil
			}})
			c.Set("k", 1)
			finish := oncecache.StartEviction(c, "k")
			oncecache.ReplaceAsRefresh(c, "k", 2, used)
			finish()
			synctest.Wait()
			if v, ok := c.Get("k"); ok != used || used && v != 2 {
				t.Errorf("used %t: %d, %t", used, v, ok)
			}
			if n := oncecache.Places(c); n != c.Len() {
				t.Errorf("used %t: %d places of %d", used, n, c.Len())
			}
			c.Close(t.Context())
			if !slices.Equal(slices.Sorted(slices.Values(closed)), []int{1, 2}) {
				t.Errorf("used %t: closed %v", used, closed)
			}
		})
	}
}

// The old value gives its place and its weight back, also if the new one expires at once.
func TestRefreshedValueThatExpiresAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := oncecache.MustNew(oncecache.Config[string, int]{
			MaxWeight: 9,
			Weight:    func(_ string, v int) int64 { return int64(v) },
			TTLFunc:   func(_ string, v int) time.Duration { return time.Duration(v-2) * time.Hour },
		})
		c.Set("k", 3)
		if v, err := c.Refresh(t.Context(), "k", anew(func(context.Context, string) (int, error) { return 2, nil })); v != 2 || err != nil {
			t.Errorf("%d, %v", v, err)
		}
		synctest.Wait()
		if weight, places := c.Stats().Weight, oncecache.Places(c); weight != 0 || places != 0 || c.Len() != 0 {
			t.Errorf("a weight of %d, %d places, and %d values are left", weight, places, c.Len())
		}
	})
}
