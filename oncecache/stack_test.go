//go:build !modelcheck

package oncecache_test

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/latchfree/latchfree/oncecache"
)

// row is a value of 40 bytes.
type row [5]uint64

func unexpectedRow(context.Context, string) (row, error) { return row{}, errRefused }

// Those who wait on new goroutines do with the stacks of 2 KiB that these begin
// with. If their contexts can end they wait for two things at once, for which the
// runtime takes half a kilobyte more: then a stack may grow once.
func TestMemoryOfAStampede(t *testing.T) {
	if runtime.GOARCH == "wasm" {
		t.Skip("the frames of WebAssembly are larger")
	}
	ctx := context.Background()
	for _, tt := range []struct {
		name string
		ask  func(c *oncecache.Cache[string, row], leaving context.Context) error
		own  int // frames that there is room for, beside those of the test
		each int // by how many bytes a stack may grow
	}{
		{"GetOrCreate", func(c *oncecache.Cache[string, row], _ context.Context) error {
			_, err := c.GetOrCreate("k", func() (row, error) { return unexpectedRow(ctx, "k") })
			return err
		}, 1, 0},
		{"GetOrCreateContext", func(c *oncecache.Cache[string, row], _ context.Context) error {
			_, err := c.GetOrCreateContext(ctx, "k", unexpectedRow)
			return err
		}, 0, 0},
		{"Acquire", func(c *oncecache.Cache[string, row], _ context.Context) error {
			lease, err := c.Acquire(ctx, "k", unexpectedRow)
			release(lease)
			return err
		}, 0, 0},
		{"Wait", func(c *oncecache.Cache[string, row], _ context.Context) error {
			_, err := c.Wait(ctx, "k")
			return err
		}, 1, 0},
		{"GetOrCreateContext of callers who may leave", func(c *oncecache.Cache[string, row], leaving context.Context) error {
			_, err := c.GetOrCreateContext(leaving, "k", unexpectedRow)
			return err
		}, 0, 4096},
	} {
		const some = 1024 // for each: those that something else came to on the way, and what nobody has yet
		if got, most := stampede(t, tt.own, tt.ask), callers*(tt.each+some); got > most {
			t.Errorf("%s: the stacks of %d waiters grow by %d bytes, want at most %d", tt.name, callers, got, most)
		}
	}
}

const callers = 1000

// stampede lets new goroutines ask for what is being created, and returns how many
// bytes their stacks take when they wait, beside those of goroutines that do nothing.
func stampede(t *testing.T, own int, ask func(c *oncecache.Cache[string, row], leaving context.Context) error) (grown int) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	synctest.Test(t, func(t *testing.T) {
		leaving, leave := context.WithCancel(t.Context())
		defer leave()
		var all sync.WaitGroup
		for _, look := range []func(){
			runtime.GC, // so many small stacks tell the runtime to begin with small ones
			func() { grown -= stacks() },
			func() { grown += stacks() },
		} {
			c := oncecache.MustNew(oncecache.Config[string, row]{Close: func(string, row) error { return nil }})
			goOn := make(chan struct{})
			create := func() (row, error) { <-goOn; return row{}, nil }
			all.Go(func() { c.GetOrCreate("k", create) })
			synctest.Wait()
			for range callers {
				all.Go(func() {
					if grown == 0 {
						<-goOn
					} else if err := under(own, ask, c, leaving); err != nil {
						t.Error(err)
					}
				})
			}
			synctest.Wait()
			look()
			close(goOn)
			all.Wait()
		}
	})
	return grown
}

// under calls ask with so many frames of its caller's own below it.
//
//go:noinline
func under(own int, ask func(*oncecache.Cache[string, row], context.Context) error, c *oncecache.Cache[string, row], leaving context.Context) (err error) {
	if own == 0 {
		return ask(c, leaving)
	}
	return under(own-1, ask, c, leaving)
}

// release is apart, so that it takes no room while its caller waits.
//
//go:noinline
func release(lease oncecache.Lease[string, row]) { lease.Release() }

// stacks returns how many bytes all stacks take.
func stacks() int {
	m := []metrics.Sample{{Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(m)
	return int(m[0].Value.Uint64())
}
