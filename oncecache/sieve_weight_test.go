//go:build !modelcheck

package oncecache_test

import (
	"context"
	"fmt"
	"math/rand/v2"
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

// weighing is a cache whose values are their own weights.
func weighing(config oncecache.Config[string, int], bound int64) *removals {
	config.MaxWeight, config.Weight = bound, func(_ string, v int) int64 { return int64(v) }
	return listen(config)
}

func (r *removals) wantWeight(t *testing.T, want int64, keys ...string) {
	t.Helper()
	if got := r.Stats().Weight; got != want {
		t.Errorf("weight %d, want %d", got, want)
	}
	if got := sorted(r.Cache); !slices.Equal(got, keys) {
		t.Errorf("keys %v, want %v", got, keys)
	}
	oncecache.Places(r.Cache)
}

// The sum of the weights stays within the bound: others go until there is room, by SIEVE.
func TestMaxWeight(t *testing.T) {
	r := weighing(oncecache.Config[string, int]{}, 10)
	r.Set("a", 4)
	r.Set("b", 3)
	r.Set("c", 3)
	r.wantWeight(t, 10, "a", "b", "c")
	r.Get("a")
	r.Set("d", 5) // a was used, so b and c go
	r.wantWeight(t, 9, "a", "d")
	r.Set("e", 10)
	r.wantWeight(t, 10, "e")
	r.Set("f", 0)
	r.wantWeight(t, 10, "e", "f")
	if n := r.Stats().Evicted; n != 4 {
		t.Errorf("%d evicted", n)
	}
	r.Close(t.Context())
	if got := r.Stats().Weight; got != 0 {
		t.Errorf("weight %d after Close", got)
	}
}

// Both bounds hold.
func TestMaxWeightAndMaxEntries(t *testing.T) {
	r := weighing(oncecache.Config[string, int]{MaxEntries: 2}, 10)
	r.Set("a", 1)
	r.Set("b", 1)
	r.Set("c", 1)
	r.wantWeight(t, 2, "b", "c")
	r.Set("d", 9)
	r.wantWeight(t, 10, "c", "d")
}

// Reported bug 39, ristretto: the sum of weights drifts from what is there.
// T39 ristretto #96: the weight of what is replaced or removed is given back, however
// that happens, so that the sum is that of what is there.
func TestT39_WeightsAreGivenBack(t *testing.T) {
	ctx := context.Background()
	synctest.Test(t, func(t *testing.T) {
		r := weighing(oncecache.Config[string, int]{
			IdleTimeout: time.Hour, ErrorTTLFunc: func(string, error) time.Duration { return time.Minute },
		}, 100)
		for name, change := range map[string]func() int64{
			"Set":          func() int64 { r.Set("k", 20); return 20 },
			"the very one": func() int64 { r.Set("k", 10); return 10 },
			"Refresh":      func() int64 { r.Refresh(ctx, "k", anew(makes(30))); return 30 },
			"a failure": func() int64 {
				r.Refresh(ctx, "k", anew(func(context.Context, string) (int, error) { return failing() }))
				return 10
			},
			"Delete":        func() int64 { r.Delete("k"); return 0 },
			"Clear":         func() int64 { r.Clear(); return 0 },
			"idleness":      func() int64 { time.Sleep(2 * time.Hour); return 0 },
			"a heavy Set":   func() int64 { r.Set("k", 101); return 0 },
			"CompareAndDel": func() int64 { oncecache.CompareAndDelete(r.Cache, "k", 10); return 0 },
			"Discard": func() int64 {
				l, _ := r.Acquire(ctx, "k", makes(1))
				l.Discard()
				return 0
			},
			"Delete while a lease holds it": func() int64 {
				l, _ := r.Acquire(ctx, "k", makes(1))
				defer l.Release()
				r.Delete("k")
				return r.Stats().Weight // no longer the key's
			},
			"an error": func() int64 { r.Delete("k"); r.GetOrCreate("k", failing); return 0 },
			"a creation that Set overtakes": func() int64 {
				r.Delete("k")
				r.GetOrCreate("k", func() (int, error) { r.Set("k", 7); return 50, nil })
				return 7
			},
			"a batch": func() int64 {
				r.GetOrCreateMany(ctx, []string{"k", "l"}, func(context.Context, []string) (map[string]int, error) {
					return map[string]int{"l": 5}, nil
				})
				return 15
			},
		} {
			r.Clear()
			r.GetOrCreate("k", with(10))
			want := change()
			if got := r.Stats().Weight; got != want {
				t.Errorf("%s: weight %d, want %d", name, got, want)
			}
			oncecache.Places(r.Cache)
		}
		r.Close(t.Context())
	})
}

// A value heavier than the bound evicts nothing, its callers
// get it, and it is told and closed once. What the key had leaves.
func TestHeavyValuesEvictNothing(t *testing.T) {
	ctx := context.Background()
	for _, closes := range []bool{false, true} {
		for _, w := range ways {
			t.Run(fmt.Sprintf("%s, Close %t", w.name, closes), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var mu sync.Mutex
					closed := 0
					config := oncecache.Config[string, int]{}
					if closes {
						config.Close = func(_ string, v int) error {
							mu.Lock()
							defer mu.Unlock()
							if v == 11 {
								closed++
							}
							return nil
						}
					}
					r := weighing(config, 10)
					r.Set("a", 4)
					r.Set("b", 6)
					if v, err := w.ask(ctx, r.Cache, "k", makes(11)); v != 11 || err != nil {
						t.Error(v, err)
					}
					synctest.Wait()
					r.wantWeight(t, 10, "a", "b")
					r.want(t, removal{"k", 11, discarded, nil})
					if w.name == "Refresh" { // of a value that is there
						if v, err := w.ask(ctx, r.Cache, "b", makes(11)); v != 11 || err != nil {
							t.Error(v, err)
						}
						synctest.Wait()
						r.wantWeight(t, 4, "a")
						r.want(t, removal{"b", 6, replaced, nil}, removal{"b", 11, discarded, nil})
					}
					if err := r.Close(t.Context()); err != nil || oncecache.Pending(r.Cache) != 0 {
						t.Errorf("%v, %d pending", err, oncecache.Pending(r.Cache))
					}
					want := 0
					if closes {
						want = 1
						if w.name == "Refresh" {
							want = 2
						}
					}
					if closed != want {
						t.Errorf("closed %d times, want %d", closed, want)
					}
				})
			})
		}
	}
}

