// Mutants breaks the concurrency of the library's packages, one line at a time,
// and asks their tests whether they notice.
//
//	go run ./internal/tools/mutants                       # everything
//	go run ./internal/tools/mutants ./oncecache           # one package
//	go run ./internal/tools/mutants -run settle ./oncecache
//	go run ./internal/tools/mutants -sequential ./oncecache
//
// A mutant is the package with one change: a compare-and-swap that is torn into
// a load and a store, a wake-up that is left out, two lines that changed places.
// A test that fails kills it. One that no test kills is a gap in the tests, or
// makes no difference, in which case somebody has said why in reviewed/. Any
// other survivor makes the command fail. README.md tells more.
package main
