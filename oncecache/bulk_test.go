//go:build !modelcheck

package oncecache_test

import (
	"context"
	"errors"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/oncecache"
)

// squares makes the squares of its keys.
func squares(_ context.Context, keys []int) (map[int]int, error) {
	made := map[int]int{}
	for _, k := range keys {
		made[k] = k * k
	}
	return made, nil
}

func wantMany(t *testing.T, got map[int]int, err error, want map[int]int, wantErr error) {
	t.Helper()
	if !maps.Equal(got, want) || !errors.Is(err, wantErr) || wantErr == nil && err != nil {
		t.Errorf("%v, %v, want %v, %v", got, err, want, wantErr)
	}
}

// The function is called once, for what is missing, in order, without repeats.
func TestMany(t *testing.T) {
	for name, ctx := range contexts(t) {
		var c oncecache.Cache[int, int]
		c.Set(3, 33)
		var asked [][]int
		create := func(ctx context.Context, keys []int) (map[int]int, error) {
			asked = append(asked, slices.Clone(keys))
			clear(keys[1:]) // they are the function's
			return squares(ctx, asked[len(asked)-1])
		}
		got, err := c.GetOrCreateMany(ctx, []int{1, 2, 1, 3, 4, 2}, create)
		wantMany(t, got, err, map[int]int{1: 1, 2: 4, 3: 33, 4: 16}, nil)
		got, err = c.GetOrCreateMany(ctx, []int{4, 5, 1}, create)
		wantMany(t, got, err, map[int]int{4: 16, 5: 25, 1: 1}, nil)
		got, err = c.GetOrCreateMany(ctx, []int{4, 5}, create)
		wantMany(t, got, err, map[int]int{4: 16, 5: 25}, nil)
		got, err = c.GetOrCreateMany(ctx, nil, create)
		wantMany(t, got, err, map[int]int{}, nil)
		if len(asked) != 2 || !slices.Equal(asked[0], []int{1, 2, 4}) || !slices.Equal(asked[1], []int{5}) {
			t.Errorf("%s: asked for %v", name, asked)
		}
		wantEven(t, &c)
	}
}

// Keys without a value are left out, and whoever else waits for them is told.
func TestManyLeavesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		closed := map[int]int{}
		c := oncecache.MustNew(oncecache.Config[int, int]{Close: func(k, v int) error { closed[k] = v; return nil }})
		var other sync.WaitGroup
		got, err := c.GetOrCreateMany(t.Context(), []int{1, 2}, func(context.Context, []int) (map[int]int, error) {
			other.Go(func() {
				if _, err := c.GetOrCreate(2, func() (int, error) { panic("has begun") }); err != oncecache.ErrNotFound {
					t.Error(err)
				}
			})
			time.Sleep(time.Second)
			return map[int]int{1: 10, 9: 90}, nil
		})
		other.Wait()
		wantMany(t, got, err, map[int]int{1: 10}, nil)
		synctest.Wait() // what nobody has asked for is closed after the others have their values
		if !maps.Equal(closed, map[int]int{9: 90}) {
			t.Errorf("closed %v", closed)
		}
		if err := c.Close(t.Context()); err != nil || len(closed) != 2 {
			t.Errorf("%v, closed %v", err, closed)
		}
	})
}

// Reported bug 11, singleflightx: a panic of a batch strands other keys.
// However the function ends, all its keys end, and are free.
func TestT11_ManyFails(t *testing.T) {
	for _, name := range []string{"can end", "cannot"} {
		for how, tt := range map[string]struct {
			end    func()
			shared error
		}{
			"error":  {func() {}, errRefused},
			"panic":  {func() { panic("disk full") }, new(oncecache.PanicError)},
			"Goexit": {runtime.Goexit, oncecache.ErrGoexit},
		} {
			synctest.Test(t, func(t *testing.T) {
				ctx := contexts(t)[name]
				var c oncecache.Cache[int, int]
				c.Set(0, 7)
				var others sync.WaitGroup
				owner := startCall(func() (int, error) {
					got, err := c.GetOrCreateMany(ctx, []int{0, 1, 2}, func(context.Context, []int) (map[int]int, error) {
						for k := 1; k < 3; k++ {
							others.Go(func() {
								_, err := c.GetOrCreate(k, func() (int, error) { panic("has begun") })
								if p := new(oncecache.PanicError); how == "panic" && !errors.As(err, &p) || how != "panic" && (how != "error" || k != 1) && err != tt.shared {
									t.Errorf("%s, %s: %v", name, how, err)
								}
							})
						}
						synctest.Wait()
						tt.end()
						return map[int]int{1: 1}, errRefused
					})
					return len(got), err
				})
				r := owner.wait(t)
				others.Wait()
				switch {
				case how == "error" && (!errors.Is(r.err, errRefused) || r.value != 2),
					how == "panic" && r.panicked == nil,
					how == "Goexit" && !r.exited && !errors.Is(r.err, oncecache.ErrGoexit):
					t.Errorf("%s, %s: the owner got %+v", name, how, r)
				}
				got, err := c.GetOrCreateMany(ctx, []int{0, 1, 2}, squares)
				wantMany(t, got, err, map[int]int{0: 7, 1: 1, 2: 4}, nil)
				wantEven(t, &c)
			})
		}
	}
}

