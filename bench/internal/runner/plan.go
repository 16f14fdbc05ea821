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
	minBenchTime = 5 * time.Millisecond
	maxBenchTime = 100 * time.Millisecond

	// calibrationTime is the bench time of the pass that is thrown away.
	calibrationTime = minBenchTime

	// rampUp is what testing spends on a measurement in units of the bench
	// time: it approaches the final iteration count in growing steps, aims a
	// fifth beyond the bench time and collects garbage before each step. 1.7
	// was seen on two busy cores.
	rampUp = 1.7

	// hangTimeout ends one process, which runs one unit once.
	hangTimeout = 5 * time.Minute

	// maxDepth is how many sub-benchmark levels are searched for an element.
	maxDepth = 8
)

// Plan says what to run and for how long. Rounds and the CPU list must be set;
// a zero BenchTime is chosen by Fit.
type Plan struct {
	Bench     string        // as in go test -bench
	Skip      string        // regular expression over one element of a name, at any depth; "" skips nothing
	CPUs      []int         // values of GOMAXPROCS
	Rounds    int           // samples per benchmark
	BenchTime time.Duration // of one sample; 0 lets Fit choose
	Budget    time.Duration // for calibration and rounds together

	fitted bool // BenchTime was chosen by Fit and may be lowered
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

// Fit returns the plan with its bench time chosen so that all rounds fit the
// budget, as far as the calibration can tell.
func (p Plan) Fit(c *Calibration) Plan {
	if p.BenchTime > 0 {
		return p
	}
	// A twentieth is kept for noise in the calibration itself.
	left := p.Budget*95/100 - c.Took
	runs := c.Leaves() * len(p.CPUs)
	fixed := c.Took*time.Duration(len(p.CPUs)) - time.Duration(float64(runs)*rampUp*float64(calibrationTime))
	perRound := left/time.Duration(p.Rounds) - max(fixed, 0)
	fit := time.Duration(float64(perRound) / rampUp / float64(runs))
	p.BenchTime = min(max(fit.Truncate(time.Millisecond), minBenchTime), maxBenchTime)
	p.fitted = true
	return p
}

// Samples says how long a sample is: "40ms", or "up to 40ms" where rounds may
// get shorter on the way.
func (p Plan) Samples() string {
	if p.fitted {
		return "up to " + p.BenchTime.String()
	}
	return p.BenchTime.String()
}

// refit lowers a fitted bench time after some rounds if the ones to come
// would not fit the rest of the budget. The machine may have become slower
// since the calibration. A whole round always has one bench time, so no
// implementation is favoured.
func (p Plan) refit(mean time.Duration, rounds int, left time.Duration) Plan {
	if !p.fitted || rounds <= 0 {
		return p
	}
	if room := max(left, 0) / time.Duration(rounds); mean > room {
		shorter := time.Duration(float64(p.BenchTime) * float64(room) / float64(mean))
		p.BenchTime = max(shorter.Truncate(time.Millisecond), minBenchTime)
	}
	return p
}

// args returns the arguments with which the test binary runs what the plan
// selects, except for the top-level benchmarks and name elements left out.
func (p Plan) args(out leftOut, benchTime time.Duration, cpus []int) []string {
	args := []string{
		"-test.run=^$",
		"-test.bench=" + p.Bench,
		"-test.benchmem",
		"-test.count=1",
		"-test.benchtime=" + benchTime.String(),
		"-test.cpu=" + FormatCPUs(cpus),
		"-test.timeout=" + hangTimeout.String(),
	}
	// Package testing stops at the first alternative that matches in part, so
	// they are ordered by depth, with one for each.
	skips := slices.Clone(out.tops)
	elements := slices.Clone(out.elements)
	if p.Skip != "" {
		elements = append(elements, p.Skip)
	}
	if len(elements) > 0 {
		for depth := 1; depth <= maxDepth; depth++ {
			skips = append(skips, strings.Repeat("/", depth)+"(("+strings.Join(elements, ")|(")+"))")
		}
	}
	if len(skips) > 0 {
		args = append(args, "-test.skip="+strings.Join(skips, "|"))
	}
	return args
}

// leftOut holds regular expressions for what is not to run: whole top-level
// benchmarks, and elements of sub-benchmarks' names at any depth.
type leftOut struct{ tops, elements []string }

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
