//go:build !modelcheck

package atomicbreaker_test

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

	ab "github.com/latchfree/latchfree/atomicbreaker"
)

func TestZeroGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g ab.Group[string]
		g.ResetAll()
		g.Reset("a")
		wantState(t, g.State("a"), ab.Closed)
		wantVerdict(t, g.RecordSuccess("a"), ab.Counted)
		wantVerdict(t, fail(t, keyed(&g, "a"), 5), ab.Tripped)
		if !g.IsOpen("a") || g.IsOpen("b") {
			t.Fatal("want a open and b not")
		}
		time.Sleep(time.Minute)
		if g.IsOpen("a") {
			t.Fatal("IsOpen is true although a probe would be admitted")
		}
		wantState(t, g.State("a"), ab.HalfOpen)
		if err := g.Do(t.Context(), "a", func(context.Context) error { return nil }); err != nil {
			t.Fatal(err)
		}
		wantState(t, g.State("a"), ab.Closed)
		if n := g.Len(); n != 0 {
			t.Fatalf("Len %d after the recovery, want 0", n)
		}
	})
}

// Reported bug 60, gobreaker: calls hold a Redis lock. No test: nothing is held during a call.

// T56: keys do not affect each other.
//
// Reported bug 56, Couchbase: one bad host opens all.
func TestT56_KeysAreIndependent(t *testing.T) {
	g := ab.MustNewGroup(ab.GroupConfig[int]{Default: ab.Config{Policy: ab.Consecutive(2)}})
	for i := range 1000 {
		fail(t, keyed(g, i), 1+i%2)
	}
	for i := range 1000 {
		want := ab.Closed
		if i%2 == 1 {
			want = ab.Open
		}
		wantState(t, g.State(i), want)
	}
	if n := g.Len(); n != 1000 {
		t.Fatalf("Len %d, want 1000", n)
	}
	g.ResetAll()
	if n := g.Len(); n != 0 {
		t.Fatalf("Len %d after ResetAll, want 0", n)
	}
	wantState(t, g.State(1), ab.Closed)
}

// A group stores the keys that fail, and no others.
func TestMemoryIsForFailingKeys(t *testing.T) {
	g := ab.MustNewGroup(ab.GroupConfig[int]{Default: ab.Config{Policy: ab.Consecutive(2)}})
	fail(t, keyed(g, -1), 1)
	for i := range 1000 {
		wantVerdict(t, admit(t, keyed(g, i)).Success(), ab.Counted)
		wantVerdict(t, admit(t, keyed(g, i)).Cancel(), ab.Counted)
		g.RecordSuccess(i)
		g.State(i)
		g.Reset(i)
		fail(t, keyed(g, i), 1)
		g.RecordSuccess(i)
		fail(t, keyed(g, i), 1)
		admit(t, keyed(g, i)).Success()
	}
	if keys := slices.Collect(keysOf(g)); !slices.Equal(keys, []int{-1}) {
		t.Fatalf("stored %v, want only -1", keys)
	}
}

func keysOf[K comparable](g *ab.Group[K]) func(func(K) bool) { return maps.Keys(maps.Collect(g.All())) }

// A failure through a permit taken while the key was absent counts, also when
// the key came, recovered and went in between.
//
// Checks I12.
func TestPermitsForAbsentKeys(t *testing.T) {
	g := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: ab.Consecutive(2)}})
	allow := keyed(g, "k")
	old := []permit{admit(t, allow), admit(t, allow), admit(t, allow)}
	wantVerdict(t, fail(t, allow, 1), ab.Counted)
	live := admit(t, allow)
	wantVerdict(t, g.RecordSuccess("k"), ab.Counted)
	if g.Len() != 0 {
		t.Fatal("the key is still stored")
	}
	wantVerdict(t, old[0].Failure(), ab.Counted)
	wantVerdict(t, old[1].Success(), ab.Counted) // clears that failure
	if g.Len() != 0 {
		t.Fatal("the key is still stored")
	}
	wantVerdict(t, live.Failure(), ab.Counted) // its cell is long gone
	wantVerdict(t, old[2].Failure(), ab.Tripped)
}

// A success through such a permit clears the failures since, also when the
// permit was taken while other keys were failing.
//
// Checks I12.
func TestPermitsForAbsentKeysClear(t *testing.T) {
	for _, others := range []int{0, 1} {
		g := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: ab.Consecutive(2)}})
		fail(t, keyed(g, "other"), others)
		p := admit(t, keyed(g, "k"))
		wantVerdict(t, fail(t, keyed(g, "k"), 1), ab.Counted)
		wantVerdict(t, p.Success(), ab.Counted)
		wantVerdict(t, fail(t, keyed(g, "k"), 1), ab.Counted)
	}
}

