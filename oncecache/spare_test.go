//go:build !modelcheck

package oncecache_test

import (
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/latchfree/latchfree/oncecache"
)

// Each creation runs inside the one before, so that they use up the spares, and the others have
// flights. All are counted, and seen, as if they were alike.
func TestSparesRunOut(t *testing.T) {
	const depth = 200
	c := new(oncecache.Cache[int, int])
	began := time.Now()
	var nest func(k int) (int, error)
	nest = func(k int) (int, error) {
		wantCounted(t, c, 0, k+1)
		if k+1 < depth {
			if v, err := c.GetOrCreate(k+1, func() (int, error) { return nest(k + 1) }); v != k+1 || err != nil {
				t.Errorf("%d has %d, %v", k+1, v, err)
			}
			wantCounted(t, c, depth-1-k, k+1)
			return k, nil
		}
		seen := map[int]bool{}
		for f := range c.InFlight() {
			if seen[f.Key] = true; f.Since.Before(began) || f.Since.After(time.Now()) || f.Waiting != 0 {
				t.Errorf("in flight since %v: %v", began, f)
			}
		}
		if len(seen) != depth {
			t.Errorf("%d in flight, want %d", len(seen), depth)
		}
		return k, nil
	}
	if _, err := c.GetOrCreate(0, func() (int, error) { return nest(0) }); err != nil {
		t.Error(err)
	}
	wantCounted(t, c, depth, 0)
	if s := c.Stats(); s.Created != depth {
		t.Errorf("%d are created, want %d", s.Created, depth)
	}
}

// wantCounted checks how many keys of c have values, and how many creations run.
func wantCounted(t *testing.T, c *oncecache.Cache[int, int], values, running int) {
	t.Helper()
	creating, entries := oncecache.Creating(c)
	if pending := oncecache.Pending(c); c.Len() != values || creating != running || entries != values+running || pending != running {
		t.Errorf("%d values, %d entries, %d being created, %d pending, want %d and %d", c.Len(), entries, creating, pending, values, running)
	}
}

// A large cache counts its keys in parts, each on other processors, which a cache that was closed
// shares with the one in its place.
func TestClosedCacheIsEmpty(t *testing.T) {
	const goroutines, each = 20, 503
	for range 5 {
		c := new(oncecache.Cache[int, int])
		var all sync.WaitGroup
		for g := range goroutines {
			all.Go(func() {
				for k := range each {
					c.GetOrCreate(g*each+k, func() (int, error) { return k, nil })
				}
			})
		}
		all.Wait()
		wantCounted(t, c, goroutines*each, 0)
		for k := range each {
			c.Delete(k)
		}
		wantCounted(t, c, goroutines*each-each, 0)
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
		wantCounted(t, c, 0, 0)
	}
}

// What creations write in a spare is on one line, and nothing of another spare is there.
func TestSparesHaveLines(t *testing.T) {
	if strconv.IntSize == 32 {
		t.Skip("two spares are on three lines")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for procs := 1; procs <= 64; procs *= 2 {
		runtime.GOMAXPROCS(procs)
		spareOf := map[uintptr]int{}
		for i, written := range oncecache.SpareWords(new(oncecache.Cache[string, int])) {
			for _, at := range written {
				line := at / 64
				if other, shared := spareOf[line]; shared && other != i {
					t.Errorf("with %d processors, spares %d and %d are on one line", procs, other, i)
				}
				spareOf[line] = i
			}
		}
	}
}
