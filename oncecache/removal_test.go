//go:build !modelcheck

package oncecache_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/oncecache"
)

// removal is what a listener was told.
type removal struct {
	key string
	v   int
	why oncecache.Reason
	err error
}

// removals is a cache that notes what its listener is told.
type removals struct {
	*oncecache.Cache[string, int]
	mu  sync.Mutex
	got []removal
}

func listen(config oncecache.Config[string, int]) *removals {
	r := new(removals)
	config.OnRemove = func(k string, v int, why oncecache.Reason, err error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.got = append(r.got, removal{k, v, why, err})
	}
	r.Cache = oncecache.MustNew(config)
	return r
}

// want checks what was told since the last call, in any order.
func (r *removals) want(t *testing.T, want ...removal) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	byValue := func(a, b removal) int { return a.v - b.v }
	slices.SortFunc(r.got, byValue)
	slices.SortFunc(want, byValue)
	if !slices.Equal(r.got, want) {
		t.Errorf("told %v, want %v", r.got, want)
	}
	r.got = nil
}

const (
	deleted   = oncecache.ReasonDeleted
	replaced  = oncecache.ReasonReplaced
	discarded = oncecache.ReasonDiscarded
)

// However a value leaves the cache, the listener is told once, with the reason, and with
// the error of the Close function if there is one.
func TestOnRemove(t *testing.T) {
	ctx := context.Background()
	for _, tt := range []struct {
		name   string
		remove func(t *testing.T, r *removals)
		want   []removal
	}{
		{"Delete", func(_ *testing.T, r *removals) { r.Delete("k"); r.Delete("k") }, []removal{{"k", 1, deleted, nil}}},
		{"Clear", func(_ *testing.T, r *removals) { r.Clear() }, []removal{{"k", 1, deleted, nil}}},
		{"CompareAndDelete", func(_ *testing.T, r *removals) {
			oncecache.CompareAndDelete(r.Cache, "k", 7)
			oncecache.CompareAndDelete(r.Cache, "k", 1)
		}, []removal{{"k", 1, deleted, nil}}},
		{"Set", func(_ *testing.T, r *removals) { r.Set("k", 2) }, []removal{{"k", 1, replaced, nil}}},
		{"Set of the very value", func(_ *testing.T, r *removals) { r.Set("k", 1) }, nil},
		{"SetIfAbsent, which stores nothing", func(_ *testing.T, r *removals) { r.SetIfAbsent("k", 2) }, nil},
		{"Refresh", func(_ *testing.T, r *removals) { r.Refresh(ctx, "k", anew(makes(2))) }, []removal{{"k", 1, replaced, nil}}},
		{"Refresh, not modified", func(_ *testing.T, r *removals) {
			r.Refresh(ctx, "k", anew(func(context.Context, string) (int, error) { return 0, oncecache.ErrNotModified }))
		}, nil},
		{"Refresh, overtaken by Set", func(_ *testing.T, r *removals) {
			r.Refresh(ctx, "k", anew(func(context.Context, string) (int, error) { r.Set("k", 3); return 2, nil }))
		}, []removal{{"k", 1, replaced, nil}, {"k", 2, discarded, nil}}},
		{"Discard", func(t *testing.T, r *removals) {
			l, _ := r.Acquire(ctx, "k", makes(2))
			m, _ := r.Acquire(ctx, "k", makes(2))
			l.Discard()
			r.want(t)
			m.Discard()
		}, []removal{{"k", 1, discarded, nil}}},
		{"Delete while a lease holds it", func(t *testing.T, r *removals) {
			l, _ := r.Acquire(ctx, "k", makes(2))
			r.Delete("k")
			r.want(t)
			l.Release()
		}, []removal{{"k", 1, deleted, nil}}},
		{"eviction", func(_ *testing.T, r *removals) {
			r.Get("k")
			r.Set("a", 2)
			r.Set("b", 3)
			r.Set("c", 4) // a has not been used
		}, []removal{{"a", 2, oncecache.ReasonEvicted, nil}}},
		{"idleness", func(*testing.T, *removals) { time.Sleep(2 * time.Hour) }, []removal{{"k", 1, oncecache.ReasonIdle, nil}}},
		{"Close", func(t *testing.T, r *removals) { r.Close(ctx); r.Close(ctx) }, []removal{{"k", 1, oncecache.ReasonClosed, nil}}},
		{"Set after Close", func(t *testing.T, r *removals) { r.Close(ctx); r.Set("k", 2) },
			[]removal{{"k", 1, oncecache.ReasonClosed, nil}, {"k", 2, discarded, nil}}},
		{"a creation that Set has overtaken", func(_ *testing.T, r *removals) {
			r.GetOrCreate("l", func() (int, error) { r.Set("l", 3); return 2, nil })
		}, []removal{{"l", 2, discarded, nil}}},
		{"a creation that Delete has overtaken", func(_ *testing.T, r *removals) {
			r.GetOrCreate("l", func() (int, error) { r.Delete("l"); return 2, nil })
		}, []removal{{"l", 2, discarded, nil}}},
		{"a batch with a value that nobody asked for", func(_ *testing.T, r *removals) {
			r.GetOrCreateMany(ctx, []string{"l"}, func(context.Context, []string) (map[string]int, error) {
				return map[string]int{"l": 2, "m": 3}, nil
			})
		}, []removal{{"m", 3, discarded, nil}}},
		{"errors, which are no values", func(_ *testing.T, r *removals) {
			for _, how := range []func() (int, error){failing, failing} {
				r.GetOrCreate("l", how)
			}
			r.Delete("l")
			r.GetOrCreate("m", failing)
			r.Set("m", 2)
			panicOf(func() { r.GetOrCreate("n", diskFull) })
		}, nil},
	} {
		for _, closes := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, Close %t", tt.name, closes), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					config := oncecache.Config[string, int]{
						MaxEntries: 3, IdleTimeout: time.Hour,
						ErrorTTLFunc: func(string, error) time.Duration { return time.Minute },
					}
					want := slices.Clone(tt.want)
					if closes {
						config.Close = func(string, int) error { return errRefused }
						for i := range want {
							want[i].err = errRefused
						}
					}
					r := listen(config)
					r.Set("k", 1)
					tt.remove(t, r)
					synctest.Wait()
					r.want(t, want...)
					if n := r.Stats().Closed; closes && n != uint64(len(want)) || !closes && n != 0 {
						t.Errorf("%d closed", n)
					}
					var left []removal
					for k, v := range r.All() {
						left = append(left, removal{k, v, oncecache.ReasonClosed, nil})
						if closes {
							left[len(left)-1].err = errRefused
						}
					}
					if err := r.Close(t.Context()); (err != nil) != closes {
						t.Error(err)
					}
					r.want(t, left...)
					if n := oncecache.Pending(r.Cache); n != 0 {
						t.Errorf("%d pending", n)
					}
				})
			})
		}
	}
}

