//go:build modelcheck

package oncecache_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/tools/mc"
	"github.com/latchfree/latchfree/oncecache"
)

// What a cache keeps of all keys together: calls for different keys meet there.

// A create function that still runs when Delete and Close have returned is
// cancelled, whichever of the two was first.
func TestCloseFindsHiddenCreations(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "GetOrCreateContext(in it Delete) ∥ Close(ended)"}, func(m *mc.M) {
		c := new(cache)
		var closed atomics.Bool
		ended, end := atomics.WithCancel(context.Background())
		end()
		m.Go(func() {
			c.GetOrCreateContext(context.Background(), key, func(ctx context.Context, _ string) (int, error) {
				c.Delete(key)
				if closed.Load() && ctx.Err() == nil {
					m.Failf("Delete and Close have returned, and the creation is not cancelled")
				}
				return 1, nil
			})
		})
		m.Go(func() {
			c.Close(ended)
			closed.Store(true)
		})
	})
}

// A creation that Delete has hidden is kept no longer than it runs, whichever of
// the two comes first.
func TestHiddenCreationsAreLetGo(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "GetOrCreateContext ∥ Delete"}, func(m *mc.M) {
		c := new(cache)
		m.Go(func() {
			c.GetOrCreateContext(context.Background(), key, func(context.Context, string) (int, error) { return 1, nil })
		})
		m.Go(func() { c.Delete(key) })
		m.Final(func() {
			if n := oncecache.Hidden(c); n != 0 {
				m.Failf("%d creations that have ended are kept", n)
			}
		})
	})
}

// All creations that Delete has hidden are cancelled by Close, and none is lost
// because others are hidden at the same moment, or because the function that
// closes another value ends Close's goroutine.
func TestCloseFindsAllHiddenCreations(t *testing.T) {
	mc.Check(t, twice.of("GetOrCreateContext(in it Delete), of a ∥ the same of b ∥ Close(ended) when both are deleted"), func(m *mc.M) {
		c := oncecache.MustNew(oncecache.Config[string, int]{Close: func(k string, _ int) error {
			if k == "c" {
				runtime.Goexit()
			}
			return nil
		}})
		c.Set("c", 7)
		ended, end := atomics.WithCancel(context.Background())
		end()
		var hidden atomics.WaitGroup
		hidden.Add(2)
		closed := atomics.MakeEvent()
		for _, k := range []string{"a", "b"} {
			m.Go(func() {
				c.GetOrCreateContext(context.Background(), k, func(ctx context.Context, k string) (int, error) {
					c.Delete(k)
					hidden.Done()
					closed.Wait()
					if ctx.Err() == nil {
						m.Failf("Close has returned, and the creation of %s is not cancelled", k)
					}
					return 1, nil
				})
			})
		}
		m.Go(func() {
			defer closed.Fire()
			hidden.Wait()
			c.Close(ended)
		})
	})
}

// A Close function that always fails: Close returns each of the errors, or
// counts it if there are too many. If it does not wait, these are the errors so
// far.
func TestProtocolsOfTroubles(t *testing.T) {
	for _, before := range []int{0, maxTroubles - 1, maxTroubles} {
		after := fmt.Sprintf("after %d errors: ", before)
		t.Run(fmt.Sprint("two, after ", before), func(t *testing.T) {
			mc.Check(t, mc.Config{Operations: after + "Delete(a) ∥ Delete(b)"}, func(m *mc.M) {
				c := troubled(before, "a", "b")
				m.Go(func() { c.Delete("a") })
				m.Go(func() { c.Delete("b") })
				m.Final(func() {
					err := c.Close(context.Background())
					if n := troubles(m, err, nil); n != before+2 {
						m.Failf("%d errors, want %d: %v", n, before+2, err)
					}
				})
			})
		})
		t.Run(fmt.Sprint("Close, after ", before), func(t *testing.T) {
			mc.Check(t, mc.Config{Operations: after + "Delete(a) ∥ Close(∞)"}, func(m *mc.M) {
				c := troubled(before, "a")
				m.Go(func() { c.Delete("a") })
				m.Go(func() {
					err := c.Close(context.Background())
					if n := troubles(m, err, nil); n != before+1 {
						m.Failf("%d errors, want %d: %v", n, before+1, err)
					}
				})
			})
		})
		t.Run(fmt.Sprint("Close that does not wait, after ", before), func(t *testing.T) {
			mc.Check(t, mc.Config{Operations: after + "Delete(a) ∥ Close(ended)"}, func(m *mc.M) {
				c := troubled(before, "a")
				ended, end := atomics.WithCancel(context.Background())
				end()
				m.Go(func() { c.Delete("a") })
				m.Go(func() {
					err := c.Close(ended)
					if n := troubles(m, err, context.Canceled); n != before && n != before+1 {
						m.Failf("%d errors, want %d or one more: %v", n, before, err)
					}
				})
			})
		})
	}
}

// maxTroubles is how many errors a cache keeps.
const maxTroubles = 100

// troubled returns a cache with values for keys, whose Close function always
// fails and has done so already.
func troubled(before int, keys ...string) *cache {
	c := oncecache.MustNew(oncecache.Config[string, int]{Close: func(_ string, v int) error { return refused(v) }})
	for v := range before {
		c.Set("k", v)
	}
	c.Delete("k")
	for i, k := range keys {
		c.Set(k, before+i)
	}
	return c
}

// troubles returns how many errors of the Close function are in err, with
// those that it only counts. Beside them there may be one that is gaveUp.
func troubles(m *mc.M, err, gaveUp error) (n int) {
	if _, joined := err.(interface{ Unwrap() []error }); !joined {
		if !errors.Is(err, gaveUp) {
			m.Failf("Close returns %v", err)
		}
		return 0
	}
	told := map[error]bool{}
	for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
		more := 0
		switch _, isRefused := e.(refused); {
		case isRefused && !told[e]:
			told[e] = true
			n++
		case errors.Is(e, gaveUp):
		default:
			if _, err := fmt.Sscanf(e.Error(), "oncecache: and %d more errors", &more); err != nil || more == 0 {
				m.Failf("Close returns %v", e)
			}
			n += more
		}
	}
	if n == 0 {
		m.Failf("Close joins %v with nothing", err)
	}
	return n
}