// Once the key has opened, such a permit is late, even if the key has
// recovered and gone since. Other keys' permits are not.
//
// Checks I12.
func TestPermitsForAbsentKeysComeLate(t *testing.T) {
	g := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: ab.Consecutive(2)}})
	k, other := keyed(g, "k"), keyed(g, "other")
	old := []permit{admit(t, k), admit(t, k), admit(t, k)}
	others := []permit{admit(t, other), admit(t, other)}
	wantVerdict(t, fail(t, k, 2), ab.Tripped)
	wantVerdict(t, old[0].Failure(), ab.Late)
	wantVerdict(t, g.RecordSuccess("k"), ab.Recovered)
	if g.Len() != 0 {
		t.Fatal("the key is still stored")
	}
	for _, p := range old {
		wantVerdict(t, p.Failure(), ab.Late)
		wantVerdict(t, p.Success(), ab.Late)
	}
	if g.Len() != 0 {
		t.Fatal("late results have stored the key")
	}
	wantVerdict(t, others[0].Failure(), ab.Counted)
	wantVerdict(t, others[1].Failure(), ab.Tripped)
	wantVerdict(t, fail(t, k, 1), ab.Counted)
}

// After ResetAll all earlier results are late, for keys stored or not, and
// none of them stores a key.
func TestResetAllVoidsResults(t *testing.T) {
	g := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: ab.Consecutive(3)}})
	absent := admit(t, keyed(g, "absent"))
	fail(t, keyed(g, "failing"), 1)
	failing := admit(t, keyed(g, "failing"))
	fail(t, keyed(g, "recovered"), 1)
	admit(t, keyed(g, "recovered")).Success()
	healthy := admit(t, keyed(g, "recovered"))
	g.ResetAll()
	for _, p := range []permit{absent, failing, healthy} {
		wantVerdict(t, p.Success(), ab.Late)
		wantVerdict(t, p.Failure(), ab.Late)
		wantVerdict(t, p.Cancel(), ab.Late)
	}
	if n := g.Len(); n != 0 {
		t.Fatalf("Len %d, want 0", n)
	}
	wantVerdict(t, fail(t, keyed(g, "failing"), 2), ab.Counted)
}

// T55: nothing but time and success gets an open key out of the group.
//
// Reported bug 55, bytedance/gopkg: idle removal also of open ones.
func TestT55_SweepKeepsWhatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := ab.MustNewGroup(ab.GroupConfig[string]{
			Default:     ab.Config{Policy: ab.Consecutive(2), OpenTimeout: time.Minute, ProbeTimeout: time.Hour},
			ForgetAfter: -1,
		})
		for _, k := range []string{"open", "half-open", "recovered", "reset"} {
			fail(t, keyed(g, k), 2)
		}
		for _, k := range []string{"failed", "cleared"} {
			fail(t, keyed(g, k), 1)
		}
		time.Sleep(time.Minute)
		admit(t, keyed(g, "half-open"))
		admit(t, keyed(g, "recovered")).Success()
		g.Reset("reset")
		g.RecordSuccess("cleared")
		permit := admit(t, keyed(g, "recovered"))
		if n := g.Sweep(); n != 0 {
			t.Fatalf("Sweep removed %d keys", n)
		}
		left := slices.Sorted(keysOf(g))
		if want := []string{"failed", "half-open", "open"}; !slices.Equal(left, want) {
			t.Fatalf("%v are left, want %v", left, want)
		}
		wantVerdict(t, permit.Failure(), ab.Counted) // its key has left
		wantVerdict(t, fail(t, keyed(g, "recovered"), 1), ab.Tripped)
		time.Sleep(1000 * time.Hour)
		if n := g.Sweep(); n != 0 {
			t.Fatalf("Sweep removed %d keys that fail", n)
		}
	})
}

// A call that was timed before Update took the SlowRate away is not, and its success asks
// for no settings.
func TestTimedCallsAfterUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow, asked := ab.Config{Policy: ab.SlowRate(1, time.Second, 1, time.Hour)}, 0
		g := ab.MustNewGroup(ab.GroupConfig[string]{Default: slow})
		p := admit(t, keyed(g, "k"))
		time.Sleep(time.Minute)
		updateGroup(t, g, ab.GroupConfig[string]{PerKey: func(string) ab.Config { asked++; return slow }})
		if wantVerdict(t, p.Success(), ab.Counted); asked != 0 {
			t.Errorf("PerKey was called %d times, want 0", asked)
		}
	})
}

func TestPerKey(t *testing.T) {
	calls := 0
	g := ab.MustNewGroup(ab.GroupConfig[string]{
		Default: ab.Config{Policy: ab.Consecutive(9)},
		PerKey: func(k string) ab.Config {
			switch calls++; k {
			case "panic":
				panic("PerKey")
			case "wrong":
				return ab.Config{Probes: 99}
			case "fragile":
				return ab.Config{Name: k, Policy: ab.Consecutive(1), Classify: func(context.Context, error) ab.Outcome { return ab.Ignored }}
			}
			return ab.Config{Name: k, Policy: ab.Consecutive(2)}
		},
	})
	admit(t, keyed(g, "healthy")).Success()
	admit(t, keyed(g, "healthy")).Done(nil)
	if calls != 0 {
		t.Fatal("PerKey was called for a healthy key")
	}
	wantVerdict(t, admit(t, keyed(g, "fragile")).Done(errBoom), ab.Counted) // classified as ignored
	wantVerdict(t, fail(t, keyed(g, "fragile"), 1), ab.Tripped)
	calls = 0
	wantVerdict(t, admit(t, keyed(g, "usual")).Done(errBoom), ab.Counted)
	wantVerdict(t, admit(t, keyed(g, "usual")).Done(errBoom), ab.Tripped)
	if calls != 1 {
		t.Fatalf("PerKey was called %d times for one failing key, want 1", calls)
	}
	for k, s := range g.All() {
		if s.Name != k {
			t.Fatalf("name %q of key %q", s.Name, k)
		}
	}
	panics(t, "PerKey", func() { admit(t, keyed(g, "panic")).Failure() })
	panics(t, "PerKey", func() { admit(t, keyed(g, "panic")).Done(errBoom) })
	panics(t, "PerKey", func() { g.RecordFailure("panic") })
	if n := g.Len(); n != 2 {
		t.Fatalf("Len %d after panics, want 2", n)
	}
	wantVerdict(t, g.RecordFailure("wrong"), ab.Counted)
	wantVerdict(t, g.RecordFailure("other"), ab.Counted)
}

