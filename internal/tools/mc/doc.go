// Package mc is a model checker for the lock-free code of this module. It
// exists only under the build tag modelcheck; without the tag the package is
// empty and nothing imports it. README.md shows how to use it.
//
// # What it does
//
// A test's body builds a fresh shared value and a few threads that use it. The
// checker runs the body again and again, one thread at a time, and before
// every operation on a shared word it chooses which thread moves next, until
// it has tried every choice that can matter. A failure is printed as the
// interleaving that led to it, with a string that reproduces it.
//
// # Why that is enough
//
// Shared words are touched through internal/atomics alone, whose twins under
// the tag ask this package for their turn. Package sync/atomic is sequentially
// consistent, so every execution of a program without data races is some
// interleaving of those operations; and under -race every interleaving that
// is explored is also checked for data races, because the checker hides its
// own hand-overs from the race detector. What is outside: code that shares
// memory beside the seam (xsync, which internal/table replaces by a model),
// compiler bugs, and everything larger than the bodies that are explored.
//
// # How the search is kept small
//
// Two neighbouring steps of different threads that do not conflict can be
// swapped without anybody noticing. The default mode explores at least one
// order from each class of orders that differ by such swaps, and mostly just
// one: source sets (Abdulla, Aronis, Jonsson, Sagonas: "Optimal dynamic
// partial order reduction", POPL 2014) with sleep sets (Godefroid). A
// reduction that is wrong misses bugs silently, so this one is tested against
// brute force on random programs, and that test is tested against reductions
// that are broken on purpose.
package mc
