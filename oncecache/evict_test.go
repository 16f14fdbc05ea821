//go:build !modelcheck

package oncecache_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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

// Whatever makes values go, it leaves those that leases hold, and takes them when
// the last lease has ended; whether they are closed then or not.
func TestLeasedStay(t *testing.T) {
	for name, tt := range map[string]struct {
		oncecache.Config[int, int]
		press func(c *oncecache.Cache[int, int]) // makes all go that may
	}{
		"MaxEntries": {oncecache.Config[int, int]{MaxEntries: 2}, func(c *oncecache.Cache[int, int]) {
			for i := range 20 {
				c.Set(100+i, i)
			}
		}},
		"MaxEntries, creations": {oncecache.Config[int, int]{MaxEntries: 2}, func(c *oncecache.Cache[int, int]) {
			for i := range 20 {
				c.GetOrCreate(100+i, with(i))
			}
		}},
		"IdleTimeout": {oncecache.Config[int, int]{IdleTimeout: time.Minute}, func(*oncecache.Cache[int, int]) { time.Sleep(time.Hour) }},
		"Sweep": {oncecache.Config[int, int]{IdleTimeout: time.Minute}, func(c *oncecache.Cache[int, int]) {
			for range 5 {
				time.Sleep(50 * time.Second)
				oncecache.Sweep(c)
			}
		}},
	} {
		for _, closes := range []bool{true, false} {
			t.Run(fmt.Sprint(name, ", closed ", closes), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var closed atomic.Int64
					if closes {
						tt.Close = func(k, _ int) error {
							if k < 100 {
								closed.Add(1)
							}
							return nil
						}
					}
					c := oncecache.MustNew(tt.Config)
					same := func(_ context.Context, k int) (int, error) { return k, nil }
					var leases []oncecache.Lease[int, int]
					for i := range 10 {
						k := i % 5 // two leases of each
						l, err := c.Acquire(t.Context(), k, same)
						if err != nil {
							t.Fatal(err)
						}
						leases = append(leases, l)
					}
					synctest.Wait()
					held := func() (keys []int) {
						for _, k := range sorted(c) {
							if k < 100 {
								keys = append(keys, k)
							}
						}
						return keys
					}
					for i, want := range [][]int{{0, 1, 2, 3, 4}, {0, 1, 2, 3, 4}, {0, 1, 2, 3, 4}} {
						tt.press(c)
						if got := held(); !slices.Equal(got, want) || closed.Load() != 0 {
							t.Fatalf("%v are left, %d closed", got, closed.Load())
						}
						leases[i].Release() // the other one holds it
					}
					leases[5].Release()
					leases[7].Release()
					tt.press(c)
					tt.press(c)
					synctest.Wait()
					if got := held(); !slices.Equal(got, []int{1, 3, 4}) || closes && closed.Load() != 2 {
						t.Errorf("%v are left, %d closed", got, closed.Load())
					}
					for i := range leases {
						if v := i % 5; i > 2 && i != 5 && i != 7 && leases[i].Value() != v {
							t.Errorf("the lease of %d has %d", v, leases[i].Value())
						}
						leases[i].Release()
					}
					tt.press(c)
					tt.press(c)
					synctest.Wait()
					if got := held(); got != nil || closes && closed.Load() != 5 {
						t.Errorf("%v are left at the end, %d closed", got, closed.Load())
					}
					if err := c.Close(t.Context()); err != nil || oncecache.Pending(c) != 0 {
						t.Errorf("%v, %d are pending", err, oncecache.Pending(c))
					}
				})
			})
		}
	}
}

// What goes at one time has left the cache before any of it is closed.
func TestEvictedAreGoneBeforeTheyAreClosed(t *testing.T) {
	for name, tt := range map[string]struct {
		config
		n     int
		press func(c *oncecache.Cache[string, int], free func())
	}{
		"IdleTimeout": {config{IdleTimeout: time.Minute}, 50 /* fewer than a sweep looks at at a time */, func(_ *oncecache.Cache[string, int], free func()) { free(); time.Sleep(time.Hour) }},
		"MaxEntries":  {config{MaxEntries: 1}, 10_000, func(c *oncecache.Cache[string, int], free func()) { free(); c.Set("new", -1) }},
		"Clear":       {config{}, 10_000, func(c *oncecache.Cache[string, int], free func()) { free(); c.Clear() }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var c *oncecache.Cache[string, int]
				var seen atomic.Int64
				tt.Close = func(_ string, v int) error {
					if n := c.Len(); v >= 0 && n > 1 {
						seen.Store(int64(n))
					}
					return nil
				}
				c = oncecache.MustNew(tt.config)
				var leases []oncecache.Lease[string, int]
				for i := range tt.n {
					l, err := c.Acquire(context.Background(), fmt.Sprint(i), makes(i))
					if err != nil {
						t.Fatal(err)
					}
					leases = append(leases, l)
				}
				tt.press(c, func() {
					synctest.Wait() // until all have taken their places
					for i := range leases {
						leases[i].Release()
					}
				})
				synctest.Wait()
				if closed := c.Stats().Closed; closed != uint64(tt.n) || seen.Load() != 0 {
					t.Errorf("%d are closed; %d were there then", closed, seen.Load())
				}
				if err := c.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// To lease what is there is a use, which a search for room does not forget while the lease lasts.
func TestLeasedKeepTheirUse(t *testing.T) {
	type bounded = oncecache.Cache[int, int]
	itself := func(_ context.Context, k int) (int, error) { return k, nil }
	for name, begin := range map[string]func(t *testing.T, c *bounded) oncecache.Lease[int, int]{
		"the lease of what is there": func(t *testing.T, c *bounded) oncecache.Lease[int, int] {
			c.Set(1, 1)
			l, err := c.Acquire(t.Context(), 1, itself)
			if err != nil {
				t.Fatal(err)
			}
			return l
		},
	} {
		for _, closes := range []bool{false, true} {
			for _, searched := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, closes %t, searched %t", name, closes, searched), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						settings := oncecache.Config[int, int]{MaxEntries: 2}
						if closes {
							settings.Close = func(int, int) error { return nil }
						}
						c := oncecache.MustNew(settings)
						l := begin(t, c)
						c.Set(2, 2)
						if searched {
							c.Set(3, 3) // passes 1, which is leased, and takes 2
							c.Get(3)    // so that the next one comes to 1 again
						}
						l.Release()
						if c.Set(4, 4); !slices.Contains(sorted(c), 1) || c.Len() != 2 {
							t.Errorf("%v are left", sorted(c))
						}
						if err := c.Close(t.Context()); err != nil {
							t.Error(err)
						}
					})
				})
			}
		}
	}
}

