// Package homemade holds the caches that programs write for themselves from
// what Go and golang.org/x/sync offer. The benchmarks and the cases of
// bench/failures use the same ones.
package homemade
