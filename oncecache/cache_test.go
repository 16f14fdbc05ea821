//go:build !modelcheck

package oncecache_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/oncecache"
)

func TestZeroValue(t *testing.T) {
	for name, op := range map[string]func(t *testing.T, c *oncecache.Cache[string, int]){
		"GetOrCreate": func(t *testing.T, c *oncecache.Cache[string, int]) {
			if v, err := c.GetOrCreate("k", with(1)); v != 1 || err != nil {
				t.Error(v, err)
			}
			wantLen(t, c, 1)
		},
		"Get": func(t *testing.T, c *oncecache.Cache[string, int]) { wantAbsent(t, c, "k") },
		"Set": func(t *testing.T, c *oncecache.Cache[string, int]) {
			if old, replaced := c.Set("k", 1); old != 0 || replaced {
				t.Error(old, replaced)
			}
			wantLen(t, c, 1)
		},
		"SetIfAbsent": func(t *testing.T, c *oncecache.Cache[string, int]) {
			if !stored(c.SetIfAbsent("k", 1)) {
				t.Error("not stored")
			}
			wantGet(t, c, "k", 1)
		},
		"Delete": func(t *testing.T, c *oncecache.Cache[string, int]) {
			if old, deleted := c.Delete("k"); old != 0 || deleted {
				t.Error(old, deleted)
			}
		},
		"CompareAndDelete": func(t *testing.T, c *oncecache.Cache[string, int]) {
			if oncecache.CompareAndDelete(c, "k", 0) {
				t.Error("deleted")
			}
		},
		"Len": func(t *testing.T, c *oncecache.Cache[string, int]) { wantLen(t, c, 0) },
		"Keys": func(t *testing.T, c *oncecache.Cache[string, int]) {
			for k := range c.Keys() {
				t.Error(k)
			}
		},
	} {
		t.Run(name, func(t *testing.T) { op(t, new(oncecache.Cache[string, int])) })
	}
}

func TestNew(t *testing.T) {
	for _, hint := range []int{0, 1, 1000} {
		c, err := oncecache.New(oncecache.Config[string, int]{SizeHint: hint})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 100 {
			c.Set(fmt.Sprint(i), i)
		}
		wantLen(t, c, 100)
	}
	tooMany := []int{-1, math.MinInt, 1<<30 + 1}
	if math.MaxInt == math.MaxInt32 {
		tooMany = append(tooMany, 1<<24+1, 1<<30)
	}
	for _, hint := range tooMany {
		c, err := oncecache.New(oncecache.Config[string, int]{SizeHint: hint})
		if c != nil || err == nil {
			t.Fatalf("New with SizeHint %d = %v, %v", hint, c, err)
		}
		for _, part := range []string{"oncecache: ", "Config.SizeHint", fmt.Sprint(hint)} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("error %q does not contain %q", err, part)
			}
		}
		p := panicOf(func() { oncecache.MustNew(oncecache.Config[string, int]{SizeHint: hint}) })
		if fmt.Sprint(p) != err.Error() {
			t.Errorf("MustNew panics with %v, want %v", p, err)
		}
	}
}

func panicOf(f func()) (p any) {
	defer func() { p = recover() }()
	f()
	return nil
}

func TestValues(t *testing.T) {
	var c oncecache.Cache[string, int]

	if v, err := c.GetOrCreate("a", with(1)); v != 1 || err != nil {
		t.Error(v, err)
	}
	if v, err := c.GetOrCreate("a", unexpected(t)); v != 1 || err != nil {
		t.Error(v, err)
	}
	if stored(c.SetIfAbsent("a", 2)) {
		t.Error("SetIfAbsent replaced a value")
	}
	if old, replaced := c.Set("a", 3); old != 1 || !replaced {
		t.Error(old, replaced)
	}
	if old, replaced := c.Set("a", 0); old != 3 || !replaced {
		t.Error(old, replaced)
	}
	// The zero value of V is a value.
	if old, replaced := c.Set("a", 4); old != 0 || !replaced {
		t.Error(old, replaced)
	}
	wantGet(t, &c, "a", 4)
	if oncecache.CompareAndDelete(&c, "a", 3) {
		t.Error("CompareAndDelete removed another value")
	}
	if !oncecache.CompareAndDelete(&c, "a", 4) {
		t.Error("CompareAndDelete did not remove the value")
	}
	wantAbsent(t, &c, "a")
	wantLen(t, &c, 0)

	c.Set("a", 5)
	if old, deleted := c.Delete("a"); old != 5 || !deleted {
		t.Error(old, deleted)
	}
	if old, deleted := c.Delete("a"); old != 0 || deleted {
		t.Error(old, deleted)
	}
	if !stored(c.SetIfAbsent("a", 6)) {
		t.Error("SetIfAbsent did not store")
	}
	wantGet(t, &c, "a", 6)
}

