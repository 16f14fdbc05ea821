//go:build !modelcheck

package oncecache_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
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

// Keys that cannot be compared are a mistake of the caller, as elsewhere. Nothing has begun then.
func TestManyUncomparable(t *testing.T) {
	var c oncecache.Cache[any, int]
	p := panicOf(func() {
		c.GetOrCreateMany(t.Context(), []any{1, []int{2}}, func(context.Context, []any) (map[any]int, error) { panic("called") })
	})
	if s, ok := p.(string); !ok || !strings.HasPrefix(s, "oncecache: ") {
		t.Error(p)
	}
	for f := range c.InFlight() {
		t.Errorf("in flight: %+v", f)
	}
}

// A function that panics takes no lease of another's creation with it, which has
// ended meanwhile.
func TestManyThatPanicsHoldsNothing(t *testing.T) {
	for _, name := range []string{"on the caller's goroutine", "on its own"} {
		synctest.Test(t, func(t *testing.T) {
			ctx := context.Background()
			if name == "on its own" {
				ctx = t.Context()
			}
			s := newShop()
			end := make(chan struct{})
			other := start(s.Cache, "other", func() (int, error) { <-end; return 1, nil })
			synctest.Wait()
			many := startCall(func() (int, error) {
				_, err := s.GetOrCreateMany(ctx, []string{"k", "other"}, func(context.Context, []string) (map[string]int, error) {
					close(end)
					synctest.Wait()
					panic("disk full")
				})
				return 0, err
			})
			if r := many.wait(t); r.panicked == nil {
				t.Errorf("%s: %+v", name, r)
			}
			other.wait(t)
			s.Delete("other")
			s.wantClosed(t, 1)
			if err := s.Close(t.Context()); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// KeyErrors that say nothing are no error.
func TestManyNilKeyErrors(t *testing.T) {
	for name, none := range map[string]oncecache.KeyErrors[string]{"nil": nil, "empty": {}} {
		var c oncecache.Cache[string, int]
		got, err := c.GetOrCreateMany(t.Context(), []string{"a", "b", "c"}, func(context.Context, []string) (map[string]int, error) {
			return map[string]int{"a": 0, "b": 1}, none
		})
		if b, ok := got["b"]; len(got) != 2 || b != 1 || !ok || err != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		wantAbsent(t, &c, "c")
	}
}

// A zero value beside an error is no value, and is not closed, however the call
// ends, and whether its key was asked for or not.
func TestManyClosesNoZeroBesideAnError(t *testing.T) {
	for name, ttl := range map[string]func(string, error) time.Duration{
		"ErrorTTL":        func(string, error) time.Duration { return 0 },
		"ErrorTTL panics": func(string, error) time.Duration { panic("asked") },
	} {
		for of, err := range map[string]error{
			"all":  errRefused,
			"keys": oncecache.KeyErrors[string]{"a": errRefused, "other": errRefused},
		} {
			c := oncecache.MustNew(oncecache.Config[string, *int]{ErrorTTLFunc: ttl, Close: func(k string, v *int) error {
				if v == nil {
					t.Errorf("%s: nothing is closed for %s beside an error of %s", name, k, of)
				}
				return nil
			}})
			func() {
				defer func() { recover() }()
				_, got := c.GetOrCreateMany(t.Context(), []string{"a"}, func(context.Context, []string) (map[string]*int, error) {
					return map[string]*int{"a": nil, "other": nil}, err
				})
				if !errors.Is(got, errRefused) {
					t.Errorf("%s: %v", name, got)
				}
			}()
			if err := c.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
}

// oddError ends the goroutine of whoever asks what it is.
type oddError struct{ asked func() }

func (oddError) Error() string   { return "odd" }
func (e oddError) As(any) bool   { e.asked(); return false }
func (e oddError) Is(error) bool { e.asked(); return false }

// Nothing is lost if an error does not say what it is.
func TestManyWithOddErrors(t *testing.T) {
	for name, asked := range map[string]func(){"panics": func() { panic("asked") }, "exits": runtime.Goexit} {
		synctest.Test(t, func(t *testing.T) {
			s := newShop()
			many := startCall(func() (int, error) {
				_, err := s.GetOrCreateMany(t.Context(), []string{"a", "b"}, func(context.Context, []string) (map[string]int, error) {
					return map[string]int{"a": 1, "b": 2, "other": 3}, oddError{asked}
				})
				return 0, err
			})
			if r := many.wait(t); r.panicked == nil && r.err == nil {
				t.Errorf("%s: %+v", name, r)
			}
			synctest.Wait()
			s.Close(t.Context())
			if slices.Sort(s.closed); !slices.Equal(s.closed, []int{1, 2, 3}) {
				t.Errorf("%s: closed %v", name, s.closed)
			}
		})
	}
}

// A key that is repeated is created once and fails once, its value is leased as often
// as it is named, and closed once; also if its creation has to wait for its turn.
func TestManyRepeats(t *testing.T) {
	for _, fails := range []bool{false, true} {
		for name, waits := range map[string]bool{"at once": false, "in its turn": true} {
			synctest.Test(t, func(t *testing.T) {
				s := newShop()
				ctx, calls := t.Context(), 0
				asked := errors.New("asked")
				create := func(_ context.Context, keys []string) (map[string]int, error) {
					calls++
					if !slices.Equal(keys, []string{"k"}) {
						t.Errorf("%s: asked for %v", name, keys)
					}
					if fails {
						return nil, asked
					}
					return map[string]int{"k": 2}, nil
				}
				var refresh *call
				if waits {
					s.Set("k", 1)
					refresh = startCall(func() (int, error) {
						return s.Refresh(ctx, "k", anew(func(context.Context, string) (int, error) {
							time.Sleep(time.Second)
							return 0, asked
						}))
					})
					synctest.Wait()
					oncecache.CompareAndDelete(s.Cache, "k", 1)
				}
				got, err := s.GetOrCreateMany(ctx, []string{"k", "k", "k"}, create)
				if fails {
					var each oncecache.KeyErrors[string]
					errors.As(err, &each)
					if len(got) != 0 || len(each) != 1 || each["k"] != asked {
						t.Errorf("%s: %v, %v", name, got, err)
					}
				} else if len(got) != 1 || got["k"] != 2 || err != nil {
					t.Errorf("%s: %v, %v", name, got, err)
				}
				if calls != 1 {
					t.Errorf("%s: %d calls", name, calls)
				}
				if waits {
					refresh.wait(t)
				}
				s.Delete("k")
				if err := s.Close(ctx); err != nil || oncecache.Pending(s.Cache) != 0 {
					t.Errorf("%s: %v", name, err)
				}
				want := 0
				if waits {
					want++
				}
				if !fails {
					want++
				}
				if len(s.closed) != want {
					t.Errorf("%s: closed %v", name, s.closed)
				}
			})
		}
	}
}

// A key that is repeated is asked for once, also if its creation has to wait and the
// function then leaves it out.
func TestManyRepeatsOfWhatIsLeftOut(t *testing.T) {
	for name, hold := range map[string]func(t *testing.T) (c *oncecache.Cache[int, int], end func()){
		"a lease": func(t *testing.T) (*oncecache.Cache[int, int], func()) {
			c := oncecache.MustNew(oncecache.Config[int, int]{Close: func(int, int) error { return nil }, CloseBeforeCreate: true})
			l, err := c.Acquire(t.Context(), 0, func(context.Context, int) (int, error) { return 1, nil })
			if err != nil {
				t.Fatal(err)
			}
			c.Delete(0)
			return c, l.Release
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, end := hold(t)
				go func() { time.Sleep(time.Second); end() }()
				calls := 0
				got, err := c.GetOrCreateMany(t.Context(), []int{0, 0, 0}, func(context.Context, []int) (map[int]int, error) {
					calls++
					return nil, nil
				})
				if calls != 1 || len(got) != 0 || err != nil {
					t.Errorf("%d calls, %v, %v", calls, got, err)
				}
			})
		})
	}
}

// A batch holds leases of its values until it returns if there is a Close function, but not with CloseBeforeCreate.
func TestManyHoldsWhatIsClosed(t *testing.T) {
	closes := func(int, int) error { return nil }
	for name, tt := range map[string]struct {
		config oncecache.Config[int, int]
		stays  bool
	}{
		"values that nobody closes": {oncecache.Config[int, int]{MaxEntries: 1}, false},
		"Close":                     {oncecache.Config[int, int]{MaxEntries: 1, Close: closes}, true},
		"CloseBeforeCreate":         {oncecache.Config[int, int]{MaxEntries: 1, Close: closes, CloseBeforeCreate: true}, false},
	} {
		c := oncecache.MustNew(tt.config)
		c.Set(1, 1)
		var left map[int]int
		got, err := c.GetOrCreateMany(t.Context(), []int{1, 2}, func(ctx context.Context, keys []int) (map[int]int, error) {
			c.Set(3, 9)
			left = maps.Collect(c.All())
			return squares(ctx, keys)
		})
		wantMany(t, got, err, map[int]int{1: 1, 2: 4}, nil)
		if _, stays := left[1]; stays != tt.stays {
			t.Errorf("%s: %v", name, left)
		}
	}
}

// A batch uses the values that it holds until it returns.
func TestIdleTimeoutBeginsWhenTheBatchEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := oncecache.MustNew(oncecache.Config[string, int]{IdleTimeout: 40 * time.Second, Close: func(string, int) error { return nil }})
		c.Set("held", 1)
		_, err := c.GetOrCreateMany(t.Context(), []string{"held", "new"}, func(context.Context, []string) (map[string]int, error) {
			time.Sleep(59 * time.Second) // sweeps every 20 seconds find it in use
			return map[string]int{"new": 2}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		returned := time.Now()
		for {
			if _, ok := value(c, "held"); !ok {
				break
			}
			time.Sleep(time.Second)
		}
		if idle := time.Since(returned); idle < 40*time.Second || idle > 61*time.Second {
			t.Errorf("removed %v after its last use", idle)
		}
		c.Close(t.Context())
	})
}

// value returns what k has, without using it.
func value(c *oncecache.Cache[string, int], k string) (int, bool) {
	for key, v := range c.All() {
		if key == k {
			return v, true
		}
	}
	return 0, false
}

// If the cache is closed before the function of many keys is called, that is the cause of its
// context's end.
func TestManyAreClosedBeforeTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c oncecache.Cache[int, int]
		ended, end := context.WithCancel(t.Context())
		end()
		asked := 0
		mine, leave := context.WithCancel(t.Context())
		defer leave()
		between := &asking{mine, func() {
			if asked++; asked == 2 { // the first key has its creation, and the second none
				c.Close(ended)
			}
		}}
		var cause error
		_, err := c.GetOrCreateMany(between, []int{1, 2}, func(ctx context.Context, _ []int) (map[int]int, error) {
			cause = context.Cause(ctx)
			return nil, cause
		})
		synctest.Wait()
		if !errors.Is(err, oncecache.ErrClosed) || cause != oncecache.ErrClosed {
			t.Errorf("%v; the cause is %v", err, cause)
		}
	})
}