// Set of a value that is too heavy ends what is there, and gives it to those who wait.
func TestHeavySet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := weighing(oncecache.Config[string, int]{}, 10)
		if old, ok := r.Set("k", 11); ok || old != 0 {
			t.Error(old, ok)
		}
		r.want(t, removal{"k", 11, discarded, nil})
		r.Set("k", 5)
		if stored(r.SetIfAbsent("l", 12)) || stored(r.SetIfAbsent("k", 12)) {
			t.Error("SetIfAbsent has stored what is too heavy")
		}
		r.want(t)
		if old, ok := r.Set("k", 11); !ok || old != 5 {
			t.Error(old, ok)
		}
		r.want(t, removal{"k", 5, replaced, nil}, removal{"k", 11, discarded, nil})
		r.wantWeight(t, 0)

		flight := begin(t, r.Cache, "k")
		waiter := start(r.Cache, "k", unexpected(t))
		synctest.Wait()
		r.Set("k", 13)
		if got := waiter.wait(t); got.value != 13 || got.err != nil {
			t.Error(got)
		}
		flight.end <- with(6)
		if got := flight.wait(t); got.value != 13 || got.err != nil {
			t.Error(got)
		}
		r.want(t, removal{"k", 6, discarded, nil}, removal{"k", 13, discarded, nil})
		r.wantWeight(t, 0)
		if creating, entries := oncecache.Creating(r.Cache); creating != 0 || entries != 0 {
			t.Errorf("%d creations, %d entries", creating, entries)
		}
	})
}

