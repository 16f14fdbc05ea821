//go:build !modelcheck

package atomicbreaker_test

import (
	"context"
	"fmt"
	"log/slog"
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

// A log is a listener that remembers.
type log []ab.Event

func (l *log) add(e ab.Event) { *l = append(*l, e) }

// want fails the test unless these are the events since the last want. Their
// generations and times are not given.
func (l *log) want(t *testing.T, want ...ab.Event) {
	t.Helper()
	got := slices.Clone(*l)
	*l = nil
	for i := range got {
		got[i].Generation, got[i].At = 0, time.Time{}
	}
	if !slices.Equal(got, want) {
		t.Fatalf("told\n\t%#v\nwant\n\t%#v", got, want)
	}
}

// inOrder fails the test unless the events are those of one breaker from its
// beginning.
func inOrder(t *testing.T, events []ab.Event) {
	t.Helper()
	last := ab.Event{}
	for i, e := range events {
		if e.From != last.To || e.Generation != last.Generation+1 || e.At.Before(last.At) {
			t.Fatalf("event %d is %+v\nafter %+v", i, e, last)
		}
		last = e
	}
}

// Checks I19, I20, I21, I22: all tests of this file.

func TestEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l log
		all := log{}
		b := ab.MustNew(ab.Config{
			Name: "db", Policy: ab.Consecutive(3), OpenTimeout: time.Second, MaxOpenTimeout: 10 * time.Second, Probes: 3, CloseAfter: 2, ProbeTimeout: time.Second,
			OnStateChange: func(e ab.Event) { l.add(e); all.add(e) },
		})
		b.Reset()
		l.want(t, ab.Event{Name: "db", Reason: ab.ReasonReset})
		fail(t, b.Allow, 2)
		admit(t, b.Allow).Success()
		fail(t, b.Allow, 2)
		early := admit(t, b.Allow)
		l.want(t)
		time.Sleep(300 * time.Microsecond)
		fail(t, b.Allow, 1)
		l.want(t, ab.Event{Name: "db", To: ab.Open, Reason: ab.ReasonThreshold, Failures: 3, Streak: 1, OpenFor: time.Second})
		early.Failure()
		reject(t, b.Allow, ab.ErrOpen)
		l.want(t)

		// State knows that the time has passed; the event is a probe's.
		time.Sleep(1100 * time.Millisecond)
		wantState(t, b.State(), ab.HalfOpen)
		l.want(t)
		admit(t, b.Allow)
		l.want(t, ab.Event{Name: "db", From: ab.Open, To: ab.HalfOpen, Reason: ab.ReasonOpenTimeout, Streak: 1})
		p := admit(t, b.Allow)
		admit(t, b.Allow).Success()
		p.Failure()
		l.want(t, ab.Event{Name: "db", From: ab.HalfOpen, To: ab.Open, Reason: ab.ReasonProbeFailed,
			Failures: 1, Successes: 1, InFlight: 1, Streak: 2, OpenFor: 2 * time.Second})

		time.Sleep(3 * time.Second)
		for range 3 {
			admit(t, b.Allow)
		}
		time.Sleep(2 * time.Second)
		p = admit(t, b.Allow)
		l.want(t,
			ab.Event{Name: "db", From: ab.Open, To: ab.HalfOpen, Reason: ab.ReasonOpenTimeout, Streak: 2},
			ab.Event{Name: "db", From: ab.HalfOpen, To: ab.HalfOpen, Reason: ab.ReasonProbeTimeout, InFlight: 3, Streak: 2})
		p.Success()
		q := admit(t, b.Allow)
		admit(t, b.Allow).Success()
		q.Success()
		l.want(t, ab.Event{Name: "db", From: ab.HalfOpen, To: ab.Closed, Reason: ab.ReasonRecovered, Successes: 2, InFlight: 1, Streak: 2})
		fail(t, b.Allow, 1)
		b.Reset()
		l.want(t, ab.Event{Name: "db", Reason: ab.ReasonReset, Failures: 1})
		if inOrder(t, all); len(all) != 8 || b.Snapshot().Generation != 8 {
			t.Fatalf("%d events, generation %d", len(all), b.Snapshot().Generation)
		}
		if at := all[7].At; !at.Equal(time.Now()) {
			t.Fatalf("the last event is of %v, not %v", at, time.Now())
		}
	})
}

