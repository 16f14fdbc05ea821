//go:build modelcheck

package interleave

import (
	"fmt"
	"testing"

	"github.com/latchfree/latchfree/internal/tools/mc"
)

// How much is explored of a program: all orders, up to those of steps that do
// not conflict, if they are no more than the limit. Otherwise these first ones,
// all in which threads lose their turn once at most, again up to the limit, and
// as many that are random, up to 1000.
const (
	// Thorough is a limit for what is run now and then.
	Thorough = 4_000
	// Quick is a limit for what is run in a search, which takes a program for
	// hung after ten seconds, on however busy a machine.
	Quick = 400
)

// workPerSchedule bounds how many moments are tried to explain what happens in a program, by the
// executions of it that are allowed: what takes more than the rest together counts as explained.
const workPerSchedule = 2_000

// Result is what was explored of a program.
type Result struct {
	Schedules int      // executions
	Coverage  Coverage // of the orders there are
	Failure   string   // the first, with what is needed to see it again
}

// Coverage says which orders were explored.
type Coverage string

// The coverages.
const (
	All  Coverage = "all orders"
	Once Coverage = "one preemption"
	Some Coverage = "cut short"
)

// Explore runs the program in as many orders as that.
func (p *Program[R, S]) Explore(limit int) Result {
	r, body := Result{Coverage: Some}, p.body(nil, limit*workPerSchedule)
	if p.explore(&r, body, mc.Config{MaxSchedules: limit}) {
		r.Coverage = All
		return r
	}
	if p.explore(&r, body, mc.Config{Mode: mc.Bounded, Preemptions: 1, MaxSchedules: limit}) {
		r.Coverage = Once
	}
	p.explore(&r, body, mc.Config{Mode: mc.PCT, Runs: min(limit, 1000)})
	return r
}

// Sample runs the program in a few random orders, and adds what threads did to
// reached, which may be nil.
func (p *Program[R, S]) Sample(runs int, reached Reached) Result {
	r := Result{Coverage: Some}
	p.explore(&r, p.body(reached, runs*workPerSchedule), mc.Config{Mode: mc.PCT, Runs: runs})
	return r
}

// explore adds to r, and reports whether all that cfg asks for was explored. It
// does nothing after a failure.
func (p *Program[R, S]) explore(r *Result, body func(*mc.M), cfg mc.Config) (complete bool) {
	if r.Failure != "" {
		return false
	}
	got := mc.Explore(cfg, body)
	r.Schedules += got.Schedules
	if got.Failure != "" {
		r.Failure = fmt.Sprintf("%s\nafter %v, in\n%s\nreplay with MC_REPLAY=%s\n\n%s", got.Failure, got, p, got.Replay, got.Trace)
	}
	return got.Complete
}

// Check is Explore for a test, which it fails with the first execution that no
// order explains.
func (p *Program[R, S]) Check(t testing.TB, limit int) Result {
	t.Helper()
	r := p.Explore(limit)
	if r.Failure != "" {
		t.Fatal(r.Failure)
	}
	t.Logf("%d executions: %s", r.Schedules, r.Coverage)
	return r
}
