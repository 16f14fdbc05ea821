//go:build !modelcheck

package oncecache_test

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

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

// SetIfAbsent returns the value that the key has then, whatever the key was, and stores its own only
// where there was none.
func TestSetIfAbsentActual(t *testing.T) {
	ctx := context.Background()
	closing := func(string, int) error { return nil }
	hour := config{TTL: time.Hour, Close: closing}
	refresh := func(c *oncecache.Cache[string, int]) {
		c.Set("k", 1)
		time.Sleep(45 * time.Minute)
		go c.Refresh(ctx, "k", anew(func(context.Context, string) (int, error) { return halfAnHour() }))
		synctest.Wait()
	}
	for name, tt := range map[string]struct {
		config
		before func(c *oncecache.Cache[string, int])
		actual int
		stored bool
		after  int // the value of the key then; 0: none
	}{
		"absent":       {hour, func(*oncecache.Cache[string, int]) {}, 7, true, 7},
		"of a zero":    {config{}, func(*oncecache.Cache[string, int]) {}, 7, true, 7},
		"present":      {hour, func(c *oncecache.Cache[string, int]) { c.Set("k", 1) }, 1, false, 1},
		"of the value": {hour, func(c *oncecache.Cache[string, int]) { c.Set("k", 7) }, 7, false, 7},
		"leased": {hour, func(c *oncecache.Cache[string, int]) {
			l, _ := c.Acquire(ctx, "k", makes(1))
			time.AfterFunc(time.Minute, l.Release)
		}, 1, false, 1},
		"created":       {hour, func(c *oncecache.Cache[string, int]) { c.GetOrCreate("k", with(1)) }, 1, false, 1},
		"being created": {hour, func(c *oncecache.Cache[string, int]) { go c.GetOrCreate("k", halfAnHour); synctest.Wait() }, 0, false, 0},
		"being created, and deleted": {hour, func(c *oncecache.Cache[string, int]) {
			go c.GetOrCreate("k", halfAnHour)
			synctest.Wait()
			c.Delete("k")
		}, 7, true, 7},
		"being refreshed": {hour, refresh, 1, false, 1},
		"being refreshed, and expired": {hour, func(c *oncecache.Cache[string, int]) {
			refresh(c)
			time.Sleep(15 * time.Minute)
			synctest.Wait()
		}, 0, false, 0},
		"being refreshed, and deleted": {hour, func(c *oncecache.Cache[string, int]) { refresh(c); c.Delete("k") }, 7, true, 7},
		"failed":                       {hour, func(c *oncecache.Cache[string, int]) { c.GetOrCreate("k", failing) }, 7, true, 7},
		"an error is kept": {config{ErrorTTL: -1}, func(c *oncecache.Cache[string, int]) {
			c.GetOrCreate("k", failing)
		}, 7, true, 7},
		"expired": {hour, func(c *oncecache.Cache[string, int]) {
			c.Set("k", 1)
			time.Sleep(time.Hour)
			synctest.Wait()
		}, 7, true, 7},
		"expired at once": {config{TTLFunc: func(string, int) time.Duration { return 0 }}, func(c *oncecache.Cache[string, int]) {
			c.Set("k", 1)
		}, 7, true, 0},
		"deleted": {hour, func(c *oncecache.Cache[string, int]) { c.Set("k", 1); c.Delete("k") }, 7, true, 7},
		"deleted, and leased": {config{Close: closing, CloseBeforeCreate: true}, func(c *oncecache.Cache[string, int]) {
			l, _ := c.Acquire(ctx, "k", makes(1))
			c.Delete("k")
			time.AfterFunc(time.Minute, l.Release)
		}, 7, true, 7},
		"too heavy": {config{MaxWeight: 5, Weight: func(_ string, v int) int64 { return int64(v) }}, func(*oncecache.Cache[string, int]) {}, 0, false, 0},
		"too heavy beside a value": {config{MaxWeight: 5, Weight: func(_ string, v int) int64 { return int64(v) }},
			func(c *oncecache.Cache[string, int]) { c.Set("k", 1) }, 1, false, 1},
		"closed": {hour, func(c *oncecache.Cache[string, int]) { c.Set("k", 1); c.Close(ctx) }, 0, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := oncecache.MustNew(tt.config)
				tt.before(c)
				if actual, stored := c.SetIfAbsent("k", 7); actual != tt.actual || stored != tt.stored {
					t.Errorf("%d, %t, want %d, %t", actual, stored, tt.actual, tt.stored)
				}
				if v, ok := c.Peek("k"); v != tt.after || ok != (tt.after != 0) {
					t.Errorf("the key has %d, %t, want %d", v, ok, tt.after)
				}
				time.Sleep(24 * time.Hour)
				c.Close(ctx)
			})
		})
	}
}

