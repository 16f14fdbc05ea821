package runner

import (
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// MinRounds is the smallest number of rounds: with fewer samples a median
	// has no finite confidence interval at 95 %.
	MinRounds = 6

	// minBenchTime still makes a measurement long against the clock's
	// granularity and a scheduler tick; maxBenchTime is where more rounds are
	// worth more than longer ones.
	minBenchTime = 10 * time.Millisecond
	maxBenchTime = 100 * time.Millisecond

	// calibrationTime is the bench time of the pass that is thrown away.
	calibrationTime = 5 * time.Millisecond

	// rampUp is what testing spends on a measurement in units of the bench
	// time: it approaches the final iteration count in growing steps, aims a
	// fifth beyond the bench time and collects garbage before each step. 1.7
	// was seen on two busy cores.
	rampUp = 1.7

	// processTime is what a process takes beside its leaves: its start, and the
	// keys of all cases of a benchmark. Later rounds correct it.
	processTime = 40 * time.Millisecond

	// tries is how often a sample is taken that says nothing.
	tries = 3

	// hangTimeout ends one process, which runs one unit once.
	hangTimeout = 5 * time.Minute

	// maxDepth is how many sub-benchmark levels are searched for an element.
	maxDepth = 8
)

// Plan says what to run and for how long. Rounds and the CPU list must be set;
// a zero BenchTime is chosen by Fit.
type Plan struct {
	Bench     string        // as in go test -bench
	SkipTops  string        // regular expression over the names of top-level benchmarks; "" skips none
	Skip      string        // regular expression over one element of a name, at any depth; "" skips nothing
	CPUs      []int         // values of GOMAXPROCS
	Rounds    int           // samples per benchmark
	BenchTime time.Duration // of one sample; 0 lets Fit choose
	Budget    time.Duration // for everything until the last round ends

	Never func(name string) bool // reports whether a benchmark must not be left out; nil: none

	LeftOut []string      // what Fit found too costly for the budget
	longest time.Duration // the bench time that Fit chose, which may be lowered; 0 if the caller did
}

// Validate reports the first setting that cannot be run.
func (p Plan) Validate() error {
	if p.Rounds < MinRounds {
		return fmt.Errorf("bench: rounds is %d, need at least %d for a 95 %% confidence interval", p.Rounds, MinRounds)
	}
	if len(p.CPUs) == 0 {
		return fmt.Errorf("bench: the list of CPU counts is empty")
	}
	if p.BenchTime < 0 {
		return fmt.Errorf("bench: benchtime is %v, must not be negative", p.BenchTime)
	}
	if p.Budget <= 0 {
		return fmt.Errorf("bench: budget is %v, must be positive", p.Budget)
	}
	for name, expr := range map[string]string{"bench": p.Bench, "skip": p.Skip} {
		if _, err := regexp.Compile(expr); err != nil {
			return fmt.Errorf("bench: %s: %w", name, err)
		}
	}
	if strings.Contains(p.Skip, "/") {
		return fmt.Errorf("bench: skip is %q, must match one element of a name and so hold no slash", p.Skip)
	}
	return nil
}

// sampled is what a sample of the given bench time takes.
func sampled(benchTime time.Duration) time.Duration {
	return time.Duration(rampUp * float64(benchTime))
}

// Fit returns the plan with its bench time chosen so that all rounds fit the
// budget, as far as the calibration can tell, and takes out of the calibration
// what is too costly for it: preparation, and operations that take long, may
// take half of the time of MinRounds rounds. A bench time of the caller stands,
// and the budget yields to it.
func (p Plan) Fit(c *Calibration) Plan {
	if p.BenchTime > 0 {
		return p
	}
	// A twentieth is kept for noise in the calibration itself. If most of the
	// budget went into building and calibrating, then it is exceeded.
	left := max(p.Budget*95/100-c.Took, p.Budget/2)
	cpus := time.Duration(len(p.CPUs))
	p.LeftOut = c.leaveOut(max(min(left/2, left-c.least(p)), 0)/MinRounds/cpus, p.Never)
	var ground time.Duration
	for _, l := range c.leaves() {
		ground += l.ground()
	}
	for _, top := range c.Tops {
		ground += processTime * time.Duration(len(top.Units))
	}
	p.longest = p.fit(left/time.Duration(p.Rounds)-ground*cpus, c)
	p.BenchTime = p.longest
	return p
}

