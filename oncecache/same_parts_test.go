//go:build !modelcheck

package oncecache_test

import (
	"context"
	"io"
	"math"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"unsafe"

	"github.com/latchfree/latchfree/oncecache"
)

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
	testSame[io.Reader](t, "io.Reader", reader, reader, strings.NewReader("a"))
	testSame[any](t, "any of structs", pool{true, m}, pool{true, m}, pool{false, m})

	// Arrays and structs, part by part.
	testSame(t, "padding", pool{true, m}, pool{true, m}, pool{true, map[string]int{}})
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
