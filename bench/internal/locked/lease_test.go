package locked_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/bench/internal/locked"
	"github.com/latchfree/latchfree/oncecache"
)

// lessor is what the caches with leases have in common.
type lessor struct {
	acquire func(k string, v int, err error) (value func() int, release func(), _ error)
	remove  func(k string)
}

// lessors returns a fresh one of each kind, which reports what it closes.
func lessors(closed func(int)) map[string]lessor {
	ours := oncecache.MustNew(oncecache.Config[string, int]{Close: func(_ string, v int) error { closed(v); return nil }})
	theirs := &locked.LeaseCache[string, int]{Close: func(_ string, v int) { closed(v) }}
	return map[string]lessor{
		"latchfree": {func(k string, v int, err error) (func() int, func(), error) {
			l, err := ours.Acquire(context.Background(), k, func(context.Context, string) (int, error) { return v, err })
			return l.Value, l.Release, err
		}, func(k string) { ours.Delete(k) }},
		"mutex": {func(k string, v int, err error) (func() int, func(), error) {
			l, err := theirs.Acquire(k, gives(v, err))
			return l.Value, l.Release, err
		}, func(k string) { theirs.Delete(k) }},
	}
}

func TestLeasesCloseAfterTheLastUser(t *testing.T) {
	for _, impl := range []string{"latchfree", "mutex"} {
		t.Run(impl, func(t *testing.T) {
			var closed []int
			c := lessors(func(v int) { closed = append(closed, v) })[impl]
			_, _, err := c.acquire("k", 0, errors.New("connection refused"))
			require.Error(t, err)

			value, first, err := c.acquire("k", 1, nil)
			require.NoError(t, err)
			assert.Equal(t, 1, value())
			_, second, err := c.acquire("k", 2, nil)
			require.NoError(t, err)
			c.remove("k")
			c.remove("k")
			first()
			first()
			assert.Empty(t, closed, "in use")
			value, third, err := c.acquire("k", 3, nil)
			require.NoError(t, err)
			assert.Equal(t, 3, value(), "it was deleted")
			second()
			assert.Equal(t, []int{1}, closed)
			third()
			assert.Equal(t, []int{1}, closed, "it is still the key's")
			c.remove("k")
			assert.Equal(t, []int{1, 3}, closed)
		})
	}
}

// What goroutines use is not closed under them, and all is closed in the end.
func TestLeasesUnderConcurrency(t *testing.T) {
	const each = 2000
	for _, impl := range []string{"latchfree", "mutex"} {
		t.Run(impl, func(t *testing.T) {
			var made atomic.Int32
			isClosed := make([]atomic.Bool, 4*each+1)
			c := lessors(func(v int) { isClosed[v].Store(true) })[impl]
			var done sync.WaitGroup
			for range 4 {
				done.Go(func() {
					for i := range each {
						value, release, err := c.acquire("k", int(made.Add(1)), nil)
						assert.NoError(t, err)
						v := value()
						if i%3 == 0 {
							c.remove("k")
						}
						assert.False(t, isClosed[v].Load(), "closed in use")
						release()
					}
				})
			}
			done.Wait()
			c.remove("k")
			value, release, err := c.acquire("k", 0, nil)
			require.NoError(t, err)
			assert.Zero(t, value(), "the last one is gone")
			release()
		})
	}
}