// T53: at any time a key has one cell, whoever inserts it.
//
// Reported bug 53, gobreaker, Dapr, hystrix-go: one key, two breakers.
// Checks I12.
func TestT53_OneCellPerKey(t *testing.T) {
	for range rounds(2000) {
		g := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: ab.Consecutive(100)}})
		together(4, func(int) {
			for range 5 {
				g.RecordFailure("k")
			}
		})
		for _, s := range g.All() {
			if s.Failures != 20 {
				t.Fatalf("%d failures, want 20", s.Failures)
			}
		}
	}
}

// T54: neither breakers nor keys have goroutines or timers.
//
// Reported bug 54, hystrix-go, mercari, Tyk: goroutines and timers leak.
func TestT54_NoGoroutines(t *testing.T) {
	before := runtime.NumGoroutine()
	g := ab.MustNewGroup(ab.GroupConfig[int]{Default: ab.Config{Policy: ab.Consecutive(1)}})
	for i := range 100 {
		fail(t, keyed(g, i), 1)
	}
	if n := runtime.NumGoroutine(); n > before {
		t.Fatalf("%d goroutines, %d before", n, before)
	}
}

func TestAllStops(t *testing.T) {
	var g ab.Group[int]
	for i := range 10 {
		g.RecordFailure(i)
	}
	seen := 0
	for k := range g.All() {
		g.RecordSuccess(k) // the loop body may use the group
		if seen++; seen == 3 {
			break
		}
	}
	if g.Len() != 7 {
		t.Fatalf("Len %d, want 7", g.Len())
	}
}

// All yields no key that has left before its turn.
func TestAllSkipsWhatHasLeft(t *testing.T) {
	const keys = 1000
	var g ab.Group[int]
	for i := range keys {
		g.RecordFailure(i)
	}
	seen := 0
	for k := range g.All() {
		seen++
		for i := range keys {
			if i != k {
				g.RecordSuccess(i)
			}
		}
	}
	if seen != 1 {
		t.Errorf("%d keys, want the first alone", seen)
	}
}

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

// A key that windows remember leaves when nothing bad is left in them, not
// before.
func TestKeysLeaveWithTheirWindows(t *testing.T) {
	const window = time.Minute
	policies := map[string]ab.Policy{
		"FailureCount": ab.FailureCount(9, window),
		"FailureRate":  ab.FailureRate(1, 9, window),
		"any":          ab.AnyOf(ab.FailureCount(99, time.Second), ab.FailureRate(1, 9, window), ab.SlowRate(1, time.Second, 9, time.Millisecond)),
	}
	for name, p := range policies {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: p}})
				swept := func(want int) {
					t.Helper()
					if n := g.Sweep(); n != want {
						t.Fatalf("Sweep: %d keys, want %d", n, want)
					}
				}
				for _, k := range []string{"a", "b"} {
					wantVerdict(t, g.RecordFailure(k), ab.Counted)
				}
				time.Sleep(window / 2)
				wantVerdict(t, g.RecordFailure("b"), ab.Counted)
				for _, k := range []string{"a", "b"} { // they do not hasten it
					for range 3 {
						wantVerdict(t, g.RecordSuccess(k), ab.Counted)
					}
				}
				time.Sleep(window / 2)
				swept(0)
				time.Sleep(slack(window))
				swept(1) // a has nothing left in its window
				time.Sleep(window)
				swept(1)
				if err := g.CheckQuiet(); err != nil || g.Len() != 0 {
					t.Fatalf("%v, %d keys", err, g.Len())
				}
			})
		})
	}
}

// Slow calls keep a key as failures do, also if none has failed.
func TestKeysLeaveWithTheirSlowCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: ab.SlowRate(1, time.Second, 9, time.Minute)}})
		p := admit(t, keyed(g, "k"))
		time.Sleep(2 * time.Second)
		p.Success()
		time.Sleep(time.Minute)
		if g.Sweep() != 0 || g.Len() != 1 {
			t.Fatal("Sweep removed a key with a slow call in its window")
		}
		time.Sleep(slack(time.Minute))
		if g.Sweep() != 1 || g.Len() != 0 {
			t.Fatal("Sweep left a key with nothing in its window")
		}
	})
}

