//go:build !modelcheck

package oncecache_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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
		oncecache.ReasonClosed: "Closed", 0: "Reason(0)", 8: "Reason(8)", 99: "Reason(99)",
	} {
		text, err := r.MarshalText()
		if r.String() != want || string(text) != want || err != nil {
			t.Errorf("%d is %q, %q, %v, want %q", r, r, text, err, want)
		}
	}
}

// Reported bug 27, Guava: after invalidation during a refresh nothing loads.
// Everything is deleted while it is refreshed, and is created and
// refreshed afterwards as before.
func TestT27_DeletedDuringRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var closed atomic.Int32
		c := oncecache.MustNew(oncecache.Config[string, int]{Close: func(string, int) error { closed.Add(1); return nil }})
		const keys = 100
		name := func(i int) string { return fmt.Sprint("key ", i) }
		var refreshes []*call
		for i := range keys {
			c.Set(name(i), 1)
			refreshes = append(refreshes, startCall(func() (int, error) { return c.Refresh(t.Context(), name(i), anew(slowly(2, nil))) }))
		}
		synctest.Wait()
		for k := range c.Keys() {
			c.Delete(k)
		}
		if n := c.Len(); n != 0 {
			t.Errorf("%d keys", n)
		}
		for i := range keys {
			if v, err := c.GetOrCreateContext(t.Context(), name(i), makes(3)); v != 3 || err != nil {
				t.Fatal(v, err)
			}
		}
		wantAll(t, refreshes, result{value: 2}) // which is not kept
		for i := range keys {
			if v, err := c.Refresh(t.Context(), name(i), anew(slowly(4, nil))); v != 4 || err != nil {
				t.Fatal(v, err)
			}
		}
		wantLen(t, c, keys)
		if err := c.Close(t.Context()); err != nil || closed.Load() != 4*keys {
			t.Errorf("%v, %d closed, want %d", err, closed.Load(), 4*keys)
		}
	})
}

// Reported bug 28, Vitess, substrate, golang-lru: an evicted value is closed in use, or never.
// T28 Vitess, T30 BitFaster: in a cache that is too small and in a hurry, with
// refreshes, batches, timeouts and errors that are kept, each value is closed
// once, and never in use.
func TestT28_StressBounds(t *testing.T) {
	var made, closes atomic.Int32
	fresh := func(k int) *resource {
		made.Add(1)
		return &resource{key: k, closes: &closes}
	}
	create := func(_ context.Context, k int) (*resource, error) {
		for range rand.IntN(4) {
			runtime.Gosched()
		}
		if rand.IntN(8) == 0 {
			return nil, errRefused
		}
		return fresh(k), nil
	}
	for round := range 4 {
		config := oncecache.Config[int, *resource]{
			MaxEntries: 2, IdleTimeout: 1, // a sweep each millisecond
			Close:        func(_ int, r *resource) error { r.close(t); return nil },
			ErrorTTLFunc: func(int, error) time.Duration { return time.Duration(rand.IntN(3)-1) * 50 * time.Microsecond },
		}
		if round%2 == 1 {
			config.CreateTimeout = 20 * time.Microsecond
		}
		c := oncecache.MustNew(config)
		// ErrNotFound is what a batch has for others that leaves a key out.
		wanted := func(k int, r *resource, err error) {
			if (r == nil) == (err == nil) || r != nil && r.key != k ||
				err != nil && err != errRefused && err != oncecache.ErrCreateTimeout && err != context.Canceled && err != oncecache.ErrNotFound {
				t.Errorf("key %d has %v, %v", k, r, err)
			}
		}
		together(stressWorkers, func(worker int) {
			r := rand.New(rand.NewPCG(uint64(round), uint64(worker)))
			for range stressRounds() / 20 {
				k := r.IntN(8)
				ctx, leave := context.WithCancel(context.Background())
				if r.IntN(8) == 0 {
					go leave()
				}
				switch op := r.IntN(12); op {
				case 0:
					c.Set(k, fresh(k))
				case 1:
					c.Delete(k)
				case 2:
					oncecache.Sweep(c)
				case 3, 4:
					v, err := c.Refresh(ctx, k, anew(create))
					wanted(k, v, err)
				case 5:
					_, err := c.GetOrCreateMany(ctx, []int{k, (k + 1) % 8}, func(ctx context.Context, keys []int) (map[int]*resource, error) {
						made := map[int]*resource{9: fresh(9)}
						for _, k := range keys {
							if rand.IntN(4) > 0 {
								made[k] = fresh(k)
							}
						}
						return made, nil
					})
					if err != nil {
						for _, err := range unjoin(err) {
							wanted(k, nil, err)
						}
					}
				case 6:
					v, err := c.Wait(ctx, k)
					wanted(k, v, err)
				default:
					l, err := c.Acquire(ctx, k, create)
					if err != nil {
						wanted(k, nil, err)
						break
					}
					wanted(k, l.Value(), nil)
					l.Value().use(t)
					if op == 7 {
						l.Discard()
					} else {
						l.Release()
					}
				}
				leave()
			}
		})
		c.Set(10, fresh(10))
		if !comesTrue(func() bool { return c.Len() <= 2 }) { // creations that all have left may just be ending
			t.Fatalf("%d keys at the end", c.Len())
		}
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if m, n := made.Load(), closes.Load(); m != n {
			t.Fatalf("round %d: %d values made, %d closed", round, m, n)
		}
		if creating, entries := oncecache.Creating(c); entries != 0 || oncecache.Pending(c) != 0 {
			t.Errorf("%d creations, %d entries, %d pending at the end", creating, entries, oncecache.Pending(c))
		}
		// A timer may just have ended a creation. Close does not wait for it.
		if !comesTrue(func() bool { creating, _ := oncecache.Creating(c); return creating == 0 }) {
			t.Error("a creation is counted for ever")
		}
	}
}

