//go:build !modelcheck

package oncecache_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/oncecache"
)

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