// What a batch has made is as if each key had been created alone: nobody has used it yet, though
// the batch holds it until it returns.
func TestBatchIsNoUseOfWhatItMakes(t *testing.T) {
	for _, closes := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			settings := oncecache.Config[int, int]{MaxEntries: 2}
			if closes {
				settings.Close = func(int, int) error { return nil }
			}
			c := oncecache.MustNew(settings)
			if _, err := c.GetOrCreateMany(t.Context(), []int{1}, func(context.Context, []int) (map[int]int, error) {
				time.Sleep(time.Second)
				return map[int]int{1: 1}, nil
			}); err != nil {
				t.Fatal(err)
			}
			c.Set(2, 2)
			if c.Set(3, 3); !slices.Equal(sorted(c), []int{2, 3}) {
				t.Errorf("closes: %t: %v are left", closes, sorted(c))
			}
			if err := c.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// sized are settings of a cache in which a value weighs what it is.
func sized(entries int, weight int64) config {
	c := config{MaxEntries: entries}
	if weight > 0 {
		c.MaxWeight, c.Weight = weight, func(_ string, v int) int64 { return int64(v) }
	}
	return c
}

// fill sets keys from 0 to n-1 to v.
func fill(c *oncecache.Cache[string, int], n, v int) {
	for k := range n {
		c.Set(strconv.Itoa(k), v)
	}
}

func keysOf(c *oncecache.Cache[string, int]) []string { return slices.Sorted(c.Keys()) }

// bounds change either bound of a cache whose values weigh 10 to room for n values.
var bounds = map[string]struct {
	made   func(n int) config
	change func(c *oncecache.Cache[string, int], n int) error
}{
	"SetMaxEntries": {
		func(n int) config { return sized(n, 0) },
		func(c *oncecache.Cache[string, int], n int) error { return c.SetMaxEntries(n) },
	},
	"SetMaxWeight": {
		func(n int) config { return sized(0, 10*int64(n)) },
		func(c *oncecache.Cache[string, int], n int) error { return c.SetMaxWeight(10 * int64(n)) },
	},
}

// A lower bound evicts at once, those that have not been used, and bounds what comes. A higher one
// evicts nothing, and makes room.
func TestChangedBound(t *testing.T) {
	for name, b := range bounds {
		t.Run(name, func(t *testing.T) {
			c := oncecache.MustNew(b.made(10))
			want := func(n int, evicted uint64) {
				t.Helper()
				if c.Len() != n || c.Stats().Evicted != evicted {
					t.Errorf("%d values, %d evicted, want %d, %d", c.Len(), c.Stats().Evicted, n, evicted)
				}
				if weight := c.Stats().Weight; name == "SetMaxWeight" && weight != 10*int64(n) {
					t.Errorf("a weight of %d", weight)
				}
			}
			change := func(n int) {
				t.Helper()
				if err := b.change(c, n); err != nil {
					t.Error(err)
				}
			}
			fill(c, 10, 10)
			used := []string{"2", "5", "9"}
			for _, k := range used {
				c.Get(k)
			}
			change(3)
			want(3, 7)
			if got := keysOf(c); !slices.Equal(got, used) {
				t.Errorf("%q are there, want those that were used", got)
			}
			c.Set("new", 10)
			want(3, 8)
			change(5)
			want(3, 8)
			c.Set("a", 10)
			c.Set("b", 10)
			want(5, 8)
			c.Set("c", 10)
			want(5, 9)
			change(1)
			want(1, 13)
		})
	}
}

// Evicted values are closed, and told to OnRemove.
func TestChangedBoundClosesWhatItEvicts(t *testing.T) {
	for name, b := range bounds {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var closed, told []string
				settings := b.made(10)
				settings.Close = func(k string, _ int) error {
					mu.Lock()
					defer mu.Unlock()
					closed = append(closed, k)
					return nil
				}
				settings.OnRemove = func(k string, _ int, why oncecache.Reason, _ error) {
					mu.Lock()
					defer mu.Unlock()
					told = append(told, fmt.Sprint(k, " ", why))
				}
				c := oncecache.MustNew(settings)
				fill(c, 4, 10)
				b.change(c, 2)
				synctest.Wait()
				mu.Lock()
				slices.Sort(closed)
				slices.Sort(told)
				if !slices.Equal(closed, []string{"0", "1"}) || !slices.Equal(told, []string{"0 Evicted", "1 Evicted"}) {
					t.Errorf("closed %q, told %q", closed, told)
				}
				mu.Unlock()
				c.Close(t.Context())
			})
		})
	}
}