// A key that holds a NaN is never there, and stores nothing.
func TestSetIfAbsentActualOfNaN(t *testing.T) {
	var c oncecache.Cache[float64, int]
	for range 2 {
		if actual, stored := c.SetIfAbsent(nan, 7); actual != 0 || stored {
			t.Errorf("%d, %t", actual, stored)
		}
	}
}

// A value that is not stored is not closed, and that which is there stays open.
func TestSetIfAbsentClosesNothing(t *testing.T) {
	c := oncecache.MustNew(config{Close: func(_ string, v int) error {
		if v != 1 {
			t.Errorf("%d is closed", v)
		}
		return nil
	}})
	c.Set("k", 1)
	if actual, stored := c.SetIfAbsent("k", 7); actual != 1 || stored {
		t.Errorf("%d, %t", actual, stored)
	}
	if n := c.Stats().Closed; n != 0 {
		t.Errorf("%d values are closed", n)
	}
	c.Close(t.Context())
	c.SetIfAbsent("k", 8)
	if n := c.Stats().Closed; n != 1 {
		t.Errorf("%d values are closed in the end", n)
	}
}

// Of many calls at once one stores its value, and all return that.
func TestSetIfAbsentAgrees(t *testing.T) {
	const calls = 8
	for name, settings := range map[string]config{
		"plain":      {},
		"Close":      {Close: func(string, int) error { return nil }},
		"MaxEntries": {MaxEntries: 10},
	} {
		t.Run(name, func(t *testing.T) {
			c := oncecache.MustNew(settings)
			for range 50 {
				var actual [calls]int
				var wins atomic.Int32
				together(calls, func(i int) {
					v, stored := c.SetIfAbsent("k", i+1)
					if actual[i] = v; stored {
						if wins.Add(1); v != i+1 {
							t.Errorf("%d is stored instead of %d", v, i+1)
						}
					}
				})
				v, _ := c.Delete("k")
				for _, got := range actual {
					if got != v {
						t.Fatalf("the key has %d, and calls return %v", v, actual)
					}
				}
				if wins.Load() != 1 {
					t.Errorf("%d calls have stored their values", wins.Load())
				}
			}
		})
	}
}

// pool has padding behind its first field, and a map, which == does not compare.
type pool struct {
	ready bool
	conns map[string]int
}

// wide has padding in three places, and is copied as a whole, with that.
type wide struct {
	pool
	small  int8
	f      func() int
	kind   uint16
	list   []int
	end    byte
	number float64
	last   bool
}

