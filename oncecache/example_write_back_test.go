//go:build !modelcheck

package oncecache_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/latchfree/latchfree/oncecache"
)

// Counters are changed in the cache, and written back when they leave it: by Close, so that the next
// creation of a key, which reads what was written, begins after that.
func ExampleConfig_close() {
	type counter struct {
		sync.Mutex
		n int
	}
	var store sync.Map // of the counts by page
	counters := oncecache.MustNew(oncecache.Config[string, *counter]{
		MaxEntries:        1,
		CloseBeforeCreate: true,
		Close: func(page string, c *counter) error {
			store.Store(page, c.n) // no lease holds it: nobody else has it
			return nil
		},
	})
	load := func(_ context.Context, page string) (*counter, error) {
		n, _ := store.LoadOrStore(page, 0)
		return &counter{n: n.(int)}, nil
	}
	view := func(page string) error {
		lease, err := counters.Acquire(context.Background(), page, load)
		if err != nil {
			return err
		}
		defer lease.Release() // not written before
		c := lease.Value()
		c.Lock()
		defer c.Unlock()
		c.n++
		return nil
	}
	for _, page := range []string{"home", "news", "home", "news", "home"} {
		if err := view(page); err != nil {
			fmt.Println(err)
		}
	}
	err := counters.Close(context.Background())
	home, _ := store.Load("home")
	news, _ := store.Load("news")
	fmt.Println(home, news, err)
	// Output: 3 2 <nil>
}