// least is what MinRounds rounds take beside preparation: the start of processes,
// and the shortest samples.
func (c *Calibration) least(p Plan) time.Duration {
	units := 0
	for _, top := range c.Tops {
		units += len(top.Units)
	}
	round := time.Duration(len(p.CPUs))*sampled(minBenchTime)*time.Duration(c.Leaves()) + processTime*time.Duration(units)
	return MinRounds * round
}

// fit returns the bench time with which the samples of a round take as long as
// is given.
func (p Plan) fit(samples time.Duration, c *Calibration) time.Duration {
	fit := time.Duration(float64(samples) / rampUp / float64(c.Leaves()*len(p.CPUs)))
	return min(max(fit.Truncate(time.Millisecond), minBenchTime), maxBenchTime)
}

// Samples says how long a sample is: "40ms", or "up to 40ms" where rounds may
// get shorter on the way.
func (p Plan) Samples() string {
	if p.longest > 0 {
		return "up to " + p.longest.String()
	}
	return p.BenchTime.String()
}

// refit returns the plan for the rounds to come, with the bench time that fits
// the rest of the budget, but none longer than Fit had chosen: the machine may
// have become slower since the calibration, or faster again. The last round took
// what is given. A whole round always has one bench time, so no implementation
// is favoured.
func (p Plan) refit(took time.Duration, rounds int, left time.Duration, c *Calibration) Plan {
	if p.longest == 0 || rounds <= 0 {
		return p
	}
	samples := sampled(p.BenchTime) * time.Duration(c.Leaves()*len(p.CPUs))
	ground := max(took-samples, 0)
	p.BenchTime = min(p.fit(left/time.Duration(rounds)-ground, c), p.longest)
	return p
}

// pass is one run of the binary.
type pass struct {
	bench     string  // as in go test -bench
	skipTops  string  // as in Plan
	skip      string  // as in Plan
	leaves    []*Leaf // if there are any, then these and not what bench and skip say
	benchTime time.Duration
	cpus      []int
}

// args returns the arguments of the test binary.
func (p pass) args() []string {
	bench := p.bench
	if len(p.leaves) > 0 {
		bench = pattern(p.leaves)
	}
	args := []string{
		"-test.run=^$",
		"-test.bench=" + bench,
		"-test.benchmem",
		"-test.count=1",
		"-test.benchtime=" + p.benchTime.String(),
		"-test.cpu=" + FormatCPUs(p.cpus),
		"-test.timeout=" + hangTimeout.String(),
	}
	var skips []string
	if p.skipTops != "" {
		skips = append(skips, p.skipTops)
	}
	for depth := 1; p.skip != "" && depth <= maxDepth; depth++ {
		// Package testing stops at the first alternative that matches in part, so
		// there is one for each depth.
		skips = append(skips, strings.Repeat("/", depth)+"("+p.skip+")")
	}
	if len(skips) > 0 && len(p.leaves) == 0 {
		args = append(args, "-test.skip="+strings.Join(skips, "|"))
	}
	return args
}

// DefaultCPUs returns 1, 2 and n, without doubles and nothing above n.
func DefaultCPUs(n int) []int {
	cpus := []int{1, min(2, n), n}
	slices.Sort(cpus)
	return slices.Compact(cpus)
}

// ParseCPUs reads a comma-separated list of CPU counts; "" means DefaultCPUs
// of this machine.
func ParseCPUs(list string) ([]int, error) {
	if list == "" {
		return DefaultCPUs(runtime.NumCPU()), nil
	}
	var cpus []int
	for field := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(field))
		if err != nil || n < 1 {
			return nil, fmt.Errorf("bench: cpu is %q, want positive numbers separated by commas", list)
		}
		if !slices.Contains(cpus, n) {
			cpus = append(cpus, n)
		}
	}
	return cpus, nil
}

// FormatCPUs is the inverse of ParseCPUs.
func FormatCPUs(cpus []int) string {
	fields := make([]string, len(cpus))
	for i, n := range cpus {
		fields[i] = strconv.Itoa(n)
	}
	return strings.Join(fields, ",")
}
