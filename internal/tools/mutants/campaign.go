package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

// A campaign lets the tests at the mutants of one target.
type campaign struct {
	*toolchain
	killers *killers
	memory  *memory // or nil
	record  *record
	review  *review
	config  *config
	out     io.Writer

	target    *target
	sources   string // a hash of what it is made of
	code      string // a hash of what that says, see toolchain.code
	mutants   []*mutant
	together  *together
	baselines []*baseline
	started   time.Time

	mu       sync.Mutex
	done     int
	tried    int // of those done
	verdicts map[*mutant]*verdict
}

// A verdict is what came of a mutant.
type verdict struct {
	fate  fate
	layer string // that killed it
	result
	took    time.Duration
	before  bool // found in an earlier campaign
	untried bool // a review is trusted, or the tests were stopped
}

type fate int

const (
	lived  fate = iota
	killed      // by a test that failed
	halted      // by a limit: of time, memory or executions
	same        // it is the same machine code, though that is in the program
)

// run prints what becomes of each mutant.
func (c *campaign) run() (err error) {
	if c.sources, err = c.toolchain.sources(c.target.dir); err != nil {
		return err
	}
	for _, l := range c.config.order() {
		b, err := l.measure(c.toolchain, c.target.dir, c.baselines)
		if err != nil {
			return err
		}
		if b != nil {
			if c.config.quick {
				b.spare()
			}
			fmt.Fprintf(c.out, "%s: %s tests pass without a mutant, in %v\n", c.target.dir, l.name, b.whole.Round(10*time.Millisecond))
			c.baselines = append(c.baselines, b)
		}
	}
	if err := c.gather(); err != nil {
		return err
	}
	if err := c.split(); err != nil {
		return err
	}
	defer c.join()
	c.started = time.Now()
	c.verdicts = map[*mutant]*verdict{}
	each(c.config.workers, c.mutants, func(worker int, m *mutant) {
		v := c.known(m)
		if v == nil {
			v = c.try(m, fmt.Sprint("worker", worker))
		}
		c.finish(m, v)
	})
	return c.killers.save()
}

// known returns what becomes of m if no test need be run, or nil.
func (c *campaign) known(m *mutant) *verdict {
	if v := c.recall(m); v != nil {
		return v
	}
	if c.config.trust && c.review.lists(m) {
		return &verdict{fate: lived, untried: true}
	}
	return nil
}

// gather puts those mutants together of which nothing is known; or, while they
// are the most, all that may be tried, so that a campaign that goes on finds the
// programs that were built when it began.
func (c *campaign) gather() error {
	unknown := slices.DeleteFunc(slices.Clone(c.mutants), func(m *mutant) bool { return c.known(m) != nil })
	all := slices.DeleteFunc(slices.Clone(c.mutants), func(m *mutant) bool { return c.config.trust && c.review.lists(m) })
	if len(unknown) > len(all)/2 {
		unknown = all
	}
	c.together = c.target.together(unknown)
	if len(c.together.numbers) == 0 {
		return nil
	}
	overlay, err := c.overlay("together", c.together.files)
	if err != nil {
		return err
	}
	for _, b := range c.baselines {
		if err := b.gather(c.toolchain, overlay, c.config.workers); err != nil {
			return err
		}
		if len(b.apart) > 0 {
			fmt.Fprintf(c.out, "%s: %s tests that need mutants by themselves: %s\n", c.target.dir, b.name, strings.Join(b.apart, ", "))
		}
	}
	return nil
}

// try runs the layers on m until one kills it.
func (c *campaign) try(m *mutant, slot string) *verdict {
	start := time.Now()
	number := c.together.numbers[m]
	v := &verdict{fate: lived}
	if number != 0 {
		c.tryTogether(m, number, v)
	}
	switch {
	case v.fate != lived:
	case c.config.quick:
		v.untried = true
	default:
		c.tryAlone(m, slot, number != 0, v)
	}
	v.took = time.Since(start)
	return v
}