// The very value stays as it is, with the weight that it came with, though it would be too
// heavy by now.
func TestVeryValueHasBecomeHeavy(t *testing.T) {
	removed := 0
	c := oncecache.MustNew(oncecache.Config[string, *int64]{
		MaxWeight: 10, Weight: func(_ string, v *int64) int64 { return *v },
		OnRemove: func(string, *int64, oncecache.Reason, error) { removed++ },
	})
	v := new(int64)
	*v = 5
	c.Set("k", v)
	*v = 11
	if old, ok := c.Set("k", v); old != v || !ok || c.Len() != 1 || c.Stats().Weight != 5 || removed != 0 {
		t.Errorf("Set returns %v, %v; %d values, %+v, %d removed", old, ok, c.Len(), c.Stats(), removed)
	}
	if err := c.Close(t.Context()); err != nil || removed != 1 || oncecache.Pending(c) != 0 {
		t.Errorf("%v, %d removed", err, removed)
	}
}

// It lives as long as one that is not too heavy, and is due again, whether a Renew has been under
// way or not. If TTL panics, it stays too.
func TestVeryValueHasBecomeHeavyAndIsAsNew(t *testing.T) {
	for _, renews := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var closed, calls atomic.Int32
			var panics atomic.Bool
			config := oncecache.Config[string, *int64]{
				MaxWeight: 10, Weight: func(_ string, v *int64) int64 { return *v },
				Close: func(_ string, v *int64) error {
					if *v != 0 {
						closed.Add(1)
					}
					return nil
				},
				TTLFunc: func(string, *int64) time.Duration {
					if panics.Load() {
						panic("asked")
					}
					return time.Minute
				},
			}
			if renews {
				config.RenewAhead = 20 * time.Second
				config.Renew = func(context.Context, string, *int64) (*int64, error) {
					calls.Add(1)
					time.Sleep(5 * time.Second)
					return new(int64), nil // too late, as Set has come
				}
			}
			c := oncecache.MustNew(config)
			v := new(int64)
			c.Set("k", v)
			*v = 11
			for i := range int32(3) {
				time.Sleep(50 * time.Second)
				if got, ok := c.Get("k"); !ok || got != v {
					t.Fatalf("renews %t: %v, %t after Set number %d", renews, got, ok, i)
				}
				synctest.Wait()
				if n := calls.Load(); renews && n != i+1 {
					t.Errorf("%d calls of Renew after Set number %d", n, i)
				}
				if old, ok := c.Set("k", v); !ok || old != v {
					t.Errorf("Set returns %v, %t", old, ok)
				}
				synctest.Wait()
			}
			panics.Store(true)
			func() {
				defer func() {
					if p := recover(); p != "asked" {
						t.Errorf("Set panics with %v", p)
					}
				}()
				c.Set("k", v)
			}()
			panics.Store(false) // Renew may ask too
			if _, ok := c.Get("k"); !ok || closed.Load() != 0 {
				t.Errorf("renews %t: it is there: %t, closed %d times", renews, ok, closed.Load())
			}
			time.Sleep(time.Minute + time.Millisecond)
			synctest.Wait()
			if _, ok := c.Get("k"); ok || closed.Load() != 1 {
				t.Errorf("renews %t: it is there: %t, closed %d times", renews, ok, closed.Load())
			}
			if err := c.Close(t.Context()); err != nil || closed.Load() != 1 || oncecache.Pending(c) != 0 {
				t.Errorf("Close returns %v, closed %d times, %d pending", err, closed.Load(), oncecache.Pending(c))
			}
		})
	}
}

// Callers with leases hold what is too heavy: it is closed after the last.
func TestHeavyValuesAreLeased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := weighing(oncecache.Config[string, int]{Close: func(string, int) error { return nil }}, 10)
		l, err := r.Acquire(context.Background(), "k", makes(11))
		if err != nil || l.Value() != 11 {
			t.Error(err)
		}
		r.want(t)
		l.Release()
		synctest.Wait()
		r.want(t, removal{"k", 11, discarded, nil})
		r.wantWeight(t, 0)
	})
}

// Leased values stay and count, as with MaxEntries.
func TestLeasesHoldWeight(t *testing.T) {
	r := weighing(oncecache.Config[string, int]{}, 10)
	l, _ := r.Acquire(context.Background(), "a", makes(8))
	r.Set("b", 5)
	r.wantWeight(t, 13, "a", "b")
	r.Set("c", 2)
	r.wantWeight(t, 10, "a", "c")
	l.Release()
	r.Set("d", 9)
	r.wantWeight(t, 9, "d")
}