// A value that goes in the place of one that Refresh has replaced while that was being evicted
// goes for the same reason.
func TestOnRemoveOfWhatIsRefreshed(t *testing.T) {
	for why, start := range map[oncecache.Reason]func(*oncecache.Cache[string, int], string) func(){
		oncecache.ReasonIdle: oncecache.StartIdling[string, int], oncecache.ReasonEvicted: oncecache.StartEviction[string, int],
	} {
		r := listen(oncecache.Config[string, int]{MaxEntries: 3})
		r.Set("k", 1)
		finish := start(r.Cache, "k")
		oncecache.ReplaceAsRefresh(r.Cache, "k", 2, false)
		finish()
		if err := r.Close(t.Context()); err != nil {
			t.Error(err)
		}
		r.want(t, removal{"k", 1, replaced, nil}, removal{"k", 2, why, nil})
		if s := r.Stats(); s.Evicted+s.Idle != 1 || (s.Idle == 1) != (why == oncecache.ReasonIdle) {
			t.Errorf("%+v", s)
		}
	}
}

// A value that refers to something and comes back has not left.
func TestOnRemoveOfWhatComesBack(t *testing.T) {
	n, again := 0, new(int)
	c := oncecache.MustNew(oncecache.Config[string, *int]{OnRemove: func(string, *int, oncecache.Reason, error) { n++ }})
	c.Set("k", again)
	l, err := c.Acquire(t.Context(), "k", func(context.Context, string) (*int, error) { return nil, errRefused })
	if err != nil {
		t.Fatal(err)
	}
	c.Delete("k")
	c.Set("k", again)
	if l.Release(); n != 0 {
		t.Errorf("told %d times of what is there", n)
	}
	if c.Delete("k"); n != 1 {
		t.Errorf("told %d times", n)
	}
}

