//go:build !modelcheck

package oncecache_test

import (
	"context"
	"fmt"
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
			"MaxWeight " + strconv.Itoa(1<<46+1) + ":"},
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
	if err := c.SetMaxWeight(1 << 46); err != nil {
		t.Error(err)
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