// asking is a context that says when it is asked whether it has ended.
type asking struct {
	context.Context
	asked func()
}

func (c *asking) Err() error { c.asked(); return c.Context.Err() }

// What the function makes beside an error is kept, if it is clear that it is a
// value: what a KeyErrors says nothing about, or what is not zero.
func TestManyKeepsValuesBesideErrors(t *testing.T) {
	errMoved := errors.New("moved")
	for name, tt := range map[string]struct {
		made map[int]int
		err  error
		want map[int]int
		errs map[int]error // of the keys 1 to 4; ErrNotFound: left out
	}{
		"KeyErrors": {map[int]int{1: 10, 2: 0, 3: 30}, oncecache.KeyErrors[int]{3: errRefused},
			map[int]int{1: 10, 2: 0}, map[int]error{3: errRefused, 4: oncecache.ErrNotFound}},
		"KeyErrors, wrapped": {map[int]int{1: 10}, fmt.Errorf("query: %w", oncecache.KeyErrors[int]{2: errRefused, 3: errMoved}),
			map[int]int{1: 10}, map[int]error{2: errRefused, 3: errMoved, 4: oncecache.ErrNotFound}},
		"KeyErrors of other keys": {map[int]int{1: 10, 2: 20, 3: 30, 4: 0}, oncecache.KeyErrors[int]{9: errRefused},
			map[int]int{1: 10, 2: 20, 3: 30, 4: 0}, nil},
		"an error": {map[int]int{1: 10, 2: 0}, errRefused,
			map[int]int{1: 10}, map[int]error{2: errRefused, 3: errRefused, 4: errRefused}},
		"an error and nothing":       {nil, errRefused, map[int]int{}, map[int]error{1: errRefused, 2: errRefused, 3: errRefused, 4: errRefused}},
		"ErrNotFound":                {map[int]int{1: 10}, oncecache.ErrNotFound, map[int]int{1: 10}, map[int]error{2: oncecache.ErrNotFound, 3: oncecache.ErrNotFound, 4: oncecache.ErrNotFound}},
		"no error, and a zero value": {map[int]int{1: 0}, nil, map[int]int{1: 0}, map[int]error{2: oncecache.ErrNotFound}},
	} {
		for which := range contexts(t) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var closed []int
				c := oncecache.MustNew(oncecache.Config[int, int]{Close: func(k, v int) error {
					mu.Lock()
					defer mu.Unlock()
					closed = append(closed, v)
					return nil
				}})
				waits := map[int]*call{}
				got, err := c.GetOrCreateMany(contexts(t)[which], []int{1, 2, 3, 4}, func(context.Context, []int) (map[int]int, error) {
					for k := 1; k <= 4; k++ {
						waits[k] = startCall(func() (int, error) { return c.Wait(t.Context(), k) })
					}
					synctest.Wait()
					made := maps.Clone(tt.made)
					if made != nil {
						made[8] = 80
					}
					return made, tt.err
				})
				if !maps.Equal(got, tt.want) {
					t.Errorf("%s, %s: %v, want %v", name, which, got, tt.want)
				}
				want := oncecache.KeyErrors[int]{}
				for k, err := range tt.errs {
					if err != oncecache.ErrNotFound {
						want[k] = err
					}
				}
				var each oncecache.KeyErrors[int]
				if errors.As(err, &each); !maps.Equal(each, want) || len(want) == 0 && err != nil {
					t.Errorf("%s, %s: error %v, want %v", name, which, err, want)
				}
				for k, x := range waits {
					if r := x.wait(t); r.value != tt.want[k] || tt.errs[k] != nil && r.err != tt.errs[k] {
						t.Errorf("%s, %s: who waits for %d gets %+v", name, which, k, r)
					}
				}
				synctest.Wait()
				kept := maps.Collect(c.All())
				if !maps.Equal(kept, tt.want) {
					t.Errorf("%s, %s: kept %v, want %v", name, which, kept, tt.want)
				}
				var drop []int
				for k, v := range tt.made {
					if _, ok := tt.want[k]; !ok && v != 0 {
						drop = append(drop, v)
					}
				}
				if tt.made != nil {
					drop = append(drop, 80) // that nobody has asked for
				}
				slices.Sort(drop)
				if slices.Sort(closed); !slices.Equal(closed, drop) {
					t.Errorf("%s, %s: closed %v, want %v", name, which, closed, drop)
				}
				if err := c.Close(t.Context()); err != nil || oncecache.Pending(c) != 0 || len(closed) != len(kept)+len(drop) {
					t.Errorf("%s, %s: %v, closed %v", name, which, err, closed)
				}
			})
		}
	}
}

