package main

import (
	"maps"
	"slices"
	"time"
)

// A round is a choice of a layer's tests, and how long they take at most without
// a mutant. It is empty if it chooses none.
type round func(c *campaign, m *mutant, b *baseline, p program) (tests string, most time.Duration)

// rounds go from what is likely to kill, or does not take long, to all: the test
// that killed m when the sources were others, those that killed others in its
// function, the short ones. Tests that do not come to its function do the same
// with it, and are left out.
var rounds = []round{
	func(c *campaign, m *mutant, b *baseline, p program) (string, time.Duration) {
		return b.those(p, c.last(m, b))
	},
	func(c *campaign, m *mutant, b *baseline, p program) (string, time.Duration) {
		return b.those(p, c.killers.of(m, b)...)
	},
	func(c *campaign, m *mutant, b *baseline, p program) (string, time.Duration) {
		quick := c.at(m, b, b.quick)
		if b.printed(quick)*4 < b.whole {
			return b.those(p, quick...)
		}
		return "", 0
	},
	func(c *campaign, m *mutant, b *baseline, p program) (string, time.Duration) {
		if b.reach == nil || p.chosen == 0 {
			return b.tests, b.whole
		}
		return b.those(p, c.at(m, b, slices.Collect(maps.Keys(b.took)))...)
	},
}

// those returns a pattern for the tests that are named and that p can run, and
// how long they take at most without a mutant.
func (b *baseline) those(p program, tests ...string) (string, time.Duration) {
	tests = slices.DeleteFunc(tests, func(test string) bool { return test == "" || slices.Contains(p.skip, top(test)) })
	if len(tests) == 0 {
		return "", 0
	}
	return pattern(tests), b.printed(tests) + time.Duration(len(tests))*rounding
}

// rounding is how much longer a test may have taken than was printed: hundreds
// that are printed as 0.00s may take a second together.
const rounding = 5 * time.Millisecond

// printed returns how long tests took without a mutant, by what was printed.
func (b *baseline) printed(tests []string) (sum time.Duration) {
	for _, test := range tests {
		sum += b.took[test]
	}
	return sum
}

// attack runs rounds of a layer's tests on m until one fails.
func (c *campaign) attack(m *mutant, b *baseline, p program, rounds ...round) (r result) {
	for _, round := range rounds {
		tests, most := round(c, m, b, p)
		if tests == "" {
			continue
		}
		if r = c.all(b, p, tests, most); r.how != passed {
			c.killers.add(m, b.layer, r.test)
			break
		}
	}
	return r
}

// A test that takes so many times as long as without a mutant hangs: no machine is so busy.
const hangs = 20

// all runs tests that take no longer than most without a mutant. If they are stopped before it
// is certain that one hangs, that one has more time by itself.
func (c *campaign) all(b *baseline, p program, tests string, most time.Duration) result {
	run := func(tests string, times int, most time.Duration) (result, bool) {
		limit := c.config.patience + time.Duration(times)*most
		r := b.run(c.toolchain, p, tests, limit, c.config.memory+3*b.peak)
		return r, r.how != timedOut || limit >= hangs*most
	}
	r, certain := run(tests, 5, most)
	if certain {
		return r
	}
	if took, ok := b.took[r.test]; ok {
		if alone, _ := run(pattern([]string{r.test}), hangs, took+rounding); alone.how != passed {
			return alone
		}
	}
	r.how = slow
	return r
}