// Sums of any number of the greatest weights do not overflow.
func TestWeightsDoNotOverflow(t *testing.T) {
	const most = 1 << 46
	c := oncecache.MustNew(oncecache.Config[int, int]{MaxWeight: most, Weight: func(int, int) int64 { return most }})
	var leases []oncecache.Lease[int, int]
	for k := range 9 {
		// The context cannot end, so no goroutine of the cache still makes room after Acquire.
		l, err := c.Acquire(context.Background(), k, func(context.Context, int) (int, error) { return k, nil })
		if err != nil {
			t.Fatal(err)
		}
		leases = append(leases, l)
		if got := c.Stats().Weight; got != int64(k+1)*most || c.Len() != k+1 {
			t.Errorf("weight %d of %d", got, c.Len())
		}
	}
	for i := range leases {
		leases[i].Release()
	}
	if c.Set(9, 9); c.Len() != 1 || c.Stats().Weight != most {
		t.Errorf("%d left, weight %d", c.Len(), c.Stats().Weight)
	}
	if c.Delete(9); c.Stats().Weight != 0 {
		t.Errorf("weight %d of nothing", c.Stats().Weight)
	}
}

// Weight is called once for each value, and what it does wrong is the fault of the function
// that made the value, which is closed.
func TestWeightMisbehaves(t *testing.T) {
	for name, tt := range map[string]struct {
		weight func() int64
		text   string
	}{
		"below zero": {func() int64 { return -1 }, "oncecache: Config.Weight returned -1 for key k: must not be negative"},
		"panics":     {func() int64 { panic("disk full") }, "disk full"},
		"exits":      {func() int64 { runtime.Goexit(); return 0 }, "exit"},
	} {
		for _, w := range ways {
			t.Run(name+" in "+w.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					calls := 0
					var closed []int
					c := oncecache.MustNew(oncecache.Config[string, int]{
						MaxWeight: 10, Close: func(_ string, v int) error { closed = append(closed, v); return nil },
						Weight: func(_ string, v int) int64 {
							if v == 1 {
								return 1
							}
							calls++
							return tt.weight()
						},
					})
					if w.name == "Refresh" {
						c.Set("k", 1)
					}
					k := startCall(func() (int, error) { return w.ask(t.Context(), c, "k", makes(2)) })
					synctest.Wait()
					<-k.done
					said := fmt.Sprint(k.panicked, k.err)
					if name == "exits" && (k.exited || k.err == oncecache.ErrGoexit) {
						said = "exit"
					}
					if !strings.Contains(said, tt.text) || calls != 1 {
						t.Errorf("%s after %d calls of Weight", said, calls)
					}
					if !slices.Equal(closed, []int{2}) {
						t.Errorf("closed %v", closed)
					}
					if got, want := c.Stats(), c.Len(); got.Panicked != 1 || got.Created != 0 || got.Weight != int64(want) {
						t.Errorf("%+v, %d left", got, want)
					}
					if v, err := w.ask(t.Context(), c, "k", makes(1)); v != 1 || err != nil {
						t.Error(v, err)
					}
					if err := c.Close(t.Context()); err != nil && name == "exits" || oncecache.Pending(c) != 0 {
						t.Errorf("%v, %d pending", err, oncecache.Pending(c))
					}
				})
			})
		}
		t.Run(name+" in Set", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := 0
				c := oncecache.MustNew(oncecache.Config[string, int]{
					MaxWeight: 10, Close: func(string, int) error { s++; return nil }, Weight: func(string, int) int64 { return tt.weight() },
				})
				for _, set := range []func(){func() { c.Set("k", 2) }, func() { c.SetIfAbsent("k", 2) }} {
					k := startCall(func() (int, error) { set(); return 0, nil })
					<-k.done
					if name != "exits" && k.panicked != tt.text || name == "exits" && !k.exited {
						t.Errorf("%+v", k.result)
					}
				}
				if c.Len() != 0 || s != 0 || oncecache.Pending(c) != 0 {
					t.Errorf("%d values, %d closed, %d pending", c.Len(), s, oncecache.Pending(c))
				}
			})
		})
	}
}

