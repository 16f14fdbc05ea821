//go:build !modelcheck

package atomicbreaker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/atomicbreaker/settings"
)

// The examples of this file are what MIGRATING.md refers to.

func Example_migratingDefaults() {
	// gobreaker.NewCircuitBreaker[string](gobreaker.Settings{Name: "billing"})
	b := atomicbreaker.MustNew(atomicbreaker.Config{
		Name:        "billing",
		Policy:      atomicbreaker.Consecutive(6), // more than 5
		OpenTimeout: time.Minute,
	})

	// cb.Execute(fn)
	for range 6 {
		fmt.Print(b.State(), " ")
		_, _ = atomicbreaker.Execute(b, func() (string, error) { return "", errors.New("not paid") })
	}
	fmt.Println(b.State(), b.Snapshot().RetryAfter.Round(time.Second))
	// Output: Closed Closed Closed Closed Closed Closed Open 1m0s
}

func Example_migratingTwoStep() {
	// cb := gobreaker.NewTwoStepCircuitBreaker[int](gobreaker.Settings{})
	b := atomicbreaker.MustNew(atomicbreaker.Config{
		Policy: atomicbreaker.Consecutive(6), OpenTimeout: time.Minute,
	})

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
	// 		return c.TotalFailures >= 100 || c.Requests >= 20 && ratio >= 0.6
	// 	},
	// }
	b := atomicbreaker.MustNew(atomicbreaker.Config{Policy: atomicbreaker.AnyOf(
		atomicbreaker.FailureCount(100, time.Minute),
		atomicbreaker.FailureRate(0.6, 20, time.Minute),
	)})
	for range 20 {
		permit, _ := b.Allow()
		permit.Failure()
	}
	fmt.Println(b.State())
	// Output: Open
}

func Example_migratingFunction() {
	// gobreaker.Settings{
	// 	Interval: time.Minute,
	// 	ReadyToTrip: func(c gobreaker.Counts) bool {
	// 		return c.ConsecutiveFailures > 2 && c.TotalSuccesses > 0
	// 	},
	// }
	b := atomicbreaker.MustNew(atomicbreaker.Config{
		Policy: atomicbreaker.TripFunc(time.Minute, 0, func(c atomicbreaker.Counts) bool {
			return min(c.Consecutive, c.Failures) > 2 && c.Calls > c.Failures
		}),
	})
	for _, err := range []error{nil, os.ErrDeadlineExceeded, os.ErrDeadlineExceeded, os.ErrDeadlineExceeded} {
		permit, _ := b.Allow()
		permit.Done(err)
		fmt.Println(b.State())
	}
	// Output:
	// Closed
	// Closed
	// Closed
	// Open
}

func Example_migratingTimeout() {
	// gobreaker.Settings{Timeout: 30 * time.Second}
	constant := atomicbreaker.Config{OpenTimeout: 30 * time.Second}
	doubles := atomicbreaker.Config{OpenTimeout: 30 * time.Second, MaxOpenTimeout: 5 * time.Minute}

	for _, c := range []atomicbreaker.Config{constant, doubles} {
		b := atomicbreaker.MustNew(c)
		var open []time.Duration
		for range 3 {
			b.HalfOpen() // as if the time had passed
			b.Trip(0)    // as if the probe had failed
			open = append(open, b.Snapshot().RetryAfter.Round(time.Second))
		}
		fmt.Println(open)
	}
	// Output:
	// [30s 30s 30s]
	// [30s 1m0s 2m0s]
}

func Example_migratingProbes() {
	// gobreaker.Settings{MaxRequests: 3}
	b := atomicbreaker.MustNew(atomicbreaker.Config{Probes: 3, CloseAfter: 3})
	b.HalfOpen()

	var probes []atomicbreaker.Permit
	for range 3 {
		probe, _ := b.Allow()
		probes = append(probes, probe)
	}
	_, err := b.Allow()
	fmt.Println(err)
	for _, probe := range probes {
		fmt.Println(b.State(), probe.Success())
	}
	fmt.Println(b.State())
	// Output:
	// atomicbreaker: call rejected: breaker is half-open and all probes are in flight
	// HalfOpen Counted
	// HalfOpen Counted
	// HalfOpen Recovered
	// Closed
}

