//go:build modelcheck

package oncecache_test

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/tools/mc"
	"github.com/latchfree/latchfree/oncecache"
)

func makesOne(context.Context, int) (int, error) { return 1, nil }

// closeAtOnce closes c with a context that has ended, and returns what is named.
func closeAtOnce(m *mc.M, c *oncecache.Cache[int, int]) (creating, leased, closing int) {
	ctx, end := atomics.WithCancel(context.Background())
	end()
	var p *oncecache.PendingError
	if err := c.Close(ctx); errors.As(err, &p) {
		return len(p.Creating), len(p.Leased), len(p.Closing)
	} else if err != nil {
		m.Failf("closed with %v", err)
	}
	return 0, 0, 0
}

// A lease is named, whoever has removed its value, and when: before, while, or
// after its creation ended.
func TestProtocolsOfNames(t *testing.T) {
	for name, removes := range map[string]func(m *mc.M, c *oncecache.Cache[int, int]){
		"Delete": func(_ *mc.M, c *oncecache.Cache[int, int]) { c.Delete(1) },
		"Close":  func(m *mc.M, c *oncecache.Cache[int, int]) { closeAtOnce(m, c) },
	} {
		t.Run(name, func(t *testing.T) {
			mc.Check(t, mc.Config{Operations: "PendingError: Acquire ∥ " + name}, func(m *mc.M) {
				c := oncecache.MustNew(oncecache.Config[int, int]{Close: func(int, int) error { return nil }})
				c.Len()
				var l oncecache.Lease[int, int]
				var err error
				m.Go(func() { l, err = c.Acquire(context.Background(), 1, makesOne) })
				m.Go(func() { removes(m, c) })
				m.Final(func() {
					creating, leased, closing := closeAtOnce(m, c)
					if err == nil && leased != 1 || err != nil && leased != 0 || creating+closing != 0 {
						m.Failf("named %d, %d, %d after Acquire returned %v", creating, leased, closing, err)
					}
					l.Release()
				})
			})
		})
	}
}

// A lease that has ended is not named, though its value was removed meanwhile.
func TestEndedLeasesAreNotNamed(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "PendingError: Acquire, Release ∥ Delete"}, func(m *mc.M) {
		c := oncecache.MustNew(oncecache.Config[int, int]{Close: func(int, int) error { return nil }})
		c.Set(1, 1)
		m.Go(func() {
			l, err := c.Acquire(context.Background(), 1, makesOne)
			if err != nil {
				m.Failf("%v", err)
			}
			l.Release()
		})
		m.Go(func() { c.Delete(1) })
		m.Final(func() {
			if names := oncecache.Named(c); len(names) != 0 {
				m.Failf("%v are named", names)
			}
		})
	})
}

// A value whose Close function hangs is named, from the moment at which Close has
// queued it.
func TestClosingIsNamed(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "PendingError: Close(ended)"}, func(m *mc.M) {
		hang := atomics.MakeEvent()
		c := oncecache.MustNew(oncecache.Config[int, int]{Close: func(int, int) error { hang.Wait(); return nil }})
		c.Set(1, 1)
		m.Go(func() {
			if _, _, closing := closeAtOnce(m, c); closing != 1 {
				m.Failf("%d values are named", closing)
			}
			hang.Fire()
		})
	})
}

// Who comes too late for a value that is being evicted does not close it.
func TestAcquireClosesNothing(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "MaxEntries is 1: Acquire ∥ GetOrCreate of another key"}, func(m *mc.M) {
		c := oncecache.MustNew(oncecache.Config[int, int]{MaxEntries: 1, Close: func(int, int) error {
			if s := string(debug.Stack()); strings.Contains(s, ".Acquire(") {
				m.Failf("%s", fmt.Sprint("closed by Acquire: ", s))
			}
			return nil
		}})
		c.GetOrCreateContext(context.Background(), 1, makesOne)
		m.Go(func() { c.Acquire(context.Background(), 1, makesOne) })
		m.Go(func() { c.GetOrCreateContext(context.Background(), 2, makesOne) })
	})
}