// Whether Close or the listener returns, panics or exits, the other runs, nobody hangs,
// later removals are told, and Close returns what became of them.
func TestOnRemoveEndings(t *testing.T) {
	for name, end := range map[string]func(){
		"returns": func() {}, "panics": func() { panic("disk full") }, "exits": runtime.Goexit,
	} {
		for _, who := range []string{"Close", "OnRemove"} {
			for how, remove := range map[string]func(*oncecache.Cache[string, int]){
				"on the caller's goroutine": func(c *oncecache.Cache[string, int]) { c.Delete("k") },
				"on one of the cache":       func(c *oncecache.Cache[string, int]) { c.Clear() },
			} {
				t.Run(fmt.Sprint(who, " ", name, " ", how), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						var mu sync.Mutex
						var told []string
						c := oncecache.MustNew(oncecache.Config[string, int]{
							CloseBeforeCreate: true,
							Close: func(_ string, v int) error {
								if who == "Close" && v == 1 {
									end()
								}
								return nil
							},
							OnRemove: func(_ string, v int, why oncecache.Reason, err error) {
								mu.Lock()
								told = append(told, fmt.Sprint(v, " ", why, " ", err))
								mu.Unlock()
								if who == "OnRemove" && v == 1 {
									end()
								}
							},
						})
						c.Set("k", 1)
						gone := startCall(func() (int, error) { remove(c); return 0, nil })
						synctest.Wait()
						<-gone.done
						if v, err := c.GetOrCreateContext(t.Context(), "k", makes(2)); v != 2 || err != nil {
							t.Error(v, err)
						}
						c.Clear()
						synctest.Wait()
						text := map[string]string{
							"returns": "", "panics": "oncecache: " + who + " function panicked: disk full",
							"exits": "oncecache: " + who + " function called runtime.Goexit",
						}[name]
						first := "1 Deleted <nil>"
						if who == "Close" && text != "" {
							first = "1 Deleted " + text
						}
						if want := []string{first, "2 Deleted <nil>"}; !reflect.DeepEqual(told, want) {
							t.Errorf("told %q, want %q", told, want)
						}
						err := c.Close(t.Context())
						if (text != "") != (err != nil) || err != nil && !strings.Contains(err.Error(), text) {
							t.Errorf("Close returns %v, want %q", err, text)
						}
						var p *oncecache.PanicError
						if errors.As(err, &p) != (name == "panics") {
							t.Errorf("Close returns %v", err)
						}
						if oncecache.Pending(c) != 0 || len(oncecache.Named(c)) != 0 {
							t.Errorf("%d pending, %v", oncecache.Pending(c), oncecache.Named(c))
						}
					})
				})
			}
		}
	}
}