// Leased values stay, however many they are, until they are released and the next entry comes.
func TestChangedBoundLeavesLeases(t *testing.T) {
	for name, b := range bounds {
		for _, leased := range []int{1, 5, 10} {
			t.Run(fmt.Sprint(name, " ", leased), func(t *testing.T) {
				c := oncecache.MustNew(b.made(10))
				fill(c, 10, 10)
				var held []oncecache.Lease[string, int]
				for k := range leased {
					l, err := c.Acquire(t.Context(), strconv.Itoa(k), refusing)
					if err != nil {
						t.Fatal(err)
					}
					held = append(held, l)
				}
				b.change(c, 2)
				if n := c.Len(); n != max(leased, 2) {
					t.Errorf("%d values", n)
				}
				for i := range held {
					if v, ok := c.Peek(strconv.Itoa(i)); v != 10 || !ok {
						t.Errorf("a leased value has gone: %d, %t", v, ok)
					}
					held[i].Release()
				}
				c.Set("new", 10)
				if n := c.Len(); n != 2 {
					t.Errorf("%d values after the leases", n)
				}
			})
		}
	}
}

// More leased values than a search passes do not keep the others from making room.
func TestChangedBoundPassesManyLeases(t *testing.T) {
	for name, b := range bounds {
		t.Run(name, func(t *testing.T) {
			c := oncecache.MustNew(b.made(1000))
			fill(c, 400, 10)
			for k := range 200 { // the oldest
				l, _ := c.Acquire(t.Context(), strconv.Itoa(k), refusing)
				defer l.Release()
			}
			b.change(c, 250)
			if n := c.Len(); n != 250 {
				t.Errorf("%d values, of which 200 are leased", n)
			}
		})
	}
}

// A bound that makes no sense, or that the cache was made without, is refused by name and value,
// and changes nothing.
func TestChangedBoundRefuses(t *testing.T) {
	both := sized(2, 100)
	for name, tt := range map[string]struct {
		config
		change func(c *oncecache.Cache[string, int]) error
		want   string
	}{
		"zero entries":      {both, func(c *oncecache.Cache[string, int]) error { return c.SetMaxEntries(0) }, "MaxEntries 0:"},
		"fewer than none":   {both, func(c *oncecache.Cache[string, int]) error { return c.SetMaxEntries(-1) }, "MaxEntries -1:"},
		"entries unbounded": {sized(0, 100), func(c *oncecache.Cache[string, int]) error { return c.SetMaxEntries(1) }, "MaxEntries 1:"},
		"no weight":         {both, func(c *oncecache.Cache[string, int]) error { return c.SetMaxWeight(0) }, "MaxWeight 0:"},
		"less than none":    {both, func(c *oncecache.Cache[string, int]) error { return c.SetMaxWeight(-1) }, "MaxWeight -1:"},
		"too much": {both, func(c *oncecache.Cache[string, int]) error { return c.SetMaxWeight(1<<46 + 1) },
			"MaxWeight " + fmt.Sprint(int64(1)<<46+1) + ":"},
		"weight unbounded":      {sized(2, 0), func(c *oncecache.Cache[string, int]) error { return c.SetMaxWeight(1) }, "MaxWeight 1:"},
		"entries of a TTL":      {config{TTL: time.Hour}, func(c *oncecache.Cache[string, int]) error { return c.SetMaxEntries(1) }, "MaxEntries 1:"},
		"weight of a TTL":       {config{TTL: time.Hour}, func(c *oncecache.Cache[string, int]) error { return c.SetMaxWeight(1) }, "MaxWeight 1:"},
		"entries of a zero one": {config{}, func(c *oncecache.Cache[string, int]) error { return c.SetMaxEntries(1) }, "MaxEntries 1:"},
		"weight of a zero one":  {config{}, func(c *oncecache.Cache[string, int]) error { return c.SetMaxWeight(1) }, "MaxWeight 1:"},
	} {
		t.Run(name, func(t *testing.T) {
			c := oncecache.MustNew(tt.config)
			c.Set("a", 40)
			c.Set("b", 40)
			if err := tt.change(c); err == nil || !strings.HasPrefix(err.Error(), "oncecache: ") || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("the error is %v, want it to name %s", err, tt.want)
			}
			if n := c.Len(); n != 2 {
				t.Errorf("%d values afterwards", n)
			}
			if tt.MaxEntries > 0 {
				if c.Set("c", 10); c.Len() != 2 {
					t.Errorf("%d values, beyond the bound of 2", c.Len())
				}
			}
		})
	}
	var zero oncecache.Cache[string, int]
	if zero.SetMaxEntries(1) == nil || zero.SetMaxWeight(1) == nil {
		t.Error("a zero cache gets a bound")
	}
	c := oncecache.MustNew(both)
	for _, w := range []int64{1, 1 << 46} {
		if err := c.SetMaxWeight(w); err != nil {
			t.Error(err)
		}
	}
}

// A value that weighs more than the new bound goes as others do, and one that comes is not kept.
func TestChangedBoundOfHeavyValues(t *testing.T) {
	c := oncecache.MustNew(sized(0, 100))
	c.Set("heavy", 60)
	c.Set("light", 20)
	c.Get("heavy")
	c.SetMaxWeight(50)
	if got := keysOf(c); !slices.Equal(got, []string{"heavy"}) && !slices.Equal(got, []string{"light"}) && len(got) != 0 {
		t.Errorf("%q are there", got)
	}
	if w := c.Stats().Weight; w > 50 {
		t.Errorf("a weight of %d", w)
	}
	if v, err := c.GetOrCreate("next", with(60)); v != 60 || err != nil {
		t.Errorf("%d, %v", v, err)
	}
	if _, ok := c.Get("next"); ok {
		t.Error("a value that weighs more than the new bound is kept")
	}
	c.SetMaxWeight(60)
	c.GetOrCreate("next", with(60))
	if _, ok := c.Get("next"); !ok || c.Stats().Weight != 60 {
		t.Errorf("kept: %t, a weight of %d", ok, c.Stats().Weight)
	}
}

