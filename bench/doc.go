// Package bench holds the benchmarks of the four packages, each beside the
// locked code that a careful engineer would write instead.
//
// Names are Benchmark<Type><Op>/key=value/…/impl=…, so that every tool which
// reads the Go benchmark format can line implementations up:
//
//	go run ./bench/cmd/bench          all of it, with a report
//	go run ./bench/cmd/bench -quick   a dozen headline cases in under a minute
//	go test ./bench -bench Registry   the plain tool works as well
//
// README.md beside this file says how the numbers come about and how far they
// can be trusted.
package bench
