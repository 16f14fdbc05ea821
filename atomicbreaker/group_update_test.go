//go:build !modelcheck

package atomicbreaker_test

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

	ab "github.com/latchfree/latchfree/atomicbreaker"
)

func updateGroup[K comparable](t *testing.T, g *ab.Group[K], c ab.GroupConfig[K]) {
	t.Helper()
	if err := g.Update(c); err != nil {
		t.Fatal(err)
	}
}

// New settings hold for healthy keys, for failing ones and for open ones at once;
// what these have counted, and how long they are open, stays.
func TestGroupUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: ab.Consecutive(3), OpenTimeout: time.Minute, MaxOpenTimeout: time.Minute}})
		fail(t, keyed(g, "failing"), 2)
		fail(t, keyed(g, "open"), 3)
		healthy, failing := admit(t, keyed(g, "healthy")), admit(t, keyed(g, "failing"))
		updateGroup(t, g, ab.GroupConfig[string]{Default: ab.Config{Name: "new", Policy: ab.Consecutive(4), OpenTimeout: time.Second, MaxOpenTimeout: time.Second}})
		if s := g.Snapshot("open"); s.Name != "new" || s.RetryAfter != time.Minute {
			t.Errorf("%+v", s)
		}
		wantVerdict(t, failing.Failure(), ab.Counted)
		wantVerdict(t, fail(t, keyed(g, "failing"), 1), ab.Tripped)
		if s := g.Snapshot("failing"); s.RetryAfter != time.Second {
			t.Errorf("%+v", s)
		}
		wantVerdict(t, healthy.Failure(), ab.Counted)
		wantVerdict(t, fail(t, keyed(g, "healthy"), 2), ab.Counted)
		wantVerdict(t, fail(t, keyed(g, "healthy"), 1), ab.Tripped)
		time.Sleep(time.Second)
		wantState(t, g.State("open"), ab.Open) // for all of its minute
		time.Sleep(59*time.Second - 1)
		reject(t, keyed(g, "open"), ab.ErrOpen)
		time.Sleep(time.Nanosecond)
		wantVerdict(t, admit(t, keyed(g, "open")).Success(), ab.Recovered)
		updateGroup(t, g, ab.GroupConfig[string]{Default: ab.Config{Shadow: true}})
		wantState(t, g.State("failing"), ab.Shadow)
		wantState(t, g.State("nobody"), ab.Shadow)
		if err := g.CheckQuiet(); err != nil {
			t.Error(err)
		}
	})
}

// A zero Group can be given settings, before it is used and after.
func TestUpdateOfAZeroGroup(t *testing.T) {
	var unused, used ab.Group[int]
	fail(t, keyed(&used, 1), 1)
	for _, g := range []*ab.Group[int]{&unused, &used} {
		updateGroup(t, g, ab.GroupConfig[int]{Default: ab.Config{Policy: ab.Consecutive(2)}})
		g.ResetAll()
		wantVerdict(t, fail(t, keyed(g, 1), 2), ab.Tripped)
		updateGroup(t, g, ab.GroupConfig[int]{PerKey: func(k int) ab.Config { return ab.Config{Policy: ab.Consecutive(k)} }})
		wantVerdict(t, fail(t, keyed(g, 7), 6), ab.Counted)
		wantVerdict(t, fail(t, keyed(g, 7), 1), ab.Tripped)
	}
}

// Stored keys get the settings that PerKey returns for them in Update. One for which it
// panics keeps its own, and the others get theirs.
func TestUpdateOfPerKey(t *testing.T) {
	perKey := func(n int) func(string) ab.Config {
		return func(k string) ab.Config {
			if k[0] == 'b' && n == 3 {
				panic("PerKey")
			}
			return ab.Config{Policy: ab.Consecutive(n)}
		}
	}
	g := ab.MustNewGroup(ab.GroupConfig[string]{PerKey: perKey(9)})
	for _, k := range []string{"good", "bad", "fine", "but"} {
		fail(t, keyed(g, k), 1)
	}
	p := admit(t, keyed(g, "bad"))
	panics(t, "PerKey", func() { g.Update(ab.GroupConfig[string]{PerKey: perKey(3)}) })
	for _, k := range []string{"good", "fine"} {
		wantVerdict(t, fail(t, keyed(g, k), 1), ab.Counted)
		wantVerdict(t, fail(t, keyed(g, k), 1), ab.Tripped)
	}
	wantVerdict(t, fail(t, keyed(g, "bad"), 1), ab.Counted)
	wantVerdict(t, p.Failure(), ab.Counted)
	if s := g.Snapshot("bad"); s.Failures != 3 {
		t.Errorf("%+v", s)
	}
	p.Success()
	panics(t, "PerKey", func() { g.RecordFailure("broken") })
	updateGroup(t, g, ab.GroupConfig[string]{Default: ab.Config{Policy: ab.Consecutive(2)}})
	wantVerdict(t, fail(t, keyed(g, "bad"), 2), ab.Tripped)
}

