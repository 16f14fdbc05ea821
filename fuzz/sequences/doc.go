// Package sequences turns bytes into a sequence of operations on a real type and on its model
// in internal/tools/model, and compares every result.
//
// The committed seeds in testdata/fuzz run as plain tests. To search with one target:
//
//	go test ./fuzz/sequences -run '^$' -fuzz '^FuzzBreakerOps$' -fuzztime 30s
package sequences