// A KeyErrors has each error once, in an order, and is what it wraps.
func TestKeyErrors(t *testing.T) {
	errMoved := &strange{"moved"}
	e := oncecache.KeyErrors[int]{9: errMoved}
	for k := range 7 {
		e[k] = errRefused
	}
	for range 10 {
		if got, want := e.Error(), "0, 1, 2, 3, 4 and 2 more: connection refused\n9: moved"; got != want {
			t.Fatalf("the text is %q, want %q", got, want)
		}
	}
	wrapped := fmt.Errorf("batch: %w", e)
	var found *strange
	var each oncecache.KeyErrors[int]
	if !errors.Is(wrapped, errRefused) || !errors.As(wrapped, &found) || found != errMoved || !errors.As(wrapped, &each) || len(each) != 8 {
		t.Errorf("%v, %v", found, each)
	}
	if errors.Is(wrapped, oncecache.ErrClosed) {
		t.Error("it is an error that it has not")
	}
	delete(e, 5)
	delete(e, 6)
	if got, want := e.Error(), "0, 1, 2, 3, 4: connection refused\n9: moved"; got != want {
		t.Errorf("the text is %q, want %q", got, want)
	}
}

type strange struct{ text string }

func (e *strange) Error() string { return e.text }

// A batch that is larger than the bound returns nothing that is closed; what is
// too many goes when it has returned, and something else comes.
func TestManyAboveTheBound(t *testing.T) {
	const n, bound = 40, 4
	for which := range contexts(t) {
		synctest.Test(t, func(t *testing.T) {
			var c *oncecache.Cache[int, int]
			var returned atomic.Bool
			c = oncecache.MustNew(oncecache.Config[int, int]{MaxEntries: bound, Close: func(k, _ int) error {
				if !returned.Load() {
					t.Errorf("%d is closed before the batch returns", k)
				}
				return nil
			}})
			var keys []int
			for k := range n + 1 {
				keys = append(keys, k)
			}
			got, err := c.GetOrCreateMany(contexts(t)[which], keys, squares)
			returned.Store(true)
			if len(got) != n+1 || err != nil {
				t.Errorf("%s: %d values, %v", which, len(got), err)
			}
			synctest.Wait()
			c.Set(-1, 1)
			synctest.Wait()
			if left, closed := c.Len(), c.Stats().Closed; left != bound || closed != n+2-bound {
				t.Errorf("%s: %d are left, %d closed", which, left, closed)
			}
			if err := c.Close(t.Context()); err != nil || c.Stats().Closed != n+2 || oncecache.Pending(c) != 0 {
				t.Errorf("%s: %v, %+v", which, err, c.Stats())
			}
		})
	}
}