// Calls are timed from the Update on that brings a SlowRate, for keys of all
// kinds, and no more when it has gone. Permits from before are as good as ever.
func TestUpdateOfSlowRate(t *testing.T) {
	updatesOfSlowRate(t, "", "k", strings.Repeat("long", 1000))
	updatesOfSlowRate(t, 0, 1, -1, math.MaxInt)
	updatesOfSlowRate(t, point{}, point{1, 2})
	updatesOfSlowRate[any](t, nil, 1, "x")
}

func updatesOfSlowRate[K comparable](t *testing.T, keys ...K) {
	slow := ab.GroupConfig[K]{Default: ab.Config{Policy: ab.AnyOf(ab.SlowRate(1, time.Second, 2, time.Hour), ab.Consecutive(2))}}
	plain := ab.GroupConfig[K]{Default: ab.Config{Policy: ab.Consecutive(2)}}
	for _, k := range keys {
		t.Run(fmt.Sprintf("%T", k), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := ab.MustNewGroup(plain)
				call := func(d time.Duration, want ab.Verdict) {
					t.Helper()
					p := admit(t, keyed(g, k))
					time.Sleep(d)
					wantVerdict(t, p.Success(), want)
				}
				before := admit(t, keyed(g, k))
				call(time.Minute, ab.Counted)
				updateGroup(t, g, slow)
				time.Sleep(time.Minute)
				wantVerdict(t, before.Success(), ab.Counted) // nobody knows how long that took
				during := admit(t, keyed(g, k))
				call(time.Minute, ab.Counted)
				call(time.Minute, ab.Tripped)
				g.Reset(k)
				wantVerdict(t, during.Failure(), ab.Late)
				during = admit(t, keyed(g, k))
				updateGroup(t, g, plain)
				call(time.Minute, ab.Counted)
				call(time.Minute, ab.Counted)
				wantVerdict(t, during.Failure(), ab.Counted)
				wantVerdict(t, fail(t, keyed(g, k), 1), ab.Tripped)
				wantVerdict(t, g.RecordSuccess(k), ab.Recovered)
				updateGroup(t, g, slow)
				g.ResetAll()
				updateGroup(t, g, plain)
				if err := g.CheckQuiet(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A key that was kept for its window only leaves when there are windows no more.
func TestUpdateToNoWindows(t *testing.T) {
	g := ab.MustNewGroup(ab.GroupConfig[int]{Default: ab.Config{Policy: ab.FailureRate(1, 100, time.Hour)}})
	fail(t, keyed(g, 1), 1)
	updateGroup(t, g, ab.GroupConfig[int]{Default: ab.Config{Policy: ab.Consecutive(2)}})
	admit(t, keyed(g, 1)).Success()
	if g.Len() != 0 {
		t.Error("it stayed")
	}
}

// How long keys are kept, and how many may be open, changes too.
func TestUpdateOfTheGroupsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := ab.GroupConfig[int]{Default: ab.Config{Policy: ab.Consecutive(1), OpenTimeout: time.Second}, MaxOpen: 1}
		g := ab.MustNewGroup(c)
		wantVerdict(t, fail(t, keyed(g, 1), 1), ab.Tripped)
		wantVerdict(t, fail(t, keyed(g, 2), 1), ab.Counted)
		c.MaxOpen = 2
		updateGroup(t, g, c)
		wantVerdict(t, fail(t, keyed(g, 2), 1), ab.Tripped)
		wantVerdict(t, fail(t, keyed(g, 3), 1), ab.Counted)
		c.MaxOpen, c.ForgetAfter = 0, time.Minute
		updateGroup(t, g, c)
		wantVerdict(t, fail(t, keyed(g, 3), 1), ab.Tripped)
		g.Reset(3)
		c.MaxOpen = 2
		updateGroup(t, g, c)
		wantVerdict(t, fail(t, keyed(g, 4), 1), ab.Counted)
		time.Sleep(time.Minute + time.Second)
		wantState(t, g.State(1), ab.Closed)
		g.Sweep()
		if err := g.CheckQuiet(); err != nil {
			t.Error(err)
		}
	})
}

// Another listener takes over, and none; a group that has had none gets none.
func TestUpdateOfAGroupsListener(t *testing.T) {
	var first, second atomic.Int32
	tell := func(n *atomic.Int32) func(string, ab.Event) { return func(string, ab.Event) { n.Add(1) } }
	g := ab.MustNewGroup(ab.GroupConfig[string]{OnStateChange: tell(&first)})
	g.Reset("k")
	updateGroup(t, g, ab.GroupConfig[string]{OnStateChange: tell(&second)})
	g.Reset("k")
	updateGroup(t, g, ab.GroupConfig[string]{})
	g.Reset("k")
	updateGroup(t, g, ab.GroupConfig[string]{OnStateChange: tell(&second)})
	g.ForceOpen("k")
	g.ResetAll()
	if a, b := first.Load(), second.Load(); a != 1 || b != 3 {
		t.Errorf("%d and %d events, want 1 and 3", a, b)
	}
	if err := g.CheckQuiet(); err != nil {
		t.Error(err)
	}
	plain := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: ab.Consecutive(2)}})
	for want, c := range map[string]ab.GroupConfig[string]{
		"GroupConfig.OnStateChange: must be nil":                  {OnStateChange: tell(&first)},
		"GroupConfig.MaxOpen -1: must not be negative":            {MaxOpen: -1},
		"Config.Jitter 7: must be in 0..1 (in GroupConfig.Defaul": {Default: ab.Config{Jitter: 7}},
	} {
		wantError(t, plain.Update(c), want)
	}
	wantVerdict(t, fail(t, keyed(plain, "k"), 2), ab.Tripped) // as before
}

