// Package fuzz holds what attacks the four packages from outside: one native
// fuzz target for each that turns bytes into a sequence of operations and
// compares every result with a sequential model (internal/model).
//
// The committed seeds in testdata/fuzz run as plain tests. To search for new
// inputs, run one target at a time:
//
//	go test ./fuzz -run '^$' -fuzz '^FuzzBreakerOps$' -fuzztime 30s
//
// or all of them with make fuzz FUZZTIME=30s. A crasher is written to
// testdata/fuzz; commit it with the fix.
package fuzz
