// Package atomicbreaker provides lock-free circuit breakers: a Breaker for one dependency, or a Group with one for
// every key.
//
// Its siblings are cowchangeset for trails of changes, oncecache for expensive resources, and shardedregistry for data with
// versions.
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
// For net/http, use package breakerhttp.
//
// A closed breaker lets every call through. When enough calls have failed, as Config.Policy
// defines, it opens and rejects all calls for a while. Then it is half-open: a few calls go through
// as probes. A success closes it; a failure opens it again.
//
// Where calls cannot be wrapped in Do, use Allow and the Permit, or IsOpen, RecordSuccess and RecordFailure. Package
// settings reads JSON, YAML or flags, retrybudget limits retries, throttle rejects a part of the calls to an overloaded
// service. docs/coming-from-breakers.md maps the settings of other breakers.
//
// A breaker is local to its process. It sets no deadlines, and counts a call when it ends, so a
// call that hangs does not open it. Do not nest a breaker in itself: once it is half-open, the
// outer call is the probe, the inner one is rejected, and it never closes.
//
// # Guarantees
//
// A Breaker is linearizable: every operation takes effect at one moment between its call and its return. So is each key of
// a Group.
//
//   - No concurrent failure is lost, and exactly one returns Tripped.
//   - Consecutive and KOfN are exact. A window may open the breaker late, by at most the failures in flight; a TripFunc
//     opens it after the failure has taken effect.
//   - A half-open breaker never has more than Config.Probes calls in flight that it has admitted since it became half-open,
//     and that are within Config.ProbeTimeout.
//   - A report that changes the breaker synchronizes before every Allow, State, Snapshot and IsOpen that observes the
//     change.
//
// # Events
//
// OnStateChange, the listener, gets every change of a breaker once, in order. The change to HalfOpen comes with the first
// probe.
//
//   - Of the callers that change a breaker at once, one delivers all events before it returns; the others do not wait.
//   - A listener may use its breaker. If it panics or calls runtime.Goexit, the operation has taken effect all the same,
//     the other events are delivered first, and Allow gives its slot back.
//
// # Limits
//
// Time is the monotonic clock. An old permit counts as current after exactly 2^20-1 changes of mode
// or resets; one for an absent key may count after 2^20 recoveries of keys, where ResetAll counts
// as 4096. See DESIGN.md.
//
// # Costs
//
// A healthy call of a Breaker is two loads: it writes no shared memory, reads no clock and
// allocates nothing. With strings, numbers or booleans as keys, a healthy call of a Group is some
// ten loads, and a hash if any keys fail.
//
// Do and the Execute functions allocate nothing, except in a closure that is inlined into another package with the
// function that returns it (https://go.dev/issue/79592): use Breaker.Do there.
//
// An event allocates only while the listener is busy. A Breaker takes 600 bytes, and 128 per processor for each
// window. A Group takes 4 KiB, 20 KiB once a key has failed, and 52 KiB once
// one has recovered; a failing key 190 bytes, and 260 for each window, 320 with a listener, 350 for settings by PerKey,
// or 610 with Backoff. Neither starts a goroutine or needs closing.
//
// If outsiders choose the keys, use coarser ones: a key that has failed stays until
// it is forgotten, and swept: see GroupConfig.ForgetAfter.
package atomicbreaker
