//go:build !modelcheck

package atomicbreaker_test

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	ab "github.com/latchfree/latchfree/atomicbreaker"
)

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
