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

type config = oncecache.Config[string, int]

const century = 100 * 365 * 24 * time.Hour

// Settings that make no sense are refused, by name and value.
func TestNewRefuses(t *testing.T) {
	for want, bad := range map[string]config{
		"Config.MaxEntries -1:":                            {MaxEntries: -1},
		"Config.MaxWeight -1:":                             {MaxWeight: -1, Weight: func(string, int) int64 { return 1 }},
		"Config.MaxWeight 70368744177665:":                 {MaxWeight: 1<<46 + 1, Weight: func(string, int) int64 { return 1 }},
		"Config.MaxWeight 1: must be 0 without":            {MaxWeight: 1},
		"Config.Weight: must be nil without":               {Weight: func(string, int) int64 { return 1 }},
		fmt.Sprint("Config.MaxEntries ", math.MinInt, ":"): {MaxEntries: math.MinInt},
		"Config.IdleTimeout -1ns:":                         {IdleTimeout: -1},
		"Config.IdleTimeout -2562047h47m16.854775808s:":    {IdleTimeout: math.MinInt64},
		"Config.CloseBeforeCreate true:":                   {CloseBeforeCreate: true},
		"Config.CreateTimeout -1m0s:":                      {CreateTimeout: -time.Minute},
		"Config.CreateTimeout -2562047h47m16.854775808s:":  {CreateTimeout: math.MinInt64},
	} {
		c, err := oncecache.New(bad)
		if c != nil || err == nil || !strings.HasPrefix(err.Error(), "oncecache: "+want) {
			t.Errorf("New returns %v, %v, want %s", c, err, want)
		}
		if p := panicOf(func() { oncecache.MustNew(bad) }); fmt.Sprint(p) != fmt.Sprint(err) {
			t.Errorf("MustNew panics with %v, want %v", p, err)
		}
	}
}

// The smallest and the largest settings do what they say.
func TestExtremeSettings(t *testing.T) {
	for name, tt := range map[string]struct {
		config
		keeps int // of 10 keys, right after they were set and used
		later int // after a year
	}{
		"none":              {config{}, 10, 10},
		"MaxEntries 1":      {config{MaxEntries: 1}, 1, 1},
		"MaxEntries max":    {config{MaxEntries: math.MaxInt}, 10, 10},
		"MaxWeight 1":       {config{MaxWeight: 1, Weight: func(string, int) int64 { return 1 }}, 1, 1},
		"TTL 1 ns":          {config{TTL: 1, TTLJitter: 1}, 10, 0},
		"idle 1 ns":         {config{IdleTimeout: 1}, 10, 0},
		"idle a century":    {config{IdleTimeout: century}, 10, 10},
		"idle max":          {config{IdleTimeout: math.MaxInt64}, 10, 10},
		"timeout 1 ns":      {config{CreateTimeout: 1}, 10, 10},
		"timeout a century": {config{CreateTimeout: century}, 10, 10},
		"timeout max":       {config{CreateTimeout: math.MaxInt64}, 10, 10},
		"all smallest":      {config{SizeHint: 1, MaxEntries: 1, IdleTimeout: 1, CreateTimeout: 1}, 1, 0},
		"all largest": {config{
			SizeHint: 1000, MaxEntries: math.MaxInt, IdleTimeout: math.MaxInt64, CreateTimeout: math.MaxInt64,
		}, 10, 10},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var closed atomic.Int32
				tt.config.Close = func(string, int) error { closed.Add(1); return nil }
				c := oncecache.MustNew(tt.config)
				for i := range 10 {
					c.Set(fmt.Sprint(i), i)
					wantGet(t, c, fmt.Sprint(i), i) // the newest stays
				}
				synctest.Wait() // until what had to go is closed
				if n := c.Len(); n != tt.keeps || int(closed.Load()) != 10-n {
					t.Errorf("%d keys are left, %d closed, want %d", n, closed.Load(), tt.keeps)
				}
				v, err := c.GetOrCreateContext(t.Context(), "slow", func(context.Context, string) (int, error) {
					time.Sleep(time.Second)
					return 1, nil
				})
				if short := tt.CreateTimeout == 1; short && err != oncecache.ErrCreateTimeout || !short && (v != 1 || err != nil) {
					t.Errorf("slow: %d, %v", v, err)
				}
				c.Delete("slow")
				_, err = c.GetOrCreateMany(t.Context(), []string{"many"}, func(context.Context, []string) (map[string]int, error) {
					time.Sleep(time.Second)
					return nil, nil
				})
				if short := tt.CreateTimeout == 1; short != errors.Is(err, oncecache.ErrCreateTimeout) {
					t.Errorf("many, slow: %v", err)
				}
				if tt.keeps == 1 && tt.later == 1 {
					c.Set("9", 9) // slow has made it go
				}
				time.Sleep(365 * 24 * time.Hour)
				if n := c.Len(); n != tt.later {
					t.Errorf("%d keys are left after a year, want %d", n, tt.later)
				}
				time.Sleep(time.Second) // slow ends, if it has timed out
				if err := c.Close(t.Context()); err != nil || oncecache.Pending(c) != 0 {
					t.Error(err, oncecache.Pending(c))
				}
			})
		})
	}
}

