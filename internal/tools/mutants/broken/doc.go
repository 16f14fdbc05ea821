// Package broken holds the operations of internal/atomics, internal/table and
// xsync as they are when somebody gets them wrong. Mutants call it in place of
// the real ones; nothing else does.
//
//	torn      what is one step is several: others come between
//	forced    what happens on a condition happens without it
//	skipped   what reports that it happened did not
//	failed    what can fail does, without having changed anything
//
// Everything is generic, so that one function serves the types of a normal
// build and their twins under the tag modelcheck.
package broken

// Late returns v, which its caller has evaluated, after it ran then: what the
// source does before, the mutant does after.
func Late[V any](v V, then func()) V {
	then()
	return v
}
