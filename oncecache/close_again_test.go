//go:build !modelcheck

package oncecache_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/latchfree/latchfree/oncecache"
)

// Whoever comes after Close finds what Close has left, and may close
// values too: so many that the table of claims grows.
func TestAfterACloseThatHasNotWaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended, end := context.WithCancel(t.Context())
		end()
		hang := make(chan struct{})
		c := oncecache.MustNew(oncecache.Config[int, int]{CloseBeforeCreate: true, Close: func(int, int) error { <-hang; return nil }})
		for k := range 30 {
			c.Set(k, k)
		}
		c.Close(ended)
		c.Clear()
		var late sync.WaitGroup
		for k := range 500 {
			late.Go(func() { c.Set(k, -k) })
		}
		synctest.Wait()
		close(hang)
		late.Wait()
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if n := oncecache.Claims(c); n != 0 {
			t.Errorf("%d claims are left", n)
		}
	})
}
