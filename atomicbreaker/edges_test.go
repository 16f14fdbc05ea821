//go:build !modelcheck

package atomicbreaker_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	ab "github.com/latchfree/latchfree/atomicbreaker"
)

// survives calls f, which may panic.
func survives(f func()) {
	defer func() { recover() }()
	f()
}

// Nothing but Update asks a PerKey that has gone wrong for a stored key: neither a call
// nor a sweep, nor a result, which gives its slot back, nor an observer.
func TestBadPerKeyHarmsNobody(t *testing.T) {
	for name, leave := range map[string]func(){"panic": func() { panic("PerKey") }, "exit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			g := ab.MustNewGroup(ab.GroupConfig[string]{})
			g.Trip("open", time.Hour)
			g.HalfOpen("probing")
			p := admit(t, keyed(g, "probing"))
			asked := 0
			goexit(func() {
				survives(func() {
					g.Update(ab.GroupConfig[string]{PerKey: func(string) ab.Config { asked++; leave(); return ab.Config{} }})
				})
			})
			if asked != 2 {
				t.Errorf("PerKey was called %d times, want 2", asked)
			}
			if n := g.Sweep(); n != 0 {
				t.Errorf("Sweep removed %d keys", n)
			}
			for range g.All() {
			}
			wantState(t, g.State("open"), ab.Open)
			wantVerdict(t, p.Success(), ab.Recovered)
			reject(t, keyed(g, "open"), ab.ErrOpen)
			g.ResetAll()
			if err := g.CheckQuiet(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Who forgets a key and then runs a TripFunc tells of the one before it begins the
// other: so nobody waits for the function, and nothing is lost if that leaves.
func TestForgottenKeysAreNotifiedBeforeTripFuncs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		notified, block := 0, make(chan struct{})
		what := func() {}
		g := ab.MustNewGroup(ab.GroupConfig[string]{
			Default:       ab.Config{OpenTimeout: time.Second, Policy: ab.TripFunc(time.Minute, 0, func(ab.Counts) bool { what(); return false })},
			OnStateChange: func(string, ab.Event) { notified++ },
		})
		want := func(n int) {
			t.Helper()
			if notified != n {
				t.Errorf("%d events, want %d", notified, n)
			}
			notified = 0
		}
		for _, leave := range []func(){func() { panic("trip") }, runtime.Goexit} {
			g.Trip("k", 0)
			time.Sleep(2 * time.Hour)
			what = leave
			goexit(func() { survives(func() { g.RecordFailure("k") }) })
			want(2)
			g.Trip("k", 0)
			g.Reset("k")
			want(2)
		}
		g.Trip("k", 0)
		time.Sleep(2 * time.Hour)
		what = func() { <-block }
		go g.RecordFailure("k")
		synctest.Wait()
		g.ForceOpen("k")
		want(3)
		close(block)
		synctest.Wait()
		g.Reset("k")
		if err := g.CheckQuiet(); err != nil {
			t.Error(err)
		}
	})
}

// Errors of calls that were admitted after Update are classified by what it says,
// also if nothing else has needed the key's settings since.
func TestUpdateOfClassify(t *testing.T) {
	c := ab.GroupConfig[string]{Default: ab.Config{Policy: ab.Consecutive(2)}}
	g := ab.MustNewGroup(c)
	g.RecordFailure("k")
	c.Default.Classify = func(context.Context, error) ab.Outcome { return ab.Ignored }
	updateGroup(t, g, c)
	wantVerdict(t, admit(t, keyed(g, "k")).Done(errBoom), ab.Counted)
	wantState(t, g.State("k"), ab.Closed)
}

// A TripFunc that takes longer than its window is asked once, and the failure stays counted.
func TestTripFuncsOutliveTheirWindow(t *testing.T) {
	for name, leave := range map[string]func(){"returns": func() {}, "panic": func() { panic("trip") }, "exit": runtime.Goexit} {
		want := "failures 1, Closed"
		if name == "returns" {
			want = "failures 0, Open"
		}
		for _, direct := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var g *ab.Group[string]
					asked := 0
					g = ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{
						Policy: ab.AnyOf(ab.Consecutive(3), ab.TripFunc(time.Millisecond, 0, func(ab.Counts) bool {
							asked++
							time.Sleep(time.Second)
							g.Sweep()
							leave()
							return true
						})),
					}})
					report := func() { g.RecordFailure("k") }
					if !direct {
						p := admit(t, keyed(g, "k"))
						report = func() { p.Failure() }
					}
					done := make(chan struct{})
					go func() {
						defer close(done)
						survives(report)
					}()
					<-done
					s := g.Snapshot("k")
					if got := fmt.Sprintf("failures %d, %v", s.Failures, s.State); got != want || asked != 1 {
						t.Errorf("asked %d times, %s, want %s", asked, got, want)
					}
				})
			})
		}
	}
}

// What probes have shown stays shown when Update makes one failure decide.
func TestUpdateOfProbeFailureRate(t *testing.T) {
	c := probing(9, 5, time.Minute)
	c.ProbeFailureRate = 1
	b := ab.MustNew(c)
	b.HalfOpen()
	for range 4 {
		wantVerdict(t, admit(t, b.Allow).Failure(), ab.Counted)
	}
	c.ProbeFailureRate = 0
	update(t, b, c)
	wantVerdict(t, admit(t, b.Allow).Success(), ab.Tripped)
}

// A ForgetAfter that becomes shorter gives places of the open quota back in its own
// time.
func TestUpdateOfHowLongKeysStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := ab.GroupConfig[string]{Default: ab.Config{Policy: ab.Consecutive(1), OpenTimeout: time.Second}, MaxOpen: 1, ForgetAfter: 300 * 24 * time.Hour}
		g := ab.MustNewGroup(c)
		g.Trip("gone", 0)
		wantVerdict(t, g.RecordFailure("k"), ab.Counted) // withheld
		c.ForgetAfter = time.Minute
		updateGroup(t, g, c)
		time.Sleep(2 * time.Minute)
		wantVerdict(t, g.RecordFailure("k"), ab.Counted)
		wantVerdict(t, g.RecordFailure("k"), ab.Tripped)
	})
}

// Events of ResetAll are of the settings that hold then.
func TestResetAllTellsByNewSettings(t *testing.T) {
	var names []string
	c := ab.GroupConfig[string]{Default: ab.Config{Name: "old"}, OnStateChange: func(_ string, e ab.Event) { names = append(names, e.Name) }}
	g := ab.MustNewGroup(c)
	g.Trip("k", 0)
	c.Default.Name = "new"
	updateGroup(t, g, c)
	g.ResetAll()
	if len(names) != 2 || names[1] != "new" {
		t.Errorf("names %q", names)
	}
}

// Calls come from a window that counts them, where there is one.
func TestSnapshotOfSeveralWindows(t *testing.T) {
	b := ab.MustNew(ab.Config{Policy: ab.AnyOf(ab.FailureCount(100, time.Minute), ab.FailureRate(1, 100, time.Minute))})
	fail(t, b.Allow, 1)
	admit(t, b.Allow).Success()
	if w := b.Snapshot().Window; w != (ab.Counts{Calls: 2, Failures: 1}) {
		t.Errorf("%+v", w)
	}
}