// What is counted in the word keeps a key as well, whatever the window says.
func TestKeysStayForTheirCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: ab.AnyOf(ab.Consecutive(3), ab.FailureCount(9, time.Second))}, ForgetAfter: -1})
		h := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: ab.AnyOf(ab.KOfN(2, 3), ab.FailureCount(9, time.Second))}, ForgetAfter: -1})
		g.RecordFailure("k")
		h.RecordFailure("k")
		time.Sleep(time.Hour)
		if g.Sweep()+h.Sweep() != 0 {
			t.Fatal("Sweep removed a key with a failure in its count")
		}
		g.RecordSuccess("k")
		for range 2 {
			h.RecordSuccess("k")
			if h.Sweep() != 0 {
				t.Fatal("Sweep removed a key with a failure among the last three")
			}
		}
		h.RecordSuccess("k")
		if g.Len() != 0 { // without Sweep: nothing bad was reported for longer than the window
			t.Fatal("a key stayed that is healthy")
		}
		if h.Sweep() != 1 {
			t.Fatal("Sweep left a key that is healthy")
		}
	})
}

// So do failures among the last calls, however many these are, until the last of
// them is forgotten.
func TestKeysStayForTheirLog(t *testing.T) {
	for _, calls := range []string{"x", "xx", "x.x", "x.x..x"} {
		g := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: ab.KOfN(9, 40)}})
		for range 3 {
			for _, c := range calls {
				reportOp(admit(t, keyed(g, "k")), c == 'x')
			}
			for i := range 40 {
				if g.Sweep() != 0 || g.Len() != 1 || g.Snapshot("k").Failures == 0 {
					t.Fatalf("%d keys, %+v, %d calls after %s", g.Len(), g.Snapshot("k"), i, calls)
				}
				g.RecordSuccess("k")
			}
			if g.Len() != 0 {
				t.Fatal("a key stayed that is healthy")
			}
		}
		if err := g.CheckQuiet(); err != nil {
			t.Error(err)
		}
	}
	// With nobody to call it, it is forgotten all the same.
	synctest.Test(t, func(t *testing.T) {
		g := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: ab.KOfN(9, 40)}, ForgetAfter: time.Hour})
		for _, c := range "x.x." {
			reportOp(admit(t, keyed(g, "k")), c == 'x')
		}
		time.Sleep(time.Hour - time.Second)
		wantVerdict(t, g.RecordSuccess("k"), ab.Counted) // which leaves its failures
		time.Sleep(time.Hour - time.Second)
		if g.Sweep() != 0 {
			t.Error("forgotten too early")
		}
		time.Sleep(2 * time.Second)
		if g.Sweep() != 1 || g.Len() != 0 {
			t.Error("not forgotten")
		}
	})
}

// Nothing but the window makes a key leave: neither ForceOpen nor Disable nor
// open times pass.
func TestSweepKeepsWhatIsSetByHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: ab.FailureCount(2, time.Second), OpenTimeout: time.Second}, ForgetAfter: -1})
		g.ForceOpen("forced")
		g.Disable("disabled")
		g.Trip("tripped", 0)
		fail(t, keyed(g, "failed"), 2)
		time.Sleep(100 * time.Hour)
		if n := g.Sweep(); n != 0 || g.Len() != 4 {
			t.Fatalf("Sweep removed %d keys, and %d are left", n, g.Len())
		}
		wantState(t, g.State("forced"), ab.ForcedOpen)
		wantState(t, g.State("disabled"), ab.Disabled)
		wantState(t, g.State("tripped"), ab.HalfOpen)
		for _, k := range []string{"forced", "disabled", "tripped", "failed"} {
			g.Reset(k)
		}
		g.Sweep()
		if err := g.CheckQuiet(); err != nil || g.Len() != 0 {
			t.Fatalf("%v, %d keys", err, g.Len())
		}
	})
}

// Inserts sweep: keys whose windows are empty do not pile up, whether or not
// anybody calls Sweep, and those with failures stay.
func TestInsertsSweepWindows(t *testing.T) {
	for _, perKey := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := ab.Config{Policy: ab.FailureCount(2, time.Second)}
			c := ab.GroupConfig[int]{Default: s}
			if perKey {
				c = ab.GroupConfig[int]{PerKey: func(int) ab.Config { return s }}
			}
			g := ab.MustNewGroup(c)
			most := 0
			for i := range 5000 {
				wantVerdict(t, g.RecordFailure(i), ab.Counted)
				time.Sleep(50 * time.Millisecond) // some 20 keys have failures
				most = max(most, g.Len())
			}
			if most > 64 {
				t.Fatalf("up to %d keys were stored, want at most 64", most)
			}
			for i := 4985; i < 5000; i++ {
				wantVerdict(t, g.RecordFailure(i), ab.Tripped) // no failure was lost
			}
		})
	}
}

// Inserts go on sweeping after the listener has panicked in a sweep of theirs.
func TestInsertsSweepAfterAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ends := true
		g := ab.MustNewGroup(ab.GroupConfig[int]{
			Default:     ab.Config{Policy: ab.Consecutive(1), OpenTimeout: time.Second},
			ForgetAfter: time.Second,
			OnStateChange: func(_ int, e ab.Event) {
				if e.Reason == ab.ReasonForgotten && ends {
					ends = false
					panic("listener")
				}
			},
		})
		sixtyFour := func(from int) { // of which the last finds the others forgotten
			for k := from; k < 63; k++ {
				g.RecordFailure(k)
			}
			time.Sleep(3 * time.Second)
			g.RecordFailure(63 + from)
		}
		panics(t, "listener", func() { sixtyFour(0) })
		sixtyFour(1) // and the one that is left
		if n := g.Len(); n != 1 {
			t.Fatalf("%d keys are stored after a sweep, want 1", n)
		}
	})
}