// A call of GetOrCreateMany is a caller of all creations that it waits for, from
// the beginning, and of none when it has ended.
func TestManyKeepsWhatItWaitsFor(t *testing.T) {
	for how, end := range map[string]func() error{
		"returns": func() error { return nil }, "fails": func() error { return errRefused },
		"panics": func() error { panic("disk full") }, "exits": func() error { runtime.Goexit(); return nil },
	} {
		synctest.Test(t, func(t *testing.T) {
			var c oncecache.Cache[int, int]
			var ended [2]chan struct{}
			var cancelled [2]bool
			var leave [2]context.CancelFunc
			for k := range 2 {
				ended[k] = make(chan struct{})
				ctx, cancel := context.WithCancel(t.Context())
				leave[k] = cancel
				go c.GetOrCreateContext(ctx, k, func(ctx context.Context, k int) (int, error) {
					<-ended[k]
					cancelled[k] = ctx.Err() != nil
					return k, nil
				})
			}
			synctest.Wait()
			first, done := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(done)
				defer func() { recover() }()
				c.GetOrCreateMany(context.Background(), []int{0, 1, 2}, func(context.Context, []int) (map[int]int, error) {
					<-first
					return nil, end()
				})
			}()
			synctest.Wait()
			leave[0]()
			leave[1]()
			synctest.Wait()
			close(ended[0])
			synctest.Wait()
			close(first)
			synctest.Wait() // it still waits for 1, or has ended
			close(ended[1])
			<-done
			synctest.Wait()
			if stays := how == "returns" || how == "fails"; cancelled[0] || cancelled[1] == stays {
				t.Errorf("%s: creations called off: %v", how, cancelled)
			}
		})
	}
}

