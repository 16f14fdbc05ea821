package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// A campaign lets the tests at the mutants of one target.
type campaign struct {
	*toolchain
	killers *killers
	memory  *memory // or nil
	review  *review
	config  *config
	out     io.Writer

	target    *target
	sources   string // a hash of what it is made of
	mutants   []*mutant
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
	took   time.Duration
	before bool // found in an earlier campaign
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
			fmt.Fprintf(c.out, "%s: %s tests pass without a mutant, in %v\n", c.target.dir, l.name, b.whole.Round(10*time.Millisecond))
			c.baselines = append(c.baselines, b)
		}
	}
	if err := c.split(); err != nil {
		return err
	}
	defer c.join()
	c.started = time.Now()
	c.verdicts = map[*mutant]*verdict{}
	queue := make(chan *mutant)
	var workers sync.WaitGroup
	for w := range c.config.workers {
		workers.Go(func() {
			for m := range queue {
				v := c.recall(m)
				if v == nil {
					v = c.try(m, fmt.Sprint("worker", w))
				}
				c.finish(m, v)
			}
		})
	}
	for _, m := range c.mutants {
		queue <- m
	}
	close(queue)
	workers.Wait()
	return c.killers.save()
}

// try runs the layers on m until one kills it.
func (c *campaign) try(m *mutant, slot string) *verdict {
	start := time.Now()
	v := &verdict{fate: lived}
	built, binary := "", ""
	ran, reached := false, false
	for _, b := range c.baselines {
		if b.name == "stress" && c.review.lists(m) {
			continue // it is known to live; what is not deterministic adds nothing
		}
		if id := b.build.name + b.dir; id != built {
			built = id
			var err error
			if binary, err = c.test(b.build, b.dir, slot, m); err != nil {
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
		if r := c.attack(m, b, binary); r.how != passed {
			v.fate, v.layer, v.result = killed, b.name, r
			if r.how != failed {
				v.fate = halted
			}
			break
		}
	}
	if !ran && reached {
		v.fate = same
	}
	v.took = time.Since(start)
	return v
}

// attack runs a layer's tests on m: first those that killed others like it,
// then the short ones, then all.
func (c *campaign) attack(m *mutant, b *baseline, binary string) result {
	first := c.killers.of(m, b)
	var known time.Duration
	for _, test := range first {
		known += b.took[test]
	}
	type batch struct {
		tests string
		took  time.Duration
	}
	var batches []batch
	if len(first) > 0 {
		batches = append(batches, batch{pattern(first), known})
	}
	if b.short*4 < b.whole {
		batches = append(batches, batch{b.quick, b.short})
	}
	for _, batch := range append(batches, batch{b.tests, b.whole}) {
		r := b.run(c.toolchain, binary, batch.tests, c.config.patience+5*batch.took, c.config.memory+3*b.peak)
		if r.how != passed {
			c.killers.add(m, b.layer, r.test)
			return r
		}
	}
	return result{}
}

// finish records and prints what became of m.
func (c *campaign) finish(m *mutant, v *verdict) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done++
	c.verdicts[m] = v
	if !v.before {
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
	if v.before {
		said += " (before)"
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