// A timeout of a nanosecond answers at once, a hit never waits for it, and what
// is made within no time at all is kept or timed out, and nothing else.
func TestShortestCreateTimeout(t *testing.T) {
	closed := make(chan int, 1000)
	c := oncecache.MustNew(config{CreateTimeout: 1, Close: func(_ string, v int) error { closed <- v; return nil }})
	kept, timedOut := 0, 0
	for i := range 1000 {
		k := fmt.Sprint(i)
		v, err := c.GetOrCreate(k, func() (int, error) { spin(i); return i, nil })
		switch {
		case v == i && err == nil:
			kept++
			wantGet(t, c, k, i)
		case v == 0 && err == oncecache.ErrCreateTimeout:
			timedOut++
			wantAbsent(t, c, k)
		default:
			t.Fatal(v, err)
		}
	}
	for c.Stats().TimedOut < uint64(timedOut) { // which is counted a moment after the callers return
		runtime.Gosched()
	}
	if got := c.Stats(); got.Created != 1000 || got.TimedOut != uint64(timedOut) || c.Len() != kept {
		t.Errorf("%+v, %d keys; %d were kept", got, c.Len(), kept)
	}
	if err := c.Close(t.Context()); err != nil || len(closed) != 1000 {
		t.Errorf("%v, %d closed", err, len(closed))
	}
}

// An error is kept for a nanosecond, if that is ErrorTTL.
func TestShortestErrorTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := oncecache.MustNew(config{ErrorTTL: 1})
		c.GetOrCreate("k", failing)
		if _, err := c.GetOrCreate("k", unexpected(t)); err != errRefused {
			t.Error(err)
		}
		time.Sleep(time.Nanosecond)
		if v, err := c.GetOrCreate("k", with(1)); v != 1 || err != nil {
			t.Error(v, err)
		}
	})
}

// Whatever ErrorTTL returns, an error is kept for so long, and for ever if that
// is more than the clock can tell.
func TestExtremeErrorTTL(t *testing.T) {
	for _, tt := range []struct {
		ttl          time.Duration
		now, century bool // whether it answers then
	}{
		{0, false, false}, {1, true, false}, {century - time.Hour, true, false}, {century + 2*time.Hour, true, true},
		{math.MaxInt64, true, true}, {math.MaxInt64 - 1, true, true}, {-1, true, true}, {math.MinInt64, true, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := oncecache.MustNew(config{ErrorTTLFunc: func(string, error) time.Duration { return tt.ttl }})
			time.Sleep(time.Hour) // so that the sum overflows
			calls := 0
			ask := func() bool {
				before := calls
				_, err := c.GetOrCreate("k", func() (int, error) { calls++; return 0, fmt.Errorf("call %d", calls) })
				if err == nil {
					t.Error("no error")
				}
				return calls == before
			}
			ask()
			if kept := ask(); kept != tt.now {
				t.Errorf("%v: kept %t", tt.ttl, kept)
			}
			time.Sleep(century)
			synctest.Wait()
			if _, left := oncecache.Creating(c); (left == 1) != tt.century {
				t.Errorf("%v: %d left", tt.ttl, left)
			}
			if kept := ask(); kept != tt.century {
				t.Errorf("%v: kept %t a century later", tt.ttl, kept)
			}
			c.Delete("k")
			wantEven(t, c)
		})
	}
}

// Without OnLeak a lease that is forgotten is nobody's business but Close's.
func TestNoOnLeak(t *testing.T) {
	c := oncecache.MustNew(config{Close: func(string, int) error { return nil }, OnLeak: nil})
	if _, err := c.Acquire(t.Context(), "k", makes(1)); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Close(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("Close returns %v, though a lease was not released", err)
	}
}

