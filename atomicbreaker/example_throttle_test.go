//go:build !modelcheck

package atomicbreaker_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/latchfree/latchfree/atomicbreaker"
)

// Errors that say that the backend is overloaded are not accepted; those that
// say that the request was wrong are.
func ExampleThrottle() {
	errOverloaded, errNotFound := errors.New("overloaded"), errors.New("not found")
	throttle := atomicbreaker.MustNewThrottle(atomicbreaker.ThrottleConfig{
		Name: "search",
		Classify: func(_ context.Context, err error) atomicbreaker.Outcome {
			if errors.Is(err, errOverloaded) {
				return atomicbreaker.Failure
			}
			return atomicbreaker.Success
		},
	})
	for _, answer := range []error{nil, errNotFound, errOverloaded, errOverloaded} {
		err := throttle.Do(context.Background(), func(context.Context) error { return answer })
		if errors.Is(err, atomicbreaker.ErrRejected) {
			fmt.Println("try again later")
		}
	}
	s := throttle.Snapshot()
	fmt.Printf("%s: %d of %d accepted, %.0f%% are rejected\n", s.Name, s.Accepts, s.Requests, 100*s.RejectProbability)
	// Output: search: 2 of 4 accepted, 0% are rejected
}

// With a Breaker around it, a Throttle does not see the calls of an outage. What the
// Throttle rejects, the Breaker ignores.
func ExampleThrottle_behindBreaker() {
	breaker := atomicbreaker.MustNew(atomicbreaker.Config{Trip: atomicbreaker.Consecutive(5)})
	throttle := atomicbreaker.MustNewThrottle(atomicbreaker.ThrottleConfig{Name: "search"})
	search := func(ctx context.Context) error {
		return breaker.Do(ctx, func(ctx context.Context) error {
			return throttle.Do(ctx, func(context.Context) error {
				return errors.New("connection refused")
			})
		})
	}
	for range 1000 {
		search(context.Background())
	}
	fmt.Println(breaker.State(), breaker.Stats().Rejected, throttle.Snapshot().Requests)
	// Output: Open 995 5
}

// Where a call cannot be wrapped, Allow counts the request, and Done its end.
func ExampleThrottle_Allow() {
	var throttle atomicbreaker.Throttle
	for _, answer := range []error{nil, errors.New("overloaded")} {
		if err := throttle.Allow(); err != nil {
			continue
		}
		throttle.Done(answer)
	}
	s := throttle.Snapshot()
	fmt.Println(s.Requests, s.Accepts)
	// Output: 2 1
}
