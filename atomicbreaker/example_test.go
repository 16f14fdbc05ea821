//go:build !modelcheck

package atomicbreaker_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker"
)

var errUnavailable = errors.New("unavailable")

func Example() {
	var upstream atomicbreaker.Group[string] // one breaker per host, ready to use
	call := func(host string) error {
		return upstream.Do(context.Background(), host, func(context.Context) error {
			fmt.Println("calling", host)
			return errors.New("connection refused")
		})
	}
	for range 5 {
		call("db-1")
	}
	err := call("db-1")
	fmt.Println(errors.Is(err, atomicbreaker.ErrRejected), upstream.IsOpen("db-2"))
	// Output:
	// calling db-1
	// calling db-1
	// calling db-1
	// calling db-1
	// calling db-1
	// true false
}

func ExampleExecute() {
	b := atomicbreaker.MustNew(atomicbreaker.Config{Policy: atomicbreaker.Consecutive(3)})
	body, err := atomicbreaker.Execute(b, func() (string, error) { return "hello", nil })
	fmt.Println(body, err)
	// Output: hello <nil>
}

// The result of a call is often known elsewhere than where it was admitted.
func ExampleBreaker_Allow() {
	b := atomicbreaker.MustNew(atomicbreaker.Config{Policy: atomicbreaker.Consecutive(1)})
	early, _ := b.Allow()
	permit, err := b.Allow()
	if err != nil {
		return // do without
	}
	fmt.Println(permit.Done(errUnavailable))
	fmt.Println(early.Done(nil)) // admitted before the breaker opened
	_, err = b.Allow()
	fmt.Println(err)
	// Output:
	// Tripped
	// Late
	// atomicbreaker: call rejected: breaker is open
}

// A Classify of one's own says what it knows better, and leaves the rest to the
// default.
func ExampleConfig_classify() {
	errNotFound := errors.New("not found")
	b := atomicbreaker.MustNew(atomicbreaker.Config{
		Policy: atomicbreaker.Consecutive(2),
		Classify: func(ctx context.Context, err error) atomicbreaker.Outcome {
			if errors.Is(err, errNotFound) {
				return atomicbreaker.Success // it has answered
			}
			return atomicbreaker.Classify(ctx, err)
		},
	})
	for range 10 {
		b.Do(context.Background(), func(context.Context) error { return errNotFound })
	}
	fmt.Println(b.State())
	// Output: Closed
}

// A listener hears of every change, in order, and may use the breaker.
func ExampleConfig_onStateChange() {
	b := atomicbreaker.MustNew(atomicbreaker.Config{
		Name:        "billing",
		Policy:      atomicbreaker.Consecutive(2),
		OpenTimeout: time.Minute,
		OnStateChange: func(e atomicbreaker.Event) {
			fmt.Printf("%d: %v\n", e.Generation, e)
		},
	})
	for range 2 {
		b.Do(context.Background(), func(context.Context) error { return errUnavailable })
	}
	b.Reset()
	// Output:
	// 1: billing: Closed to Open: Threshold, for 1m0s
	// 2: billing: Open to Closed: Reset
}

// A group's listener also gets the key.
func ExampleGroupConfig_onStateChange() {
	open := map[string]bool{}
	var mu sync.Mutex // keys are told of at once
	g := atomicbreaker.MustNewGroup(atomicbreaker.GroupConfig[string]{
		Default: atomicbreaker.Config{Policy: atomicbreaker.Consecutive(1)},
		OnStateChange: func(host string, e atomicbreaker.Event) {
			mu.Lock()
			defer mu.Unlock()
			open[host] = e.To == atomicbreaker.Open
		},
	})
	g.RecordFailure("db-1")
	g.RecordFailure("db-2")
	fmt.Println(open)
	g.ResetAll()
	fmt.Println(open)
	// Output:
	// map[db-1:true db-2:true]
	// map[db-1:false db-2:false]
}

// Executors that cannot wrap their calls report what they see.
func ExampleGroup_RecordFailure() {
	actions := atomicbreaker.MustNewGroup(atomicbreaker.GroupConfig[string]{
		Default: atomicbreaker.Config{Policy: atomicbreaker.Consecutive(3), OpenTimeout: -1},
	})
	for range 3 {
		fmt.Println(actions.RecordFailure("resize"), actions.IsOpen("resize"))
	}
	fmt.Println(actions.RecordSuccess("resize"), actions.IsOpen("resize"))
	// Output:
	// Counted false
	// Counted false
	// Tripped true
	// Recovered false
}

func ExampleGroup_All() {
	var g atomicbreaker.Group[string]
	g.RecordFailure("db-1")
	g.RecordFailure("db-2")
	g.RecordFailure("db-2")
	snapshots := maps.Collect(g.All())
	for _, k := range slices.Sorted(maps.Keys(snapshots)) {
		fmt.Println(k, snapshots[k].State, snapshots[k].Failures)
	}
	// Output:
	// db-1 Closed 1
	// db-2 Closed 2
}

func ExampleNew() {
	_, err := atomicbreaker.New(atomicbreaker.Config{Probes: 99})
	fmt.Println(err)
	// Output: atomicbreaker: Config.Probes 99: must be in 0..31
}

// A call whose context has ended is not made, and counts as nothing.
func ExampleExecuteContext() {
	var b atomicbreaker.Breaker
	ctx, cancel := context.WithCancel(context.Background())
	length, err := atomicbreaker.ExecuteContext(ctx, &b, func(context.Context) (int, error) { return 5, nil })
	fmt.Println(length, err)
	cancel()
	length, err = atomicbreaker.ExecuteContext(ctx, &b, func(context.Context) (int, error) { return 5, nil })
	fmt.Println(length, err)
	// Output:
	// 5 <nil>
	// 0 context canceled
}

// A wrapper that looks into the error finds why a call was rejected.
func ExampleOpenError() {
	b := atomicbreaker.MustNew(atomicbreaker.Config{Name: "db", DetailedErrors: true})
	b.Trip(time.Minute)
	_, err := b.Allow()
	var open *atomicbreaker.OpenError
	if errors.As(err, &open) {
		fmt.Println(open.Name, open.State, open.RetryAfter.Round(time.Minute), errors.Is(err, atomicbreaker.ErrOpen))
	}
	// Output: db Open 1m0s true
}

// A result may be a failure without an error.
func ExampleExecuteResult() {
	b := atomicbreaker.MustNew(atomicbreaker.Config{Policy: atomicbreaker.Consecutive(2)})
	ctx := context.Background()
	classify := func(status int, err error) atomicbreaker.Outcome {
		if status >= 500 {
			return atomicbreaker.Failure
		}
		return atomicbreaker.Classify(ctx, err)
	}
	for _, status := range []int{503, 404, 502, 500} {
		status, err := atomicbreaker.ExecuteResult(ctx, b, func(context.Context) (int, error) { return status, nil }, classify)
		fmt.Println(status, err, b.State())
	}
	// Output:
	// 503 <nil> Closed
	// 404 <nil> Closed
	// 502 <nil> Closed
	// 500 <nil> Open
}
