// Package throttle rejects a part of all calls while a backend does not accept all of
// them, and adapts that part. A Throttle is for a backend that is overloaded, a
// Breaker of package atomicbreaker for one that is down.
//
//	err := search.Do(ctx, func(ctx context.Context) error { // search is a *throttle.Throttle
//		return call(ctx)
//	})
//
// In a window of time a Throttle counts the requests, which are all calls of Allow, and the
// accepts, which are the calls that went well. It rejects the next call with probability
//
//	max(0, (requests − Ratio·accepts) / (requests + 1))
//
// so that about Ratio times as many calls go through as are accepted. This is
// adaptive throttling by the client, from Beyer, Jones, Petoff and Murphy (eds.),
// Site Reliability Engineering, 2016, chapter 21, "Handling Overload".
//
// A request counts when it asks for admission, and an accept when it is reported, even if
// its request has left the window. A call that is rejected, panics, hangs or is forgotten
// was not accepted and needs no report, so there are no permits.
//
// The probability is never 1, but after a whole window without an accept only about one
// call in each window goes through.
//
// # Behind a Breaker
//
// After an outage it takes about Window/Ratio times the logarithm of the requests in a
// window until all calls go through again. So if there are thousands of calls a second,
// choose a window of seconds, or put the Throttle behind a Breaker:
//
//	err := breaker.Do(ctx, func(ctx context.Context) error {
//		return search.Do(ctx, call)
//	})
//
// The Breaker keeps the calls of an outage away from the Throttle, and ignores what the
// Throttle rejects. The other way round, a Throttle counts what the Breaker rejects as
// not accepted. In a simulated outage of ten minutes, with 200 calls a second and the
// default Throttle, 99 % of all calls succeed again after
//
//	OpenTimeout                   1 min    1 min, doubled up to 10 min
//	Throttle behind the Breaker   0 s      5 min, at the next probe
//	Throttle alone                11 min   11 min
//	Breaker behind the Throttle   11 min   21 min 30 s
package throttle
