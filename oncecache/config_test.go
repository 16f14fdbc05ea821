//go:build !modelcheck

package oncecache_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
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
		"Config.MaxWeight 5: must be 0 without":            {MaxWeight: 5},
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
	if got := c.Stats(); got.Created != 1000 || got.TimedOut != uint64(timedOut) || c.Len() != kept {
		t.Errorf("%+v, %d keys; %d were kept", got, c.Len(), kept)
	}
	if err := c.Close(t.Context()); err != nil || len(closed) != 1000 {
		t.Errorf("%v, %d closed", err, len(closed))
	}
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