func TestEventsWithoutPermits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l log
		g := ab.MustNewGroup(ab.GroupConfig[string]{
			Default:       ab.Config{Policy: ab.Consecutive(2), OpenTimeout: time.Second, MaxOpenTimeout: 10 * time.Second},
			OnStateChange: func(k string, e ab.Event) { l.add(e) },
		})
		closedToOpen := ab.Event{To: ab.Open, Reason: ab.ReasonThreshold, Failures: 2, Streak: 1, OpenFor: time.Second}
		g.RecordFailure("k")
		g.RecordFailure("k")
		g.RecordFailure("k")
		l.want(t, closedToOpen)
		g.RecordSuccess("k")
		l.want(t, ab.Event{From: ab.Open, Reason: ab.ReasonRecordSuccess, Streak: 1})
		g.RecordFailure("k")
		g.RecordFailure("k")
		time.Sleep(time.Second)
		g.RecordFailure("k")
		l.want(t, closedToOpen, ab.Event{From: ab.Open, To: ab.Open, Reason: ab.ReasonRecordFailure, Streak: 2, OpenFor: 2 * time.Second})
		time.Sleep(2 * time.Second)
		admit(t, keyed(g, "k"))
		g.RecordFailure("k")
		l.want(t, ab.Event{From: ab.Open, To: ab.HalfOpen, Reason: ab.ReasonOpenTimeout, Streak: 2},
			ab.Event{From: ab.HalfOpen, To: ab.Open, Reason: ab.ReasonRecordFailure, InFlight: 1, Streak: 3, OpenFor: 4 * time.Second})
		g.Reset("k")
		l.want(t, ab.Event{From: ab.Open, Reason: ab.ReasonReset, Streak: 3})
		g.Reset("k")
		l.want(t, ab.Event{Reason: ab.ReasonReset})
	})
}

func TestLatchedEvent(t *testing.T) {
	var l log
	b := ab.MustNew(ab.Config{Policy: ab.Consecutive(1), OpenTimeout: -1, OnStateChange: l.add})
	fail(t, b.Allow, 1)
	l.want(t, ab.Event{To: ab.Open, Reason: ab.ReasonThreshold, Failures: 1, Streak: 1, OpenFor: math.MaxInt64})
}

// An event tells the whole open time, wherever in a millisecond that begins.
func TestEventsTellTheWholeOpenTime(t *testing.T) {
	for _, late := range []time.Duration{0, 1, time.Millisecond / 2, time.Millisecond - 1} {
		synctest.Test(t, func(t *testing.T) {
			var l log
			b := ab.MustNew(ab.Config{OnStateChange: l.add})
			time.Sleep(late)
			b.Trip(time.Second)
			l.want(t, ab.Event{To: ab.Open, Reason: ab.ReasonTrip, Streak: 1, OpenFor: time.Second})
		})
	}
}

func TestEventText(t *testing.T) {
	for want, e := range map[string]ab.Event{
		"Closed to Open: Threshold, for 1.5s":            {To: ab.Open, Reason: ab.ReasonThreshold, OpenFor: 1500 * time.Millisecond},
		"db: HalfOpen to Open: ProbeFailed, until reset": {Name: "db", From: ab.HalfOpen, To: ab.Open, Reason: ab.ReasonProbeFailed, OpenFor: math.MaxInt64},
		"Open to HalfOpen: OpenTimeout":                  {From: ab.Open, To: ab.HalfOpen, Reason: ab.ReasonOpenTimeout},
		"HalfOpen to HalfOpen: ProbeTimeout":             {From: ab.HalfOpen, To: ab.HalfOpen, Reason: ab.ReasonProbeTimeout},
		"HalfOpen to Closed: Recovered":                  {From: ab.HalfOpen, Reason: ab.ReasonRecovered},
		"Open to Closed: RecordSuccess":                  {From: ab.Open, Reason: ab.ReasonRecordSuccess},
		"Open to Open: RecordFailure, for 1s":            {From: ab.Open, To: ab.Open, Reason: ab.ReasonRecordFailure, OpenFor: time.Second},
		"Closed to Closed: Reset":                        {Reason: ab.ReasonReset},
		"Closed to Closed: Reason(0)":                    {},
	} {
		if got := e.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	e := ab.Event{Name: "db", From: ab.HalfOpen, To: ab.Open, Generation: 3, Reason: ab.ReasonProbeFailed, Successes: 1, Streak: 2, OpenFor: time.Second, At: time.Now()}
	var out strings.Builder
	drop := func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && a.Key != "event" {
			return slog.Attr{}
		}
		return a
	}
	slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: drop})).Info("", "event", e)
	const want = "event.name=db event.from=HalfOpen event.to=Open event.reason=ProbeFailed event.generation=3 event.successes=1 event.streak=2 event.open_for=1s\n"
	if out.String() != want {
		t.Errorf("logged as\n%swant\n%s", &out, want)
	}
	if got := (ab.Event{Failures: 2, InFlight: 1}).LogValue().String(); got != "[from=Closed to=Closed reason=Reason(0) failures=2 in_flight=1]" {
		t.Error(got)
	}
}

