// Package fuzz holds what attacks the four packages from outside, in three
// layers. Each compares what the real type does with a sequential model, which
// is mutex-free and obviously right: those of internal/tools/model or, for histories,
// some beside the tests, whose states are values that can be compared.
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
// Histories. The tests in history_*_test.go let goroutines use the real types,
// whose tables grow and shrink meanwhile, note when each operation began and
// ended, and ask porcupine for an order that explains all results; see
// internal/history. Nothing is instrumented, and so nothing is left out: what
// is found here and not above is due to the real map, compiler and processors.
// Beside each of these tests is one that must find out broken implementations.
// Time stands still in them, but for breakers and for what expires in synctest's bubbles, where
// it passes while all clients sleep: so they wake beside the timers.
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
// or all of them, and those of the other packages, with make fuzz FUZZTIME=30s.
// A crasher is written to testdata/fuzz; commit it with the fix. That of an
// interleaving prints the variable MC_REPLAY, with which its test runs the
// failing order alone.
//
// Histories search for as long as HISTORY_TIME says, each:
//
//	HISTORY_TIME=1m go test ./fuzz -run Histories -cpu 1,2,4
//
// One that fails is printed and drawn as a web page, whose name it tells. With
// HISTORY_SEED, its goroutines do the same again, in other interleavings.
package fuzz
