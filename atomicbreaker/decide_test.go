//go:build !modelcheck

package atomicbreaker_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	ab "github.com/latchfree/latchfree/atomicbreaker"
)

// T10: what has failed is a part of what was called. However many add to the
// counts while others read them, a rate that is never reached opens nothing, and
// no event tells of more failures than calls.
//
// Reported bug 10, hystrix-go: torn reads: more failures than requests.
func TestT10_StressRatesAreParts(t *testing.T) {
	n := rounds(5000)
	listen := func(e ab.Event) {
		if e.To == ab.Open && (e.Failures > e.Calls || e.Calls < 10 || e.Failures*10 < e.Calls*9) {
			t.Errorf("told %+v", e)
		}
	}
	third := ab.MustNew(ab.Config{Policy: ab.FailureRate(0.9, 10, time.Hour), OnStateChange: listen})
	all := ab.MustNew(ab.Config{Policy: ab.FailureRate(0.9, 10, time.Hour), OnStateChange: listen})
	together(4, func(i int) {
		for range n {
			admit(t, third.Allow).Success()
			admit(t, third.Allow).Success()
			if v := admit(t, third.Allow).Failure(); v != ab.Counted {
				t.Errorf("verdict %v", v)
			}
			if p, err := all.Allow(); err == nil {
				p.Failure()
			} else if i == 0 {
				all.Reset()
			}
		}
	})
	if all.Stats().Opened == 0 || third.Stats().Opened != 0 {
		t.Errorf("opened %d times, and %d times", all.Stats().Opened, third.Stats().Opened)
	}
}

// T13: failures count in a row and not in all. With a success after each, no
// number of them opens the breaker, however they are reported.
//
// Reported bug 13, Polly, go-resiliency: successes do not clear the count.
func TestT13_FailuresDoNotAddUp(t *testing.T) {
	subjects(t, ab.Config{Policy: ab.Consecutive(2)}, func(t *testing.T, allow allower, reset func()) {
		for range 1000 {
			wantVerdict(t, fail(t, allow, 1), ab.Counted)
			wantVerdict(t, admit(t, allow).Success(), ab.Counted)
			wantVerdict(t, admit(t, allow).Done(errBoom), ab.Counted)
			wantVerdict(t, admit(t, allow).Done(nil), ab.Counted)
		}
	})
	b := ab.MustNew(ab.Config{Policy: ab.Consecutive(2)})
	g := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: ab.Consecutive(2)}})
	for i := range 1000 {
		err := error(nil)
		if i%2 == 0 {
			err = errBoom
		}
		run := func(context.Context) error { return err }
		if got := b.Do(t.Context(), run); got != err {
			t.Fatal(got)
		}
		if _, got := ab.Execute(b, func() (int, error) { return 0, nil }); got != nil {
			t.Fatal(got)
		}
		if got := g.Do(t.Context(), "k", run); got != err {
			t.Fatal(got)
		}
		wantVerdict(t, g.RecordSuccess("k"), ab.Counted)
		wantVerdict(t, g.RecordFailure("k"), ab.Counted)
		wantVerdict(t, g.RecordSuccess("k"), ab.Counted)
	}
}

// T16: where failures that are days apart should not add up, a FailureCount
// forgets them. Consecutive remembers, and says so.
//
// Reported bug 16, Couchbase, Splice: failures add up over days.
func TestT16_FailuresExpireIfTheyShould(t *testing.T) {
	for policy, want := range map[ab.Policy]ab.Verdict{
		ab.FailureCount(3, time.Hour):   ab.Counted,
		ab.FailureRate(1, 3, time.Hour): ab.Counted,
		ab.Consecutive(3):               ab.Tripped,
	} {
		subjects(t, ab.Config{Policy: policy}, func(t *testing.T, allow allower, reset func()) {
			for range 10 {
				wantVerdict(t, fail(t, allow, 1), ab.Counted)
				time.Sleep(25 * time.Hour)
				wantVerdict(t, fail(t, allow, 1), ab.Counted)
				time.Sleep(25 * time.Hour)
				wantVerdict(t, fail(t, allow, 1), want)
				time.Sleep(25 * time.Hour)
				if want == ab.Tripped {
					reset()
				}
			}
		})
	}
}

// T29: minCalls is for closed breakers. A half-open one decides by its probes,
// of which there may be fewer than minCalls.
//
// Reported bug 29, Resilience4j: it needs more probes than it admits.
func TestT29_FewProbesDecide(t *testing.T) {
	for _, policy := range []ab.Policy{
		ab.FailureRate(0.5, 100, time.Hour), ab.FailureCount(100, time.Hour), ab.SlowRate(0.5, time.Second, 100, time.Hour), ab.KOfN(30, 32), ab.Consecutive(100),
	} {
		subjects(t, ab.Config{Policy: policy, OpenTimeout: time.Second, Probes: 1, CloseAfter: 2}, func(t *testing.T, allow allower, reset func()) {
			wantVerdict(t, admit(t, allow).Trip(0), ab.Tripped)
			for range 3 {
				time.Sleep(time.Second)
				wantVerdict(t, admit(t, allow).Success(), ab.Counted)
				wantVerdict(t, admit(t, allow).Failure(), ab.Tripped)
				reject(t, allow, ab.ErrOpen)
			}
			time.Sleep(time.Second)
			wantVerdict(t, admit(t, allow).Success(), ab.Counted)
			wantVerdict(t, admit(t, allow).Success(), ab.Recovered)
		})
	}
}

// T52: nothing is counted later. The call after the failure that is one too
// many is rejected, and the one after the last success is not, whoever makes
// it.
//
// Reported bug 52, hystrix-go: results are counted later.
func TestT52_NextCallKnows(t *testing.T) {
	for _, policy := range []ab.Policy{
		ab.Consecutive(3), ab.KOfN(3, 5), ab.KOfN(3, 500), ab.FailureRate(0.5, 3, time.Minute), ab.FailureCount(3, time.Minute), ab.SlowRate(0.5, 0, 3, time.Minute),
	} {
		t.Run(policy.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := ab.Config{Policy: policy, OpenTimeout: time.Second}
				b, g := ab.MustNew(c), ab.MustNewGroup(ab.GroupConfig[string]{Default: c})
				elsewhere := func(f func()) {
					t.Helper()
					done := make(chan struct{})
					go func() { defer close(done); f() }()
					<-done
				}
				slow := func() error { time.Sleep(tick); return errBoom }
				for i := range 4 {
					want := errBoom
					if i == 3 {
						want = ab.ErrOpen
					}
					elsewhere(func() {
						if _, err := ab.Execute(b, func() (int, error) { return i, slow() }); err != want {
							t.Errorf("call %d of the breaker: %v, want %v", i, err, want)
						}
						if err := g.Do(t.Context(), "k", func(context.Context) error { return slow() }); err != want {
							t.Errorf("call %d of the key: %v, want %v", i, err, want)
						}
					})
				}
				time.Sleep(time.Second + time.Millisecond)
				for i := range 3 {
					elsewhere(func() {
						if err := b.Do(t.Context(), func(context.Context) error { return nil }); err != nil {
							t.Errorf("call %d after the open time: %v", i, err)
						}
						if err := g.Do(t.Context(), "k", func(context.Context) error { return nil }); err != nil {
							t.Errorf("call %d of the key after the open time: %v", i, err)
						}
					})
				}
				if got := fmt.Sprint(b.State(), g.State("k")); got != "Closed Closed" {
					t.Error(got)
				}
			})
		})
	}
}