func TestListenersOfGroupsAreTheGroups(t *testing.T) {
	c := ab.Config{OnStateChange: func(ab.Event) {}}
	const text = "atomicbreaker: Config.OnStateChange: must be nil in a Group"
	if _, err := ab.NewGroup(ab.GroupConfig[int]{Default: c}); err == nil || !strings.HasPrefix(err.Error(), text) {
		t.Error(err)
	}
	g := ab.MustNewGroup(ab.GroupConfig[int]{PerKey: func(int) ab.Config { return c }})
	fallsBack(t, g, "")
}

// T35: a listener may do whatever its breaker can do.
//
// Reported bug 35, gobreaker, mercari: listeners that ask it deadlock.
func TestT35_ListenersMayUseTheirBreaker(t *testing.T) {
	var b *ab.Breaker
	var l log
	depth := 0
	b = ab.MustNew(ab.Config{Name: "b", Policy: ab.Consecutive(1), OnStateChange: func(e ab.Event) {
		if depth++; depth != 1 {
			t.Errorf("%v inside another event", e)
		}
		l.add(e)
		if s := b.Snapshot(); s.Generation < int(e.Generation) || b.State() != s.State {
			t.Errorf("%+v at %+v", s, e)
		}
		if len(l) < 10 {
			if b.Reset(); len(l) < 9 {
				admit(t, b.Allow).Failure()
			}
		}
		depth--
	}})
	fail(t, b.Allow, 1)
	if inOrder(t, l); len(l) < 10 || l[len(l)-1].To != b.State() {
		t.Fatalf("%d events, %v at last, and it is %v", len(l), l[len(l)-1].To, b.State())
	}

	var g *ab.Group[string]
	var seen []string
	g = ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: ab.Consecutive(1)}, OnStateChange: func(k string, e ab.Event) {
		seen = append(seen, k+" "+e.To.String())
		switch {
		case k == "a" && e.To == ab.Open:
			g.RecordFailure("b") // is told inside: it is another key's
			g.RecordSuccess("a")
			for range g.All() {
			}
			g.Sweep()
		case k == "a":
			g.ResetAll()
		}
	}})
	g.RecordFailure("a")
	if want := []string{"a Open", "b Open", "a Closed", "b Closed"}; !slices.Equal(seen, want) {
		t.Fatalf("told %v, want %v", seen, want)
	}
	if err := g.CheckQuiet(); err != nil || g.Len() != 0 {
		t.Fatalf("%v, %d keys", err, g.Len())
	}
}

// T36: a listener that panics or exits does so in the caller whose report or
// call was told. The change stays, and nothing is lost.
//
// Reported bug 36, Failsafe-go: listener panics unlock twice.
func TestT36_ListenersMayFail(t *testing.T) {
	for name, end := range map[string]func(){"panic": func() { panic(errBoom) }, "goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			var l log
			ends := func(f func()) {
				t.Helper()
				returned := false
				goexit(func() {
					defer func() { recover() }()
					f()
					returned = true
				})
				if returned {
					t.Fatal("the listener was not called")
				}
			}
			synctest.Test(t, func(t *testing.T) {
				b := ab.MustNew(ab.Config{Policy: ab.Consecutive(1), OpenTimeout: time.Second, OnStateChange: func(e ab.Event) { l.add(e); end() }})
				ends(func() { admit(t, b.Allow).Failure() })
				wantState(t, b.State(), ab.Open)
				time.Sleep(2 * time.Second)
				ends(func() { b.Allow() })
				if s := b.Snapshot(); s.State != ab.HalfOpen || s.InFlight != 0 {
					t.Fatalf("the slot of a permit that nobody got is taken: %+v", s)
				}
				ends(func() { ab.Execute(b, func() (int, error) { return 0, errBoom }) })
				wantState(t, b.State(), ab.Open)
				time.Sleep(2 * time.Second)
				ends(func() { b.Do(t.Context(), func(context.Context) error { t.Error("called"); return nil }) })
				if s := b.Snapshot(); s.InFlight != 0 {
					t.Fatalf("%+v", s)
				}
				ends(b.Reset)
				inOrder(t, l)
				if len(l) != 5 || b.Snapshot().Generation != 5 {
					t.Fatalf("%d events", len(l))
				}
			})
			var keys []string
			g := ab.MustNewGroup(ab.GroupConfig[string]{
				Default:       ab.Config{Policy: ab.Consecutive(1), OpenTimeout: -1},
				OnStateChange: func(k string, e ab.Event) { keys = append(keys, k); end() },
			})
			for _, k := range []string{"a", "b", "c", "d"} {
				ends(func() { g.RecordFailure(k) })
			}
			ends(func() { g.RecordSuccess("d") })
			ends(g.ResetAll)
			if slices.Sort(keys); fmt.Sprint(keys) != "[a a b b c c d d]" {
				t.Fatalf("told of %v", keys)
			}
			if err := g.CheckQuiet(); err != nil || g.Len() != 0 {
				t.Fatalf("%v, %d keys", err, g.Len())
			}
		})
	}
}