// A failure through a permit counts, when the cell that gave it has left with
// its windows.
//
// Checks I12.
func TestPermitsOutliveWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: ab.FailureCount(2, time.Minute)}})
		g.RecordFailure("k")
		p, q := admit(t, keyed(g, "k")), admit(t, keyed(g, "k"))
		for range 3 {
			time.Sleep(2 * time.Minute)
			g.Sweep()
		}
		if g.Len() != 0 {
			t.Fatal("the key is still there")
		}
		wantVerdict(t, p.Failure(), ab.Counted)
		wantVerdict(t, q.Failure(), ab.Tripped)
	})
}

// A key of which nothing is left stays until its events have been delivered, also if a
// sweep meets it before.
func TestSweepWithAListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &ab.Group[string]{}
		swept := 0
		g = ab.MustNewGroup(ab.GroupConfig[string]{
			Default: ab.Config{Policy: ab.FailureCount(2, time.Second)},
			OnStateChange: func(k string, e ab.Event) {
				if e.To == ab.Closed {
					g.RecordFailure(k)
					time.Sleep(time.Minute)
					swept += g.Sweep()
				}
			},
		})
		fail(t, keyed(g, "k"), 2)
		g.Reset("k")
		if swept != 0 || g.Len() != 0 {
			t.Fatalf("%d keys left before their events were delivered, %d stay", swept, g.Len())
		}
		if err := g.CheckQuiet(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestKeysThatAreNotEqualToThemselves(t *testing.T) {
	nan := math.NaN()
	var g ab.Group[float64]
	for range 100 {
		wantVerdict(t, admit(t, keyed(&g, nan)).Failure(), ab.Late)
		wantVerdict(t, admit(t, keyed(&g, nan)).Success(), ab.Counted)
		wantVerdict(t, g.RecordFailure(nan), ab.Late)
		wantVerdict(t, g.RecordSuccess(nan), ab.Counted)
		g.Reset(nan)
		wantState(t, g.State(nan), ab.Closed)
		if g.RecordFailure(1.5); g.Len() != 1 {
			t.Fatalf("Len %d, want 1: a NaN was stored", g.Len())
		}
	}
	wantState(t, g.State(1.5), ab.Open)

	var h ab.Group[any]
	wantVerdict(t, admit(t, keyed[any](&h, nan)).Failure(), ab.Late)
	if h.Len() != 0 {
		t.Fatal("a NaN in an interface was stored")
	}
}

func TestUncomparableKeys(t *testing.T) {
	const prefix = "atomicbreaker: key"
	var g ab.Group[any]
	bad := any([]int{1})
	check := func() {
		t.Helper()
		panics(t, prefix, func() { g.Allow(bad) })
		panics(t, prefix, func() { g.Do(t.Context(), bad, func(context.Context) error { return nil }) })
		panics(t, prefix, func() { g.RecordSuccess(bad) })
		panics(t, prefix, func() { g.RecordFailure(bad) })
		panics(t, prefix, func() { g.IsOpen(bad) })
		panics(t, prefix, func() { g.State(bad) })
		panics(t, prefix, func() { g.Reset(bad) })
		panics(t, prefix, func() { g.Config(bad) })
		panics(t, prefix, func() { g.Snapshot(bad) })
		panics(t, prefix, func() { g.Trip(bad, 0) })
		panics(t, prefix, func() { g.HalfOpen(bad) })
		panics(t, prefix, func() { g.ForceOpen(bad) })
		panics(t, prefix, func() { g.Disable(bad) })
	}
	check() // while the group is empty
	wantVerdict(t, fail(t, keyed[any](&g, "good"), 5), ab.Tripped)
	check()
	wantVerdict(t, g.RecordSuccess("good"), ab.Recovered)
}

type point struct{ x, y int }
type name string
type small int8

// A permit carries its key unchanged, whatever the key's type.
//
// Checks I12.
func TestPermitsKeepKeys(t *testing.T) {
	keeps(t, "", "k", strings.Repeat("long", 1000))
	keeps[name](t, "", "k")
	keeps(t, 0, 1, -1, math.MaxInt, math.MinInt)
	keeps(t, uint64(0), math.MaxUint64, 1<<48, inCellBit)
	keeps[small](t, 0, -1, 127, -128)
	keeps(t, 0.0, 1.5, math.Inf(1))
	keeps(t, true, false)
	keeps(t, 'a', 'b')
	keeps(t, point{}, point{1, 2}, point{2, 1})
	keeps[any](t, nil, 1, "x", point{3, 4}, 1.5)
	keeps(t, [2]string{"a", "b"}, [2]string{"b", "a"})
	keeps(t, new(int), new(int), nil)
}

const inCellBit = 1 << 32

func keeps[K comparable](t *testing.T, keys ...K) {
	t.Helper()
	for _, others := range []bool{false, true} {
		g := ab.MustNewGroup(ab.GroupConfig[K]{Default: ab.Config{Policy: ab.Consecutive(1)}})
		if others {
			g.RecordFailure(keys[len(keys)-1]) // so that keys are hashed
			keys = keys[:len(keys)-1]
		}
		var permits []permit
		for _, k := range keys {
			permits = append(permits, admit(t, keyed(g, k)))
		}
		runtime.GC()
		for i, p := range permits {
			wantVerdict(t, p.Success(), ab.Counted)
			wantVerdict(t, p.Failure(), ab.Tripped)
			wantState(t, g.State(keys[i]), ab.Open)
			if want := i + 1; g.Len() != want && g.Len() != want+1 {
				t.Fatalf("Len %d after %d keys: a permit failed another key than its own", g.Len(), want)
			}
		}
	}
}

// fleet is a group whose keys open after two failures, unless c has a policy.
func fleet(t *testing.T, c ab.GroupConfig[int]) *ab.Group[int] {
	t.Helper()
	if c.Default.Policy == nil {
		c.Default.Policy = ab.Consecutive(2)
	}
	g, err := ab.NewGroup(c)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func openKeys(g *ab.Group[int]) (n int) {
	for _, s := range g.All() {
		if s.State != ab.Closed {
			n++
		}
	}
	return n
}

// When calls of all keys fail, only so many open; each verdict says which.
func TestMaxOpen(t *testing.T) {
	g := fleet(t, ab.GroupConfig[int]{MaxOpen: 5})
	tripped := 0
	for range 5 {
		for k := range 20 {
			p, err := g.Allow(k)
			if err != nil {
				continue
			}
			if p.Failure() == ab.Tripped {
				tripped++
			}
		}
	}
	if tripped != 5 || openKeys(g) != 5 {
		t.Fatalf("%d keys have tripped and %d are open, want 5", tripped, openKeys(g))
	}
	s := g.Stats()
	if s.Opened != 5 || s.Withheld == 0 {
		t.Errorf("stats %+v", s)
	}

	// A key that recovers makes room for another, which is the next to fail.
	for k, each := range g.All() {
		if each.State == ab.Open {
			g.RecordSuccess(k)
			break
		}
	}
	again := 0
	for k := range 20 {
		if p, err := g.Allow(k); err == nil && p.Failure() == ab.Tripped {
			again++
		}
	}
	if again != 1 || openKeys(g) != 5 {
		t.Errorf("%d keys have tripped where one had closed, and %d are open", again, openKeys(g))
	}
}

// What is opened by hand counts, and is not bounded.
func TestMaxOpenAndCommands(t *testing.T) {
	g := fleet(t, ab.GroupConfig[int]{MaxOpen: 1})
	wantVerdict(t, fail(t, keyed(g, 0), 2), ab.Tripped)
	wantVerdict(t, fail(t, keyed(g, 1), 5), ab.Counted)
	g.Trip(1, time.Hour)
	g.Trip(2, time.Hour)
	if n := openKeys(g); n != 3 {
		t.Fatalf("%d keys are open, want 3", n)
	}
	g.Reset(0)
	g.Reset(1)
	wantVerdict(t, fail(t, keyed(g, 3), 5), ab.Counted) // 2 still is
	g.ForceOpen(2)
	wantVerdict(t, fail(t, keyed(g, 3), 1), ab.Tripped) // it counts no more
}

// A bound that Update lowers closes no key, and none opens until fewer are open. One
// that comes later counts the keys that are open already.
func TestMaxOpenUpdated(t *testing.T) {
	for name, perKey := range map[string]func(int) ab.Config{"Default": nil, "PerKey": func(int) ab.Config { return ab.Config{Policy: ab.Consecutive(1)} }} {
		t.Run(name, func(t *testing.T) {
			c := ab.GroupConfig[int]{Default: ab.Config{Policy: ab.Consecutive(1)}, PerKey: perKey}
			g := fleet(t, c)
			bound := func(n int) {
				c.MaxOpen = n
				updateGroup(t, g, c)
			}
			for k := range 3 {
				wantVerdict(t, fail(t, keyed(g, k), 1), ab.Tripped)
			}
			bound(2)
			if n := openKeys(g); n != 3 {
				t.Fatalf("%d keys are open, want 3", n)
			}
			for k := range 2 {
				wantVerdict(t, fail(t, keyed(g, 3), 1), ab.Counted)
				g.Reset(k)
			}
			wantVerdict(t, fail(t, keyed(g, 3), 1), ab.Tripped)
			wantVerdict(t, fail(t, keyed(g, 4), 1), ab.Counted)
			bound(3)
			wantVerdict(t, fail(t, keyed(g, 4), 1), ab.Tripped)
			wantVerdict(t, fail(t, keyed(g, 5), 1), ab.Counted)
			bound(0)
			wantVerdict(t, fail(t, keyed(g, 5), 1), ab.Tripped)
			if err := g.CheckQuiet(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A key that may not open counts its successes like any other: what it was kept
// from does not make it worse.
func TestMaxOpenKeepsCounting(t *testing.T) {
	c := ab.GroupConfig[int]{MaxOpen: 1, Default: ab.Config{Policy: ab.FailureRate(0.5, 1, time.Minute)}}
	g := fleet(t, c)
	wantVerdict(t, fail(t, keyed(g, 0), 1), ab.Tripped)
	wantVerdict(t, fail(t, keyed(g, 1), 1), ab.Counted)
	for range 3 {
		admit(t, keyed(g, 1)).Success()
	}
	g.Reset(0)
	wantVerdict(t, fail(t, keyed(g, 1), 1), ab.Counted) // 2 of 5
	wantVerdict(t, fail(t, keyed(g, 1), 1), ab.Tripped) // 3 of 6
}

// A Trip that may not open its key is a failure like any other: it counts in a row and in
// windows.
func TestMaxOpenCountsTrips(t *testing.T) {
	for name, policy := range map[string]ab.Policy{
		"in a row":     ab.Consecutive(3),
		"a short log":  ab.KOfN(3, 5),
		"a long log":   ab.KOfN(3, 50),
		"a window":     ab.FailureCount(3, time.Minute),
		"a rate":       ab.FailureRate(0.5, 3, time.Minute),
		"a function":   ab.TripFunc(time.Minute, 0, func(c ab.Counts) bool { return c.Failures >= 3 && c.Consecutive >= 3 }),
		"any of these": ab.AnyOf(ab.Consecutive(3), ab.FailureCount(20, time.Minute)),
	} {
		g := fleet(t, ab.GroupConfig[int]{MaxOpen: 1, Default: ab.Config{Policy: policy}})
		g.Trip(0, 0)
		for i := range 2 {
			wantVerdict(t, admit(t, keyed(g, 1)).Trip(time.Hour), ab.Counted)
			if s := g.Snapshot(1); s.State != ab.Closed || s.Failures != i+1 && s.Window.Failures != i+1 {
				t.Errorf("%s: %+v after %d", name, s, i+1)
			}
		}
		if n := g.Stats().Withheld; n != 2 {
			t.Errorf("%s: %d openings were withheld, want 2", name, n)
		}
		g.Reset(0)
		if v := fail(t, keyed(g, 1), 1); v != ab.Tripped {
			t.Errorf("%s: the third failure is %v", name, v)
		}
	}
}

// So is a failure that a window keeps from opening its key, and it does not end those in a row.
func TestMaxOpenCountsInARow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := fleet(t, ab.GroupConfig[int]{MaxOpen: 1, Default: ab.Config{Policy: ab.AnyOf(ab.Consecutive(5), ab.FailureCount(2, time.Second))}})
		g.Trip(0, time.Hour)
		wantVerdict(t, fail(t, keyed(g, 1), 4), ab.Counted) // all but the first are withheld
		time.Sleep(time.Minute)
		g.Reset(0)
		wantVerdict(t, fail(t, keyed(g, 1), 1), ab.Tripped)
	})
}

// A key that may not open, and has nothing to remember, does not stay in the group.
func TestMaxOpenKeepsNoPristineKeys(t *testing.T) {
	g := fleet(t, ab.GroupConfig[int]{MaxOpen: 1, Default: ab.Config{Policy: ab.Consecutive(1)}})
	g.Trip(0, 0)
	for i := range 50 {
		wantVerdict(t, g.RecordFailure(1+i), ab.Counted)
		wantVerdict(t, fail(t, keyed(g, 1+i), 1), ab.Counted)
	}
	if n, s := g.Len(), g.Stats(); n != 1 || s.Withheld != 100 {
		t.Errorf("%d keys, %+v", n, s)
	}
	g.Reset(0)
	wantVerdict(t, g.RecordFailure(1), ab.Tripped)
}

// A key that keeps failing and may not open is not forgotten.
func TestMaxOpenKeepsWhatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := fleet(t, ab.GroupConfig[int]{MaxOpen: 1, ForgetAfter: time.Minute, Default: ab.Config{Policy: ab.Consecutive(3)}})
		g.Trip(0, -1) // until Reset
		for i := range 300 {
			wantVerdict(t, g.RecordFailure(1), ab.Counted)
			if n := g.Snapshot(1).Failures; n != min(i+1, 2) {
				t.Fatalf("%d failures in a row after %d", n, i+1)
			}
			time.Sleep(time.Second)
		}
		time.Sleep(time.Minute)
		g.Sweep()
		if n := g.Len(); n != 1 {
			t.Errorf("%d keys", n)
		}
	})
}

// Half-open keys keep their place, also while they fail again.
func TestMaxOpenWhileHalfOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := fleet(t, ab.GroupConfig[int]{MaxOpen: 1, Default: ab.Config{OpenTimeout: time.Second}})
		wantVerdict(t, fail(t, keyed(g, 0), 2), ab.Tripped)
		wantVerdict(t, fail(t, keyed(g, 1), 2), ab.Counted)
		time.Sleep(time.Second)
		p := admit(t, keyed(g, 0))
		wantVerdict(t, fail(t, keyed(g, 1), 1), ab.Counted)
		wantVerdict(t, p.Failure(), ab.Tripped)
		wantVerdict(t, fail(t, keyed(g, 1), 1), ab.Counted)
		time.Sleep(time.Minute)
		wantVerdict(t, admit(t, keyed(g, 0)).Success(), ab.Recovered)
		wantVerdict(t, fail(t, keyed(g, 1), 1), ab.Tripped)
		if n := g.Stats().Withheld; n != 3 {
			t.Errorf("%d openings were withheld, want 3", n)
		}
	})
}