// Reported bug 12, Otter: a nil function strands its key.
// Nil arguments are told at once, whether the key has a value or not,
// and strand nothing.
func TestT12_NilArguments(t *testing.T) {
	none := func(context.Context, string) (int, error) { return -1, nil }
	all := func(context.Context, []string) (map[string]int, error) { return nil, nil }
	for _, state := range []string{"zero", "present", "closed"} {
		var c oncecache.Cache[string, int]
		switch state {
		case "present":
			c.Set("k", 1)
		case "closed":
			if err := c.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		ctx := t.Context()
		for how, calls := range map[string]map[string]func(){
			" called with a nil context": {
				"GetOrCreateContext": func() { c.GetOrCreateContext(noContext, "k", none) },
				"Acquire":            func() { c.Acquire(noContext, "k", none) },
				"Refresh":            func() { c.Refresh(noContext, "k", anew(none)) },
				"Wait":               func() { c.Wait(noContext, "k") },
				"GetOrCreateMany":    func() { c.GetOrCreateMany(noContext, []string{"k", "l"}, all) },
				"Close":              func() { c.Close(noContext) },
			},
			" called with a nil function": {
				"GetOrCreate":        func() { c.GetOrCreate("k", nil) },
				"GetOrCreateContext": func() { c.GetOrCreateContext(ctx, "k", nil) },
				"Acquire":            func() { c.Acquire(ctx, "k", nil) },
				"Refresh":            func() { c.Refresh(ctx, "k", nil) },
				"GetOrCreateMany":    func() { c.GetOrCreateMany(ctx, []string{"k", "l"}, nil) },
			},
		} {
			for name, f := range calls {
				if p, want := panicOf(f), "oncecache: "+name+how; p != want {
					t.Errorf("%s, %s: panics with %v, want %s", state, name, p, want)
				}
			}
		}
		want := 0
		if state == "present" {
			want = 1
		}
		wantLen(t, &c, want)
		if v, err := c.GetOrCreate("l", with(2)); state != "closed" && (v != 2 || err != nil) {
			t.Error(state, v, err)
		}
		if n := oncecache.Pending(&c); n != 0 {
			t.Errorf("%s: %d pending", state, n)
		}
	}
}

// origin is a Config.Create that knows for which keys it was called. It makes 1, then 2, and so on.
type origin struct {
	mu    sync.Mutex
	asked []string
}

func (o *origin) create(_ context.Context, k string) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asked = append(o.asked, k)
	return len(o.asked), nil
}

func (o *origin) wantAsked(t *testing.T, want ...string) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	if !slices.Equal(o.asked, want) {
		t.Errorf("Create called for %q, want %q", o.asked, want)
	}
}

// withoutFunction are the calls that use Config.Create.
var withoutFunction = map[string]func(ctx context.Context, c *oncecache.Cache[string, int], k string) (int, error){
	"Load": func(ctx context.Context, c *oncecache.Cache[string, int], k string) (int, error) {
		return c.Load(ctx, k)
	},
	"GetOrCreateContext": func(ctx context.Context, c *oncecache.Cache[string, int], k string) (int, error) {
		return c.GetOrCreateContext(ctx, k, nil)
	},
	"Acquire": func(ctx context.Context, c *oncecache.Cache[string, int], k string) (int, error) {
		l, err := c.Acquire(ctx, k, nil)
		if err != nil {
			return 0, err
		}
		defer l.Release()
		return l.Value(), nil
	},
	"GetOrCreateMany": func(ctx context.Context, c *oncecache.Cache[string, int], k string) (int, error) {
		found, err := c.GetOrCreateMany(ctx, []string{k}, nil)
		return found[k], err
	},
	"Refresh": func(ctx context.Context, c *oncecache.Cache[string, int], k string) (int, error) {
		return c.Refresh(ctx, k, nil)
	},
}

