//go:build !modelcheck

package atomicbreaker_test

import (
	"fmt"
	"testing"

	ab "github.com/latchfree/latchfree/atomicbreaker"
)

// naive is the algorithm of the defect report: a count and a flag per name,
// read and written in separate steps. Step is called between them, and lets a
// test decide who goes next.
type naive struct {
	failures map[string]int
	disabled map[string]bool
	step     func()
}

func newNaive() *naive {
	return &naive{failures: map[string]int{}, disabled: map[string]bool{}, step: func() {}}
}

func (n *naive) recordFailure(name string) {
	count := n.failures[name] + 1
	n.step()
	n.failures[name] = count
	if count >= 3 {
		n.disabled[name] = true
	}
}

func (n *naive) recordSuccess(name string) {
	n.failures[name] = 0
	n.step()
	n.disabled[name] = false
}

// interrupt runs first, and second while first is between its steps.
func (n *naive) interrupt(first, second func()) {
	between, resume, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	n.step = func() {
		n.step = func() {}
		close(between)
		<-resume
	}
	go func() { first(); close(done) }()
	<-between
	second()
	close(resume)
	<-done
}

// Two failures become one: three in a row do not open.
//
// Checks I2, I5.
func TestReport_NaiveLosesAFailure(t *testing.T) {
	n := newNaive()
	n.recordFailure("db")
	n.interrupt(func() { n.recordFailure("db") }, func() { n.recordFailure("db") })
	if n.disabled["db"] {
		t.Fatal("the naive breaker opened; it was expected to lose a failure")
	}
}

// A success is undone by a failure that began before it: two failures in a row
// open at a threshold of three.
//
// Checks I2, I5.
func TestReport_NaiveLosesASuccess(t *testing.T) {
	n := newNaive()
	n.recordFailure("db")
	n.recordFailure("db")
	n.interrupt(func() { n.recordFailure("db") }, func() { n.recordSuccess("db") })
	if !n.disabled["db"] || n.failures["db"] != 3 {
		t.Fatal("the naive breaker stayed closed; it was expected to forget the success")
	}
}

// A success re-enables what a failure has disabled meanwhile: enabled, with a
// count at the threshold.
//
// Checks I2, I5.
func TestReport_NaiveTearsItsState(t *testing.T) {
	n := newNaive()
	n.interrupt(func() { n.recordSuccess("db") }, func() {
		n.recordFailure("db")
		n.recordFailure("db")
		n.recordFailure("db")
	})
	if n.disabled["db"] || n.failures["db"] != 3 {
		t.Fatal("the naive breaker is consistent; it was expected to be enabled with 3 failures")
	}
}

// Concurrent failures are all counted, and exactly one trips: no schedule
// loses one (T9, T10, T12).
//
// Reported bug 12, rubyist/circuitbreaker: concurrent counts skip the threshold.
// Checks I2, I5.
func TestReport_NoFailureIsLost(t *testing.T) {
	for round := range rounds(3000) {
		var g ab.Group[string]
		name, threshold := fmt.Sprint("plan-", round%3), 5
		verdicts := make([]ab.Verdict, threshold+3)
		together(len(verdicts), func(i int) {
			jitter(i + round)
			verdicts[i] = g.RecordFailure(name)
		})
		count := map[ab.Verdict]int{}
		for _, v := range verdicts {
			count[v]++
		}
		if count[ab.Tripped] != 1 || count[ab.Counted] != threshold-1 || count[ab.Late] != 3 || !g.IsOpen(name) {
			t.Fatalf("round %d: verdicts %v, open %v", round, count, g.IsOpen(name))
		}
	}
}

// A success or reset amid failures splits them: with one too few on any side
// the breaker cannot open, and the count is that of the failures after it
// (T11, T15).
//
// Reported bug 11, AgentScope: opens despite a success after the check.
// Checks I2, I5.
func TestReport_NoSuccessIsLost(t *testing.T) {
	clear := map[string]func(g *ab.Group[string]){
		"success":  func(g *ab.Group[string]) { g.RecordSuccess("db") },
		"reset":    func(g *ab.Group[string]) { g.Reset("db") },
		"resetAll": func(g *ab.Group[string]) { g.ResetAll() },
	}
	for name, clear := range clear {
		t.Run(name, func(t *testing.T) {
			for round := range rounds(1500) {
				g := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: ab.Consecutive(3)}})
				g.RecordFailure("db")
				g.RecordFailure("db")
				// Either the success comes before the failure, and leaves one, or
				// after it, and leaves none and a closed breaker.
				var v ab.Verdict
				together(2, func(i int) {
					jitter(i + round)
					if i == 0 {
						v = g.RecordFailure("db")
					} else {
						clear(g)
					}
				})
				failures := 0
				for _, s := range g.All() {
					failures = s.Failures
				}
				first := v == ab.Counted && failures == 1 // the success was first
				second := v == ab.Tripped && failures == 0
				if g.IsOpen("db") || !first && !second {
					t.Fatalf("round %d: verdict %v, %d failures, open %v", round, v, failures, g.IsOpen("db"))
				}
			}
		})
	}
}