// Two calls that share keys do not wait for each other's functions.
func TestManyDoNotDeadlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c oncecache.Cache[int, int]
		var calls sync.WaitGroup
		for _, keys := range [][]int{{1, 2, 3}, {3, 2, 4}, {4, 1}} {
			calls.Go(func() {
				got, err := c.GetOrCreateMany(t.Context(), keys, func(ctx context.Context, keys []int) (map[int]int, error) {
					time.Sleep(time.Second)
					return squares(ctx, keys)
				})
				if len(got) != len(keys) || err != nil {
					t.Errorf("%v, %v", got, err)
				}
			})
		}
		calls.Wait()
		if got := c.Stats().Created; got != 4 {
			t.Errorf("%d created", got)
		}
	})
}

// The function goes on until nobody wants any of its keys.
func TestManyAreCalledOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c oncecache.Cache[int, int]
		mine, leave := context.WithCancel(t.Context())
		others, leaveOther := context.WithCancel(t.Context())
		var ended time.Duration
		began := time.Now()
		owner := startCall(func() (int, error) {
			got, err := c.GetOrCreateMany(mine, []int{1, 2}, func(ctx context.Context, _ []int) (map[int]int, error) {
				<-ctx.Done()
				ended = time.Since(began)
				return nil, ctx.Err()
			})
			return len(got), err
		})
		synctest.Wait()
		other := startCall(func() (int, error) { return c.Wait(others, 2) })
		synctest.Wait()
		leave()
		if r := owner.wait(t); !errors.Is(r.err, context.Canceled) {
			t.Errorf("%+v", r)
		}
		time.Sleep(time.Minute)
		leaveOther()
		if r := other.wait(t); r.err != context.Canceled {
			t.Errorf("%+v", r)
		}
		synctest.Wait()
		if ended != time.Minute {
			t.Errorf("called off after %v", ended)
		}
		wantEven(t, &c)
	})
}

// Reported bug 23, ConcurrentHashMap, Caffeine, Guava, Elasticsearch: loads that need each other deadlock.
// The function of many keys waits for itself if it asks for one of them.
func TestT23_CyclesOfMany(t *testing.T) {
	within(t, time.Minute, func() {
		for _, ctx := range contexts(t) {
			var c oncecache.Cache[int, int]
			_, err := c.GetOrCreateMany(ctx, []int{1, 2, 3}, func(ctx context.Context, _ []int) (map[int]int, error) {
				_, err := c.GetOrCreateContext(ctx, 4, func(ctx context.Context, _ int) (int, error) {
					_, err := c.GetOrCreateMany(ctx, []int{5, 3}, squares)
					return 0, err
				})
				return nil, err
			})
			wantSomeCycle(t, err, 4, 3, 4) // whichever of the two asks last
		}
	})
}

// The same where no context says so, but the goroutine does.
func TestManyRecurse(t *testing.T) {
	knowsGoroutines(t)
	var c oncecache.Cache[int, int]
	_, err := c.GetOrCreateMany(context.Background(), []int{1, 2}, func(context.Context, []int) (map[int]int, error) {
		_, err := c.GetOrCreateMany(context.Background(), []int{3, 2}, squares)
		return nil, err
	})
	wantCycle(t, err, 2, 2)
	wantEven(t, &c)
}