// A call without a function creates with Config.Create, once, and the value stays. Refresh makes
// the next one.
func TestCreateOfConfig(t *testing.T) {
	for name, ask := range withoutFunction {
		t.Run(name, func(t *testing.T) {
			var o origin
			c := oncecache.MustNew(config{Create: o.create})
			if v, err := ask(t.Context(), c, "k"); v != 1 || err != nil {
				t.Errorf("%d, %v", v, err)
			}
			o.wantAsked(t, "k")
			if v, ok := c.Get("k"); v != 1 || !ok {
				t.Errorf("the key has %d, %t", v, ok)
			}
			v, err := ask(t.Context(), c, "k")
			if name == "Refresh" {
				o.wantAsked(t, "k", "k")
				if v != 2 || err != nil {
					t.Errorf("refreshed: %d, %v", v, err)
				}
				return
			}
			o.wantAsked(t, "k")
			if v != 1 || err != nil {
				t.Errorf("the second time: %d, %v", v, err)
			}
		})
	}
}

// A function that is given goes before Config.Create.
func TestGivenFunctionGoesBeforeCreate(t *testing.T) {
	for name, ask := range map[string]func(c *oncecache.Cache[string, int]) error{
		"GetOrCreate": func(c *oncecache.Cache[string, int]) error {
			_, err := c.GetOrCreate("k", with(7))
			return err
		},
		"GetOrCreateContext": func(c *oncecache.Cache[string, int]) error {
			_, err := c.GetOrCreateContext(t.Context(), "k", makes(7))
			return err
		},
		"Acquire": func(c *oncecache.Cache[string, int]) error {
			l, err := c.Acquire(t.Context(), "k", makes(7))
			l.Release()
			return err
		},
		"GetOrCreateMany": func(c *oncecache.Cache[string, int]) error {
			_, err := c.GetOrCreateMany(t.Context(), []string{"k"}, func(context.Context, []string) (map[string]int, error) {
				return map[string]int{"k": 7}, nil
			})
			return err
		},
		"Refresh": func(c *oncecache.Cache[string, int]) error {
			_, err := c.Refresh(t.Context(), "k", anew(makes(7)))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			var o origin
			c := oncecache.MustNew(config{Create: o.create})
			if err := ask(c); err != nil {
				t.Error(err)
			}
			if v, ok := c.Get("k"); v != 7 || !ok {
				t.Errorf("the key has %d, %t", v, ok)
			}
			o.wantAsked(t)
		})
	}
}

// Callers that need one key share one call of Create, whatever method they use. Create's context
// has the values of the first caller's, and ends when all have left.
func TestCallersShareCreate(t *testing.T) {
	for first := range withoutFunction {
		for second := range withoutFunction {
			t.Run(first+" "+second, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					type name struct{}
					calls, cancelled := 0, false
					c := oncecache.MustNew(config{Create: func(ctx context.Context, k string) (int, error) {
						if calls++; ctx.Value(name{}) != first || k != "k" {
							t.Errorf("Create gets %v for %q", ctx.Value(name{}), k)
						}
						<-ctx.Done()
						cancelled = true
						return 0, ctx.Err()
					}})
					ctx, leave := context.WithCancel(t.Context())
					errs := make(chan error, 2)
					for _, who := range []string{first, second} {
						go func() {
							_, err := withoutFunction[who](context.WithValue(ctx, name{}, who), c, "k")
							errs <- err
						}()
						synctest.Wait()
					}
					if calls != 1 || cancelled {
						t.Errorf("%d calls, cancelled: %t", calls, cancelled)
					}
					leave()
					synctest.Wait()
					for range 2 {
						if err := <-errs; !errors.Is(err, context.Canceled) {
							t.Errorf("a caller that has left gets %v", err)
						}
					}
					if calls != 1 || !cancelled {
						t.Errorf("after all have left: %d calls, cancelled: %t", calls, cancelled)
					}
				})
			})
		}
	}
}

// What Create returns, panics with or exits by comes to the callers, and the key is free again.
func TestCreateOfConfigEnds(t *testing.T) {
	for name, ask := range withoutFunction {
		for how, tt := range map[string]struct {
			end  func() (int, error)
			want error
		}{
			"fails":  {failing, errRefused},
			"panics": {func() (int, error) { panic(errRefused) }, errRefused},
			"exits":  {func() (int, error) { runtime.Goexit(); return 0, nil }, oncecache.ErrGoexit},
		} {
			t.Run(name+" "+how, func(t *testing.T) {
				end := tt.end
				c := oncecache.MustNew(config{Create: func(context.Context, string) (int, error) { return end() }})
				err := func() (err error) {
					defer func() {
						if thrown, ok := recover().(error); ok {
							err = thrown
						}
					}()
					_, err = ask(t.Context(), c, "k") // whose context can end: Create is on a goroutine of its own
					return err
				}()
				if !errors.Is(err, tt.want) {
					t.Errorf("%v, want %v", err, tt.want)
				}
				if v, ok := c.Get("k"); ok {
					t.Errorf("%d is kept", v)
				}
				end = with(7)
				if v, err := ask(t.Context(), c, "k"); v != 7 || err != nil {
					t.Errorf("afterwards: %d, %v", v, err)
				}
			})
		}
	}
}

