// Package interleavings turns bytes into a prelude and two or three threads of up to three
// operations, whose functions may fail, panic, exit or call back. Every order of the threads' steps
// on shared words is explored, and in each the results must be those of some order of the operations
// on the model in internal/tools/model. Where there are too many orders, those with one preemption and
// some random ones are, and the test says so; see fuzz/internal/interleave.
//
// The committed seeds in testdata/fuzz run as plain tests:
//
//	go test -tags modelcheck ./fuzz/interleavings
//
// To search with one target:
//
//	go test -tags modelcheck ./fuzz/interleavings -run '^$' -fuzz '^FuzzBreakerInterleavings$' -fuzztime 30s
//
// A crasher prints the variable MC_REPLAY, with which its test runs the failing order alone.
package interleavings
