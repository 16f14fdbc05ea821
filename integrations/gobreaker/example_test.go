package gobreaker_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/latchfree/latchfree/integrations/gobreaker"
)

func Example() {
	cb := gobreaker.NewCircuitBreaker[string](gobreaker.Settings{
		Name:     "quotes",
		Interval: time.Minute,
		Timeout:  10 * time.Second,
		ReadyToTrip: func(c gobreaker.Counts) bool {
			return c.Requests >= 3 && c.TotalFailures*2 >= c.Requests
		},
		OnStateChange: func(name string, from, to gobreaker.State) {
			fmt.Printf("%s: %v to %v\n", name, from, to)
		},
	})

	quote := func() (string, error) { return "", errors.New("connection refused") }
	for range 4 {
		_, err := cb.Execute(quote)
		fmt.Println(err)
	}
	fmt.Println(cb.State())

	// Output:
	// connection refused
	// connection refused
	// quotes: closed to open
	// connection refused
	// circuit breaker is open
	// open
}

func ExampleTwoStepCircuitBreaker_Allow() {
	b := gobreaker.NewTwoStepCircuitBreaker[int](gobreaker.Settings{})
	done, err := b.Allow()
	if err != nil {
		fmt.Println("rejected:", err)
		return
	}
	// The call is made elsewhere, and its result comes later.
	done(nil)
	fmt.Printf("%+v\n", b.Counts())

	// Output:
	// {Requests:1 TotalSuccesses:1 TotalFailures:0 TotalExclusions:0 ConsecutiveSuccesses:1 ConsecutiveFailures:0}
}