// Without a function a batch calls Create for each key that is not there, one after the other, and
// each key has its own error.
func TestManyOfConfig(t *testing.T) {
	var asked []string
	c := oncecache.MustNew(config{Create: func(_ context.Context, k string) (int, error) {
		if asked = append(asked, k); strings.HasPrefix(k, "bad") {
			return 99, fmt.Errorf("%s: %w", k, errRefused)
		}
		return len(k), nil
	}})
	c.Set("there", 7)
	found, err := c.GetOrCreateMany(t.Context(), []string{"a", "bad", "there", "bb", "badder", "a"}, nil)
	if want := map[string]int{"a": 1, "there": 7, "bb": 2}; !maps.Equal(found, want) {
		t.Errorf("found %v, want %v", found, want)
	}
	if want := []string{"a", "bad", "bb", "badder"}; !slices.Equal(asked, want) {
		t.Errorf("Create called for %q, want %q", asked, want)
	}
	var each oncecache.KeyErrors[string]
	if !errors.As(err, &each) || len(each) != 2 {
		t.Fatalf("errors: %v", err)
	}
	for _, k := range []string{"bad", "badder"} {
		if e := each[k]; !errors.Is(e, errRefused) || !strings.HasPrefix(e.Error(), k+":") {
			t.Errorf("the error of %q is %v", k, e)
		}
	}
	if got := slices.Sorted(c.Keys()); !slices.Equal(got, []string{"a", "bb", "there"}) {
		t.Errorf("%q are kept", got)
	}
}

// A zero that Create has made is a value, also beside a key that fails.
func TestManyOfConfigKeepsZeros(t *testing.T) {
	c := oncecache.MustNew(config{Create: func(_ context.Context, k string) (int, error) {
		if k == "bad" {
			return 0, errRefused
		}
		return 0, nil
	}})
	found, err := c.GetOrCreateMany(t.Context(), []string{"zero", "bad"}, nil)
	var each oncecache.KeyErrors[string]
	if v, ok := found["zero"]; v != 0 || !ok || len(found) != 1 || !errors.As(err, &each) || len(each) != 1 || !errors.Is(each["bad"], errRefused) {
		t.Errorf("found %v, %v", found, err)
	}
	if _, ok := c.Get("zero"); !ok {
		t.Error("the zero is not kept")
	}
}

// What Create has made for a batch before it panics or exits at another key is closed, as all that
// is made: at once, or when it has left the cache.
func TestManyOfConfigLosesNothing(t *testing.T) {
	for how, end := range map[string]func(){"panics": func() { panic("disk full") }, "exits": runtime.Goexit} {
		for _, alone := range []bool{true, false} {
			t.Run(fmt.Sprint(how, " alone: ", alone), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var closed []string
					var mu sync.Mutex
					c := oncecache.MustNew(config{
						Create: func(_ context.Context, k string) (int, error) {
							if k == "last" {
								end()
							}
							return 1, nil
						},
						Close: func(k string, _ int) error {
							mu.Lock()
							defer mu.Unlock()
							closed = append(closed, k)
							return nil
						},
					})
					ctx := context.Background() // with which Create is on the goroutine of the caller
					if alone {
						ctx = t.Context()
					}
					done := make(chan struct{})
					go func() {
						defer close(done)
						defer func() { recover() }()
						c.GetOrCreateMany(ctx, []string{"a", "b", "last"}, nil)
					}()
					<-done
					c.Close(t.Context()) // it may have the panic
					if slices.Sort(closed); !slices.Equal(closed, []string{"a", "b"}) {
						t.Errorf("closed %q, want a and b", closed)
					}
				})
			})
		}
	}
}

