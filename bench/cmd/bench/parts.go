package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/latchfree/latchfree/bench/internal/runner"
)

// part is a part of a run with rounds of its own.
type part struct {
	name string
	plan runner.Plan
	keep func(name string) bool // which of the benchmarks that the plan selects; nil keeps all
	rest time.Duration          // when all must have ended, instead of a budget of its own
}

// latencies is what the names of benchmarks of latency begin with.
const latencies = "BenchmarkLatency"

// parts returns what a run measures, in this order.
func parts(o options) []part {
	latency := part{name: "latency", plan: o.plan, keep: func(name string) bool { return strings.HasPrefix(name, latencies) }}
	if latency.plan.Bench == "." {
		latency.plan.Bench = "^" + latencies
	}
	latency.plan.CPUs = []int{slices.Max(o.plan.CPUs)}
	latency.plan.Rounds = runner.MinRounds
	latency.plan.Budget = o.plan.Budget * 3 / 10
	speed := part{name: "speed", plan: o.plan, rest: o.plan.Budget}
	speed.plan.SkipTops = "^" + latencies
	return []part{latency, speed}
}

// measure runs the part and writes its results to raw, after the header, which
// needs a calibration.
func (p part) measure(ctx context.Context, b *runner.Binary, raw, stderr io.Writer, began time.Time, header func(*runner.Calibration) error) error {
	fmt.Fprintf(stderr, "bench: %s: calibrating (one short pass, thrown away)\n", p.name)
	now := time.Now()
	if p.rest > 0 {
		p.plan.Budget = max(p.rest-now.Sub(began), p.rest/4)
	}
	c, err := b.Calibrate(ctx, p.plan, now)
	if err != nil {
		return err
	}
	if p.keep != nil && !c.Keep(p.keep) {
		return runner.ErrNone
	}
	plan := p.plan.Fit(c)
	if len(plan.LeftOut) > 0 {
		fmt.Fprintf(stderr, "bench: too costly for a budget of %v, left out: %s\n", plan.Budget.Round(time.Second), strings.Join(plan.LeftOut, ", "))
	}
	fmt.Fprintf(stderr, "bench: %d benchmarks on %s CPUs, %d rounds, samples of %s, budget %v\n",
		c.Leaves(), runner.FormatCPUs(plan.CPUs), plan.Rounds, plan.Samples(), plan.Budget.Round(time.Second))
	if err := header(c); err != nil {
		return err
	}
	if err := runner.WritePart(raw, plan); err != nil {
		return err
	}
	done, err := b.Rounds(ctx, plan, c, raw, runner.NewProgress(os.Stderr))
	if err != nil {
		return fmt.Errorf("%w\nbench: whole rounds of %s: %d", err, p.name, done)
	}
	if done < plan.Rounds {
		fmt.Fprintf(stderr, "bench: stopped after %d of %d rounds: the budget of %v is used up\n", done, plan.Rounds, plan.Budget.Round(time.Second))
	}
	return nil
}
