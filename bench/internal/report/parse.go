package report

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchproc"
)

// Read parses raw results in the Go benchmark format. The file's name is used
// in errors only. A baseline of "" means Baseline.
func Read(r io.Reader, file, baseline string) (*Report, error) {
	if baseline == "" {
		baseline = Baseline
	}
	g, err := newGrouping()
	if err != nil {
		return nil, err
	}
	rep := &Report{Baseline: baseline}
	round := "" // how busy the machine was in the last one
	reader := benchfmt.NewReader(r, file)
	for reader.Scan() {
		switch rec := reader.Result().(type) {
		case *benchfmt.SyntaxError:
			return nil, fmt.Errorf("bench: %w", rec)
		case *benchfmt.Result:
			rep.Meta = rep.Meta[:0] // the last result has all lines of the file before it
			for _, c := range rec.Config {
				switch value := string(c.Value); {
				case c.Key != "machine":
					rep.Meta = append(rep.Meta, Pair{c.Key, value})
				case value != round:
					round = value
					rep.Machine.add(value)
				}
			}
			g.add(rec)
		}
	}
	if err := reader.Err(); err != nil {
		return nil, fmt.Errorf("bench: reading %s: %w", file, err)
	}
	if before, err := strconv.ParseFloat(rep.Get("queue-before"), 64); err == nil {
		rep.Machine.Before = before
	}
	if len(g.samples) == 0 {
		return nil, errors.New("bench: " + file + " holds no results of benchmarks with an impl=… parameter")
	}
	g.fill(rep)
	return rep, nil
}

// grouping collects values under the dimensions of the report.
type grouping struct {
	op, params, cpu, impl *benchproc.Projection
	residue               *benchproc.Projection
	residues              []benchproc.Key

	samples map[cell][]sample
	order   []cell
}

// sample is one line of results.
type sample struct {
	iterations int
	values     map[string]float64 // by unit
}

// cell is one row of one case.
type cell struct{ op, params, cpu, impl benchproc.Key }

func newGrouping() (*grouping, error) {
	g := &grouping{samples: make(map[cell][]sample)}
	var parser benchproc.ProjectionParser
	filter, err := benchproc.NewFilter("*")
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	for _, p := range []struct {
		dst  **benchproc.Projection
		expr string
	}{
		{&g.op, ".name"}, {&g.params, ".fullname"}, {&g.cpu, "/gomaxprocs"}, {&g.impl, "/impl"},
	} {
		if *p.dst, err = parser.Parse(p.expr, filter); err != nil {
			return nil, fmt.Errorf("bench: %w", err)
		}
	}
	g.residue = parser.Residue()
	return g, nil
}

func (g *grouping) add(res *benchfmt.Result) {
	c := cell{g.op.Project(res), g.params.Project(res), g.cpu.Project(res), g.impl.Project(res)}
	if c.impl.StringValues() == "" {
		return // a benchmark that compares nothing
	}
	if g.samples[c] == nil {
		g.order = append(g.order, c)
	}
	values := make(map[string]float64)
	for _, v := range res.Values {
		values[v.Unit] = v.Value
	}
	g.samples[c] = append(g.samples[c], sample{res.Iters, values})
	if k := g.residue.Project(res); !slices.Contains(g.residues, k) {
		g.residues = append(g.residues, k)
	}
}

// measured returns the samples without those that say nothing, and how many
// these were. Package testing ends with the first step of its ramp that takes
// the bench time. Where a hundred iterations fit, one that took all of it was
// waiting for its processor.
func measured(all []sample) (good []sample, cutShort int) {
	most := 0
	for _, s := range all {
		most = max(most, s.iterations)
	}
	good = slices.DeleteFunc(slices.Clone(all), func(s sample) bool { return s.iterations == 1 && most >= 100 })
	return good, len(all) - len(good)
}

// of returns the values of a unit.
func of(samples []sample, unit string) []float64 {
	var values []float64
	for _, s := range samples {
		if v, ok := s.values[unit]; ok {
			values = append(values, v)
		}
	}
	return values
}