func Example_migratingClassify() {
	notFound := errors.New("not found")

	// gobreaker.Settings{
	// 	IsSuccessful: func(err error) bool { return err == nil || errors.Is(err, notFound) },
	// 	IsExcluded:   func(err error) bool { return errors.Is(err, context.Canceled) },
	// }
	b := atomicbreaker.MustNew(atomicbreaker.Config{Classify: func(_ context.Context, err error) atomicbreaker.Outcome {
		switch {
		case errors.Is(err, context.Canceled): // what is excluded comes first
			return atomicbreaker.Ignored
		case errors.Is(err, notFound):
			return atomicbreaker.Success
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
		Name: "billing", Policy: atomicbreaker.FailureRate(0.5, 4, time.Minute),
		OnStateChange: func(e atomicbreaker.Event) { fmt.Println(e.Name, "is", e.To, "because of", e.Reason) },
	})
	for _, err := range []error{nil, nil, os.ErrDeadlineExceeded} {
		permit, _ := b.Allow()
		permit.Done(err)
	}
	s := b.Snapshot() // cb.Counts(), cb.State()
	fmt.Println(s.State, s.Window.Calls, s.Window.Failures, b.Stats().Opened)

	permit, _ := b.Allow()
	permit.Failure()
	// Output:
	// Closed 3 1 0
	// billing is Open because of FailureRate
}

func Example_migratingGroup() {
	// var mu sync.Mutex; breakers := map[string]*gobreaker.CircuitBreaker[string]{}
	hosts := atomicbreaker.MustNewGroup(atomicbreaker.GroupConfig[string]{
		Default: atomicbreaker.Config{
			Policy: atomicbreaker.Consecutive(6), OpenTimeout: 30 * time.Second,
		},
	})
	reply, err := atomicbreaker.ExecuteGroup(context.Background(), hosts, "db-1", func(context.Context) (string, error) {
		return "row", nil
	})
	fmt.Println(reply, err, hosts.Len(), "keys are stored")
	// Output: row <nil> 0 keys are stored
}

func Example_migratingFailsafe() {
	// circuitbreaker.NewBuilder[string]().
	// 	WithFailureRateThreshold(0.5, 20, time.Minute).
	// 	WithSuccessThresholdRatio(3, 5).
	// 	WithDelay(30 * time.Second).
	// 	Build()
	b := atomicbreaker.MustNew(atomicbreaker.Config{
		Policy:      atomicbreaker.FailureRate(0.5, 20, time.Minute),
		OpenTimeout: 30 * time.Second,

		// Three failures of five open it again, and two do not.
		Probes: 5, CloseAfter: 5, ProbeFailureRate: 2.5 / 5,
	})
	b.HalfOpen()
	for _, err := range []error{nil, os.ErrDeadlineExceeded, os.ErrDeadlineExceeded, nil, nil} {
		probe, _ := b.Allow()
		fmt.Println(b.State(), probe.Done(err))
	}
	fmt.Println(b.State())
	// Output:
	// HalfOpen Counted
	// HalfOpen Counted
	// HalfOpen Counted
	// HalfOpen Counted
	// HalfOpen Recovered
	// Closed
}

func Example_migratingResilience4j() {
	// CircuitBreakerConfig.custom().slidingWindowType(TIME_BASED).build(), as a
	// document.
	document := `{
		"policy": "AnyOf(FailureRate(0.5, 100, 100s), SlowRate(1, 1m, 100, 100s))",
		"openTimeout": "1m",
		"probes": 10, "closeAfter": 10, "probeFailureRate": 0.5
	}`
	var s settings.Breaker
	if err := json.Unmarshal([]byte(document), &s); err != nil {
		panic(err)
	}
	b := atomicbreaker.MustNew(s.Config())
	for range 100 {
		permit, _ := b.Allow()
		permit.Failure()
	}
	b.HalfOpen()
	for i := range 10 {
		probe, _ := b.Allow()
		if i%2 == 0 {
			probe.Success()
		} else {
			probe.Failure()
		}
	}
	fmt.Println(b.State(), b.Snapshot().RetryAfter.Round(time.Second))
	// Output: Open 1m0s
}

func Example_migratingPolly() {
	// new CircuitBreakerStrategyOptions()
	b := atomicbreaker.MustNew(atomicbreaker.Config{
		Policy:      atomicbreaker.FailureRate(0.1, 100, 30*time.Second),
		OpenTimeout: 5 * time.Second,
	})
	for i := range 100 {
		permit, _ := b.Allow()
		if i < 90 {
			permit.Success()
		} else {
			permit.Failure()
		}
	}
	fmt.Println(b.State(), b.Snapshot().RetryAfter.Round(time.Second))
	// Output: Open 5s
}