func wantError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), "atomicbreaker: "+want) {
		t.Errorf("error %v, want %q", err, want)
	}
}

// While settings change all the time, failures of one key are neither lost nor
// counted twice, and one of them opens it.
func TestStressGroupUpdates(t *testing.T) {
	const goroutines = 4
	n := rounds(2000)
	policies := []ab.Policy{
		ab.Consecutive(goroutines * n), ab.AnyOf(ab.Consecutive(goroutines*n), ab.SlowRate(1, time.Hour, math.MaxInt32, time.Minute)),
	}
	g := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: policies[0]}})
	var ended, tripped atomic.Int32
	together(goroutines+1, func(i int) {
		if i == goroutines {
			for j := 0; ended.Load() < goroutines; j++ {
				c := ab.Config{Policy: policies[j%2]}
				if j%3 == 0 {
					updateGroup(t, g, ab.GroupConfig[string]{Default: ab.Config{Policy: policies[1]}, PerKey: func(string) ab.Config { return c }})
				} else {
					updateGroup(t, g, ab.GroupConfig[string]{Default: c})
				}
				jitter(j)
			}
			return
		}
		defer ended.Add(1)
		for j := range n {
			jitter(i + j)
			p, err := g.Allow("k")
			if err != nil {
				t.Error("open too early")
				return
			}
			if p.Failure() == ab.Tripped {
				tripped.Add(1)
			}
			g.Do(context.Background(), fmt.Sprint(i, j%10), func(context.Context) error { return nil })
		}
	})
	if tripped.Load() != 1 || !g.IsOpen("k") {
		t.Errorf("tripped %d times, %+v", tripped.Load(), g.Snapshot("k"))
	}
	if err := g.CheckQuiet(); err != nil {
		t.Error(err)
	}
}

// The result of a call is classified by the settings at its end, also if an Update came
// while it ran.
func TestUpdateClassifiesCallsThatRun(t *testing.T) {
	as := func(o ab.Outcome) ab.GroupConfig[string] {
		return ab.GroupConfig[string]{Default: ab.Config{
			Policy: ab.Consecutive(10), Classify: func(context.Context, error) ab.Outcome { return o },
		}}
	}
	for name, before := range map[string]int{"no cell": 0, "a cell": 1} {
		t.Run(name, func(t *testing.T) {
			g := ab.MustNewGroup(as(ab.Ignored))
			for range before {
				g.RecordFailure("k")
			}
			p, err := g.Allow("k")
			if err != nil {
				t.Fatal(err)
			}
			updateGroup(t, g, as(ab.Failure))
			p.Done(errors.New("some"))
			if got := int(g.Snapshot("k").Failures); got != before+1 {
				t.Errorf("%d failures, want %d", got, before+1)
			}
		})
	}
}

// What is forgotten when Update comes stays forgotten, also if the new settings would
// remember it.
func TestUpdateRemembersNothingForgotten(t *testing.T) {
	for name, make := range map[string]func(*ab.Group[int]){
		"closed":    func(g *ab.Group[int]) { g.RecordFailure(1) },
		"open":      func(g *ab.Group[int]) { g.Trip(1, time.Second) },
		"half-open": func(g *ab.Group[int]) { g.HalfOpen(1) },
	} {
		for _, forget := range []time.Duration{-1, 24 * time.Hour} {
			synctest.Test(t, func(t *testing.T) {
				events := 0
				c := ab.GroupConfig[int]{
					Default:       ab.Config{Policy: ab.Consecutive(2), ProbeTimeout: time.Minute},
					OnStateChange: func(int, ab.Event) { events++; panic("listener") },
				}
				g := ab.MustNewGroup(c)
				survives(func() { make(g) })
				time.Sleep(2 * time.Hour)
				c.ForgetAfter, c.Default.ProbeTimeout = forget, 3*time.Hour
				survives(func() {
					if err := g.Update(c); err != nil {
						t.Fatal(err)
					}
				})
				if got := g.Snapshot(1); got.Failures != 0 || got.State != ab.Closed || g.Len() != 0 {
					t.Errorf("%s: %+v, %d keys", name, got, g.Len())
				}
				if got := g.Config(1).ProbeTimeout; got != 3*time.Hour {
					t.Errorf("%s: ProbeTimeout %v after Update", name, got)
				}
				if v := g.RecordFailure(1); v != ab.Counted {
					t.Errorf("%s: %v, so the key was not healthy", name, v)
				}
				if want := map[string]int{"closed": 0, "open": 2, "half-open": 2}[name]; events != want {
					t.Errorf("%s: %d events, want %d", name, events, want)
				}
			})
		}
	}
}
