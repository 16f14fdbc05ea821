//go:build !modelcheck

package oncecache_test

import (
	"context"
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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
	most, tooMany := 1<<30, []int{-1, math.MinInt, 1<<30 + 1}
	if math.MaxInt == math.MaxInt32 {
		most, tooMany = 1<<24, append(tooMany, 1<<24+1, 1<<30)
	}
	if err := oncecache.Validate(&oncecache.Config[string, int]{SizeHint: most}); err != nil { // without the room
		t.Error(err)
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
	var c oncecache.Cache[route, int]
	for i, k := range []route{{"a b", "c"}, {"a", "b c"}, {"a b c", ""}} {
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

// Clear counts values only, drops errors that are kept, and forgets creations:
// their callers get what they make, which is not kept.
func TestClear(t *testing.T) {
	for _, w := range ways {
		synctest.Test(t, func(t *testing.T) {
			s := newShop()
			c := oncecache.MustNew(config{
				Close: func(_ string, v int) error { // of two batches, maybe at once
					s.mu.Lock()
					defer s.mu.Unlock()
					s.closed = append(s.closed, v)
					return nil
				},
				ErrorTTLFunc: func(string, error) time.Duration { return -1 },
			})
			s.Cache = c
			if n := c.Clear(); n != 0 {
				t.Errorf("%d removed from an empty cache", n)
			}
			c.Set("value", 1)
			leased := s.acquire(t, "leased", 2)
			c.GetOrCreate("failed", failing)
			p := newPilot()
			flight := startCall(func() (int, error) { return w.ask(t.Context(), c, "k", p.create) })
			<-p.ctx
			joined := start(c, "k", unexpected(t))
			synctest.Wait()
			if n := c.Clear(); n != 2 {
				t.Errorf("%s: %d removed, want 2", w.name, n)
			}
			wantLen(t, c, 0)
			if n := oncecache.Kept(c); n != 0 {
				t.Errorf("%d errors are kept", n)
			}
			synctest.Wait()
			s.wantClosed(t, 1)
			if v, err := c.GetOrCreate("failed", with(4)); v != 4 || err != nil {
				t.Errorf("%d, %v after the error was cleared", v, err)
			}
			if v, err := c.GetOrCreate("k", with(5)); v != 5 || err != nil {
				t.Errorf("%d, %v while the forgotten creation runs", v, err)
			}
			p.end <- with(3)
			wantAll(t, []*call{flight, joined}, result{value: 3})
			synctest.Wait()
			s.wantClosed(t, 1, 3)
			wantGet(t, c, "k", 5)
			leased.Release()
			s.wantClosed(t, 1, 3, 2)
			if n := c.Clear(); n != 2 {
				t.Errorf("%s: %d removed, want 2", w.name, n)
			}
			if err := c.Close(t.Context()); err != nil || len(s.closed) != 5 || oncecache.Pending(c) != 0 {
				t.Errorf("%v, closed %v", err, s.closed)
			}
			if n := c.Clear(); n != 0 {
				t.Errorf("%d removed from a closed cache", n)
			}
		})
	}
	var zero oncecache.Cache[string, int]
	if n := zero.Clear(); n != 0 {
		t.Errorf("%d removed from a zero cache", n)
	}
}

// Clear does not wait for Close functions, and none of them ends its goroutine.
func TestClearWaitsForNoClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := oncecache.MustNew(config{Close: func(string, int) error { time.Sleep(time.Hour); runtime.Goexit(); return nil }})
		for i := range 100 {
			c.Set(fmt.Sprint(i), i)
		}
		began := time.Now()
		cleared := startCall(func() (int, error) { return c.Clear(), nil })
		wantAll(t, []*call{cleared}, result{value: 100})
		if d := time.Since(began); d != 0 {
			t.Errorf("cleared after %v", d)
		}
		if err := c.Close(t.Context()); err == nil || c.Stats().Closed != 100 {
			t.Errorf("%v, %d closed", err, c.Stats().Closed)
		}
	})
}