// comesTrue waits for what others do soon.
func comesTrue(condition func() bool) bool {
	for began := time.Now(); !condition(); runtime.Gosched() {
		if time.Since(began) > time.Minute {
			return false
		}
	}
	return true
}

// unjoin returns the errors that err joins, or err.
func unjoin(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}

// Reported bug 29, any-sync: closed twice; removed while loading, callers hang.
// However many remove a value at once, by whatever means, it leaves
// once and is closed once, when Close has waited for it at the latest: a renewal
// that Close calls off goes on without its caller, and closes what it replaces.
func TestT29_StressRemoversMeet(t *testing.T) {
	for round := range stressRounds() / 20 {
		var closes atomic.Int32
		c := oncecache.MustNew(oncecache.Config[string, int]{MaxEntries: 1, Close: func(_ string, v int) error {
			if v == 1 {
				closes.Add(1)
			}
			return nil
		}})
		var leases [3]oncecache.Lease[string, int]
		for i := range leases {
			var err error
			if leases[i], err = c.Acquire(t.Context(), "k", makes(1)); err != nil {
				t.Fatal(err)
			}
		}
		leases[2].Release()
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		removers := []func(){
			func() { c.Delete("k") },
			func() { oncecache.CompareAndDelete(c, "k", 1) },
			func() { c.Set("k", 2) },
			func() { c.Set("l", 3) }, // evicts
			leases[0].Discard,
			leases[1].Discard,
			func() { c.Refresh(t.Context(), "k", anew(makes(4))) },
			func() {
				if round%2 == 0 {
					c.Close(ended)
				}
			},
		}
		together(len(removers), func(i int) { removers[i]() })
		if err := c.Close(t.Context()); err != nil || oncecache.Pending(c) != 0 {
			t.Fatal(err, oncecache.Pending(c))
		}
		if n := closes.Load(); n != 1 {
			t.Fatalf("closed %d times", n)
		}
	}
}

// Reported bug 29, any-sync: closed twice; removed while loading, callers hang.
// An entry that is being created may be removed by any means, which report
// what was there, and nobody hangs.
func TestT29_RemovedInFlight(t *testing.T) {
	for name, tt := range map[string]struct {
		remove func(c *oncecache.Cache[string, int])
		want   result
	}{
		"Delete":           {func(c *oncecache.Cache[string, int]) { c.Delete("k") }, result{value: 7}},
		"CompareAndDelete": {func(c *oncecache.Cache[string, int]) { oncecache.CompareAndDelete(c, "k", 0) }, result{value: 7}},
		"Set":              {func(c *oncecache.Cache[string, int]) { c.Set("k", 8) }, result{value: 8}},
		"Sweep":            {func(c *oncecache.Cache[string, int]) { oncecache.Sweep(c) }, result{value: 7}},
		"MaxEntries": {func(c *oncecache.Cache[string, int]) {
			for i := range 10 {
				c.Set(fmt.Sprint(i), i)
			}
		}, result{value: 7}},
		"IdleTimeout": {func(*oncecache.Cache[string, int]) { time.Sleep(10 * time.Minute) }, result{value: 7}},
		"Close": {func(c *oncecache.Cache[string, int]) {
			ended, cancel := context.WithCancel(context.Background())
			cancel()
			c.Close(ended)
		}, result{err: oncecache.ErrClosed}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := oncecache.MustNew(oncecache.Config[string, int]{MaxEntries: 2, IdleTimeout: time.Minute})
				p := newPilot()
				calls := []*call{asks(t, c, p.create).call}
				<-p.ctx
				calls = append(calls, asks(t, c, nil).call, start(c, "k", unexpected(t)))
				synctest.Wait()
				for range 3 {
					tt.remove(c)
				}
				p.end <- with(7)
				wantAll(t, calls, tt.want)
				if err := c.Close(t.Context()); err != nil || oncecache.Pending(c) != 0 {
					t.Error(err, oncecache.Pending(c))
				}
			})
		})
	}
}

