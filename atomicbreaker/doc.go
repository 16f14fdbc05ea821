// Package atomicbreaker provides lock-free circuit breakers: one Breaker, or a
// Group with one for every key.
//
//	var upstream atomicbreaker.Group[string] // ready to use, one breaker per host
//
//	err := upstream.Do(ctx, host, func(ctx context.Context) error {
//		return call(ctx, host)
//	})
//	if errors.Is(err, atomicbreaker.ErrRejected) {
//		return cached(host)
//	}
//
// A closed breaker lets every call through. When enough calls have failed it
// opens, and rejects all calls for a while. Then it is half-open: a few calls go
// through as probes, and their success closes it, while a failure opens it again
// for longer. What is enough, Config.Trip says: failures in a row (Consecutive),
// among the last calls (KOfN) or in a window of time (FailureCount,
// FailureRate), slow calls (SlowRate), or any of these (AnyOf).
//
// Settings can be tried in a Shadow, which rejects nothing and tells what it
// would have done, and changed while calls run, by Update of a Breaker and of a
// Group. Trip, HalfOpen, ForceOpen, Disable and Reset are for operators. What the
// windows hold is in Snapshot, for dashboards. TripFunc is a policy of one's own.
//
// The type Settings is a Config as documents hold it, in JSON or YAML: without
// functions, and with durations and policies as text. See ParsePolicy.
//
// RetryBudget and Throttle are for the other side of the same trouble: how
// often to try again, and how to go easy on a service that is overloaded.
// Package breakerhttp is a breaker around net/http. See MIGRATING.md for what
// the settings of gobreaker, failsafe-go, resilience4j and Polly are here.
//
// # When to use it
//
// Where calls to one thing that may be down cost time or make it worse, and
// many goroutines make them. Where results are known at other places than
// admissions are asked for, use Allow and the Permit; where calls cannot be
// wrapped at all, Group.IsOpen, RecordSuccess and RecordFailure.
//
// # When not to use it
//
//   - The limit is how many calls run at once, or their rate.
//   - Slow calls have no deadline. A breaker learns of a call when it ends. Give
//     calls a deadline; context.DeadlineExceeded is a failure.
//   - Processes have to agree. Each has its own view.
//
// # Guarantees
//
// A Breaker is linearizable: every operation takes effect at one moment
// between its call and its return, which its documentation names, and
// failures, successes and resets count in the order of these moments. So is
// each key of a Group, and ResetAll for all keys together. In particular:
//
//   - Of concurrent failures none is lost, and exactly one gets Tripped.
//   - Consecutive and KOfN are exact. A window opens the breaker late by the
//     failures in flight at most, and counts none twice and none of another time.
//   - A Permit carries the generation of the breaker that gave it. Its result
//     is Late, and changes nothing, once the breaker has changed its state or
//     was reset.
//   - A half-open breaker never has more than Config.Probes in flight whose
//     time is not over, and one that hangs, panics, calls runtime.Goexit or is
//     never reported blocks it for no longer than Config.ProbeTimeout. What one
//     reports after its time still counts while the breaker is half-open.
//   - A key of a Group that is not stored behaves like one that is healthy,
//     and a failure through a permit taken then counts, whatever came and went
//     in between, unless the key was opened or reset.
//
// # Events
//
// Config.OnStateChange and GroupConfig.OnStateChange are told of every
// generation of a breaker: once each, one at a time, in order. No goroutine is
// started for it. Who has changed a breaker calls the listener at the end of
// the operation, also for the changes of others that could not be told before:
//
//   - While a caller is inside the listener, it delivers for all, and what the
//     others change is told after that. Nobody waits. A listener that takes
//     long delays its caller and later events of the same breaker, and one that
//     never returns lets them pile up in memory.
//   - An event waits for those before it. If a caller is stopped by the
//     scheduler between its change and its event, later events are delivered
//     when it goes on, by it.
//   - When all operations have returned, all events have been delivered.
//
// A listener may use the breaker that it is told about. What it changes there
// is told when it has returned. If it panics or calls runtime.Goexit, that goes
// on in the caller, whose operation has taken effect; its result is lost, and
// Allow gives back the slot. The events that are left are delivered by the same
// goroutine first.
//
// The event of a half-open breaker is that of its first probe, and not of the
// moment when its time has passed. ResetAll tells of each key that was not
// healthy, and ForgetAfter of each that was not closed. Events come in order up to 2^20-2 that wait for the same one.
//
// Time is the monotonic clock. Open times are kept in milliseconds and probe
// times in units of 128 ms, and both are rounded up.
//
// A permit that is reported after exactly 2^20-1 changes of mode or resets of
// its breaker cannot be told from a current one. See DESIGN.md for this and
// for two limits of a Group: 8192 recoveries during one call, and two keys
// with one 64-bit hash.
//
// # Memory model
//
// In the terminology of the Go memory model, a report that changes the breaker
// synchronizes before every Allow, State, Snapshot and IsOpen that observes the
// change. A report that changes nothing is a read and orders nothing.
//
// # Costs
//
// A healthy call of a Breaker is two loads and a few instructions: no writes
// to shared memory, no clock, no allocation. Neither has a healthy call of a
// Group with strings, numbers or booleans as keys; it is some ten loads, and a
// hash if any keys are failing. It is the same with a listener, and with
// Consecutive, KOfN and FailureCount alike. With FailureRate and SlowRate a call
// adds to a counter that other processors do not use, and reads the clock, in a
// Group from the key's first failure on.
//
// Do, Execute and ExecuteContext allocate nothing either, whatever the function
// captures, and wrappers around them need not. There is one exception: in a closure
// that the compiler inlines into another package, with the function that returns
// it, Execute and ExecuteContext put their function on the heap, and Group.Do may
// (https://go.dev/issue/79592). In middleware that returns a closure use
// Breaker.Do, or return a value with a method.
//
// Rejections allocate nothing, read the clock, and add to such a counter, for
// Stats. A Breaker takes 128 bytes, so that its neighbours in memory do not
// slow it down, and once it has opened a cache line for each processor; a window
// takes 128 bytes for each processor. A Group takes 4 KiB, 20 KiB once a key
// has failed, and 48 bytes for each recovery from open and each Reset, of which
// it keeps the last 8192. A key that is open or failing takes 130 bytes and a
// copy of the key if that is a string; each window of a failing key 200 more, and
// 128 for each processor if calls of the key meet; its own settings, with
// GroupConfig.PerKey, 340, and 260 more with Config.Backoff. A change that is
// told takes three allocations, and in a Group the key's place in a table.
//
// A key keeps its place as long as its last result was a failure, and for
// GroupConfig.ForgetAfter if nobody calls it again. Where keys come from outside
// and each may fail once, use a coarser key.
package atomicbreaker