// A panic on a goroutine of its own leaves all creations that come after it.
func TestManyThatPanicsLeavesAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c oncecache.Cache[int, int]
		others, leave := context.WithCancel(t.Context())
		var flights []context.Context
		for k := range 2 {
			go c.GetOrCreateContext(others, k, func(ctx context.Context, _ int) (int, error) {
				flights = append(flights, ctx)
				<-ctx.Done()
				return 0, ctx.Err()
			})
			synctest.Wait()
		}
		first := make(chan struct{})
		many := startCall(func() (int, error) {
			_, err := c.GetOrCreateMany(t.Context(), []int{2, 0, 1}, func(context.Context, []int) (map[int]int, error) {
				<-first
				panic("disk full")
			})
			return 0, err
		})
		synctest.Wait()
		leave()
		synctest.Wait()
		if flights[0].Err() != nil || flights[1].Err() != nil {
			t.Error("called off though somebody waits")
		}
		close(first)
		if r := many.wait(t); r.panicked == nil {
			t.Errorf("%+v", r)
		}
		synctest.Wait()
		if flights[0].Err() == nil || flights[1].Err() == nil {
			t.Error("nobody waits, and it is not called off")
		}
	})
}

// Errors of keys are returned although the context has ended since.
func TestManyJoinsErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c oncecache.Cache[int, int]
		left, leave := context.WithCancel(t.Context())
		end := make(chan struct{})
		go c.GetOrCreateContext(left, 1, func(context.Context, int) (int, error) { <-end; return 0, errRefused })
		synctest.Wait()
		leave() // so that the call below is an heir, who looks again
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		failing := errors.New("no such key")
		x := startCall(func() (int, error) {
			_, err := c.GetOrCreateMany(ctx, []int{1, 2}, func(context.Context, []int) (map[int]int, error) { return nil, failing })
			return 0, err
		})
		synctest.Wait()
		cancel()
		close(end)
		if r := x.wait(t); !errors.Is(r.err, failing) || !errors.Is(r.err, context.Canceled) {
			t.Errorf("%+v", r)
		}
	})
}

