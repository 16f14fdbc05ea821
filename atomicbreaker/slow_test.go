//go:build !modelcheck

package atomicbreaker_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	ab "github.com/latchfree/latchfree/atomicbreaker"
)

// tick is above what durations of calls are rounded to.
const tick = 2 * time.Microsecond

// A call is slow if it takes longer than that, however it ends and is reported.
func TestSlowCalls(t *testing.T) {
	const slow = time.Second
	took := func(d time.Duration) func(context.Context) error {
		return func(context.Context) error { time.Sleep(d); return nil }
	}
	call := context.Background()
	do := map[string]func(b *ab.Breaker, d time.Duration) error{
		"Success": func(b *ab.Breaker, d time.Duration) error {
			p, err := b.Allow()
			time.Sleep(d)
			p.Success()
			return err
		},
		"Failure": func(b *ab.Breaker, d time.Duration) error {
			p, err := b.Allow()
			time.Sleep(d)
			p.Failure()
			return err
		},
		"Do": func(b *ab.Breaker, d time.Duration) error { return b.Do(call, took(d)) },
		"Execute": func(b *ab.Breaker, d time.Duration) error {
			_, err := ab.Execute(b, func() (int, error) { return 0, took(d)(call) })
			return err
		},
		"ExecuteContext": func(b *ab.Breaker, d time.Duration) error {
			_, err := ab.ExecuteContext(call, b, func(ctx context.Context) (int, error) { return 0, took(d)(ctx) })
			return err
		},
		"panic": func(b *ab.Breaker, d time.Duration) error {
			defer func() { recover() }()
			return b.Do(call, func(context.Context) error { time.Sleep(d); panic("boom") })
		},
	}
	for name, do := range do {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := ab.MustNew(ab.Config{Policy: ab.SlowRate(0.5, slow, 4, time.Hour), OpenTimeout: time.Second})
				made := func(d time.Duration, after ab.State) {
					t.Helper()
					if err := do(b, d); err != nil {
						t.Fatal(err)
					}
					wantState(t, b.State(), after)
				}
				for range 4 {
					made(slow-tick, ab.Closed)
				}
				for range 3 {
					made(slow+tick, ab.Closed)
				}
				made(slow+tick, ab.Open) // four of eight
				time.Sleep(b.Snapshot().RetryAfter)
				made(slow+tick, ab.Open) // a slow probe has failed
				time.Sleep(b.Snapshot().RetryAfter)
				if name != "Failure" && name != "panic" {
					made(slow-tick, ab.Closed)
				}
			})
		})
	}
}

// What is Ignored is not slow, and what has no permit has no duration.
func TestSlowCallsThatDoNotCount(t *testing.T) {
	subjects(t, ab.Config{Policy: ab.SlowRate(0.5, 0, 1, time.Hour), OpenTimeout: time.Second}, func(t *testing.T, allow allower, reset func()) {
		p, q := admit(t, allow), admit(t, allow)
		time.Sleep(time.Minute)
		wantVerdict(t, p.Cancel(), ab.Counted)
		wantVerdict(t, q.Done(context.Canceled), ab.Counted)
		wantVerdict(t, admit(t, allow).Success(), ab.Counted) // takes no time at all
		p = admit(t, allow)
		time.Sleep(tick)
		wantVerdict(t, p.Success(), ab.Tripped)
		time.Sleep(time.Second + time.Millisecond)
		p = admit(t, allow)
		time.Sleep(time.Minute)
		wantVerdict(t, p.Cancel(), ab.Counted) // a slow probe, but it says nothing
		wantVerdict(t, admit(t, allow).Success(), ab.Recovered)
	})
	g := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: ab.SlowRate(1, 0, 1, time.Hour)}})
	wantVerdict(t, g.RecordFailure("k"), ab.Counted)
	wantVerdict(t, g.RecordSuccess("k"), ab.Counted)
}

// A slow success is what makes an absent key present; a quick one does not.
func TestSlowCallsOfAbsentKeys(t *testing.T) {
	policy := ab.SlowRate(0.5, time.Second, 2, time.Hour)
	for name, c := range map[string]ab.GroupConfig[string]{
		"Default": {Default: ab.Config{Policy: policy}},
		"PerKey":  {Default: ab.Config{Policy: policy}, PerKey: func(string) ab.Config { return ab.Config{Policy: policy} }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := ab.MustNewGroup(c)
				took := func(d time.Duration) ab.Verdict {
					p := admit(t, keyed(g, "k"))
					time.Sleep(d)
					return p.Success()
				}
				wantVerdict(t, took(time.Second-tick), ab.Counted)
				if g.Len() != 0 {
					t.Fatal("a quick success made its key present")
				}
				wantVerdict(t, took(time.Second+tick), ab.Counted)
				if g.Len() != 1 {
					t.Fatal("a slow success did not make its key present")
				}
				wantVerdict(t, took(time.Second-tick), ab.Counted)
				wantVerdict(t, took(time.Second-tick), ab.Counted)
				wantVerdict(t, took(2*time.Second), ab.Tripped)
				g.Reset("k")
				old := admit(t, keyed(g, "k"))
				time.Sleep(time.Minute)
				g.Trip("k", time.Second)
				wantVerdict(t, old.Success(), ab.Late)
				if err := g.CheckQuiet(); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
	// The key's own settings say what is slow; without the default's, only keys
	// that are present are timed.
	synctest.Test(t, func(t *testing.T) {
		g := ab.MustNewGroup(ab.GroupConfig[string]{PerKey: func(string) ab.Config {
			return ab.Config{Policy: ab.AnyOf(ab.Consecutive(9), ab.SlowRate(0.5, time.Second, 2, time.Hour))}
		}})
		took := func() ab.Verdict {
			p := admit(t, keyed(g, "k"))
			time.Sleep(time.Minute)
			return p.Success()
		}
		wantVerdict(t, took(), ab.Counted)
		if g.Len() != 0 {
			t.Fatal("the first call was timed")
		}
		g.RecordFailure("k")
		wantVerdict(t, took(), ab.Tripped) // one of two
	})
}

// Slow calls and failures count apart.
func TestSlowIsNotFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := ab.MustNew(ab.Config{Policy: ab.AnyOf(ab.Consecutive(3), ab.SlowRate(1, time.Second, 3, time.Hour))})
		for range 2 {
			p := admit(t, b.Allow)
			time.Sleep(2 * time.Second)
			wantVerdict(t, p.Success(), ab.Counted)
			wantVerdict(t, fail(t, b.Allow, 2), ab.Counted)
		}
		p := admit(t, b.Allow)
		time.Sleep(2 * time.Second)
		wantVerdict(t, p.Success(), ab.Counted) // clears the failures in a row
		wantVerdict(t, fail(t, b.Allow, 2), ab.Counted)
		wantVerdict(t, fail(t, b.Allow, 1), ab.Tripped)
	})
}
