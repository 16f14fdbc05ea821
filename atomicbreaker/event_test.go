//go:build !modelcheck

package atomicbreaker_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	ab "github.com/latchfree/latchfree/atomicbreaker"
)

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