// Errors of other keys, which a function passes on, say nothing about its own: these get the error itself.
func TestManyErrorsOfOtherKeys(t *testing.T) {
	down := errors.New("team service is down")
	for name, failed := range map[string]error{
		"wraps": fmt.Errorf("teams: %w", oncecache.KeyErrors[string]{"team-7": down}),
		"joins": errors.Join(errors.New("teams"), oncecache.KeyErrors[string]{"team-7": down}),
		"is":    oncecache.KeyErrors[string]{"team-7": down},
	} {
		c := oncecache.MustNew(config{ErrorTTLFunc: func(_ string, err error) time.Duration {
			if errors.Is(err, oncecache.ErrNotFound) {
				return time.Hour // a negative cache
			}
			return 0
		}})
		got, err := c.GetOrCreateMany(t.Context(), []string{"user-1", "user-2"}, func(context.Context, []string) (map[string]int, error) {
			return nil, failed
		})
		if err == nil {
			t.Errorf("%s: create has failed with %q, GetOrCreateMany returns %v, %v", name, failed, got, err)
		}
		v, err := c.GetOrCreate("user-1", with(1))
		if v != 1 {
			t.Errorf("%s: the next caller gets %v, %v", name, v, err)
		}
	}
}

// With CloseBeforeCreate, values of a batch that nobody gets keep their keys until they are closed.
func TestManyCloseBeforeCreate(t *testing.T) {
	type many = func(ctx context.Context, keys []string) (map[string]int, error)
	for name, create := range map[string]many{
		"Create panics for another key": nil,
		"a value beside its error": func(context.Context, []string) (map[string]int, error) {
			return map[string]int{"a": 1}, oncecache.KeyErrors[string]{"a": errRefused}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				open := 0
				openOne := func() {
					mu.Lock()
					defer mu.Unlock()
					if open++; open > 1 {
						t.Error("a second one is made while the first is not closed")
					}
				}
				c := oncecache.MustNew(config{
					Create: func(_ context.Context, k string) (int, error) {
						if k == "b" {
							panic("no b")
						}
						openOne()
						return 1, nil
					},
					Close: func(string, int) error {
						time.Sleep(time.Second)
						mu.Lock()
						defer mu.Unlock()
						open--
						return nil
					},
					CloseBeforeCreate: true,
				})
				if create != nil {
					made := create
					create = func(ctx context.Context, keys []string) (map[string]int, error) { openOne(); return made(ctx, keys) }
				}
				func() {
					defer func() { recover() }()
					c.GetOrCreateMany(t.Context(), []string{"a", "b"}, create)
				}()
				c.Load(t.Context(), "a")
				c.Close(t.Context())
			})
		})
	}
}

// A function that exits has not panicked: Close has nothing to tell.
func TestCloseAfterABatchThatExits(t *testing.T) {
	var c oncecache.Cache[int, int]
	ctx, leave := context.WithCancel(context.Background())
	_, err := c.GetOrCreateMany(ctx, []int{1}, func(ctx context.Context, _ []int) (map[int]int, error) {
		leave()
		<-ctx.Done()
		runtime.Goexit()
		return nil, nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if err := c.Close(context.Background()); err != nil {
		t.Errorf("Close: %v", err)
	}
}
