package gobreaker_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker"
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

// A proxy such as skipper keeps gobreakers in a map by host, makes each with the settings
// of its host, and removes those that have been idle. An atomicbreaker.Group does all three.
func Example_perHost() {
	config := atomicbreaker.GroupConfig[string]{
		PerKey: func(host string) atomicbreaker.Config {
			c := atomicbreaker.Config{
				Name:        host,
				Policy:      atomicbreaker.Consecutive(5),
				OpenTimeout: time.Minute, // Settings.Timeout
				Probes:      3,           // Settings.MaxRequests
				CloseAfter:  3,
			}
			if host == "search.example:443" {
				c.Policy = atomicbreaker.KOfN(2, 100) // 2 failures in the last 100 calls
			}
			return c
		},
		ForgetAfter: time.Hour, // since the last call
	}
	breakers := atomicbreaker.MustNewGroup(config)

	forward := func(host string, status int) {
		permit, err := breakers.Allow(host) // done, err := twoStep.Allow()
		if err != nil {
			fmt.Println(host, err)
			return
		}
		if status >= 500 {
			permit.Failure() // done(err)
			return
		}
		permit.Success() // done(nil)
	}
	for _, status := range []int{503, 200, 503, 200} {
		forward("search.example:443", status)
		forward("static.example:80", status)
	}
	forward("static.example:80", 503)
	fmt.Println("not healthy:", breakers.Len())

	// Let idle hosts go sooner. The open one stays while it is open.
	config.ForgetAfter = time.Millisecond
	if err := breakers.Update(config); err != nil {
		fmt.Println(err)
	}
	for breakers.Len() > 1 {
		breakers.Sweep()
	}
	fmt.Println(breakers.State("search.example:443"), breakers.Snapshot("static.example:80").Failures)

	// Output:
	// search.example:443 atomicbreaker: call rejected: breaker is open
	// not healthy: 2
	// Open 0
}
