// Package gobreaker has the API of github.com/sony/gobreaker/v2 (v2.4.0) on
// latchfree's atomicbreaker.Breaker. A program migrates by one import path.
//
// Without BucketPeriod, a successful call of a closed breaker takes no lock, unless the
// result before it was a failure, and writes only to counters that tend to belong to its
// processor. It reads the clock only if there is an Interval. Counts is as exact as
// gobreaker's.
//
// README.md lists what differs. Most of it is about calls that never end, and about
// functions of Settings that use their breaker. NewDistributedCircuitBreaker does
// not exist.
package gobreaker