// tryTogether runs the layers on m in the programs with all mutants: each round
// in all layers before the next.
func (c *campaign) tryTogether(m *mutant, number int, v *verdict) {
	for _, round := range rounds {
		for _, b := range c.baselines {
			if c.spared(m, b) {
				continue
			}
			if v.take(b, c.attack(m, b, program{binary: b.joined, skip: b.apart, chosen: number}, round)) {
				return
			}
		}
	}
}

// tryAlone builds m by itself, and runs the layers on it; if it was tried
// together with the others, only those tests that could not be run there.
func (c *campaign) tryAlone(m *mutant, slot string, before bool, v *verdict) {
	overlay, err := c.overlay(slot, map[*source][]byte{m.source: m.text})
	if err != nil {
		fmt.Fprintln(c.out, err)
		return
	}
	built, binary := "", ""
	ran, reached := false, false
	for _, b := range c.baselines {
		own := b.dir == c.target.dir && (b.build.name == plain.name || b.build.name == modelcheck.name)
		if c.spared(m, b) || before && len(b.apart) == 0 && (ran || !own) {
			continue // nothing is left to run, nor to compare if a program differs
		}
		if id := b.build.name + b.dir; id != built {
			built = id
			if binary, err = c.test(b.build, b.dir, slot, overlay); err != nil {
				// It compiles, or it would not be here: this build differs.
				fmt.Fprintf(c.out, "%s does not build for %s: %v\n", m.key(), b.build.name, err)
				binary = ""
			}
		}
		if binary == "" {
			continue
		}
		if sum := code(binary); sum != 0 && sum == b.code {
			reached = reached || b.reaches(m)
			continue
		}
		ran = true
		switch {
		case !before:
			if v.take(b, c.attack(m, b, program{binary: binary}, rounds...)) {
				return
			}
		case len(b.apart) > 0:
			if v.take(b, c.all(b, program{binary: binary}, pattern(b.apart), b.whole)) {
				return
			}
		}
	}
	if !ran && reached {
		v.fate = same
	}
}

// spared reports whether m is known to live, and what is not deterministic adds
// nothing.
func (c *campaign) spared(m *mutant, b *baseline) bool {
	return b.name == "stress" && c.review.lists(m)
}

// take makes r the verdict if it is one, and reports so.
func (v *verdict) take(b *baseline, r result) bool {
	switch r.how {
	case passed:
		return false
	case failed:
		v.fate = killed
	case stopped: // which says nothing
		v.untried = true
	default:
		v.fate = halted
	}
	v.layer, v.result = b.name, r
	return true
}

// finish records and prints what became of m.
func (c *campaign) finish(m *mutant, v *verdict) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done++
	c.verdicts[m] = v
	if !v.before && !v.untried {
		c.tried++
		if err := c.keep(m, v); err != nil {
			fmt.Fprintln(c.out, "the verdict is not kept:", err)
		}
	}
	said := v.layer + " " + v.test
	switch v.fate {
	case lived:
		said = "LIVED"
		if c.review.lists(m) {
			said = "lived, as reviewed"
		}
	case same:
		said = "same code"
	case halted:
		said += " (" + v.how.String() + ")"
	}
	switch {
	case v.before:
		said += " (before)"
	case v.untried:
		said += " (not tried)"
	}
	left := time.Since(c.started) / time.Duration(max(c.tried, 1)) * time.Duration(len(c.mutants)-c.done)
	fmt.Fprintf(c.out, "%4d/%d  %5.1fs  %s left  %s %s\n            %s\n", c.done, len(c.mutants), v.took.Seconds(),
		left.Round(time.Second), m.place(), m.key(), said)
	if c.config.verbose && v.fate != same {
		fmt.Fprint(c.out, m.diff())
		fmt.Fprintln(c.out, indent(v.output))
	}
	if c.done%64 == 0 {
		c.prune()
		c.killers.save()
	}
}

// indent sets off the part of a test's output that says why it failed.
func indent(output string) string {
	var b strings.Builder
	n := 0
	for line := range strings.Lines(output) {
		if strings.HasPrefix(line, "=== ") || strings.Contains(line, "--- PASS") {
			continue
		}
		if n++; n > 40 {
			break
		}
		b.WriteString("\t| " + line)
	}
	return b.String()
}
