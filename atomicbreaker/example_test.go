//go:build !modelcheck

package atomicbreaker_test

import (
	"context"
	"encoding/json"
	"errors"
	"expvar"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/atomicbreaker/settings"
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

// A call for a host gets a result, or a rejection that names the host.
func ExampleExecuteGroup() {
	upstream := atomicbreaker.MustNewGroup(atomicbreaker.GroupConfig[string]{
		Default: atomicbreaker.Config{Policy: atomicbreaker.Consecutive(1)},
	})
	get := func(host string, err error) {
		body, err := atomicbreaker.ExecuteGroup(context.Background(), upstream, host,
			func(context.Context) (string, error) { return "from " + host, err })
		fmt.Printf("%q %v\n", body, err)
	}
	get("db-1", errUnavailable)
	get("db-1", nil)
	get("db-2", nil)
	// Output:
	// "from db-1" unavailable
	// "" atomicbreaker: call rejected: breaker is open
	// "from db-2" <nil>
}

// A call that cannot be wrapped asks first, and reports afterwards.
func ExampleGroup_IsOpen() {
	var upstream atomicbreaker.Group[string]
	for _, host := range []string{"db-1", "db-2"} {
		if upstream.IsOpen(host) {
			continue
		}
		fmt.Println("calling", host)
		upstream.RecordSuccess(host)
	}
	// Output:
	// calling db-1
	// calling db-2
}

// Keys may have settings of their own.
func ExampleGroup_Config() {
	upstream := atomicbreaker.MustNewGroup(atomicbreaker.GroupConfig[string]{
		PerKey: func(host string) atomicbreaker.Config {
			if host == "search" {
				return atomicbreaker.Config{Name: host, OpenTimeout: 5 * time.Second}
			}
			return atomicbreaker.Config{Name: host}
		},
	})
	fmt.Println(upstream.Config("search").OpenTimeout, upstream.Config("db").OpenTimeout)
	// Output: 5s 0s
}

// New settings apply to the failures that were counted before.
func ExampleGroup_Update() {
	upstream := atomicbreaker.MustNewGroup(atomicbreaker.GroupConfig[string]{
		Default: atomicbreaker.Config{Policy: atomicbreaker.Consecutive(100)},
	})
	fmt.Println(upstream.RecordFailure("db-1"))
	err := upstream.Update(atomicbreaker.GroupConfig[string]{
		Default: atomicbreaker.Config{Policy: atomicbreaker.Consecutive(2)},
	})
	fmt.Println(err, upstream.RecordFailure("db-1"))
	// Output:
	// Counted
	// <nil> Tripped
}

// After a fault of the own network, all keys start anew. Results of calls from
// before do not count.
func ExampleGroup_ResetAll() {
	var upstream atomicbreaker.Group[string]
	early, _ := upstream.Allow("db-1")
	upstream.Trip("db-1", time.Hour)
	upstream.Trip("db-2", time.Hour)
	upstream.ResetAll()
	fmt.Println(upstream.Len(), upstream.State("db-1"), early.Failure())
	// Output: 0 Closed Late
}

// A sweep removes the keys that are forgotten. A key that is open until Reset stays.
func ExampleGroup_Sweep() {
	upstream := atomicbreaker.MustNewGroup(atomicbreaker.GroupConfig[string]{
		ForgetAfter: time.Millisecond,
	})
	upstream.RecordFailure("db-1")
	upstream.Trip("db-2", -1)
	fmt.Println(upstream.Len(), "stored")
	for upstream.Sweep() == 0 {
		// db-1 is still remembered
	}
	fmt.Println(upstream.Len(), "stored")
	// Output:
	// 2 stored
	// 1 stored
}

// Stats are of all keys together.
func ExampleGroup_Stats() {
	var upstream atomicbreaker.Group[string]
	upstream.ForceOpen("db-1")
	upstream.Allow("db-1")
	upstream.Allow("db-1")
	s := upstream.Stats()
	fmt.Println(s.Opened, s.Rejected, s.Closed)
	// Output: 1 2 0
}

// At most one key is open: a fault that makes all calls fail is not that of the
// hosts.
func ExampleGroupConfig_maxOpen() {
	upstream := atomicbreaker.MustNewGroup(atomicbreaker.GroupConfig[string]{
		Default: atomicbreaker.Config{Policy: atomicbreaker.Consecutive(1)},
		MaxOpen: 1,
	})
	for _, host := range []string{"db-1", "db-2", "db-3"} {
		if p, err := upstream.Allow(host); err == nil {
			fmt.Println(host, p.Failure())
		}
	}
	fmt.Println(upstream.Stats().Withheld)
	// Output:
	// db-1 Tripped
	// db-2 Counted
	// db-3 Counted
	// 2
}

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

// A test of a breaker takes no time, whatever its timeouts are.
func TestRecoveryInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		upstream := atomicbreaker.MustNew(atomicbreaker.Config{
			Policy:      atomicbreaker.Consecutive(1),
			OpenTimeout: time.Hour,
		})
		answer := errors.New("connection refused")
		call := func() error {
			return upstream.Do(t.Context(), func(context.Context) error { return answer })
		}

		call()
		if err := call(); !errors.Is(err, atomicbreaker.ErrOpen) {
			t.Fatal("the breaker is not open: ", err)
		}

		time.Sleep(time.Hour) // at once
		answer = nil
		if err := call(); err != nil || upstream.State() != atomicbreaker.Closed {
			t.Fatal("the breaker has not recovered: ", err)
		}
	})
}

// The examples of this file are what docs/coming-from-breakers.md refers to.

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