// A value is the same if all of its parts are, whatever lies between these: it stays open when it
// comes again, and is closed once when another one has come.
func TestSameParts(t *testing.T) {
	m, list, ch := map[string]int{}, []int{1, 2, 3}, make(chan int)
	one, two := new(int), new(int)
	of := func(p *int) func() int { return func() int { return *p } }
	f, g := of(one), of(two)
	reader := strings.NewReader("a")

	// All kinds that are a part by themselves.
	testSame[any](t, "bool", true, true, false)
	testSame[any](t, "int8", int8(-1), int8(-1), int8(1))
	testSame[any](t, "uintptr", uintptr(1), uintptr(1), uintptr(2))
	testSame[any](t, "float32", float32(0.5), float32(0.5), float32(0.25))
	testSame[any](t, "zeros of both signs", 0.0, math.Copysign(0, -1), 1)
	testSame[any](t, "NaN", math.NaN(), math.NaN(), math.Float64frombits(math.Float64bits(math.NaN())+1))
	testSame[any](t, "complex", complex(math.NaN(), 1), complex(math.NaN(), 1), complex(math.NaN(), 2))
	testSame[any](t, "string", "ab", strings.Clone("ab"), "abc")
	testSame[any](t, "pointer", one, one, two)
	testSame[any](t, "unsafe.Pointer", unsafe.Pointer(one), unsafe.Pointer(one), unsafe.Pointer(two))
	testSame[any](t, "channel", ch, ch, make(chan int))
	testSame[any](t, "map", m, m, map[string]int{})
	testSame[any](t, "slice", list, list, []int{1, 2, 3})
	testSame[any](t, "part of a slice", list[:2], list[:2], list[:3])
	testSame[any](t, "slice with other room", list[:2], list[:2:2], list[1:2])
	testSame[any](t, "slice, nil and empty", nil, nil, []int{})
	testSame[any](t, "closure", f, f, g)
	testSame[any](t, "function and nil", f, f, nil)
	length := reader.Len
	testSame[any](t, "method value", length, length, strings.NewReader("a").Len)

	// Closures of one literal in everything that can hold one.
	type hidden struct{ f func() int }
	type deep struct {
		_     bool
		boxed struct{ any }
	}
	testSame[any](t, "any of closures", f, f, g)
	testSame[any](t, "array of closures", [2]func() int{f, f}, [2]func() int{f, f}, [2]func() int{f, g})
	testSame[any](t, "field", hidden{f}, hidden{f}, hidden{g})
	testSame[any](t, "field in an interface in a field", deep{boxed: struct{ any }{hidden{f}}},
		deep{boxed: struct{ any }{hidden{f}}}, deep{boxed: struct{ any }{hidden{g}}})

	// Interfaces.
	testSame[any](t, "any of slices", list, list, list[:1])
	testSame[any](t, "any of number types", 1, 1, int8(1))
	testSame[any](t, "any of NaN", math.NaN(), math.NaN(), 1.0)
	testSame[any](t, "any, nil", nil, nil, 0)
	testSame[any](t, "nil pointers in any", (*int)(nil), (*int)(nil), nil)
	testSame[any](t, "pointers of a package", reader, reader, strings.NewReader("a"))
	testSame[any](t, "any of structs", pool{true, m}, pool{true, m}, pool{false, m})

	// Arrays and structs, part by part.
	testSame(t, "padding", wide{pool: pool{true, m}}, wide{pool: pool{true, m}}, wide{pool: pool{true, map[string]int{}}})
	testSame[any](t, "padding, the first field", pool{true, m}, pool{true, m}, pool{false, m})
	testSame[any](t, "array", [3]pool{2: {true, m}}, [3]pool{2: {true, m}}, [3]pool{1: {true, m}, 2: {true, m}})
	type half struct {
		p *int
		n float32
		b bool
	}
	testSame[any](t, "comparable, with NaN", half{one, float32(math.NaN()), true}, half{one, float32(math.NaN()), true}, half{one, float32(math.NaN()), false})

	// Nothing at all.
	type nothing struct {
		_ func()
		_ [0]func()
		_ struct{}
	}
	type tail struct {
		list []int
		//lint:ignore U1000 it is what is tested
		none struct{}
	}
	testSame[any](t, "a zero-size field", tail{list: list}, tail{list: list}, tail{list: list[:1]})
	testAlways(t, "an empty struct", struct{}{})
	testAlways[any](t, "an empty array", [0]func(){})
	testAlways[any](t, "blank fields", nothing{})
	testAlways[any](t, "any of an empty struct", struct{}{})
}

// Bytes between the fields say nothing, wherever the value has been.
func TestPaddingIsNoPart(t *testing.T) {
	v := wide{pool: pool{true, map[string]int{}}, small: 3, f: func() int { return 1 }, kind: 5, list: []int{1}, end: 7, number: math.NaN(), last: true}
	again := v
	soil(&again)
	if again.ready != v.ready || again.kind != v.kind || again.last != v.last || again.end != v.end || again.small != v.small {
		t.Fatal("a field is changed")
	}
	other := again
	other.last = false
	testSame(t, "struct", v, again, other)
	testSame[any](t, "array", [1]wide{v}, [1]wide{again}, [1]wide{other})
	testSame[any](t, "any", v, again, other)
	testSame[any](t, "struct of any", struct{ v any }{v}, struct{ v any }{again}, struct{ v any }{other})
}

// soil fills what lies between the fields of the struct, and of the structs in it.
func soil[V any](v *V) {
	t := reflect.TypeFor[V]()
	field := make([]bool, t.Size())
	var walk func(t reflect.Type, at uintptr)
	walk = func(t reflect.Type, at uintptr) {
		for i := range t.NumField() {
			f := t.Field(i)
			if f.Type.Kind() == reflect.Struct {
				walk(f.Type, at+f.Offset)
				continue
			}
			for b := range f.Type.Size() {
				field[at+f.Offset+b] = true
			}
		}
	}
	walk(t, 0)
	for i, b := range unsafe.Slice((*byte)(unsafe.Pointer(v)), len(field)) {
		if !field[i] {
			*(*byte)(unsafe.Add(unsafe.Pointer(v), i)) = ^b
		}
	}
}

