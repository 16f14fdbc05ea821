//go:build !modelcheck

package throttle_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/atomicbreaker/throttle"
)

// Errors that say that the backend is overloaded are not accepted; those that
// say that the request was wrong are.
func ExampleThrottle() {
	errOverloaded, errNotFound := errors.New("overloaded"), errors.New("not found")
	search := throttle.MustNew(throttle.Config{
		Classify: func(_ context.Context, err error) atomicbreaker.Outcome {
			if errors.Is(err, errOverloaded) {
				return atomicbreaker.Failure
			}
			return atomicbreaker.Success
		},
	})
	for _, answer := range []error{nil, errNotFound, errOverloaded, errOverloaded} {
		err := search.Do(context.Background(), func(context.Context) error { return answer })
		if errors.Is(err, atomicbreaker.ErrRejected) {
			fmt.Println("try again later")
		}
	}
	s := search.Snapshot()
	fmt.Printf("%d of %d accepted, %.0f%% are rejected\n", s.Accepts, s.Requests, 100*s.RejectProbability)
	// Output: 2 of 4 accepted, 0% are rejected
}

// With a Breaker around it, a Throttle does not see the calls of an outage. What the
// Throttle rejects, the Breaker ignores.
func ExampleThrottle_behindBreaker() {
	breaker := atomicbreaker.MustNew(atomicbreaker.Config{Policy: atomicbreaker.Consecutive(5)})
	th := throttle.MustNew(throttle.Config{})
	search := func(ctx context.Context) error {
		return breaker.Do(ctx, func(ctx context.Context) error {
			return th.Do(ctx, func(context.Context) error {
				return errors.New("connection refused")
			})
		})
	}
	for range 1000 {
		search(context.Background())
	}
	fmt.Println(breaker.State(), breaker.Stats().Rejected, th.Snapshot().Requests)
	// Output: Open 995 5
}

// Where a call cannot be wrapped, Allow counts the request, and Done its end.
func ExampleThrottle_Allow() {
	var th throttle.Throttle
	for _, answer := range []error{nil, errors.New("overloaded")} {
		if err := th.Allow(); err != nil {
			continue
		}
		th.Done(answer)
	}
	s := th.Snapshot()
	fmt.Println(s.Requests, s.Accepts)
	// Output: 2 1
}
