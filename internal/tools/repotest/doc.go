// Package repotest checks what no package can check of itself: that every
// documented method says how it progresses and when it takes effect, that
// shared words go through the seam and cost nothing there, that importers get
// one dependency and no more, that their calls allocate what is promised, and
// that the README shows code that runs.
//
// It has tests and helpers for them, and is imported by nobody.
package repotest