// A cache in a variable of a package is used by tests in bubbles of synctest, whose clock begins
// anew in each and stands still outside, and by tests that run in real time: in any order.

// stays is how long values and errors of these tests stay.
const stays = 8 * time.Millisecond

// stages are where a cache is used, one after the other: b is a bubble, r is real time. It is made in
// the first. In an o it is made only, outside.
var stages = strings.Fields("b ob r rb br bb rbr brb bbb obr obrb rrbb")

// inStage runs f in a bubble or outside.
func inStage(t *testing.T, stage rune, f func(t *testing.T)) {
	if stage == 'b' {
		synctest.Test(t, f)
	} else {
		f(t)
	}
}

// What is set in a stage is there until its time is over, and goes then, whatever the stages
// before have left in the cache, and whatever their timers had to do.
func TestValuesGoInEachBubble(t *testing.T) {
	for name, settings := range map[string]oncecache.Config[string, int]{
		"TTL":         {TTLFunc: func(string, int) time.Duration { return stays }},
		"IdleTimeout": {IdleTimeout: stays},
		"both":        {TTLFunc: func(string, int) time.Duration { return stays }, IdleTimeout: stays},
	} {
		for _, order := range stages {
			// The later a stage begins, the later or sooner its timers are than those of stages before.
			for _, later := range []time.Duration{0, stays / 4, -stays / 4} {
				t.Run(fmt.Sprint(name, " ", order, " ", later), func(t *testing.T) {
					gone := make(chan string, 100)
					settings.OnRemove = func(k string, _ int, _ oncecache.Reason, _ error) { gone <- k }
					var c *oncecache.Cache[string, int]
					for i, stage := range order {
						inStage(t, stage, func(t *testing.T) {
							if c == nil {
								c = oncecache.MustNew(settings)
							}
							if stage == 'o' {
								return
							}
							if stage == 'b' {
								time.Sleep(time.Second + time.Duration(i)*later)
							}
							k := fmt.Sprint("key ", i)
							c.Set(k, i)
							if stage == 'b' {
								wantGoesInBubble(t, c, k)
							} else {
								wantRemoved(t, c, k, gone)
							}
							c.Set(fmt.Sprint("left ", i), i)
						})
					}
				})
			}
		}
	}
}

// wantGoesInBubble reports it unless k is there for its time, and not long after it.
func wantGoesInBubble(t *testing.T, c *oncecache.Cache[string, int], k string) {
	t.Helper()
	time.Sleep(stays - 1)
	synctest.Wait()
	found := false
	for key := range c.Keys() { // which is no use of it
		found = found || key == k
	}
	if !found {
		t.Errorf("%s is gone before its time", k)
	}
	time.Sleep(2 * stays)
	synctest.Wait()
	if _, ok := c.Get(k); ok {
		t.Errorf("%s is there after its time", k)
	}
}

// wantRemoved waits until k is removed, in real time.
func wantRemoved(t *testing.T, c *oncecache.Cache[string, int], k string, gone chan string) {
	t.Helper()
	for late := time.After(5 * time.Second); ; {
		select {
		case removed := <-gone:
			if removed != k {
				continue
			}
			if _, ok := c.Get(k); ok {
				t.Errorf("%s is there when it has left", k)
			}
		case <-late:
			t.Errorf("%s does not leave", k)
		}
		return
	}
}

// The timer of one bubble has nothing to say in another that runs at the same time, where it is earlier.
func TestTimersOfOtherBubbles(t *testing.T) {
	c := oncecache.MustNew(config{TTL: time.Hour})
	set, other, fired := make(chan bool), make(chan bool), make(chan bool)
	var first sync.WaitGroup
	first.Go(func() {
		synctest.Test(t, func(t *testing.T) {
			c.Set("k", 1)
			close(set)
			<-other
			time.Sleep(3 * time.Hour)
			synctest.Wait()
			close(fired)
		})
	})
	<-set
	synctest.Test(t, func(t *testing.T) {
		c.Set("l", 2)
		close(other)
		<-fired
		wantGet(t, c, "l", 2)
		time.Sleep(time.Hour + tick)
		synctest.Wait()
		wantAbsent(t, c, "l")
	})
	first.Wait()
}