// What Create has made for a batch that returns stays, and is closed once.
func TestManyOfConfigIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // two may be closed at a time
		var closed []string
		c := oncecache.MustNew(config{
			Create: func(_ context.Context, k string) (int, error) {
				if k == "bad" {
					return 0, errRefused
				}
				return 1, nil
			},
			Close: func(k string, _ int) error {
				mu.Lock()
				defer mu.Unlock()
				closed = append(closed, k)
				return nil
			},
		})
		c.GetOrCreateMany(t.Context(), []string{"a", "b"}, nil)
		c.GetOrCreateMany(context.Background(), []string{"bad", "c"}, nil)
		if synctest.Wait(); len(closed) != 0 {
			t.Errorf("closed %q, want none", closed)
		}
		c.Delete("a")
		c.Close(t.Context())
		if slices.Sort(closed); !slices.Equal(closed, []string{"a", "b", "c"}) {
			t.Errorf("closed %q, want each once", closed)
		}
	})
}

// Without any function a call panics, also if the key has a value.
func TestNoFunctionAtAll(t *testing.T) {
	for name, ask := range withoutFunction {
		t.Run(name, func(t *testing.T) {
			for _, there := range []bool{false, true} {
				var c oncecache.Cache[string, int]
				if there {
					c.Set("k", 1)
				}
				thrown := func() (thrown any) {
					defer func() { thrown = recover() }()
					ask(t.Context(), &c, "k")
					return nil
				}()
				if text := fmt.Sprint(thrown); !strings.HasPrefix(text, "oncecache: ") || !strings.HasSuffix(text, " called with a nil function") {
					t.Errorf("a key that is there: %t: panics with %v", there, thrown)
				}
				if n := c.Len(); n != 0 != there {
					t.Errorf("%d values afterwards", n)
				}
			}
		})
	}
}

// Refresh takes Config.Renew where there is an old value, and Config.Create where there is none.
func TestRefreshWithoutFunction(t *testing.T) {
	c := oncecache.MustNew(config{
		Create: makes(100), TTL: time.Hour, RenewAhead: time.Minute,
		Renew: func(_ context.Context, _ string, old int) (int, error) { return old + 1, nil },
	})
	for _, want := range []int{100, 101, 102} {
		if v, err := c.Refresh(t.Context(), "k", nil); v != want || err != nil {
			t.Errorf("%d, %v, want %d", v, err, want)
		}
	}
	c.Delete("k")
	if v, err := c.Load(t.Context(), "k"); v != 100 || err != nil {
		t.Errorf("Load: %d, %v", v, err)
	}
}

// Values are renewed by Config.Create if there is no Config.Renew: in the background, while the old
// value serves, and with a failure while the source is down.
func TestRenewByCreate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls, down := 0, false
		c := oncecache.MustNew(config{
			TTL: time.Hour, RenewAhead: 20 * time.Minute,
			Create: func(_ context.Context, k string) (int, error) {
				if calls++; k != "k" {
					t.Errorf("Create called for %q", k)
				}
				if time.Sleep(time.Second); down {
					return 99, errRefused
				}
				return calls, nil
			},
		})
		get := func(want, wantCalls int) {
			t.Helper()
			v, ok := c.Get("k")
			if synctest.Wait(); v != want || !ok || calls != wantCalls {
				t.Errorf("after %d calls: %d, %t, want %d after %d", calls, v, ok, want, wantCalls)
			}
		}
		c.Load(t.Context(), "k")
		time.Sleep(40*time.Minute - 1)
		get(1, 1)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		get(1, 2) // the use that finds it due gets the old value, and begins the next
		time.Sleep(time.Second)
		synctest.Wait()
		get(2, 2)

		down = true
		time.Sleep(40 * time.Minute)
		synctest.Wait()
		get(2, 3)
		time.Sleep(time.Second)
		synctest.Wait()
		get(2, 3)
		down = false
		time.Sleep(3 * time.Minute) // more than an eighth of RenewAhead
		get(2, 4)
		time.Sleep(time.Second)
		synctest.Wait()
		get(4, 4)
	})
}

// A Renew goes before Create.
func TestRenewGoesBeforeCreate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o origin
		c := oncecache.MustNew(config{
			TTL: time.Hour, RenewAhead: 20 * time.Minute, Create: o.create,
			Renew: func(_ context.Context, _ string, old int) (int, error) { return old + 100, nil },
		})
		c.Load(t.Context(), "k")
		time.Sleep(45 * time.Minute)
		c.Get("k")
		synctest.Wait()
		if v, _ := c.Get("k"); v != 101 {
			t.Errorf("the key has %d", v)
		}
		o.wantAsked(t, "k")
	})
}