// Peek returns what Get would, whatever the key is.
func TestPeek(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := oncecache.MustNew(config{TTL: time.Hour, ErrorTTL: -1})
		want := func(when string, v int, ok bool) {
			t.Helper()
			if got, found := c.Peek("k"); got != v || found != ok {
				t.Errorf("%s: Peek is %d, %t", when, got, found)
			}
			if got, found := c.Get("k"); got != v || found != ok {
				t.Errorf("%s: Get is %d, %t", when, got, found)
			}
		}
		want("absent", 0, false)
		end := make(chan struct{})
		go c.GetOrCreate("k", func() (int, error) { <-end; return 1, nil })
		synctest.Wait()
		want("being created", 0, false)
		close(end)
		synctest.Wait()
		want("created", 1, true)
		c.Set("k", 2)
		want("set", 2, true)
		go c.Refresh(t.Context(), "k", anew(func(context.Context, string) (int, error) { time.Sleep(time.Minute); return 3, nil }))
		synctest.Wait()
		want("being refreshed", 2, true)
		time.Sleep(time.Minute)
		synctest.Wait()
		want("refreshed", 3, true)
		time.Sleep(time.Hour)
		synctest.Wait()
		want("expired", 0, false)
		c.GetOrCreate("k", failing)
		want("with an error that is kept", 0, false)
		c.Set("k", 4)
		c.Delete("k")
		want("deleted", 0, false)
		c.Set("k", 5)
		c.Close(t.Context())
		want("closed", 0, false)
	})
}

// Peek works on a zero cache, and panics for a key that cannot be compared, as Get does.
func TestPeekOfOddCaches(t *testing.T) {
	var zero oncecache.Cache[any, int]
	if v, ok := zero.Peek("k"); v != 0 || ok {
		t.Errorf("a zero cache has %d, %t", v, ok)
	}
	zero.Set("k", 1)
	if v, ok := zero.Peek("k"); v != 1 || !ok {
		t.Errorf("the key has %d, %t", v, ok)
	}
	defer func() {
		if recover() == nil {
			t.Error("a slice is a key")
		}
	}()
	zero.Peek([]int{1})
}

// looks are uses of a value that is there, and calls that are none.
var looks = map[string]struct {
	look  func(c *oncecache.Cache[string, int], k string)
	isUse bool
}{
	"Get":  {func(c *oncecache.Cache[string, int], k string) { c.Get(k) }, true},
	"Peek": {func(c *oncecache.Cache[string, int], k string) { c.Peek(k) }, false},
	"Info": {func(c *oncecache.Cache[string, int], k string) { c.Info(k) }, false},
}

// A value that is only looked at makes room as one that nobody has used.
func TestPeekIsNoUseForSieve(t *testing.T) {
	for name, tt := range looks {
		t.Run(name, func(t *testing.T) {
			c := oncecache.MustNew(config{MaxEntries: 2})
			c.Set("old", 1)
			c.Set("new", 2)
			for range 3 {
				tt.look(c, "old")
			}
			c.Set("next", 3)
			if _, ok := c.Peek("old"); ok != tt.isUse {
				t.Errorf("the old value is there: %t", ok)
			}
			if _, ok := c.Peek("new"); ok == tt.isUse {
				t.Errorf("the new value is there: %t", ok)
			}
		})
	}
}

// A value that is only looked at is idle.
func TestPeekIsNoUseForIdleTimeout(t *testing.T) {
	for name, tt := range looks {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := oncecache.MustNew(config{IdleTimeout: time.Minute})
				c.Set("k", 1)
				for range 6 * 3 {
					time.Sleep(10 * time.Second)
					synctest.Wait()
					tt.look(c, "k")
				}
				if _, ok := c.Peek("k"); ok != tt.isUse {
					t.Errorf("there after three minutes: %t", ok)
				}
				if n := c.Stats().Idle; n == 0 != tt.isUse {
					t.Errorf("%d were idle", n)
				}
				c.Close(t.Context())
			})
		})
	}
}

// To look at a value that is due neither renews it nor keeps the next use from doing so.
func TestPeekStartsNoRenewal(t *testing.T) {
	for name, tt := range looks {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var o origin
				c := oncecache.MustNew(config{TTL: time.Hour, RenewAhead: 20 * time.Minute, Create: o.create})
				c.Load(t.Context(), "k")
				time.Sleep(45 * time.Minute)
				synctest.Wait()
				for range 3 {
					tt.look(c, "k")
					synctest.Wait()
				}
				if tt.isUse {
					o.wantAsked(t, "k", "k")
					return
				}
				o.wantAsked(t, "k")
				c.Get("k")
				synctest.Wait()
				o.wantAsked(t, "k", "k")
			})
		})
	}
}

// Peek is counted neither as a hit nor as a miss.
func TestPeekIsNotCounted(t *testing.T) {
	for name, tt := range looks {
		t.Run(name, func(t *testing.T) {
			c := oncecache.MustNew(config{RecordStats: true})
			tt.look(c, "k")
			c.Set("k", 1)
			tt.look(c, "k")
			tt.look(c, "k")
			want := oncecache.Stats{Recorded: true}
			if tt.isUse {
				want.Hits, want.Misses = 2, 1
			}
			if s := c.Stats(); s != want {
				t.Errorf("%+v, want %+v", s, want)
			}
		})
	}
}