// A history goes on while its key may not open.
func TestMaxOpenWithKOfN(t *testing.T) {
	for _, n := range []int{3, 33, 1000} {
		g := fleet(t, ab.GroupConfig[int]{MaxOpen: 1, Default: ab.Config{Policy: ab.KOfN(2, n)}})
		wantVerdict(t, fail(t, keyed(g, 0), 2), ab.Tripped)
		wantVerdict(t, fail(t, keyed(g, 1), 4), ab.Counted)
		for range n {
			wantVerdict(t, admit(t, keyed(g, 1)).Success(), ab.Counted)
		}
		g.Reset(0)
		wantVerdict(t, fail(t, keyed(g, 1), 1), ab.Counted) // one of the last n
		wantVerdict(t, fail(t, keyed(g, 1), 1), ab.Tripped)
	}
}

// So does a long one, with a failure now and then: its log has the last.
func TestMaxOpenWithALog(t *testing.T) {
	g := fleet(t, ab.GroupConfig[int]{MaxOpen: 1, Default: ab.Config{Policy: ab.KOfN(3, 40)}})
	wantVerdict(t, fail(t, keyed(g, 0), 3), ab.Tripped)
	withheld := g.Stats().Withheld
	for i := range 50 {
		wantVerdict(t, fail(t, keyed(g, 1), 1), ab.Counted)
		wantVerdict(t, admit(t, keyed(g, 1)).Success(), ab.Counted)
		if s := g.Snapshot(1); s.Failures < min(i+1, 3) || s.Failures > min(i+1, 20) {
			t.Fatalf("%+v after %d failures", s, i+1)
		}
	}
	if n := g.Stats().Withheld - withheld; n != 48 {
		t.Errorf("%d openings were withheld, want 48", n)
	}
	for range 36 {
		wantVerdict(t, admit(t, keyed(g, 1)).Success(), ab.Counted)
	}
	g.Reset(0)
	if s := g.Snapshot(1); s.Failures != 2 { // the last two are 37 and 39 calls ago
		t.Fatalf("%+v", s)
	}
	wantVerdict(t, fail(t, keyed(g, 1), 1), ab.Counted)
	wantVerdict(t, fail(t, keyed(g, 1), 1), ab.Tripped)
}