// Likewise errors that are kept.
func TestErrorsGoInEachBubble(t *testing.T) {
	for _, order := range stages {
		t.Run(order, func(t *testing.T) {
			var c *oncecache.Cache[string, int]
			for i, stage := range order {
				inStage(t, stage, func(t *testing.T) {
					if c == nil {
						c = oncecache.MustNew(oncecache.Config[string, int]{ErrorTTLFunc: func(string, error) time.Duration { return stays }})
					}
					if stage == 'o' {
						return
					}
					k, calls := fmt.Sprint("key ", i), 0
					ask := func() { c.GetOrCreate(k, func() (int, error) { calls++; return 0, errors.New("refused") }) }
					ask()
					if stage == 'b' {
						time.Sleep(stays - 1)
						ask()
						if calls != 1 {
							t.Error("the error is not kept for its time")
						}
						time.Sleep(time.Nanosecond)
						ask()
					} else {
						for begun := time.Now(); calls < 2 && time.Since(begun) < 10*time.Second; runtime.Gosched() {
							ask()
						}
					}
					if calls != 2 {
						t.Errorf("%d calls when the time of the first error is over", calls)
					}
					c.GetOrCreate(fmt.Sprint("left ", i), func() (int, error) { return 0, errors.New("refused") })
				})
			}
		})
	}
}

// Values are renewed in each bubble.
func TestRenewInEachBubble(t *testing.T) {
	for _, order := range []string{"b", "ob", "bb", "obb"} {
		t.Run(order, func(t *testing.T) {
			var c *oncecache.Cache[string, int]
			for i, stage := range order {
				inStage(t, stage, func(t *testing.T) {
					if c == nil {
						c = oncecache.MustNew(oncecache.Config[string, int]{
							TTLFunc: func(string, int) time.Duration { return time.Hour }, RenewAhead: 20 * time.Minute,
							Renew: func(_ context.Context, _ string, old int) (int, error) { return old + 1, nil },
						})
					}
					if stage == 'o' {
						return
					}
					k := fmt.Sprint("key ", i)
					c.Set(k, 1)
					time.Sleep(45 * time.Minute)
					c.Get(k)
					synctest.Wait()
					if v, ok := c.Get(k); v != 2 || !ok {
						t.Errorf("%s has %d, %t, want the renewed value", k, v, ok)
					}
				})
			}
		})
	}
}

// A value of one stage may be removed in another, though its timer is of the first.
func TestRemovedInAnotherBubble(t *testing.T) {
	for _, order := range stages {
		for name, remove := range map[string]func(c *oncecache.Cache[string, int]){
			"Delete": func(c *oncecache.Cache[string, int]) { c.Delete("k") },
			"Clear":  func(c *oncecache.Cache[string, int]) { c.Clear() },
			"Set":    func(c *oncecache.Cache[string, int]) { c.Set("k", 2); c.Delete("k") },
			"Sweep":  func(c *oncecache.Cache[string, int]) { oncecache.Sweep(c); c.Delete("k") },
		} {
			t.Run(order+" "+name, func(t *testing.T) {
				var c *oncecache.Cache[string, int]
				for _, stage := range order {
					inStage(t, stage, func(t *testing.T) {
						if c == nil {
							c = oncecache.MustNew(oncecache.Config[string, int]{
								IdleTimeout: time.Hour, TTLFunc: func(string, int) time.Duration { return time.Hour },
							})
						}
						remove(c)
						if n := c.Len(); n != 0 {
							t.Errorf("%d values are left", n)
						}
						c.Set("k", 1)
						if v, ok := c.Get("k"); v != 1 || !ok {
							t.Errorf("the key has %d, %t", v, ok)
						}
					})
				}
			})
		}
	}
}

// The time of a creation is that of its own clock.
func TestCreationsInABubble(t *testing.T) {
	took := make(chan time.Duration, 1)
	c := oncecache.MustNew(oncecache.Config[string, int]{
		RecordStats: true, OnCreate: func(_ string, d time.Duration, _ error) { took <- d },
	})
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		c.GetOrCreateContext(t.Context(), "k", func(context.Context, string) (int, error) {
			time.Sleep(time.Minute)
			for f := range c.InFlight() {
				if !f.Since.Equal(begun) {
					t.Errorf("the creation began %v, want %v", f.Since, begun)
				}
			}
			return 1, nil
		})
		if d := <-took; d != time.Minute {
			t.Errorf("the creation took %v", d)
		}
	})
}