// fill builds the tree of structures, operations, cases and rows.
func (g *grouping) fill(rep *Report) {
	var cut []string
	for _, c := range g.order {
		base := c.op.StringValues()
		samples, cutShort := measured(g.samples[c])
		times := of(samples, "sec/op")
		// Package benchfmt leaves a time of zero in its unit, ns. That suits us:
		// no ratio can be formed with it.
		if len(times) == 0 {
			rep.Warnings = append(rep.Warnings, fmt.Sprintf(
				"%s of %s took no measurable time and is left out.", c.impl.StringValues(), base))
			continue
		}
		cpu, err := strconv.Atoi(c.cpu.StringValues())
		if err != nil {
			cpu = 1 // package testing leaves the suffix -1 out
		}
		// The operation's name was taken out of the full one: "*/read=99".
		params := strings.TrimPrefix(c.params.StringValues(), "*")
		if of, ok := strings.CutPrefix(base, "Latency"); ok {
			rep.addLatency(of, params, c.impl.StringValues(), cpu, samples)
			continue
		}
		rep.at(base, params, cpu).addRow(&Row{
			Impl:     c.impl.StringValues(),
			Time:     measure(times),
			Bytes:    measure(of(samples, "B/op")),
			Allocs:   measure(of(samples, "allocs/op")),
			CutShort: cutShort,
		}, rep.Baseline)
		if cutShort > 0 {
			cut = append(cut, fmt.Sprintf("%s%s of %s on %s (%d of %d)",
				base, params, c.impl.StringValues(), CPUs(cpu), cutShort, len(g.samples[c])))
		}
		n := len(times)
		if rep.MaxSamples == 0 || n < rep.MinSamples {
			rep.MinSamples = n
		}
		rep.MaxSamples = max(rep.MaxSamples, n)
		if !slices.Contains(rep.CPUs, cpu) {
			rep.CPUs = append(rep.CPUs, cpu)
		}
	}
	// Two CPUs come first: calls begin to meet there.
	slices.SortFunc(rep.CPUs, func(a, b int) int {
		switch {
		case a == b:
			return 0
		case a == 2 || b != 2 && a < b:
			return -1
		}
		return 1
	})
	for _, s := range rep.Structures {
		for _, op := range s.Ops {
			op.share()
		}
	}
	if len(cut) > 0 {
		rep.Warnings = append(rep.Warnings, fmt.Sprintf(
			"Samples of one iteration, where others have a hundred or more, are left out, and their rows marked †: %s.", strings.Join(cut, ", ")))
	}
	for _, f := range benchproc.NonSingularFields(g.residues) {
		if f.Name == "benchtime" || f.Name == "left-out" || f.Name == "machine" {
			continue // each part of a run, or each round, has its own
		}
		rep.Warnings = append(rep.Warnings, fmt.Sprintf("The file mixes results that differ in %s.", f))
	}
	if rep.MaxSamples > 0 && rep.MinSamples < 6 {
		rep.Warnings = append(rep.Warnings, fmt.Sprintf(
			"Some rows have only %d samples; a median needs 6 for a confidence interval at 95 %%.", rep.MinSamples))
	}
}

// at returns the case with these parameters, made when it is new.
func (r *Report) at(base, params string, cpu int) *Case {
	structure, title := split(base)
	s := find(&r.Structures, func(s *Structure) bool { return s.Name == structure })
	s.Name = structure
	op := find(&s.Ops, func(op *Op) bool { return op.Name == base })
	op.Name, op.Title = base, title
	c := find(&op.Cases, func(c *Case) bool { return c.Name == base+params && c.CPU == cpu })
	c.Name, c.CPU = base+params, cpu
	c.Params = strings.TrimSpace(strings.ReplaceAll(params, "/", " "))
	return c
}

// find returns the element that matches, appended when there is none.
func find[T any](all *[]*T, match func(*T) bool) *T {
	for _, t := range *all {
		if match(t) {
			return t
		}
	}
	t := new(T)
	*all = append(*all, t)
	return t
}

func (c *Case) addRow(row *Row, baseline string) {
	c.Rows = append(c.Rows, row)
	rank := func(r *Row) int {
		switch r.Impl {
		case Subject:
			return 0
		case baseline:
			return 1
		}
		return 2
	}
	slices.SortStableFunc(c.Rows, func(a, b *Row) int { return rank(a) - rank(b) })
}

// share moves what all cases have in common into Shared and the rest into
// their labels.
func (op *Op) share() {
	count := make(map[string]int)
	for _, c := range op.Cases {
		for param := range strings.FieldsSeq(c.Params) {
			count[param]++
		}
	}
	common := func(param string) bool { return count[param] == len(op.Cases) }
	for i, c := range op.Cases {
		var shared, own []string
		for param := range strings.FieldsSeq(c.Params) {
			if common(param) {
				shared = append(shared, param)
			} else {
				own = append(own, param)
			}
		}
		c.Label = strings.Join(own, " ")
		if i == 0 {
			op.Shared = strings.Join(shared, " ")
		}
	}
}