// comings are the ways in which a value comes for a key that has one.
func comings[V any]() map[string]func(t *testing.T, c *oncecache.Cache[string, V], v V) {
	return map[string]func(t *testing.T, c *oncecache.Cache[string, V], v V){
		"Set": func(_ *testing.T, c *oncecache.Cache[string, V], v V) { c.Set("k", v) },
		"Refresh": func(t *testing.T, c *oncecache.Cache[string, V], v V) {
			if _, err := c.Refresh(t.Context(), "k", anew(func(context.Context, string) (V, error) { return v, nil })); err != nil {
				t.Error(err)
			}
		},
		"Reload": func(t *testing.T, c *oncecache.Cache[string, V], v V) {
			if _, err := c.Refresh(t.Context(), "k", func(context.Context, string, V, bool) (V, error) { return v, nil }); err != nil {
				t.Error(err)
			}
		},
	}
}

// A value that comes again while it is being evicted is closed once, when the key loses it again,
// and Close waits for that once.
func TestTheVeryValueComesWhileItIsEvicted(t *testing.T) {
	closed := 0
	c := oncecache.MustNew(oncecache.Config[string, *int]{MaxEntries: 1, Close: func(string, *int) error { closed++; return nil }})
	v := new(int)
	c.Set("k", v)
	finish := oncecache.StartEviction(c, "k")
	c.Set("k", v)
	finish()
	if n := oncecache.Pending(c); closed != 0 || n != 1 {
		t.Fatalf("closed %d times while the key has it, and %d are pending, want 1", closed, n)
	}
	if err := c.Close(t.Context()); err != nil || closed != 1 || oncecache.Pending(c) != 0 {
		t.Errorf("Close returns %v; closed %d times, %d are pending", err, closed, oncecache.Pending(c))
	}
}

// testSame puts v in a cache, then again, the same value, and then other, which is not.
func testSame[V any](t *testing.T, of string, v, again, other V) {
	for way, come := range comings[V]() {
		t.Run(of+", "+way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, closed := closingCounted[V]()
				c.Set("k", v)
				come(t, c, again)
				if got, ok := c.Get("k"); ok {
					come(t, c, got)
				}
				synctest.Wait()
				if n := closed(); n != 0 {
					t.Errorf("%d are closed while the key has the value", n)
				}
				before := closed()
				come(t, c, other)
				synctest.Wait()
				if n := closed() - before; n != 1 {
					t.Errorf("%d are closed when another value has come, want 1", n)
				}
				if err := c.Close(t.Context()); err != nil || closed() != 2 {
					t.Errorf("Close returns %v; %d are closed, want 2", err, closed())
				}
			})
		})
	}
}

// testAlways puts v in a cache, of whose type there is only one value.
func testAlways[V any](t *testing.T, of string, v V) {
	for way, come := range comings[V]() {
		t.Run(of+", "+way, func(t *testing.T) {
			c, closed := closingCounted[V]()
			c.Set("k", v)
			come(t, c, v)
			if n := closed(); n != 0 {
				t.Errorf("%d are closed while the key has the value", n)
			}
			if err := c.Close(t.Context()); err != nil || closed() != 1 {
				t.Errorf("Close returns %v; %d are closed, want 1", err, closed())
			}
		})
	}
}

// closingCounted returns a cache, and how many of its values are closed.
func closingCounted[V any]() (c *oncecache.Cache[string, V], closed func() int) {
	var mu sync.Mutex
	n := 0
	c = oncecache.MustNew(oncecache.Config[string, V]{Close: func(string, V) error {
		mu.Lock()
		defer mu.Unlock()
		n++
		return nil
	}})
	return c, func() int {
		mu.Lock()
		defer mu.Unlock()
		return n
	}
}

// The very value that is set again while it is evicted stays: nobody could see that it was leaving.
func TestVeryValueThatIsLeavingStays(t *testing.T) {
	closed := 0
	c := oncecache.MustNew(oncecache.Config[int, int]{IdleTimeout: time.Hour, Close: func(int, int) error { closed++; return nil }})
	c.Set(1, 7)
	finish := oncecache.StartIdling(c, 1)
	if old, replaced := c.Set(1, 7); old != 7 || !replaced {
		t.Errorf("Set: %d, %v", old, replaced)
	}
	finish()
	if v, ok := c.Get(1); v != 7 || !ok || closed != 0 {
		t.Errorf("Get: %d, %v; closed %d times", v, ok, closed)
	}
	if err := c.Close(context.Background()); err != nil || closed != 1 {
		t.Errorf("Close: %v; closed %d times", err, closed)
	}
}