// Reported bug 25, golang-lru, lfu-go: a callback that uses the cache deadlocks.
// Weight may use the cache, also for the key of which it is asked.
func TestT25_WeightUsesTheCache(t *testing.T) {
	for _, w := range ways {
		synctest.Test(t, func(t *testing.T) {
			var c *oncecache.Cache[string, int]
			c = oncecache.MustNew(oncecache.Config[string, int]{
				MaxWeight: 10, Close: func(string, int) error { return nil },
				Weight: func(k string, v int) int64 {
					if v != harmless {
						useAll(t, c, k)
					}
					return 1
				},
			})
			if v, err := w.ask(t.Context(), c, "k", makes(1)); v != 1 || err != nil {
				t.Errorf("%s: %d, %v", w.name, v, err)
			}
			if err := c.Close(t.Context()); err != nil || c.Stats().Weight != 0 {
				t.Errorf("%s: %v, weight %d", w.name, err, c.Stats().Weight)
			}
		})
	}
}

// At rest the weight is that of what is there, whatever many goroutines have done.
func TestStressWeights(t *testing.T) {
	const keys, bound = 40, 100
	c := oncecache.MustNew(oncecache.Config[int, int]{MaxWeight: bound, Weight: func(_, v int) int64 { return int64(v) % 120 }})
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), 1))
			for range 5000 {
				k, v := rng.IntN(keys), rng.IntN(1000)
				switch rng.IntN(6) {
				case 0, 1:
					c.Set(k, v)
				case 2:
					c.Delete(k)
				case 3:
					c.Refresh(t.Context(), k, anew(func(context.Context, int) (int, error) { return v, nil }))
				case 4:
					if l, err := c.Acquire(t.Context(), k, func(context.Context, int) (int, error) { return v, nil }); err == nil {
						l.Release()
					}
				case 5:
					c.GetOrCreate(k, func() (int, error) { return v, nil })
				}
			}
		})
	}
	all.Wait()
	// Creations whose callers could leave have goroutines of their own, which may still make room.
	var sum, weight int64
	var places, values int
	for start := time.Now(); time.Since(start) < 10*time.Second; runtime.Gosched() {
		sum, weight, places, values = 0, c.Stats().Weight, oncecache.Places(c), c.Len()
		for _, v := range c.All() {
			sum += int64(v) % 120
		}
		if weight == sum && places == values {
			break
		}
	}
	if weight != sum || sum > bound {
		t.Errorf("weight %d, the values weigh %d", weight, sum)
	}
	if places != values {
		t.Errorf("%d places, %d values", places, values)
	}
}

// A value that is too heavy evicts nothing either where Set or Delete has taken its creation out
// of the table, and has not ended it.
func TestHeavyCreationEndsWithinSetOrDelete(t *testing.T) {
	for name, begins := range map[string]func(*oncecache.Cache[string, int]) (finish func() (int, bool)){
		"Set":    func(c *oncecache.Cache[string, int]) func() (int, bool) { return oncecache.StartSet(c, "k", 1) },
		"Delete": func(c *oncecache.Cache[string, int]) func() (int, bool) { return oncecache.StartDelete(c, "k") },
	} {
		c := oncecache.MustNew(oncecache.Config[string, int]{MaxWeight: 100, Weight: func(_ string, v int) int64 { return int64(v) }})
		c.Set("a", 10)
		c.Set("b", 10)
		creator := begin(t, c, "k")
		finish := begins(c)
		creator.end <- with(1000)
		wantAll(t, []*call{creator.call}, result{value: 1000})
		if old, had := finish(); old != 0 || had {
			t.Errorf("%s reports %d, %t", name, old, had)
		}
		wantGet(t, c, "a", 10)
		wantGet(t, c, "b", 10)
		if got := c.Stats(); got.Evicted != 0 || got.Weight != 20 {
			t.Errorf("%s: %d are evicted, the weight is %d", name, got.Evicted, got.Weight)
		}
	}
}
