//go:build !modelcheck

package oncecache_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"testing/synctest"

	"github.com/latchfree/latchfree/oncecache"
)

// A value that comes again while it is there stays open, and another one closes
// it, whichever type it has.
func TestTheVeryValueStays(t *testing.T) {
	one, other := &engine{"a"}, &engine{"a"}
	testVeryValue(t, "pointers", one, other)
	testVeryValue[any](t, "interfaces", one, other)
	testVeryValue[any](t, "slices", []int{1}, []int{1})
	testVeryValue[any](t, "maps", map[int]int{}, map[int]int{})
	testVeryValue[any](t, "functions", func() int { return one.n() }, func() int { return other.n() })
	testVeryValue[any](t, "structs", struct{ e *engine }{one}, struct{ e *engine }{other})
	testVeryValue(t, "numbers", 1, 2)
}

func (e *engine) n() int { return len(e.url) }

func testVeryValue[V any](t *testing.T, of string, v, other V) {
	for name, again := range map[string]func(t *testing.T, c *oncecache.Cache[string, V], v V) (V, error){
		"Set": func(t *testing.T, c *oncecache.Cache[string, V], v V) (V, error) {
			old, replaced := c.Set("k", v)
			if !replaced {
				t.Errorf("%s: Set has replaced nothing", of)
			}
			return old, nil
		},
		"Refresh": func(t *testing.T, c *oncecache.Cache[string, V], v V) (V, error) {
			return c.Refresh(t.Context(), "k", anew(func(context.Context, string) (V, error) { return v, nil }))
		},
		"Reload": func(t *testing.T, c *oncecache.Cache[string, V], v V) (V, error) {
			return c.Refresh(t.Context(), "k", func(_ context.Context, _ string, old V, exists bool) (V, error) {
				if !exists {
					t.Errorf("%s: Reload has no old value", of)
				}
				return v, nil
			})
		},
		"Reload, the old one": func(t *testing.T, c *oncecache.Cache[string, V], v V) (V, error) {
			return c.Refresh(t.Context(), "k", func(_ context.Context, _ string, old V, _ bool) (V, error) {
				if reflect.TypeFor[V]().Kind() == reflect.Pointer && any(old) == any(v) {
					return old, nil
				}
				return v, nil
			})
		},
		"Refresh, Set meanwhile": func(t *testing.T, c *oncecache.Cache[string, V], v V) (V, error) {
			return c.Refresh(t.Context(), "k", anew(func(context.Context, string) (V, error) { c.Set("k", v); return v, nil }))
		},
	} {
		t.Run(fmt.Sprint(of, ", ", name), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := oncecache.MustNew(oncecache.Config[string, V]{Close: func(string, V) error { return nil }})
				c.Set("k", v)
				for range 3 {
					if _, err := again(t, c, v); err != nil {
						t.Error(err)
					}
					synctest.Wait()
					if n := c.Stats().Closed; n != 0 {
						t.Fatalf("%d are closed", n)
					}
				}
				if _, ok := c.Get("k"); !ok {
					t.Error("the value is gone")
				}
				if _, err := again(t, c, other); err != nil {
					t.Error(err)
				}
				synctest.Wait()
				if n := c.Stats().Closed; n != 1 {
					t.Errorf("%d are closed when another value has come", n)
				}
				if err := c.Close(t.Context()); err != nil || c.Stats().Closed != 2 || oncecache.Pending(c) != 0 {
					t.Errorf("%v, %+v, %d pending", err, c.Stats(), oncecache.Pending(c))
				}
			})
		})
	}
}

// Reload tells its function what is there, and ErrNotModified leaves it there.
func TestReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop()
		reload := func(wantOld int, wantExists bool, v int, err error) (int, error) {
			t.Helper()
			return s.Refresh(t.Context(), "k", func(_ context.Context, k string, old int, exists bool) (int, error) {
				if k != "k" || old != wantOld || exists != wantExists {
					t.Errorf("Reload of %q has %d, %t, want %d, %t", k, old, exists, wantOld, wantExists)
				}
				return v, err
			})
		}
		if v, err := reload(0, false, 9, errRefused); v != 0 || err != errRefused {
			t.Error(v, err)
		}
		wantAbsent(t, s.Cache, "k")
		if v, err := reload(0, false, 1, nil); v != 1 || err != nil {
			t.Error(v, err)
		}
		for _, same := range []error{oncecache.ErrNotModified, fmt.Errorf("status 304: %w", oncecache.ErrNotModified)} {
			if v, err := reload(1, true, 9, same); v != 1 || err != nil {
				t.Error(v, err)
			}
			if v, err := s.Refresh(t.Context(), "k", anew(func(context.Context, string) (int, error) { return 9, same })); v != 1 || err != nil {
				t.Error(v, err)
			}
		}
		if v, err := reload(1, true, 9, errRefused); v != 0 || err != errRefused {
			t.Error(v, err)
		}
		synctest.Wait()
		wantGet(t, s.Cache, "k", 1)
		s.wantClosed(t)
		if v, err := reload(1, true, 2, nil); v != 2 || err != nil {
			t.Error(v, err)
		}
		synctest.Wait()
		s.wantClosed(t, 1)

		// The old value stays open while the function has it.
		v, err := s.Refresh(t.Context(), "k", func(_ context.Context, _ string, old int, _ bool) (int, error) {
			s.Delete("k")
			s.wantClosed(t, 1)
			return 3, nil
		})
		synctest.Wait()
		if v != 3 || err != nil {
			t.Error(v, err)
		}
		if err := s.Close(t.Context()); err != nil || len(s.closed) != 3 || oncecache.Pending(s.Cache) != 0 {
			t.Errorf("%v, closed %v", err, s.closed)
		}
		if got := s.Stats(); got.Created != 7 || got.Failed != 2 {
			t.Errorf("%+v", got)
		}
	})
}