// T40: a listener that takes its time delays the caller that calls it, and the
// breaker's later events. Nothing else waits.
//
// Reported bug 40, rubyist/circuitbreaker: slow listeners delay all callers.
func TestT40_SlowListenersDelayNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		go1 := make(chan struct{})
		var mu sync.Mutex
		seen := map[string][]ab.Event{}
		g := ab.MustNewGroup(ab.GroupConfig[string]{
			Default: ab.Config{Policy: ab.Consecutive(1), OpenTimeout: -1},
			OnStateChange: func(k string, e ab.Event) {
				mu.Lock()
				seen[k] = append(seen[k], e)
				first := k == "slow" && len(seen[k]) == 1
				mu.Unlock()
				if first {
					<-go1
				}
			},
		})
		slow := make(chan struct{})
		go func() {
			defer close(slow)
			g.RecordFailure("slow")
		}()
		synctest.Wait()
		for range 100 {
			g.RecordSuccess("slow")
			g.RecordFailure("slow")
			g.Reset("other")
		}
		if !g.IsOpen("slow") || len(seen["slow"]) != 1 || len(seen["other"]) != 100 {
			t.Fatalf("open %v, told of %d and %d", g.IsOpen("slow"), len(seen["slow"]), len(seen["other"]))
		}
		g.RecordSuccess("slow")
		if g.Len() != 1 {
			t.Fatalf("Len %d: a key with events left is not in the group", g.Len())
		}
		close(go1)
		<-slow
		if inOrder(t, seen["slow"]); len(seen["slow"]) != 202 {
			t.Fatalf("told of %d events, want 202", len(seen["slow"]))
		}
		if err := g.CheckQuiet(); err != nil || g.Len() != 0 {
			t.Fatalf("%v, %d keys", err, g.Len())
		}
	})
}

// A ResetAll is told of for each key that was not healthy.
func TestResetAllEvents(t *testing.T) {
	seen := map[string]ab.Event{}
	g := ab.MustNewGroup(ab.GroupConfig[string]{
		Default: ab.Config{Policy: ab.Consecutive(2), OpenTimeout: -1},
		OnStateChange: func(k string, e ab.Event) {
			e.At = time.Time{}
			seen[k] = e
		},
	})
	g.RecordFailure("failing")
	g.RecordFailure("recovered")
	g.RecordSuccess("recovered")
	g.RecordFailure("open")
	g.RecordFailure("open")
	clear(seen)
	g.ResetAll()
	want := fmt.Sprint(map[string]ab.Event{
		"failing": {Generation: 1, Reason: ab.ReasonReset, Failures: 1},
		"open":    {From: ab.Open, Generation: 2, Reason: ab.ReasonReset, Streak: 1},
	})
	if got := fmt.Sprint(seen); got != want {
		t.Fatalf("told\n%s\nwant\n%s", got, want)
	}
	if err := g.CheckQuiet(); err != nil || g.Len() != 0 {
		t.Fatalf("%v, %d keys", err, g.Len())
	}
	g.ResetAll()
	if got := fmt.Sprint(seen); got != want {
		t.Fatalf("told again\n%s", got)
	}
}

