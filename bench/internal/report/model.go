// Package report turns raw benchmark results into medians with confidence
// intervals, speed-ups, the list of rows where we lose, and a page that shows
// them. The statistics are those of benchstat (golang.org/x/perf/benchmath,
// no assumption about the distribution).
package report

import (
	"math"
	"strings"

	"golang.org/x/perf/benchmath"
)

const (
	// Subject is the implementation that the report is about.
	Subject = "latchfree"
	// Baseline is what it is measured against unless the caller says
	// otherwise.
	Baseline = "mutex"

	// Confidence is the level of every interval.
	Confidence = 0.95
)

// Report is one raw file, understood.
type Report struct {
	Meta       []Pair // file configuration, in the order of the file
	Baseline   string
	CPUs       []int // in the order in which they are shown: 2, then the others
	MinSamples int   // fewest and most samples that any row has
	MaxSamples int
	Structures []*Structure
	Latencies  []*Latency
	Machine    Machine
	Warnings   []string
}

// Pair is one line of file configuration.
type Pair struct{ Key, Value string }

// Get returns the value of a configuration key, or "".
func (r *Report) Get(key string) string {
	for _, p := range r.Meta {
		if p.Key == key {
			return p.Value
		}
	}
	return ""
}

// Structure is everything that was measured on one data structure.
type Structure struct {
	Name string
	Ops  []*Op
}

// Op is one top-level benchmark.
type Op struct {
	Name   string // RegistryMix
	Title  string // mix
	Shared string // parameters that all cases have in common
	Cases  []*Case
}

// Case is one set of parameters at one CPU count; its rows are to be compared
// with each other and with nothing else.
type Case struct {
	Name   string // RegistryMix/read=99/keys=100
	Params string // read=99 keys=100
	Label  string // Params without what the operation's cases share
	CPU    int
	Rows   []*Row // the subject, the baseline, the others as they came
}

// Row is one implementation in a case.
type Row struct {
	Impl   string
	Time   Measure // seconds
	Bytes  Measure // allocated, per operation
	Allocs Measure

	CutShort int // samples that were left out, see measured
}

// Label is the name of the implementation, marked if samples were left out.
func (r *Row) Label() string {
	if r.CutShort > 0 {
		return r.Impl + " †"
	}
	return r.Impl
}

// Measure is a sample and its summary.
type Measure struct {
	*benchmath.Sample
	benchmath.Summary
}

// measure summarises values, which may be none.
func measure(values []float64) Measure {
	if len(values) == 0 {
		return Measure{}
	}
	s := benchmath.NewSample(values, &benchmath.DefaultThresholds)
	return Measure{s, benchmath.AssumeNothing.Summary(s, Confidence)}
}

// Known reports whether anything was measured.
func (m Measure) Known() bool { return m.Sample != nil }

// Row returns the row of an implementation, or nil.
func (c *Case) Row(impl string) *Row {
	for _, row := range c.Rows {
		if row.Impl == impl {
			return row
		}
	}
	return nil
}

// Verdict says what a comparison showed.
type Verdict int

// The comparisons' results, from the subject's side.
const (
	Undecided Verdict = iota
	Faster
	Slower
)

func (v Verdict) String() string { return [...]string{"undecided", "faster", "slower"}[v] }

// Ratio is how many times the subject's speed is another's: above 1 the
// subject is faster. Its interval combines the far ends of both intervals, so
// it is wider than a 95 % interval of the ratio itself.
type Ratio struct {
	Center, Lo, Hi float64
	P              float64 // Mann-Whitney U-test
	Verdict        Verdict
}

// Speedup compares two rows of one case.
func Speedup(ours, other *Row) Ratio {
	a, b := ours.Time, other.Time
	r := Ratio{
		Center: b.Center / a.Center,
		Lo:     b.Lo / a.Hi,
		Hi:     b.Hi / a.Lo,
	}
	// An interval of too few samples is infinite; then nothing is known.
	if a.Lo <= 0 || math.IsInf(a.Hi, 0) || math.IsInf(b.Lo, 0) || math.IsInf(b.Hi, 0) {
		r.Lo, r.Hi = 0, math.Inf(1)
	}
	c := benchmath.AssumeNothing.Compare(a.Sample, b.Sample)
	r.P = c.P
	// Intervals that do not touch decide. So does the test that benchstat
	// uses, which is the more sensitive one: what counts as a loss must not
	// hide behind wide intervals.
	if c.P < c.Alpha || r.Lo > 1 || r.Hi < 1 {
		switch {
		case r.Center > 1:
			r.Verdict = Faster
		case r.Center < 1:
			r.Verdict = Slower
		}
	}
	return r
}

// split cuts a benchmark's base name into the structure's name, its first
// word, and a title made of the rest: RegistryMix is "Registry" and "mix".
func split(base string) (structure, title string) {
	words := camel(base)
	for i, w := range words[1:] {
		if strings.ToUpper(w) != w || len(w) == 1 {
			words[i+1] = strings.ToLower(w)
		}
	}
	return words[0], strings.Join(words[1:], " ")
}

// camel cuts a name before each upper-case letter that follows a lower-case
// letter or a digit.
func camel(name string) []string {
	var words []string
	start := 0
	for i := 1; i < len(name); i++ {
		upper := 'A' <= name[i] && name[i] <= 'Z'
		afterUpper := 'A' <= name[i-1] && name[i-1] <= 'Z'
		if upper && !afterUpper {
			words = append(words, name[start:i])
			start = i
		}
	}
	return append(words, name[start:])
}
