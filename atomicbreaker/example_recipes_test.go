//go:build !modelcheck

package atomicbreaker_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker"
)

// A backend that has just recovered gets a few calls at a time, until enough of them
// have succeeded. One failure among them does not open the breaker again.
func ExampleConfig_gradualRecovery() {
	b := atomicbreaker.MustNew(atomicbreaker.Config{
		Probes:           3, // at a time
		CloseAfter:       9, // in all
		ProbeFailureRate: 0.3,
	})
	b.HalfOpen() // as OpenTimeout does
	for b.State() == atomicbreaker.HalfOpen {
		var admitted []atomicbreaker.Permit
		for range 10 {
			if p, err := b.Allow(); err == nil {
				admitted = append(admitted, p)
			}
		}
		fmt.Println(len(admitted), "of 10 calls are admitted")
		for _, p := range admitted {
			p.Success()
		}
	}
	fmt.Println(b.State())
	// Output:
	// 3 of 10 calls are admitted
	// 3 of 10 calls are admitted
	// 3 of 10 calls are admitted
	// Closed
}

// A caller that waits for a shorter time than the backend may take says nothing about
// the backend. The cause of its context tells its deadline from others.
func ExampleConfig_impatientCallers() {
	errImpatient := errors.New("the caller does not wait")
	b := atomicbreaker.MustNew(atomicbreaker.Config{
		Classify: func(ctx context.Context, err error) atomicbreaker.Outcome {
			if ctx != nil && context.Cause(ctx) == errImpatient {
				return atomicbreaker.Ignored
			}
			return atomicbreaker.Classify(ctx, err)
		},
	})
	hang := func(ctx context.Context) error {
		<-ctx.Done()
		return context.Cause(ctx) // as net/http does
	}

	impatient, cancel := context.WithTimeoutCause(context.Background(), time.Millisecond, errImpatient)
	defer cancel()
	fmt.Println(b.Do(impatient, hang), b.Snapshot().Failures)

	patient, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	fmt.Println(b.Do(patient, hang), b.Snapshot().Failures)
	// Output:
	// the caller does not wait 0
	// context deadline exceeded 1
}

// A health check in the background, and no timeout, ends the open time. Then the next
// call is the probe, and if that fails the check begins again.
func ExampleConfig_backgroundHealthCheck() {
	var b *atomicbreaker.Breaker
	checks := make(chan error) // what the backend's health endpoint answers
	ready := make(chan struct{})
	watch := func() {
		for err := range checks { // or for range time.Tick(time.Second)
			if err == nil {
				b.HalfOpen()
				close(ready)
				return
			}
		}
	}
	b = atomicbreaker.MustNew(atomicbreaker.Config{
		Policy:      atomicbreaker.Consecutive(2),
		OpenTimeout: -1,
		OnStateChange: func(e atomicbreaker.Event) {
			if e.To == atomicbreaker.Open {
				go watch() // a listener must not wait
			}
			fmt.Println(e.From, "to", e.To)
		},
	})
	for range 2 {
		b.Do(context.Background(), func(context.Context) error { return errUnavailable })
	}
	checks <- errUnavailable
	checks <- nil
	<-ready
	b.Do(context.Background(), func(context.Context) error { return nil })
	// Output:
	// Closed to Open
	// Open to HalfOpen
	// HalfOpen to Closed
}
