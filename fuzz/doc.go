// Package fuzz holds what attacks the four packages from outside, in three
// layers. Each compares what the real type does with a sequential model
// (internal/model), which is mutex-free and obviously right.
//
// Sequences. FuzzBreakerOps and its like turn bytes into a sequence of
// operations, and compare every result.
//
// Interleavings. FuzzBreakerInterleavings and its like, under the build tag
// modelcheck, turn bytes into a prelude and two or three threads of up to three
// operations, whose functions may fail, panic, exit or call back. Every order
// of the threads' steps on shared words is explored, and in each the results
// must be those of some order of the operations on the model. Where there are
// too many orders, those with one preemption and some random ones are, and the
// test says so; see internal/interleave.
//
// Histories. The tests in the files history*_test.go record what goroutines
// really did, and ask porcupine whether the model could have done it.
//
// The committed seeds in testdata/fuzz run as plain tests:
//
//	go test ./fuzz
//	go test -tags modelcheck ./fuzz
//
// To search for new inputs, run one target at a time:
//
//	go test ./fuzz -run '^$' -fuzz '^FuzzBreakerOps$' -fuzztime 30s
//	go test -tags modelcheck ./fuzz -run '^$' -fuzz '^FuzzBreakerInterleavings$' -fuzztime 30s
//
// or all of them with make fuzz FUZZTIME=30s. A crasher is written to
// testdata/fuzz; commit it with the fix. That of an interleaving prints the
// variable MC_REPLAY, with which its test runs the failing order alone.
package fuzz
