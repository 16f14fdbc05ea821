//go:build !modelcheck

package atomicbreaker_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker"
)

// outcomes reports calls to b, until it is open: F for one that fails.
func outcomes(b *atomicbreaker.Breaker, calls string) {
	for i, c := range calls {
		p, err := b.Allow()
		if err != nil {
			return
		}
		if c != 'F' {
			p.Success()
		} else if p.Failure() == atomicbreaker.Tripped {
			fmt.Println("call", i+1, "opened it")
		}
	}
}

// Three failures among the last five calls, although no two are in a row.
func ExampleKOfN() {
	outcomes(atomicbreaker.MustNew(atomicbreaker.Config{Policy: atomicbreaker.KOfN(3, 5)}), "F.F.F")
	outcomes(atomicbreaker.MustNew(atomicbreaker.Config{Policy: atomicbreaker.Consecutive(3)}), "F.F.F")
	// Output: call 5 opened it
}

// Half of at least ten calls in ten seconds.
func ExampleFailureRate() {
	b := atomicbreaker.MustNew(atomicbreaker.Config{
		Policy: atomicbreaker.FailureRate(0.5, 10, 10*time.Second),
		OnStateChange: func(e atomicbreaker.Event) {
			fmt.Printf("%v: %d of %d calls\n", e.Reason, e.Failures, e.Calls)
		},
	})
	outcomes(b, "FFFFF....F")
	// Output:
	// FailureRate: 6 of 10 calls
	// call 10 opened it
}

// A hundred failures a minute, however many calls succeed.
func ExampleFailureCount() {
	b := atomicbreaker.MustNew(atomicbreaker.Config{Policy: atomicbreaker.FailureCount(100, time.Minute)})
	calls := ""
	for range 100 {
		calls += "F........."
	}
	outcomes(b, calls)
	// Output: call 991 opened it
}

// What is slow is as bad as what fails, and sooner known.
func ExampleSlowRate() {
	b := atomicbreaker.MustNew(atomicbreaker.Config{
		Policy: atomicbreaker.AnyOf(
			atomicbreaker.Consecutive(5),
			atomicbreaker.SlowRate(0.5, 100*time.Microsecond, 2, time.Minute),
		),
	})
	for range 2 {
		b.Do(context.Background(), func(context.Context) error {
			for began := time.Now(); time.Since(began) < time.Millisecond; {
				// hard work
			}
			return nil
		})
	}
	fmt.Println(b.State())
	// Output: Open
}

// Either of several policies opens the breaker.
func ExampleAnyOf() {
	policy := atomicbreaker.AnyOf(
		atomicbreaker.Consecutive(5),                        // it is down
		atomicbreaker.FailureRate(0.25, 20, 30*time.Second), // it is ill
	)
	fmt.Println(policy)
	outcomes(atomicbreaker.MustNew(atomicbreaker.Config{Policy: policy}), "FFFFF")
	outcomes(atomicbreaker.MustNew(atomicbreaker.Config{Policy: policy}), "F...F...F...F...F..F")
	// Output:
	// AnyOf(Consecutive(5), FailureRate(0.25, 20, 30s))
	// call 5 opened it
	// call 20 opened it
}

// A server that says for how long it does not want to be called knows better
// than any policy.
func ExamplePermit_Trip() {
	b := atomicbreaker.MustNew(atomicbreaker.Config{DetailedErrors: true, OpenTimeout: time.Minute})
	if p, err := b.Allow(); err == nil {
		// status, retryAfter := call()
		status, retryAfter := 503, 5*time.Minute
		if status == 503 && retryAfter > 0 {
			p.Trip(retryAfter)
		} else {
			p.Success()
		}
	}
	_, err := b.Allow()
	var open *atomicbreaker.OpenError
	if errors.As(err, &open) {
		fmt.Println(open.State, open.RetryAfter.Round(time.Minute))
	}
	// Output: Open 5m0s
}

// A policy of one's own: failures must also outnumber successes.
func ExampleTripFunc() {
	policy := atomicbreaker.TripFunc(time.Minute, 0, func(c atomicbreaker.Counts) bool {
		return c.Failures >= 3 && c.FailureRate() > 0.5
	})
	outcomes(atomicbreaker.MustNew(atomicbreaker.Config{Policy: policy}), "F.F.F")
	outcomes(atomicbreaker.MustNew(atomicbreaker.Config{Policy: policy}), "F..F..F")
	// Output: call 5 opened it
}

// A call that says nothing about the thing called, as its caller has given up, is
// cancelled.
func ExamplePermit_Cancel() {
	b := atomicbreaker.MustNew(atomicbreaker.Config{Policy: atomicbreaker.Consecutive(2)})
	p, _ := b.Allow()
	p.Failure()
	p, _ = b.Allow()
	fmt.Println(p.Cancel(), b.Snapshot().Failures)
	// Output: Counted 1
}

// A caller that classifies answers itself, as by their status, reports the outcome.
func ExamplePermit_Report() {
	classify := func(status int) atomicbreaker.Outcome {
		switch {
		case status >= 500:
			return atomicbreaker.Failure
		case status >= 400:
			return atomicbreaker.Ignored // the request was wrong
		}
		return atomicbreaker.Success
	}
	b := atomicbreaker.MustNew(atomicbreaker.Config{Policy: atomicbreaker.Consecutive(2)})
	for _, status := range []int{503, 404, 502} {
		p, err := b.Allow()
		if err != nil {
			break
		}
		fmt.Println(status, p.Report(classify(status)))
	}
	// Output:
	// 503 Counted
	// 404 Counted
	// 502 Tripped
}

// Open times are those of a table, and the last one is repeated.
func ExampleConfig_backoff() {
	times := []time.Duration{time.Second, 5 * time.Second, 30 * time.Second}
	b := atomicbreaker.MustNew(atomicbreaker.Config{
		OpenTimeout:    time.Second,
		MaxOpenTimeout: time.Minute,
		Backoff:        func(streak int) time.Duration { return times[min(streak, len(times))-1] },
	})
	for range 4 {
		b.HalfOpen()
		p, _ := b.Allow()
		p.Failure()
		fmt.Println(b.Snapshot().RetryAfter.Round(time.Second))
	}
	// Output:
	// 1s
	// 5s
	// 30s
	// 30s
}
