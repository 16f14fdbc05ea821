//go:build !modelcheck

package oncecache_test

import (
	"context"
	"testing"

	"github.com/latchfree/latchfree/oncecache"
)

// Whoever comes after Close, which has not waited, finds the books of what Close
// has left: it may end that.
func TestAfterACloseThatHasNotWaited(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	for range 300 {
		c := oncecache.MustNew(oncecache.Config[int, int]{CloseBeforeCreate: true, Close: func(int, int) error { return nil }})
		for k := range 12 {
			c.Set(k, k)
		}
		c.Close(ended)
		c.Clear()
		for k := range 3 {
			c.Set(k, -k)
			c.Delete(k)
		}
		if err := c.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := oncecache.Claims(c); n != 0 {
			t.Fatalf("%d claims are left", n)
		}
	}
}
