//go:build !modelcheck

package atomicbreaker_test

import (
	"errors"
	"expvar"
	"fmt"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker"
)

// Settings are tried in a shadow before they matter.
func ExampleConfig_shadow() {
	c := atomicbreaker.Config{
		Name:   "search",
		Policy: atomicbreaker.Consecutive(2),
		Shadow: true,
		OnStateChange: func(e atomicbreaker.Event) {
			fmt.Println(e)
		},
	}
	b := atomicbreaker.MustNew(c)
	for range 5 {
		if p, err := b.Allow(); err == nil {
			p.Failure()
		}
	}
	fmt.Println(b.State(), b.Snapshot().Would, b.Stats().Rejected)

	c.Shadow = false
	b.Update(c)
	_, err := b.Allow()
	fmt.Println(err)
	// Output:
	// search: Closed to Open: Threshold (shadow), for 1m0s
	// Shadow Open 3
	// atomicbreaker: call rejected: breaker is open
}

// An operator takes a backend out of service, and puts it back.
func ExampleBreaker_ForceOpen() {
	var b atomicbreaker.Breaker
	b.ForceOpen()
	_, err := b.Allow()
	fmt.Println(b.State(), errors.Is(err, atomicbreaker.ErrOpen))
	b.Reset()
	fmt.Println(b.State())
	// Output:
	// ForcedOpen true
	// Closed
}

// An operator lets all calls through, whatever they return.
func ExampleBreaker_Disable() {
	b := atomicbreaker.MustNew(atomicbreaker.Config{Policy: atomicbreaker.Consecutive(1)})
	b.Disable()
	for range 3 {
		p, _ := b.Allow()
		fmt.Println(p.Failure())
	}
	fmt.Println(b.State())
	// Output:
	// Counted
	// Counted
	// Counted
	// Disabled
}

// A process that has been told by another that something is down need not find
// out by itself.
func ExampleGroup_Trip() {
	var upstream atomicbreaker.Group[string]
	upstream.Trip("db-1", 30*time.Second)
	fmt.Println(upstream.IsOpen("db-1"), upstream.IsOpen("db-2"))
	fmt.Println(upstream.Snapshot("db-1").RetryAfter.Round(time.Second))
	// Output:
	// true false
	// 30s
}

// Settings change while calls are under way. What was counted stays.
func ExampleBreaker_Update() {
	b := atomicbreaker.MustNew(atomicbreaker.Config{Policy: atomicbreaker.Consecutive(100)})
	for range 7 {
		p, _ := b.Allow()
		p.Failure()
	}
	fmt.Println(b.Update(atomicbreaker.Config{Policy: atomicbreaker.Consecutive(-1)}))
	fmt.Println(b.Update(atomicbreaker.Config{Policy: atomicbreaker.Consecutive(8)}))
	p, _ := b.Allow()
	fmt.Println(b.Snapshot().Failures, p.Failure())
	// Output:
	// atomicbreaker: Config.Policy: Consecutive(-1): must be in 1..2147483647
	// <nil>
	// 7 Tripped
}

// Metrics are pulled: nothing is written for a healthy call.
func ExampleBreaker_Snapshot() {
	b := atomicbreaker.MustNew(atomicbreaker.Config{Name: "db"})
	b.ForceOpen()
	b.Allow()
	v := expvar.Func(func() any { // expvar.Publish("breaker.db", v)
		return struct {
			atomicbreaker.Snapshot
			atomicbreaker.Stats
		}{b.Snapshot(), b.Stats()}
	})
	fmt.Println(v)
	// Output: {"Name":"db","State":"ForcedOpen","Would":"ForcedOpen","Failures":0,"Streak":0,"Successes":0,"InFlight":0,"Generation":1,"RetryAfter":9223372036854775807,"Opened":1,"Closed":0,"Rejected":1,"Late":0,"Withheld":0}
}

// An operator ends the open time: the next result decides.
func ExampleBreaker_HalfOpen() {
	var b atomicbreaker.Breaker
	b.Trip(time.Hour)
	b.HalfOpen()
	probe, err := b.Allow()
	fmt.Println(err, b.State())
	fmt.Println(probe.Success(), b.State())
	// Output:
	// <nil> HalfOpen
	// Recovered Closed
}

// A breaker that is open stays open for the longer of two times.
func ExampleBreaker_Trip() {
	var b atomicbreaker.Breaker
	b.Trip(5 * time.Minute)
	b.Trip(time.Minute)
	fmt.Println(b.State(), b.Snapshot().RetryAfter.Round(time.Minute))
	// Output: Open 5m0s
}

// A reset forgets failures, and voids the results of calls in flight.
func ExampleBreaker_Reset() {
	b := atomicbreaker.MustNew(atomicbreaker.Config{Policy: atomicbreaker.Consecutive(2)})
	early, _ := b.Allow()
	p, _ := b.Allow()
	p.Failure()
	b.Reset()
	fmt.Println(b.Snapshot().Failures, early.Failure())
	// Output: 0 Late
}