// A value that was weighed before the bound was lowered below that, and comes afterwards, goes again, and
// evicts no other.
func TestBoundIsLoweredWhileAValueComes(t *testing.T) {
	for how, comes := range map[string]func(c *oncecache.Cache[string, int]){
		"Set":         func(c *oncecache.Cache[string, int]) { c.Set("k", 50) },
		"SetIfAbsent": func(c *oncecache.Cache[string, int]) { c.SetIfAbsent("k", 50) },
		"GetOrCreate": func(c *oncecache.Cache[string, int]) { c.GetOrCreate("k", with(50)) },
		"Acquire": func(c *oncecache.Cache[string, int]) {
			c.Acquire(context.Background(), "k", func(context.Context, string) (int, error) { return 50, nil })
		},
		"Refresh": func(c *oncecache.Cache[string, int]) {
			c.Set("k", 1)
			c.Refresh(context.Background(), "k", anew(func(context.Context, string) (int, error) { return 50, nil }))
		},
	} {
		t.Run(how, func(t *testing.T) {
			config := sized(0, 100)
			config.Close = func(string, int) error { return nil } // so that leases hold
			lower := func() {}
			config.TTLFunc = func(_ string, v int) time.Duration {
				if v == 50 {
					lower()
				}
				return math.MaxInt64
			}
			c := oncecache.MustNew(config)
			lower = func() {
				if err := c.SetMaxWeight(10); err != nil {
					t.Error(err)
				}
			}
			c.Set("small", 1)
			comes(c)
			if s := c.Stats(); s.Weight != 1 || !slices.Equal(keysOf(c), []string{"small"}) {
				t.Errorf("%q stay, with a weight of %d", keysOf(c), s.Weight)
			}
		})
	}
}

// Errors that are kept make room too, for a lower bound of entries.
func TestChangedBoundEvictsErrors(t *testing.T) {
	settings := sized(10, 0)
	settings.ErrorTTL = -1
	c := oncecache.MustNew(settings)
	for k := range 10 {
		c.GetOrCreate(strconv.Itoa(k), failing)
	}
	c.SetMaxEntries(4)
	if n := c.Stats().Evicted; n != 6 {
		t.Errorf("%d evicted, want 6", n)
	}
}

// A cache that is closed has nothing to evict.
func TestChangedBoundOfAClosedCache(t *testing.T) {
	c := oncecache.MustNew(sized(10, 100))
	fill(c, 5, 1)
	c.Close(t.Context())
	c.SetMaxEntries(1)
	c.SetMaxWeight(1)
	if n := c.Stats().Evicted; n != 0 {
		t.Errorf("%d evicted", n)
	}
}

// Bounds change while values come, go and are leased. In the end the last bounds hold, and each
// value was closed once or is there.
func TestBoundsChangeConcurrently(t *testing.T) {
	var mu sync.Mutex
	closed := map[int]int{}
	settings := sized(64, 640)
	settings.Weight = func(string, int) int64 { return 10 }
	settings.Close = func(_ string, v int) error {
		mu.Lock()
		defer mu.Unlock()
		closed[v]++
		return nil
	}
	c := oncecache.MustNew(settings)
	var values atomic.Int32 // no two are the same
	together(8, func(i int) {
		for n := range 400 {
			k := strconv.Itoa((n*7 + i) % 100)
			switch {
			case i < 4:
				c.Set(k, int(values.Add(1)))
			case i < 6:
				l, err := c.Acquire(context.Background(), k, func(context.Context, string) (int, error) {
					return int(values.Add(1)), nil
				})
				if err != nil {
					t.Error(err)
				}
				l.Release()
			case i == 6:
				if err := c.SetMaxEntries(1 + n%64); err != nil {
					t.Error(err)
				}
			default:
				if err := c.SetMaxWeight(int64(10 * (1 + n%64))); err != nil {
					t.Error(err)
				}
			}
		}
	})
	c.SetMaxWeight(640)
	c.SetMaxEntries(5)
	if n := c.Len(); n > 5 || c.Stats().Weight != int64(10*n) {
		t.Errorf("%d values, a weight of %d", n, c.Stats().Weight)
	}
	fill(c, 20, -1)
	if n := c.Len(); n != 5 || c.Stats().Weight != 50 {
		t.Errorf("%d values, a weight of %d, want 5 of 10", n, c.Stats().Weight)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Error(err)
	}
	delete(closed, -1) // those of fill, whose values are all the same
	for v, n := range closed {
		if n != 1 {
			t.Errorf("%d was closed %d times", v, n)
		}
	}
	if all := int(values.Load()); len(closed) != all {
		t.Errorf("%d values were closed, of %d", len(closed), all)
	}
}