func TestManyOddities(t *testing.T) {
	var c oncecache.Cache[float64, int]
	nan := math.NaN()
	got, err := c.GetOrCreateMany(t.Context(), []float64{nan, 1, nan}, func(_ context.Context, keys []float64) (map[float64]int, error) {
		if len(keys) != 3 {
			t.Error(keys)
		}
		return map[float64]int{1: 1}, nil
	})
	if len(got) != 1 || err != nil || c.Len() != 1 {
		t.Errorf("%v, %v", got, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	got, err = c.GetOrCreateMany(ended, []float64{1, 2}, nil64)
	if len(got) != 1 || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", got, err)
	}
	c.Close(t.Context())
	got, err = c.GetOrCreateMany(t.Context(), []float64{1, 2}, nil64)
	if len(got) != 0 || !errors.Is(err, oncecache.ErrClosed) {
		t.Errorf("%v, %v", got, err)
	}
	for want, f := range map[string]func(){
		"oncecache: GetOrCreateMany called with a nil context":  func() { c.GetOrCreateMany(noContext, nil, nil64) },
		"oncecache: GetOrCreateMany called with a nil function": func() { c.GetOrCreateMany(t.Context(), nil, nil) },
	} {
		func() {
			defer func() {
				if got := recover(); got != want {
					t.Error(got)
				}
			}()
			f()
		}()
	}
}

func nil64(context.Context, []float64) (map[float64]int, error) { panic("not asked") }

// Close functions delay nobody who waits for another key, and none is left out
// because of how another ends, or ErrorTTL.
func TestManyAreClosed(t *testing.T) {
	for name, ttl := range map[string]func(int, error) time.Duration{
		"":                nil,
		"ErrorTTL panics": func(int, error) time.Duration { panic("asked") },
	} {
		synctest.Test(t, func(t *testing.T) {
			closed := map[int]int{}
			var mu sync.Mutex
			c := oncecache.MustNew(oncecache.Config[int, int]{ErrorTTLFunc: ttl, Close: func(k, v int) error {
				time.Sleep(time.Hour)
				mu.Lock()
				defer mu.Unlock()
				if closed[v]++; len(closed) == 2 || len(closed) == 3 {
					runtime.Goexit()
				}
				return nil
			}})
			began := time.Now()
			done := make(chan struct{})
			go func() {
				defer close(done)
				defer func() {
					if x := recover(); x != nil && ttl == nil {
						t.Error(x)
					}
				}()
				c.GetOrCreateMany(context.Background(), []int{1, 2, 3}, func(context.Context, []int) (map[int]int, error) {
					c.Set(1, 7)
					time.Sleep(time.Second)
					return map[int]int{1: 1, 2: 2, 8: 8, 9: 9, 10: 10}, nil
				})
			}()
			synctest.Wait()
			if v, err := c.Wait(t.Context(), 2); time.Since(began) != time.Second || ttl == nil && (v != 2 || err != nil) {
				t.Errorf("%s: %d, %v after %v", name, v, err, time.Since(began))
			}
			<-done
			synctest.Wait()
			if c.Close(t.Context()); !maps.Equal(closed, map[int]int{1: 1, 2: 1, 7: 1, 8: 1, 9: 1, 10: 1}) {
				t.Errorf("%s: closed %v", name, closed)
			}
		})
	}
}

// A panic is told once: to the caller, or by Close.
func TestPanicsOfManyAreToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, set := range [][]int{{}, {1}, {2}, {1, 2}} {
			var c oncecache.Cache[int, int]
			x := startCall(func() (int, error) {
				_, err := c.GetOrCreateMany(t.Context(), []int{1, 2}, func(context.Context, []int) (map[int]int, error) {
					for _, k := range set {
						c.Set(k, 7)
					}
					panic("disk full")
				})
				return 0, err
			})
			told := 0
			if r := x.wait(t); r.panicked != nil {
				told++
			}
			synctest.Wait()
			if err := c.Close(t.Context()); err != nil {
				told++
			}
			if told != 1 {
				t.Errorf("%v set: told %d times", set, told)
			}
		}
	})
}

// Keys that cannot be compared are a mistake of the caller, as elsewhere.
func TestManyUncomparable(t *testing.T) {
	var c oncecache.Cache[any, int]
	p := panicOf(func() {
		c.GetOrCreateMany(t.Context(), []any{1, []int{2}}, func(context.Context, []any) (map[any]int, error) { panic("called") })
	})
	if s, ok := p.(string); !ok || !strings.HasPrefix(s, "oncecache: ") {
		t.Error(p)
	}
}
