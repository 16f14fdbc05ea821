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

// A creation that waits for its turn, and that Delete makes the cache forget,
// does not keep its callers: they look again, and find what has come meanwhile.
func TestForgottenCreationsDoNotWait(t *testing.T) {
	forget := map[string]func(c *oncecache.Cache[string, int]){
		"Delete": func(c *oncecache.Cache[string, int]) { c.Delete("k") },
		"Clear":  func(c *oncecache.Cache[string, int]) { c.Clear() },
	}
	begin := map[string]func(t *testing.T) (c *oncecache.Cache[string, int], end func()){
		"a lease of the value before": func(t *testing.T) (*oncecache.Cache[string, int], func()) {
			c := newAlone()
			l, _ := c.Acquire(t.Context(), "k", makes(1))
			c.Delete("k")
			return c, func() { l.Release() }
		},
	}
	for of, begin := range begin {
		for name, forget := range forget {
			for _, w := range ways {
				if w.name == "Refresh" {
					continue // it has no old value, and is GetOrCreateContext
				}
				synctest.Test(t, func(t *testing.T) {
					c, end := begin(t)
					ctx, leave := context.WithTimeout(t.Context(), time.Hour)
					defer leave()
					began := time.Now()
					// Where the Refresh is ended, who begins anew may call its function before
					// Set comes: that ends when Set has come, which wins.
					set := make(chan struct{})
					waiter := startCall(func() (int, error) {
						return w.ask(ctx, c, "k", func(context.Context, string) (int, error) { <-set; return 2, nil })
					})
					synctest.Wait()
					forget(c)
					c.Set("k", 5)
					close(set)
					if r := waiter.wait(t); r.value != 5 || r.err != nil || time.Since(began) != 0 {
						t.Errorf("%s, which waits for %s, after %s and Set: %+v after %v", w.name, of, name, r, time.Since(began))
					}
					end()
					synctest.Wait()
					if err := c.Close(t.Context()); err != nil || oncecache.Pending(c) != 0 {
						t.Errorf("%s: %v, %d pending", w.name, err, oncecache.Pending(c))
					}
				})
			}
		}
	}
}

// A panic of the function of a Refresh, whose caller has left, is told by Close,
// though a creation has waited for it, which does not tell it to anyone.
func TestPanicOfRefreshBesideACreation(t *testing.T) {
	for _, heard := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var c oncecache.Cache[string, int]
			c.Set("k", 1)
			gate := make(chan struct{})
			ctx, leave := context.WithCancel(t.Context())
			refresh := startCall(func() (int, error) {
				return c.Refresh(ctx, "k", anew(func(context.Context, string) (int, error) { <-gate; panic("disk full") }))
			})
			synctest.Wait()
			oncecache.CompareAndDelete(&c, "k", 1)
			other := startCall(func() (int, error) { return c.GetOrCreateContext(t.Context(), "k", makes(2)) })
			synctest.Wait()
			if !heard {
				leave()
				refresh.wait(t)
			}
			close(gate)
			if r := other.wait(t); r.value != 2 || r.err != nil {
				t.Errorf("%+v", r)
			}
			if r := refresh.wait(t); heard != (r.panicked != nil) {
				t.Errorf("%+v", r)
			}
			synctest.Wait()
			leave()
			var p *oncecache.PanicError
			if err := c.Close(t.Context()); errors.As(err, &p) == heard {
				t.Errorf("heard %t, and Close returns %v", heard, err)
			}
		})
	}
}

// Of values that only are equal, each is closed; and one that has come back is
// closed once.
func TestEqualValuesAreClosed(t *testing.T) {
	testClosings(t, "numbers", 7, 7, 2)
	testClosings(t, "nothing", struct{}{}, struct{}{}, 2)
	testClosings(t, "arrays of numbers", [2]int{1, 2}, [2]int{1, 2}, 2)
	v := &engine{memory}
	testClosings(t, "a pointer", v, v, 1)
	testClosings(t, "an interface", any(v), any(v), 1)
	testClosings(t, "a struct", struct{ e *engine }{v}, struct{ e *engine }{v}, 1)
	testClosings(t, "pointers", v, &engine{memory}, 2)
	testClosings(t, "pointers to nothing", new(struct{}), new(struct{}), 2)
}

// testClosings makes b while a lease holds a, which was deleted.
func testClosings[V any](t *testing.T, of string, a, b V, want int) {
	closed := 0
	c := oncecache.MustNew(oncecache.Config[string, V]{Close: func(string, V) error { closed++; return nil }})
	first, _ := c.Acquire(t.Context(), "k", func(context.Context, string) (V, error) { return a, nil })
	c.Delete("k")
	second, _ := c.Acquire(t.Context(), "k", func(context.Context, string) (V, error) { return b, nil })
	first.Release()
	second.Release()
	if err := c.Close(t.Context()); err != nil || closed != want {
		t.Errorf("%s: closed %d times, want %d; %v", of, closed, want, err)
	}
}