// A lower bound evicts values that were used, however many leased ones are between them.
func TestChangedBoundPassesLeases(t *testing.T) {
	const leased, used = 128, 100 // two searches' worth of leases
	for name, b := range bounds {
		c := oncecache.MustNew(b.made(leased + used))
		for k := range leased + used {
			key := strconv.Itoa(k)
			c.Set(key, 10)
			if k >= leased {
				c.Get(key)
			} else if _, err := c.Acquire(context.Background(), key, refusing); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.change(c, leased); err != nil || c.Len() != leased {
			t.Errorf("%s: %v, %d are left", name, err, c.Len())
		}
	}
}

// weighing is a cache whose values are their own weights.
func weighing(config oncecache.Config[string, int], bound int64) *removals {
	config.MaxWeight, config.Weight = bound, func(_ string, v int) int64 { return int64(v) }
	return listen(config)
}

func (r *removals) wantWeight(t *testing.T, want int64, keys ...string) {
	t.Helper()
	if got := r.Stats().Weight; got != want {
		t.Errorf("weight %d, want %d", got, want)
	}
	if got := sorted(r.Cache); !slices.Equal(got, keys) {
		t.Errorf("keys %v, want %v", got, keys)
	}
	oncecache.Places(r.Cache)
}

// The sum of the weights stays within the bound: others go until there is room, by SIEVE.
func TestMaxWeight(t *testing.T) {
	r := weighing(oncecache.Config[string, int]{}, 10)
	r.Set("a", 4)
	r.Set("b", 3)
	r.Set("c", 3)
	r.wantWeight(t, 10, "a", "b", "c")
	r.Get("a")
	r.Set("d", 5) // a was used, so b and c go
	r.wantWeight(t, 9, "a", "d")
	r.Set("e", 10)
	r.wantWeight(t, 10, "e")
	r.Set("f", 0)
	r.wantWeight(t, 10, "e", "f")
	if n := r.Stats().Evicted; n != 4 {
		t.Errorf("%d evicted", n)
	}
	r.Close(t.Context())
	if got := r.Stats().Weight; got != 0 {
		t.Errorf("weight %d after Close", got)
	}
}

// Both bounds hold.
func TestMaxWeightAndMaxEntries(t *testing.T) {
	r := weighing(oncecache.Config[string, int]{MaxEntries: 2}, 10)
	r.Set("a", 1)
	r.Set("b", 1)
	r.Set("c", 1)
	r.wantWeight(t, 2, "b", "c")
	r.Set("d", 9)
	r.wantWeight(t, 10, "c", "d")
}

// Reported bug 39, ristretto: the sum of weights drifts from what is there.
// T39 ristretto #96: the weight of what is replaced or removed is given back, however
// that happens, so that the sum is that of what is there.
func TestT39_WeightsAreGivenBack(t *testing.T) {
	ctx := context.Background()
	synctest.Test(t, func(t *testing.T) {
		r := weighing(oncecache.Config[string, int]{
			IdleTimeout: time.Hour, ErrorTTLFunc: func(string, error) time.Duration { return time.Minute },
		}, 100)
		for name, change := range map[string]func() int64{
			"Set":          func() int64 { r.Set("k", 20); return 20 },
			"the very one": func() int64 { r.Set("k", 10); return 10 },
			"Refresh":      func() int64 { r.Refresh(ctx, "k", anew(makes(30))); return 30 },
			"a failure": func() int64 {
				r.Refresh(ctx, "k", anew(func(context.Context, string) (int, error) { return failing() }))
				return 10
			},
			"Delete":        func() int64 { r.Delete("k"); return 0 },
			"Clear":         func() int64 { r.Clear(); return 0 },
			"idleness":      func() int64 { time.Sleep(2 * time.Hour); return 0 },
			"a heavy Set":   func() int64 { r.Set("k", 101); return 0 },
			"CompareAndDel": func() int64 { oncecache.CompareAndDelete(r.Cache, "k", 10); return 0 },
			"Discard": func() int64 {
				l, _ := r.Acquire(ctx, "k", makes(1))
				l.Discard()
				return 0
			},
			"Delete while a lease holds it": func() int64 {
				l, _ := r.Acquire(ctx, "k", makes(1))
				defer l.Release()
				r.Delete("k")
				return r.Stats().Weight // no longer the key's
			},
			"an error": func() int64 { r.Delete("k"); r.GetOrCreate("k", failing); return 0 },
			"a creation that Set overtakes": func() int64 {
				r.Delete("k")
				r.GetOrCreate("k", func() (int, error) { r.Set("k", 7); return 50, nil })
				return 7
			},
			"a batch": func() int64 {
				r.GetOrCreateMany(ctx, []string{"k", "l"}, func(context.Context, []string) (map[string]int, error) {
					return map[string]int{"l": 5}, nil
				})
				return 15
			},
		} {
			r.Clear()
			r.GetOrCreate("k", with(10))
			want := change()
			if got := r.Stats().Weight; got != want {
				t.Errorf("%s: weight %d, want %d", name, got, want)
			}
			oncecache.Places(r.Cache)
		}
		r.Close(t.Context())
	})
}

// A value heavier than the bound evicts nothing, its callers
// get it, and it is told and closed once. What the key had leaves.
func TestHeavyValuesEvictNothing(t *testing.T) {
	ctx := context.Background()
	for _, closes := range []bool{false, true} {
		for _, w := range ways {
			t.Run(fmt.Sprintf("%s, Close %t", w.name, closes), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var mu sync.Mutex
					closed := 0
					config := oncecache.Config[string, int]{}
					if closes {
						config.Close = func(_ string, v int) error {
							mu.Lock()
							defer mu.Unlock()
							if v == 11 {
								closed++
							}
							return nil
						}
					}
					r := weighing(config, 10)
					r.Set("a", 4)
					r.Set("b", 6)
					if v, err := w.ask(ctx, r.Cache, "k", makes(11)); v != 11 || err != nil {
						t.Error(v, err)
					}
					synctest.Wait()
					r.wantWeight(t, 10, "a", "b")
					wantLen(t, r.Cache, 2)
					r.want(t, removal{"k", 11, discarded, nil})
					if w.name == "Refresh" { // of a value that is there
						if v, err := w.ask(ctx, r.Cache, "b", makes(11)); v != 11 || err != nil {
							t.Error(v, err)
						}
						synctest.Wait()
						r.wantWeight(t, 4, "a")
						r.want(t, removal{"b", 6, replaced, nil}, removal{"b", 11, discarded, nil})
					}
					if err := r.Close(t.Context()); err != nil || oncecache.Pending(r.Cache) != 0 {
						t.Errorf("%v, %d pending", err, oncecache.Pending(r.Cache))
					}
					want := 0
					if closes {
						want = 1
						if w.name == "Refresh" {
							want = 2
						}
					}
					if closed != want {
						t.Errorf("closed %d times, want %d", closed, want)
					}
				})
			})
		}
	}
}