// Close waits for the listener, and names its key.
func TestCloseWaitsForOnRemove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		proceed := make(chan struct{})
		c := oncecache.MustNew(oncecache.Config[string, int]{OnRemove: func(string, int, oncecache.Reason, error) { <-proceed }})
		c.Set("k", 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var pending *oncecache.PendingError
		if err := c.Close(ctx); !errors.As(err, &pending) || !reflect.DeepEqual(pending.Closing, []any{"k"}) {
			t.Errorf("Close returns %v while the listener runs", err)
		}
		close(proceed)
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Reported bug 36, golang-lru, geche: a listener that uses the cache deadlocks.
// T36 golang-lru #230, geche: a listener that uses the cache deadlocks. It may use it for any
// key, also for the one that is told, and with CloseBeforeCreate.
func TestT36_ListenersUseTheCache(t *testing.T) {
	for _, alone := range []bool{false, true} {
		for name, remove := range map[string]func(c *oncecache.Cache[string, int]){
			"Delete":   func(c *oncecache.Cache[string, int]) { c.Delete("k") },
			"Set":      func(c *oncecache.Cache[string, int]) { c.Set("k", harmless) },
			"Clear":    func(c *oncecache.Cache[string, int]) { c.Clear() },
			"Refresh":  func(c *oncecache.Cache[string, int]) { c.Refresh(context.Background(), "k", anew(makes(harmless))) },
			"idleness": func(*oncecache.Cache[string, int]) { time.Sleep(2 * time.Hour) },
			"eviction": func(c *oncecache.Cache[string, int]) {
				for i := range 4 {
					c.Set(fmt.Sprint(i), harmless)
				}
			},
			"Close": func(*oncecache.Cache[string, int]) {},
		} {
			t.Run(fmt.Sprint(name, ", CloseBeforeCreate ", alone), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var c *oncecache.Cache[string, int]
					var once sync.Once
					told := false
					config := oncecache.Config[string, int]{MaxEntries: 3, IdleTimeout: time.Hour, OnRemove: func(k string, v int, _ oncecache.Reason, _ error) {
						if v == harmless {
							return
						}
						once.Do(func() {
							useAll(t, c, k)
							ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
							defer cancel()
							if _, err := c.GetOrCreateContext(ctx, k, makes(harmless)); err != nil && err != oncecache.ErrClosed {
								t.Errorf("GetOrCreateContext of the key: %v", err)
							}
							told = true
						})
					}}
					if alone {
						config.Close, config.CloseBeforeCreate = func(string, int) error { return nil }, true
					}
					c = oncecache.MustNew(config)
					c.Set("k", 1)
					remove(c)
					synctest.Wait()
					if err := c.Close(t.Context()); err != nil || !told {
						t.Errorf("told %t, %v", told, err)
					}
				})
			})
		}
	}
}

// Reported bug 37, Caffeine, golang-lru: a removal is told with another's cause, or value.
// T37 Caffeine #412, golang-lru #141: a removal is told with the cause or the value of
// another, where several race. Each value is told once, with the reason of the call that has
// returned it.
func TestT37_StressEachRemovalIsToldOnce(t *testing.T) {
	const keys, each = 8, 3000
	var mu sync.Mutex
	told := map[int]oncecache.Reason{}
	c := oncecache.MustNew(oncecache.Config[int, int]{MaxEntries: keys / 2, OnRemove: func(_, v int, why oncecache.Reason, _ error) {
		mu.Lock()
		defer mu.Unlock()
		if told[v] != 0 {
			t.Errorf("%d is told twice: %v, %v", v, told[v], why)
		}
		told[v] = why
	}})
	var claimed [2]sync.Map // by value: who says that it has removed it
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range each {
				k, v := i%keys, 1+g*each+i
				if old, ok := c.Set(k, v); ok {
					claimed[0].Store(old, true)
				}
				if i%3 == g%3 {
					if old, ok := c.Delete((k + g) % keys); ok {
						claimed[1].Store(old, true)
					}
				}
			}
		})
	}
	all.Wait()
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(told) != 4*each {
		t.Errorf("%d values were told, of %d", len(told), 4*each)
	}
	for v, why := range told {
		_, set := claimed[0].Load(v)
		_, del := claimed[1].Load(v)
		if set != (why == replaced) || del != (why == deleted) || set && del {
			t.Fatalf("%d: told %v; Set returned it: %t, Delete: %t", v, why, set, del)
		}
	}
}

// Reported bug 38, jellydator/ttlcache, golang-lru: what `Set` replaces is not told.
// T38 ttlcache #202, golang-lru #189: the value that Set replaces is not told.
func TestT38_ReplacedValuesAreTold(t *testing.T) {
	r := listen(oncecache.Config[string, int]{MaxEntries: 1})
	for v := range 100 {
		r.Set("k", v)
	}
	var want []removal
	for v := range 99 {
		want = append(want, removal{"k", v, replaced, nil})
	}
	r.want(t, want...)
}

func TestReasonNames(t *testing.T) {
	for r, want := range map[oncecache.Reason]string{
		oncecache.ReasonDeleted: "Deleted", oncecache.ReasonReplaced: "Replaced", oncecache.ReasonExpired: "Expired",
		oncecache.ReasonIdle: "Idle", oncecache.ReasonEvicted: "Evicted", oncecache.ReasonDiscarded: "Discarded",
		oncecache.ReasonClosed: "Closed", 0: "Reason(0)", 99: "Reason(99)",
	} {
		text, err := r.MarshalText()
		if r.String() != want || string(text) != want || err != nil {
			t.Errorf("%d is %q, %q, %v, want %q", r, r, text, err, want)
		}
	}
}
