// Package atomicbreaker provides lock-free circuit breakers: a Breaker for one dependency, or a Group with one for
// every key.
//
// The module has four packages. Choose by what your goroutines share:
//   - atomicbreaker: a dependency that fails. It stops the calls to it until it has recovered.
//   - cowchangeset: changes. It records who changed what, and shares slices that are mostly read.
//   - oncecache: resources (meters, engines, clients). It creates one per key, and closes it after its last use.
//   - shardedregistry: data with versions. It compares, updates, indexes and watches entities.
//
// Zero values are ready to use:
//
//	var upstream atomicbreaker.Group[string] // one breaker per host
//
//	err := upstream.Do(ctx, host, func(ctx context.Context) error {
//		return call(ctx, host)
//	})
//	if errors.Is(err, atomicbreaker.ErrRejected) {
//		return cached(host)
//	}
//
// A closed breaker lets every call through. When enough calls have failed it opens, and rejects all calls for a while.
// Then it is half-open: a few calls go through as probes. Success closes it, and a failure opens it again.
// Config.Policy says what is enough: failures in a row (Consecutive), among the last calls (KOfN) or in a window of time
// (FailureCount, FailureRate), slow calls (SlowRate), a function (TripFunc), or any of these (AnyOf).
//
// Config.Shadow tries settings without rejecting calls; Update changes them while calls run. Package settings
// reads them from JSON, YAML or flags. Package retrybudget limits retries, and package throttle rejects a part of the calls to an overloaded service.
// Package breakerhttp wraps net/http. MIGRATING.md maps the settings of other breakers.
//
// # When to use it
//
// Use a breaker where many goroutines call a thing that may be down. If a call is admitted and reported in different
// places, use Allow and the Permit; if calls cannot be wrapped, IsOpen, RecordSuccess and RecordFailure. A breaker
// limits neither concurrency nor rates, sets no deadlines, counts a call only when it ends, and is local to its process.
//
// Do not nest a breaker, or a key of a Group, in itself: once it is half-open, the outer call is the probe, the inner one
// is rejected, and it never closes.
//
// # Guarantees
//
// A Breaker is linearizable: every operation takes effect at one moment between its call and its return, which its
// documentation names. So is each key of a Group, and ResetAll for all keys together.
//
//   - No concurrent failure is lost, and exactly one gets Tripped.
//   - Consecutive and KOfN are exact. A window opens the breaker late by at most the failures in flight.
//   - A Permit carries the generation of its breaker. When that is over, its result is Late and changes nothing.
//   - A half-open breaker never has more than Config.Probes calls in flight that are within Config.ProbeTimeout. A lost
//     probe blocks it for no longer than that. Its result still counts while the breaker is half-open.
//   - A key that a Group does not store behaves like a healthy key. A failure through a permit for it counts unless the
//     key was opened or reset in between.
//
// # Events
//
// Config.OnStateChange and GroupConfig.OnStateChange get every generation of a breaker once, in order. An operation
// that has changed the breaker calls the listener before it returns.
//
//   - One caller at a time delivers for all; the others do not wait. A slow listener delays its caller and later events
//     of the same breaker.
//   - An event waits for earlier ones, whose callers deliver both. When all operations have returned, all events have
//     been delivered.
//   - A listener may use its breaker; the events of that follow. If it panics or calls runtime.Goexit, the same
//     goroutine delivers the rest first. The operation has taken effect, and Allow gives its slot back.
//
// The event of a half-open breaker comes with its first probe. ResetAll sends one for each key that was not healthy,
// and ForgetAfter for each that was not closed. The order holds while at most 2^20-2 events wait.
//
// # Time and limits
//
// Time is the monotonic clock. Open times end up to a millisecond early. An old permit counts as
// current after exactly 2^20-1 changes of mode or resets. A Group drops results of calls during which 8192 keys
// recovered, or another key with the same 64-bit hash. See DESIGN.md.
//
// # Memory model
//
// A report that changes the breaker synchronizes before every Allow, State, Snapshot and IsOpen that observes the
// change. A report that changes nothing establishes no order.
//
// # Costs
//
// A healthy call of a Breaker is two loads, without writes to shared memory, clock or allocation. One of a Group with
// strings, numbers or booleans as keys is some ten loads, and a hash if any keys fail. With FailureRate and SlowRate a
// call adds to a counter of its own processor and reads the clock, in a Group from the key's first failure on.
//
// Do and the Execute functions allocate nothing. In a closure that the compiler inlines into another package with the
// function that returns it, Execute and ExecuteContext put their function on the heap, and Group.Do may
// (https://go.dev/issue/79592): use Breaker.Do there, or return a value with a method.
//
// A rejection reads the clock. An event takes two allocations if it is of a key of a Group, and one while the listener
// is busy. A Breaker takes 128 bytes, once it has opened a cache line per processor, and 128 bytes per processor for each
// window. A Group takes 4 KiB, 20 KiB once a key has failed, and 48 bytes for each of the last 8192 recoveries; a failing
// key 130 bytes, 200 for each window, and 340 for settings by PerKey, or 600 with Backoff. Neither starts a goroutine or
// needs closing.
//
// A key keeps its place while its last result is a failure, and for GroupConfig.ForgetAfter if nobody calls it. Where
// outsiders choose keys, use coarser ones.
package atomicbreaker