// Set of a value that is too heavy ends what is there, and gives it to those who wait.
func TestHeavySet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := weighing(oncecache.Config[string, int]{}, 10)
		if old, ok := r.Set("k", 11); ok || old != 0 {
			t.Error(old, ok)
		}
		r.want(t, removal{"k", 11, discarded, nil})
		r.Set("k", 5)
		if stored(r.SetIfAbsent("l", 12)) || stored(r.SetIfAbsent("k", 12)) {
			t.Error("SetIfAbsent has stored what is too heavy")
		}
		r.want(t)
		if old, ok := r.Set("k", 11); !ok || old != 5 {
			t.Error(old, ok)
		}
		r.want(t, removal{"k", 5, replaced, nil}, removal{"k", 11, discarded, nil})
		r.wantWeight(t, 0)

		flight := begin(t, r.Cache, "k")
		waiter := start(r.Cache, "k", unexpected(t))
		synctest.Wait()
		r.Set("k", 13)
		if got := waiter.wait(t); got.value != 13 || got.err != nil {
			t.Error(got)
		}
		flight.end <- with(6)
		if got := flight.wait(t); got.value != 13 || got.err != nil {
			t.Error(got)
		}
		r.want(t, removal{"k", 6, discarded, nil}, removal{"k", 13, discarded, nil})
		r.wantWeight(t, 0)
		if creating, entries := oncecache.Creating(r.Cache); creating != 0 || entries != 0 {
			t.Errorf("%d creations, %d entries", creating, entries)
		}
	})
}

// What a Refresh makes and has expired already goes, and takes no room from others.
func TestRefreshedValueThatHasExpiredEvictsNothing(t *testing.T) {
	c := oncecache.MustNew(oncecache.Config[string, int]{
		MaxWeight: 10, Weight: func(_ string, v int) int64 { return int64(v) },
		TTLFunc: func(_ string, v int) time.Duration { return time.Duration(9-v) * time.Hour },
	})
	c.Set("a", 3)
	c.Set("b", 3)
	if v, err := c.Refresh(t.Context(), "b", anew(makes(9))); v != 9 || err != nil {
		t.Error(v, err)
	}
	wantGet(t, c, "a", 3)
	if s := c.Stats(); c.Len() != 1 || s.Weight != 3 || s.Evicted != 0 || s.Expired != 1 {
		t.Errorf("%d values, %+v", c.Len(), s)
	}
}

// Without a Close function, what is too heavy is dropped, also the very value that was there.
func TestHeavySetWithoutClose(t *testing.T) {
	calls := 0
	c := oncecache.MustNew(oncecache.Config[string, *int64]{
		MaxWeight: 10, Weight: func(_ string, v *int64) int64 { return *v },
		TTLFunc: func(string, *int64) time.Duration { calls++; return time.Hour },
	})
	light, heavy := int64(5), int64(11)
	c.Set("k", &light)
	for _, v := range []*int64{&heavy, &light} {
		c.Set("k", &light)
		before := calls
		light = heavy
		if old, ok := c.Set("k", v); old != &light || !ok || c.Len() != 0 || c.Stats().Weight != 0 || calls != before {
			t.Errorf("Set returns %v, %v; %d values, %+v, %d calls of TTLFunc", old, ok, c.Len(), c.Stats(), calls-before)
		}
		if _, ok := c.Get("k"); ok {
			t.Error("it is there")
		}
		light = 5
	}
	if creating, entries := oncecache.Creating(c); creating != 0 || entries != 0 || oncecache.Pending(c) != 0 {
		t.Errorf("%d creations, %d entries, %d pending", creating, entries, oncecache.Pending(c))
	}
}

// The very value stays as it is, with the weight that it came with, though it would be too
// heavy by now.
func TestVeryValueHasBecomeHeavy(t *testing.T) {
	removed := 0
	c := oncecache.MustNew(oncecache.Config[string, *int64]{
		MaxWeight: 10, Weight: func(_ string, v *int64) int64 { return *v },
		OnRemove: func(string, *int64, oncecache.Reason, error) { removed++ },
	})
	v := new(int64)
	*v = 5
	c.Set("k", v)
	*v = 11
	if old, ok := c.Set("k", v); old != v || !ok || c.Len() != 1 || c.Stats().Weight != 5 || removed != 0 {
		t.Errorf("Set returns %v, %v; %d values, %+v, %d removed", old, ok, c.Len(), c.Stats(), removed)
	}
	if err := c.Close(t.Context()); err != nil || removed != 1 || oncecache.Pending(c) != 0 {
		t.Errorf("%v, %d removed", err, removed)
	}
}