// T5: however often a transition has to be tried, code of users runs once for
// it: Classify for each error, Backoff for each streak when the settings are
// checked, and the listener for each generation.
//
// Reported bug 5, Resilience4j: side effects in a retried update.
func TestT5_StressUserCodeRunsOnce(t *testing.T) {
	const goroutines = 4
	n := rounds(2000)
	var classified, backedOff, notified atomic.Int64
	b := ab.MustNew(ab.Config{
		Policy: ab.Consecutive(3), OpenTimeout: time.Millisecond, Probes: 2,
		Classify:      func(context.Context, error) ab.Outcome { classified.Add(1); return ab.Failure },
		Backoff:       func(int) time.Duration { backedOff.Add(1); return time.Millisecond },
		OnStateChange: func(ab.Event) { notified.Add(1) },
	})
	var done atomic.Int64
	together(goroutines, func(id int) {
		for i := range n {
			if p, err := b.Allow(); err == nil {
				jitter(i)
				p.Done(errBoom)
				done.Add(1)
			} else {
				b.Reset()
			}
		}
	})
	if classified.Load() != done.Load() || backedOff.Load() != 31 {
		t.Errorf("%d errors were classified %d times; Backoff was called %d times", done.Load(), classified.Load(), backedOff.Load())
	}
	if got := b.Snapshot().Generation; int64(got) != notified.Load() {
		t.Errorf("told of %d changes, and there were %d", notified.Load(), got)
	}
}

// T6: who makes a change that another has made meanwhile has made it too: no
// operation fails, and what is the same already is told once.
//
// Reported bug 6, Resilience4j: one of two equal transitions throws.
func TestT6_StressChangesMeet(t *testing.T) {
	commands := map[ab.State]func(*ab.Breaker){
		ab.ForcedOpen: (*ab.Breaker).ForceOpen, ab.Disabled: (*ab.Breaker).Disable, ab.Open: func(b *ab.Breaker) { b.Trip(time.Hour) },
	}
	for range rounds(500) {
		for to, command := range commands {
			var l log
			b := ab.MustNew(ab.Config{Policy: ab.Consecutive(1), OpenTimeout: time.Hour, OnStateChange: l.add})
			together(4, func(i int) {
				command(b)
				if s := b.State(); s != to {
					t.Errorf("%v after a command, want %v", s, to)
				}
			})
			// An open time that began a tick later is longer.
			if inOrder(t, l); len(l) == 0 || to != ab.Open && len(l) != 1 {
				t.Fatalf("told %v", l)
			}
		}
		var l log
		b := ab.MustNew(ab.Config{Policy: ab.Consecutive(1), OpenTimeout: time.Millisecond, OnStateChange: l.add})
		together(4, func(i int) {
			for j := range 20 {
				switch p, err := b.Allow(); {
				case err == nil:
					reportOp(p, (i+j)%3 != 0)
				case j%4 == i:
					commands[[]ab.State{ab.ForcedOpen, ab.Disabled, ab.Open}[j%3]](b)
				default:
					b.Reset()
				}
			}
		})
		inOrder(t, l)
	}
}

// T39: an event tells what had been counted, although the breaker has begun
// anew when the listener is called.
//
// Reported bug 39, autobreaker: events with zero counts.
func TestT39_EventsTellWhatWasCounted(t *testing.T) {
	for _, tt := range []struct {
		policy ab.Policy
		calls  int // in the window
	}{
		{ab.Consecutive(4), 0},
		{ab.KOfN(4, 8), 0},
		{ab.KOfN(4, 80), 0},
		{ab.FailureCount(4, time.Minute), 4},
		{ab.FailureRate(0.4, 7, time.Minute), 7},
		{ab.SlowRate(0.4, time.Second, 7, time.Minute), 7},
	} {
		t.Run(tt.policy.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var l log
				var b *ab.Breaker
				b = ab.MustNew(ab.Config{Policy: tt.policy, OpenTimeout: time.Second, CloseAfter: 2, Probes: 2, OnStateChange: func(e ab.Event) {
					if l.add(e); b.Snapshot().Failures != 0 {
						t.Errorf("%+v at %v", b.Snapshot(), e)
					}
				}})
				var calls [7]permit
				for i := range calls {
					calls[i] = admit(t, b.Allow)
				}
				for _, p := range calls[:3] {
					p.Success()
				}
				time.Sleep(time.Second + tick)
				for _, p := range calls[3:] {
					p.Failure()
				}
				time.Sleep(time.Second + time.Millisecond)
				lost, probe := admit(t, b.Allow), admit(t, b.Allow)
				probe.Success()
				admit(t, b.Allow).Success()
				lost.Success()
				if len(l) != 3 {
					t.Fatalf("told %v", l)
				}
				if e := l[0]; e.To != ab.Open || e.Failures != 4 || e.Calls != tt.calls || e.Streak != 1 {
					t.Errorf("told %+v", e)
				}
				if e := l[2]; e.To != ab.Closed || e.Successes != 2 || e.InFlight != 1 || e.Streak != 1 {
					t.Errorf("told %+v", e)
				}
			})
		})
	}
}