// A slow call that succeeds is a success, also if its key may not open for it.
func TestMaxOpenOfSlowCalls(t *testing.T) {
	for _, p := range []ab.Policy{ab.Consecutive(4), ab.KOfN(4, 20), ab.KOfN(4, 200)} {
		synctest.Test(t, func(t *testing.T) {
			c := ab.Config{Policy: ab.AnyOf(p, ab.SlowRate(0.1, time.Second, 3, time.Hour)), OpenTimeout: time.Hour}
			g := fleet(t, ab.GroupConfig[int]{MaxOpen: 1, Default: c})
			g.Trip(0, 0)
			wantVerdict(t, fail(t, keyed(g, 1), 2), ab.Counted)
			for i := range 8 {
				slow := admit(t, keyed(g, 1))
				time.Sleep(time.Second + tick)
				wantVerdict(t, slow.Success(), ab.Counted)
				if n := g.Snapshot(1).Failures; p == ab.Consecutive(4) && n != 0 || p != ab.Consecutive(4) && n != 2 {
					t.Fatalf("%v: %d failures after %d slow calls", p, n, i+1)
				}
			}
		})
	}
}

// Keys that are opened by hand have their places too, each one, whatever command
// comes after which.
func TestMaxOpenAfterCommands(t *testing.T) {
	long := time.Duration(0)
	commands := map[string]func(*ab.Group[int], int){
		"Trip":      func(g *ab.Group[int], k int) { long += time.Minute; g.Trip(k, long) }, // longer than before
		"ForceOpen": (*ab.Group[int]).ForceOpen, "Disable": (*ab.Group[int]).Disable, "Reset": (*ab.Group[int]).Reset,
	}
	for first, one := range commands {
		for second, other := range commands {
			g := fleet(t, ab.GroupConfig[int]{MaxOpen: 1, Default: ab.Config{MaxOpenTimeout: 24 * time.Hour}})
			for i, command := range []func(*ab.Group[int], int){one, other, other, one} {
				command(g, 0)
				if err := g.CheckQuiet(); err != nil {
					t.Errorf("%s, %s, command %d: %v", first, second, i, err)
				}
			}
		}
	}
}

// However many goroutines fail at once, the bound holds, and no place is lost or
// found.
func TestStressMaxOpen(t *testing.T) {
	const keys, bound = 40, 10
	g := fleet(t, ab.GroupConfig[int]{MaxOpen: bound, Default: ab.Config{Policy: ab.Consecutive(1), OpenTimeout: -1}})
	var callers sync.WaitGroup
	for i := range 4 {
		callers.Go(func() {
			for j := range rounds(3_000) {
				k := (i*7 + j*13) % keys
				switch {
				case j%3 == 0:
					g.RecordSuccess(k)
				default:
					if p, err := g.Allow(k); err == nil {
						p.Failure()
					} else if !errors.Is(err, ab.ErrOpen) {
						t.Error(err)
					}
				}
			}
		})
	}
	callers.Wait()
	if n := openKeys(g); n > bound {
		t.Errorf("%d keys are open, more than %d", n, bound)
	}
	for k := range keys {
		g.Reset(k)
	}
	opened := 0
	for k := range keys {
		if g.RecordFailure(k) == ab.Tripped {
			opened++
		}
	}
	if opened != bound {
		t.Errorf("%d of %d places are left", opened, bound)
	}
}