// It lives as long as one that is not too heavy, and is due again, whether a Renew has been under
// way or not. If TTL panics, it stays too.
func TestVeryValueHasBecomeHeavyAndIsAsNew(t *testing.T) {
	for _, renews := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var closed, calls atomic.Int32
			var panics atomic.Bool
			config := oncecache.Config[string, *int64]{
				MaxWeight: 10, Weight: func(_ string, v *int64) int64 { return *v },
				Close: func(_ string, v *int64) error {
					if *v != 0 {
						closed.Add(1)
					}
					return nil
				},
				TTLFunc: func(string, *int64) time.Duration {
					if panics.Load() {
						panic("asked")
					}
					return time.Minute
				},
			}
			if renews {
				config.RenewAhead = 20 * time.Second
				config.Renew = func(context.Context, string, *int64) (*int64, error) {
					calls.Add(1)
					time.Sleep(5 * time.Second)
					return new(int64), nil // too late, as Set has come
				}
			}
			c := oncecache.MustNew(config)
			v := new(int64)
			c.Set("k", v)
			*v = 11
			for i := range int32(3) {
				time.Sleep(50 * time.Second)
				if got, ok := c.Get("k"); !ok || got != v {
					t.Fatalf("renews %t: %v, %t after Set number %d", renews, got, ok, i)
				}
				synctest.Wait()
				if n := calls.Load(); renews && n != i+1 {
					t.Errorf("%d calls of Renew after Set number %d", n, i)
				}
				if old, ok := c.Set("k", v); !ok || old != v {
					t.Errorf("Set returns %v, %t", old, ok)
				}
				synctest.Wait()
			}
			panics.Store(true)
			func() {
				defer func() {
					if p := recover(); p != "asked" {
						t.Errorf("Set panics with %v", p)
					}
				}()
				c.Set("k", v)
			}()
			panics.Store(false) // Renew may ask too
			if _, ok := c.Get("k"); !ok || closed.Load() != 0 {
				t.Errorf("renews %t: it is there: %t, closed %d times", renews, ok, closed.Load())
			}
			time.Sleep(time.Minute + time.Millisecond)
			synctest.Wait()
			if _, ok := c.Get("k"); ok || closed.Load() != 1 {
				t.Errorf("renews %t: it is there: %t, closed %d times", renews, ok, closed.Load())
			}
			if err := c.Close(t.Context()); err != nil || closed.Load() != 1 || oncecache.Pending(c) != 0 {
				t.Errorf("Close returns %v, closed %d times, %d pending", err, closed.Load(), oncecache.Pending(c))
			}
		})
	}
}

// A value that expires while a Refresh makes one that is too heavy in its place, expires once.
func TestExpiresBeforeAHeavyRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := weighing(oncecache.Config[string, int]{TTL: time.Minute}, 10)
		r.Set("k", 1)
		v, err := r.Refresh(t.Context(), "k", anew(func(context.Context, string) (int, error) {
			time.Sleep(time.Hour)
			return 11, nil
		}))
		if got := r.Stats().Expired; v != 11 || err != nil || got != 1 {
			t.Errorf("%d, %v; %d expired, want 1", v, err, got)
		}
		wantLen(t, r.Cache, 0)
	})
}

// Callers with leases hold what is too heavy: it is closed after the last.
func TestHeavyValuesAreLeased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := weighing(oncecache.Config[string, int]{Close: func(string, int) error { return nil }}, 10)
		l, err := r.Acquire(context.Background(), "k", makes(11))
		if err != nil || l.Value() != 11 {
			t.Error(err)
		}
		r.want(t)
		l.Release()
		synctest.Wait()
		r.want(t, removal{"k", 11, discarded, nil})
		r.wantWeight(t, 0)
	})
}

// Leased values stay and count, as with MaxEntries.
func TestLeasesHoldWeight(t *testing.T) {
	r := weighing(oncecache.Config[string, int]{}, 10)
	l, _ := r.Acquire(context.Background(), "a", makes(8))
	r.Set("b", 5)
	r.wantWeight(t, 13, "a", "b")
	r.Set("c", 2)
	r.wantWeight(t, 10, "a", "c")
	l.Release()
	r.Set("d", 9)
	r.wantWeight(t, 9, "d")
}

// Sums of any number of the greatest weights do not overflow.
func TestWeightsDoNotOverflow(t *testing.T) {
	const most = 1 << 46
	c := oncecache.MustNew(oncecache.Config[int, int]{MaxWeight: most, Weight: func(int, int) int64 { return most }})
	var leases []oncecache.Lease[int, int]
	for k := range 9 {
		// The context cannot end, so no goroutine of the cache still makes room after Acquire.
		l, err := c.Acquire(context.Background(), k, func(context.Context, int) (int, error) { return k, nil })
		if err != nil {
			t.Fatal(err)
		}
		leases = append(leases, l)
		if got := c.Stats().Weight; got != int64(k+1)*most || c.Len() != k+1 {
			t.Errorf("weight %d of %d", got, c.Len())
		}
	}
	for i := range leases {
		leases[i].Release()
	}
	if c.Set(9, 9); c.Len() != 1 || c.Stats().Weight != most {
		t.Errorf("%d left, weight %d", c.Len(), c.Stats().Weight)
	}
	if c.Delete(9); c.Stats().Weight != 0 {
		t.Errorf("weight %d of nothing", c.Stats().Weight)
	}
}

