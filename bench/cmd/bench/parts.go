package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/latchfree/latchfree/bench/internal/headline"
	"github.com/latchfree/latchfree/bench/internal/runner"
)

// part is a part of a run with rounds of its own.
type part struct {
	name  string
	plan  runner.Plan
	keep  func(name string) bool // which of the benchmarks that the plan selects; nil keeps all
	share float64                // of the rest of the budget
}

// latencies is what the names of benchmarks of latency begin with.
const latencies = "BenchmarkLatency"

// parts returns what a run measures, in this order: the headline cases first, and
// alone in a quick run, unless the caller has chosen what to measure.
func parts(o options) []part {
	all := o.plan.Bench == "." && filepath.Base(o.pkg) == "bench" // other packages have no headline cases
	isLatency := func(name string) bool { return strings.HasPrefix(name, latencies) }
	base := o.plan
	base.Never = headline.Keeps
	most := []int{slices.Max(base.CPUs)}

	latency := part{name: "latency", plan: base, keep: isLatency, share: 0.3}
	latency.plan.CPUs, latency.plan.Rounds = most, runner.MinRounds
	speed := part{name: "speed", plan: base, share: 1}
	speed.plan.SkipTops = "^" + latencies
	if !all {
		return []part{latency, speed}
	}
	first := part{name: "headline cases, latency", plan: latency.plan, share: 0.2}
	first.plan.Bench, first.plan.Rounds = headline.Pattern(headline.Latency), quickRounds
	second := part{name: "headline cases, speed", plan: base, share: 0.2}
	second.plan.Bench = headline.Pattern(headline.Speed)
	if o.quick {
		first.share, second.share = 0.45, 1
		return []part{first, second}
	}
	latency.plan.Bench = "^" + latencies
	latency.keep = func(name string) bool { return isLatency(name) && !headline.Has(name) }
	speed.keep = func(name string) bool { return !headline.Has(name) }
	return []part{first, second, latency, speed}
}

// measure runs the part and writes its results to raw, after the header, which
// needs a calibration. The budget of the whole run is used since began.
func (p part) measure(ctx context.Context, b *runner.Binary, raw, stderr io.Writer, began time.Time, header func(*runner.Calibration) error) error {
	fmt.Fprintf(stderr, "bench: %s: calibrating (one short pass, thrown away)\n", p.name)
	now := time.Now()
	left := max(p.plan.Budget-now.Sub(began), p.plan.Budget/4)
	p.plan.Budget = time.Duration(p.share * float64(left))
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
