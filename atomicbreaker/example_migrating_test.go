//go:build !modelcheck

package atomicbreaker_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker"
)

// The examples of this file are what MIGRATING.md refers to.

func Example_migratingDefaults() {
	// gobreaker.NewCircuitBreaker[string](gobreaker.Settings{Name: "billing"})
	b := atomicbreaker.MustNew(atomicbreaker.Config{
		Name: "billing",
		Trip: atomicbreaker.Consecutive(6), // more than 5
	})

	// cb.Execute(fn)
	body, err := atomicbreaker.Execute(b, func() (string, error) { return "paid", nil })
	fmt.Println(body, err)
	// Output: paid <nil>
}

func Example_migratingTwoStep() {
	// cb := gobreaker.NewTwoStepCircuitBreaker[int](gobreaker.Settings{})
	var b atomicbreaker.Breaker

	handle := func(call func() error) error {
		permit, err := b.Allow() // done, err := cb.Allow()
		switch {
		case errors.Is(err, atomicbreaker.ErrOpen): // gobreaker.ErrOpenState
			return err
		case errors.Is(err, atomicbreaker.ErrTooManyProbes): // gobreaker.ErrTooManyRequests
			return err
		}
		err = call()
		permit.Done(err) // done(err)
		return err
	}
	fmt.Println(handle(func() error { return nil }))
	// Output: <nil>
}

func Example_migratingWindow() {
	// gobreaker.Settings{
	// 	Interval: time.Minute, BucketPeriod: 5 * time.Second,
	// 	ReadyToTrip: func(c gobreaker.Counts) bool {
	// 		ratio := float64(c.TotalFailures) / float64(c.Requests)
	// 		return c.ConsecutiveFailures > 5 || c.Requests >= 20 && ratio >= 0.6
	// 	},
	// }
	b := atomicbreaker.MustNew(atomicbreaker.Config{Trip: atomicbreaker.AnyOf(
		atomicbreaker.Consecutive(6),
		atomicbreaker.FailureRate(0.6, 20, time.Minute),
	)})

	// ReadyToTrip: func(c gobreaker.Counts) bool { return c.TotalFailures >= 100 }
	c := atomicbreaker.MustNew(atomicbreaker.Config{Trip: atomicbreaker.FailureCount(100, time.Minute)})
	fmt.Println(b.State(), c.State())
	// Output: Closed Closed
}

func Example_migratingTimeout() {
	// gobreaker.Settings{Timeout: 30 * time.Second}
	b := atomicbreaker.MustNew(atomicbreaker.Config{
		OpenTimeout:    30 * time.Second,
		MaxOpenTimeout: 30 * time.Second, // never longer
	})
	b.Trip(0)
	fmt.Println(b.Snapshot().RetryAfter.Round(time.Second))
	// Output: 30s
}

func Example_migratingProbes() {
	// gobreaker.Settings{MaxRequests: 3}
	b := atomicbreaker.MustNew(atomicbreaker.Config{Probes: 3, CloseAfter: 3})
	fmt.Println(b.State())
	// Output: Closed
}

func Example_migratingClassify() {
	notFound := errors.New("not found")

	// gobreaker.Settings{
	// 	IsSuccessful: func(err error) bool { return err == nil || errors.Is(err, notFound) },
	// 	IsExcluded:   func(err error) bool { return errors.Is(err, context.Canceled) },
	// }
	b := atomicbreaker.MustNew(atomicbreaker.Config{Classify: func(err error) atomicbreaker.Outcome {
		switch {
		case errors.Is(err, notFound):
			return atomicbreaker.Success
		case errors.Is(err, context.Canceled):
			return atomicbreaker.Ignored
		}
		return atomicbreaker.Failure
	}})

	for _, err := range []error{notFound, context.Canceled, os.ErrDeadlineExceeded} {
		permit, _ := b.Allow()
		permit.Done(err)
		fmt.Println(b.Snapshot().Failures, "after", err)
	}
	// Output:
	// 0 after not found
	// 0 after context canceled
	// 1 after i/o timeout
}

func Example_migratingListener() {
	// gobreaker.Settings{OnStateChange: func(name string, from, to gobreaker.State) { … }}
	b := atomicbreaker.MustNew(atomicbreaker.Config{
		Name: "billing", Trip: atomicbreaker.Consecutive(1),
		OnStateChange: func(e atomicbreaker.Event) { fmt.Println(e.Name, "is", e.To, "because of", e.Reason) },
	})
	permit, _ := b.Allow()
	permit.Failure()

	s := b.Snapshot() // cb.Counts(), cb.State()
	fmt.Println(s.State, s.Streak, b.Stats().Opened)
	// Output:
	// billing is Open because of Threshold
	// Open 1 1
}

func Example_migratingGroup() {
	// var mu sync.Mutex; breakers := map[string]*gobreaker.CircuitBreaker[T]{}
	hosts := atomicbreaker.MustNewGroup(atomicbreaker.GroupConfig[string]{
		Default: atomicbreaker.Config{Trip: atomicbreaker.Consecutive(6), OpenTimeout: 30 * time.Second},
	})
	err := hosts.Do(context.Background(), "db-1", func(context.Context) error { return nil })
	fmt.Println(err, hosts.Len(), "keys are stored")
	// Output: <nil> 0 keys are stored
}
