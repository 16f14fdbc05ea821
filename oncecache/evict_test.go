package oncecache_test

import (
	"context"
	"fmt"
	"slices"
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
	var closed []int
	c := oncecache.MustNew(oncecache.Config[int, int]{MaxEntries: 2, Close: func(k, _ int) error {
		closed = append(closed, k)
		return nil
	}})
	same := func(_ context.Context, k int) (int, error) { return k, nil }
	var leases [5]oncecache.Lease[int, int]
	for k := range leases {
		var err error
		if leases[k], err = c.Acquire(t.Context(), k, same); err != nil {
			t.Fatal(err)
		}
	}
	if c.Len() != 5 || closed != nil {
		t.Fatalf("%d left, %v closed", c.Len(), closed)
	}
	for i := range leases {
		leases[i].Release()
	}
	c.Set(9, 9)
	if c.Len() != 2 || len(closed) != 4 {
		t.Errorf("%d left, %v closed", c.Len(), closed)
	}
	if err := c.Close(t.Context()); err != nil || len(closed) != 6 {
		t.Errorf("%v, %v closed", err, closed)
	}
}

func TestIdleTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		closed := map[string]time.Duration{}
		began := time.Now()
		c := oncecache.MustNew(oncecache.Config[string, int]{IdleTimeout: time.Minute, Close: func(k string, _ int) error {
			closed[k] = time.Since(began)
			return nil
		}})
		c.Set("idle", 1)
		c.Set("used", 2)
		l, _ := c.Acquire(t.Context(), "leased", func(context.Context, string) (int, error) { return 3, nil })
		for range 10 {
			time.Sleep(29 * time.Second)
			c.Get("used")
		}
		if got := sorted(c); fmt.Sprint(got) != "[leased used]" {
			t.Fatalf("%v are left", got)
		}
		if d := closed["idle"]; d < time.Minute || d > 91*time.Second {
			t.Errorf("closed after %v", d)
		}
		l.Release()
		time.Sleep(3 * time.Minute)
		if c.Len() != 0 || len(closed) != 3 {
			t.Errorf("%d left, closed %v", c.Len(), closed)
		}
	})
}