// Weight is called once for each value, and what it does wrong is the fault of the function
// that made the value, which is closed.
func TestWeightMisbehaves(t *testing.T) {
	for name, tt := range map[string]struct {
		weight func() int64
		text   string
	}{
		"below zero": {func() int64 { return -1 }, "oncecache: Config.Weight returned -1 for key k: must not be negative"},
		"panics":     {func() int64 { panic("disk full") }, "disk full"},
		"exits":      {func() int64 { runtime.Goexit(); return 0 }, "exit"},
	} {
		for _, w := range ways {
			t.Run(name+" in "+w.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					calls := 0
					var closed []int
					c := oncecache.MustNew(oncecache.Config[string, int]{
						MaxWeight: 10, Close: func(_ string, v int) error { closed = append(closed, v); return nil },
						Weight: func(_ string, v int) int64 {
							if v == 1 {
								return 1
							}
							calls++
							return tt.weight()
						},
					})
					if w.name == "Refresh" {
						c.Set("k", 1)
					}
					k := startCall(func() (int, error) { return w.ask(t.Context(), c, "k", makes(2)) })
					synctest.Wait()
					<-k.done
					said := fmt.Sprint(k.panicked, k.err)
					if name == "exits" && (k.exited || k.err == oncecache.ErrGoexit) {
						said = "exit"
					}
					if !strings.Contains(said, tt.text) || calls != 1 {
						t.Errorf("%s after %d calls of Weight", said, calls)
					}
					if !slices.Equal(closed, []int{2}) {
						t.Errorf("closed %v", closed)
					}
					if got, want := c.Stats(), c.Len(); got.Panicked != 1 || got.Created != 0 || got.Weight != int64(want) {
						t.Errorf("%+v, %d left", got, want)
					}
					if v, err := w.ask(t.Context(), c, "k", makes(1)); v != 1 || err != nil {
						t.Error(v, err)
					}
					if err := c.Close(t.Context()); err != nil && name == "exits" || oncecache.Pending(c) != 0 {
						t.Errorf("%v, %d pending", err, oncecache.Pending(c))
					}
				})
			})
		}
		t.Run(name+" in Set", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := 0
				c := oncecache.MustNew(oncecache.Config[string, int]{
					MaxWeight: 10, Close: func(string, int) error { s++; return nil }, Weight: func(string, int) int64 { return tt.weight() },
				})
				for _, set := range []func(){func() { c.Set("k", 2) }, func() { c.SetIfAbsent("k", 2) }} {
					k := startCall(func() (int, error) { set(); return 0, nil })
					<-k.done
					if name != "exits" && k.panicked != tt.text || name == "exits" && !k.exited {
						t.Errorf("%+v", k.result)
					}
				}
				if c.Len() != 0 || s != 0 || oncecache.Pending(c) != 0 {
					t.Errorf("%d values, %d closed, %d pending", c.Len(), s, oncecache.Pending(c))
				}
			})
		})
	}
}

// Reported bug 25, golang-lru, lfu-go: a callback that uses the cache deadlocks.
// Weight may use the cache, also for the key of which it is asked.
func TestT25_WeightUsesTheCache(t *testing.T) {
	for _, w := range ways {
		synctest.Test(t, func(t *testing.T) {
			var c *oncecache.Cache[string, int]
			c = oncecache.MustNew(oncecache.Config[string, int]{
				MaxWeight: 10, Close: func(string, int) error { return nil },
				Weight: func(k string, v int) int64 {
					if v != harmless {
						useAll(t, c, k)
					}
					return 1
				},
			})
			if v, err := w.ask(t.Context(), c, "k", makes(1)); v != 1 || err != nil {
				t.Errorf("%s: %d, %v", w.name, v, err)
			}
			if err := c.Close(t.Context()); err != nil || c.Stats().Weight != 0 {
				t.Errorf("%s: %v, weight %d", w.name, err, c.Stats().Weight)
			}
		})
	}
}

// At rest the weight is that of what is there, whatever many goroutines have done.
func TestStressWeights(t *testing.T) {
	const keys, bound = 40, 100
	c := oncecache.MustNew(oncecache.Config[int, int]{MaxWeight: bound, Weight: func(_, v int) int64 { return int64(v) % 120 }})
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), 1))
			for range 5000 {
				k, v := rng.IntN(keys), rng.IntN(1000)
				switch rng.IntN(6) {
				case 0, 1:
					c.Set(k, v)
				case 2:
					c.Delete(k)
				case 3:
					c.Refresh(t.Context(), k, anew(func(context.Context, int) (int, error) { return v, nil }))
				case 4:
					if l, err := c.Acquire(t.Context(), k, func(context.Context, int) (int, error) { return v, nil }); err == nil {
						l.Release()
					}
				case 5:
					c.GetOrCreate(k, func() (int, error) { return v, nil })
				}
			}
		})
	}
	all.Wait()
	// Creations whose callers could leave have goroutines of their own, which may still make room.
	var sum, weight int64
	var places, values int
	for start := time.Now(); time.Since(start) < 10*time.Second; runtime.Gosched() {
		sum, weight, places, values = 0, c.Stats().Weight, oncecache.Places(c), c.Len()
		for _, v := range c.All() {
			sum += int64(v) % 120
		}
		if weight == sum && places == values {
			break
		}
	}
	if weight != sum || sum > bound {
		t.Errorf("weight %d, the values weigh %d", weight, sum)
	}
	if places != values {
		t.Errorf("%d places, %d values", places, values)
	}
}

// A value that is too heavy evicts nothing either where Set or Delete has taken its creation out
// of the table, and has not ended it.
func TestHeavyCreationEndsWithinSetOrDelete(t *testing.T) {
	for name, begins := range map[string]func(*oncecache.Cache[string, int]) (finish func() (int, bool)){
		"Set":    func(c *oncecache.Cache[string, int]) func() (int, bool) { return oncecache.StartSet(c, "k", 1) },
		"Delete": func(c *oncecache.Cache[string, int]) func() (int, bool) { return oncecache.StartDelete(c, "k") },
	} {
		c := oncecache.MustNew(oncecache.Config[string, int]{MaxWeight: 100, Weight: func(_ string, v int) int64 { return int64(v) }})
		c.Set("a", 10)
		c.Set("b", 10)
		creator := begin(t, c, "k")
		finish := begins(c)
		creator.end <- with(1000)
		wantAll(t, []*call{creator.call}, result{value: 1000})
		if old, had := finish(); old != 0 || had {
			t.Errorf("%s reports %d, %t", name, old, had)
		}
		wantGet(t, c, "a", 10)
		wantGet(t, c, "b", 10)
		if got := c.Stats(); got.Evicted != 0 || got.Weight != 20 {
			t.Errorf("%s: %d are evicted, the weight is %d", name, got.Evicted, got.Weight)
		}
	}
}