// Reported bug 12, Otter: a nil function strands its key.
// T12 otter #257: a nil function must not strand the key.
func TestT12_NilCreate(t *testing.T) {
	var c oncecache.Cache[string, int]
	ask := func() { c.GetOrCreate("k", nil) }
	if p := panicOf(ask); p != "oncecache: GetOrCreate called with a nil function" {
		t.Errorf("absent key: panics with %v", p)
	}
	wantLen(t, &c, 0)
	if v, err := c.GetOrCreate("k", with(1)); v != 1 || err != nil {
		t.Error(v, err)
	}
	if p := panicOf(ask); p != "oncecache: GetOrCreate called with a nil function" {
		t.Errorf("present key: panics with %v", p)
	}
	wantGet(t, &c, "k", 1)
}

func TestNaNKeys(t *testing.T) {
	var c oncecache.Cache[float64, int]
	nan := math.NaN()
	for i := range 3 {
		if v, err := c.GetOrCreate(nan, with(i)); v != i || err != nil {
			t.Error(v, err)
		}
	}
	if v, err := c.GetOrCreate(nan, failing); v != 0 || err != errRefused {
		t.Error(v, err)
	}
	if p := panicOf(func() { c.GetOrCreate(nan, panicking("disk")) }); p != "disk" {
		t.Error(p)
	}
	if old, replaced := c.Set(nan, 1); old != 0 || replaced {
		t.Error(old, replaced)
	}
	if stored(c.SetIfAbsent(nan, 1)) {
		t.Error("SetIfAbsent stored a NaN")
	}
	if v, ok := c.Get(nan); v != 0 || ok {
		t.Error(v, ok)
	}
	if old, deleted := c.Delete(nan); old != 0 || deleted {
		t.Error(old, deleted)
	}
	if oncecache.CompareAndDelete(&c, nan, 1) {
		t.Error("CompareAndDelete found a NaN")
	}
	if n := c.Len(); n != 0 {
		t.Errorf("%d keys leaked", n)
	}
	c.Set(0.0, 7)
	if v, ok := c.Get(math.Copysign(0, -1)); v != 7 || !ok {
		t.Error("-0 is not 0:", v, ok)
	}
}

func TestUncomparableKeys(t *testing.T) {
	var c oncecache.Cache[any, int]
	bad := any([]int{1})
	ops := map[string]func(){
		"GetOrCreate":      func() { c.GetOrCreate(bad, unexpected(t)) },
		"Get":              func() { c.Get(bad) },
		"Set":              func() { c.Set(bad, 1) },
		"SetIfAbsent":      func() { c.SetIfAbsent(bad, 1) },
		"Delete":           func() { c.Delete(bad) },
		"CompareAndDelete": func() { oncecache.CompareAndDelete(&c, bad, 1) },
	}
	for _, state := range []string{"new", "used"} {
		for name, op := range ops {
			c = oncecache.Cache[any, int]{}
			if state == "used" {
				c.Set("k", 1)
			}
			if p, ok := panicOf(op).(string); !ok || !strings.HasPrefix(p, "oncecache: ") {
				t.Errorf("%s of a %s cache panics with %v", name, state, p)
			}
			for i := range 100 { // enough to resize, which needs every bucket's mutex
				c.Set(i, i)
			}
			if v, ok := c.Get(99); v != 99 || !ok {
				t.Errorf("%s: the cache no longer works", name)
			}
		}
	}
}

func TestUncomparableValues(t *testing.T) {
	var c oncecache.Cache[string, any]
	c.Set("k", []int{1})
	if panicOf(func() { oncecache.CompareAndDelete(&c, "k", any([]int{1})) }) == nil {
		t.Error("compared slices")
	}
	if _, deleted := c.Delete("k"); !deleted {
		t.Error("the cache no longer works")
	}
}

// Reported bug 5, jellydator/ttlcache: keys that print alike share a load.
// Keys that print alike are not alike.
func TestT5_KeysThatPrintAlike(t *testing.T) {
	type key struct{ host, path string }
	var c oncecache.Cache[key, int]
	for i, k := range []key{{"a b", "c"}, {"a", "b c"}, {"a b c", ""}} {
		if v, err := c.GetOrCreate(k, with(i)); v != i || err != nil {
			t.Error(k, v, err)
		}
	}
	if n := c.Len(); n != 3 {
		t.Error(n)
	}
}

func TestIteration(t *testing.T) {
	var c oncecache.Cache[string, int]
	want := map[string]int{}
	for i := range 1000 {
		k := fmt.Sprint("key ", i)
		c.Set(k, i)
		want[k] = i
	}
	flight := begin(t, &c, "in flight")
	if got := maps.Collect(c.All()); !maps.Equal(got, want) {
		t.Errorf("All yields %d keys, want %d", len(got), len(want))
	}
	if got := slices.Sorted(c.Keys()); !slices.Equal(got, slices.Sorted(maps.Keys(want))) {
		t.Errorf("Keys yields %d keys, want %d", len(got), len(want))
	}
	flight.end <- with(1)
	flight.wait(t)
	wantLen(t, &c, 1001)

	// The loop body may stop early, panic, and change the cache.
	for range c.Keys() {
		break
	}
	panicOf(func() {
		for range c.All() {
			panic("stop")
		}
	})
	for k := range c.Keys() {
		c.Delete(k)
		c.Set("again", 1)
		c.Len()
	}
	c.Delete("again")
	wantLen(t, &c, 0)
}
