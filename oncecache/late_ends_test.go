//go:build !modelcheck

package oncecache_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/oncecache"
)

// An error that comes after Set has ended its creation is nobody's, and takes up no room.
func TestErrorThatComesAfterSetEvictsNothing(t *testing.T) {
	c := oncecache.MustNew(oncecache.Config[int, int]{MaxEntries: 1, ErrorTTL: -1})
	v, err := c.GetOrCreate(1, func() (int, error) {
		c.Set(1, 10)
		return 0, errors.New("connection refused")
	})
	if v != 10 || err != nil {
		t.Errorf("%d, %v", v, err)
	}
	if _, ok := c.Get(1); !ok {
		t.Error("the value of Set is evicted")
	}
}

// A call that ends in a panic has not used the value that Set has given to its creation.
func TestCallThatPanicsUsesNoValue(t *testing.T) {
	c := oncecache.MustNew(oncecache.Config[int, int]{MaxEntries: 2})
	panicOf(func() {
		_, _ = c.Acquire(context.Background(), 1, func(context.Context, int) (int, error) {
			c.Set(1, 10)
			panic("no")
		})
	})
	c.Set(2, 20)
	c.Set(3, 30)
	if _, ok := c.Get(1); ok {
		t.Error("the oldest stays, though nobody has used it")
	}
}

// A Refresh that has timed out takes nothing away, however heavy the value is that it makes.
func TestHeavyValueThatComesTooLateLeavesTheOldOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := oncecache.MustNew(oncecache.Config[int, int]{
			MaxWeight: 5, Weight: func(_, v int) int64 { return int64(v) }, CreateTimeout: time.Second,
		})
		c.Set(1, 1)
		_, err := c.Refresh(context.Background(), 1, func(context.Context, int, int, bool) (int, error) {
			time.Sleep(2 * time.Second)
			return 9, nil
		})
		if !errors.Is(err, oncecache.ErrCreateTimeout) {
			t.Error(err)
		}
		if _, ok := c.Get(1); !ok {
			t.Error("the old value has left")
		}
	})
}

// A value that is set again with a time that is over leaves nothing of a Refresh in its place.
func TestVeryValueThatIsOverEndsItsRefresh(t *testing.T) {
	ttl := time.Hour
	c := oncecache.MustNew(oncecache.Config[int, int]{
		TTLFunc: func(int, int) time.Duration { return ttl },
		Close:   func(int, int) error { return nil },
	})
	c.Set(1, 1)
	_, _ = c.Refresh(context.Background(), 1, func(context.Context, int, int, bool) (int, error) {
		ttl = 0
		c.Set(1, 1)
		return 9, nil
	})
	if n := c.Len(); n != 0 {
		t.Errorf("%d keys", n)
	}
	if err := c.Close(context.Background()); err != nil {
		t.Error(err)
	}
}
