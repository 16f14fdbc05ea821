package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/latchfree/latchfree/internal/tools/svg"
)

// Floor is the implementation that does nothing: what it takes is the clock and
// the scheduler.
const Floor = "idle"

// Quantiles are what is reported of the times of single operations. The last is
// the longest.
var Quantiles = []Quantile{
	{"p50", 2}, {"p90", 10}, {"p99", 100}, {"p99.9", 1000}, {"p99.99", 10_000}, {"max", 100_000},
}

// Quantile is within which time all operations but one of so many ended.
type Quantile struct {
	Name string
	Of   float64
}

// Latency is one way to load a structure; its rows are to be compared.
type Latency struct {
	Structure string
	Title     string // slow code
	Params    string // load=open threads=1x
	CPU       int
	file      string        // the name in the file: CacheSlowKey/load=open/threads=1x
	Rows      []*LatencyRow // the subject, the baseline, the others, the floor
}

// Name identifies it.
func (l *Latency) Name() string { return l.Structure + " " + l.Title + " " + l.Params }

// LatencyRow is one implementation.
type LatencyRow struct {
	Impl  string
	Times []Measure // in the order of Quantiles, in seconds
}

// Row returns the row of an implementation, or nil.
func (l *Latency) Row(impl string) *LatencyRow {
	for _, row := range l.Rows {
		if row.Impl == impl {
			return row
		}
	}
	return nil
}

// addLatency adds a row. Base is the name of the benchmark without what says
// that it measures latency.
func (r *Report) addLatency(base, params, impl string, cpu int, samples []sample) {
	structure, title := split(base)
	file := base + params
	params = strings.TrimSpace(strings.ReplaceAll(params, "/", " "))
	l := find(&r.Latencies, func(l *Latency) bool {
		return l.Structure == structure && l.Title == title && l.Params == params && l.CPU == cpu
	})
	l.Structure, l.Title, l.Params, l.CPU, l.file = structure, title, params, cpu, file
	row := &LatencyRow{Impl: impl}
	for _, q := range Quantiles {
		row.Times = append(row.Times, measure(of(samples, q.Name+"-sec")))
	}
	l.Rows = append(l.Rows, row)
	rank := func(row *LatencyRow) int {
		switch row.Impl {
		case Subject:
			return 0
		case r.Baseline:
			return 1
		case Floor:
			return 3
		}
		return 2
	}
	slices.SortStableFunc(l.Rows, func(a, b *LatencyRow) int { return rank(a) - rank(b) })
}

// AtFloor reports whether a quantile cannot be told from that of doing nothing,
// so that it comes from the scheduler and not from the structure.
func (l *Latency) AtFloor(row *LatencyRow, quantile int) bool {
	floor := l.Row(Floor)
	if floor == nil || row == floor {
		return false
	}
	own, idle := row.Times[quantile], floor.Times[quantile]
	return own.Known() && idle.Known() && own.Lo <= idle.Hi
}

// Cell formats a quantile with its interval.
func (r *LatencyRow) Cell(quantile int) string {
	if r.NoisyAt(quantile) {
		return TooNoisy
	}
	return Within(r.Times[quantile])
}

// Within formats a time with its interval: "12.0 µs (9.10–15.0)".
func Within(m Measure) string {
	switch {
	case !m.Known():
		return "–"
	case math.IsInf(m.Hi, 0) || math.IsInf(m.Lo, 0) || m.Lo <= 0:
		return Duration(m.Center) + " (too few)"
	}
	center, lo, hi := Duration(m.Center), Duration(m.Lo), Duration(m.Hi)
	unit := center[strings.LastIndexByte(center, ' '):]
	if strings.HasSuffix(lo, unit) && strings.HasSuffix(hi, unit) {
		lo, hi = strings.TrimSuffix(lo, unit), strings.TrimSuffix(hi, unit)
	}
	return fmt.Sprintf("%s (%s–%s)", center, lo, hi)
}

// latencyPlot draws the quantiles of all implementations: to the right the
// rarer, upwards the longer, both logarithmic.
func latencyPlot(l *Latency, s series) string {
	var all extent
	for _, row := range l.Rows {
		for q, m := range row.Times {
			if m.Known() && !row.NoisyAt(q) {
				all.add(m.Center, m.Center, m.Center)
			}
		}
	}
	if all.most == 0 {
		return ""
	}
	const left, right, top, bottom = 52.0, panelWidth - 12.0, 36.0, 210.0
	height := bottom + 56.0
	canvas := svg.New(panelWidth, height, l.Name()+": quantiles of the time of one operation")
	x := svg.NewLog(Quantiles[0].Of, Quantiles[len(Quantiles)-1].Of, left+8, right-18)
	y := svg.NewLog(all.least/1.3, all.most*1.3, bottom, top)
	canvas.Text(0, 12, svg.Start, "head", l.Params)
	for _, t := range y.Ticks(7) {
		canvas.Line(left, y.At(t), right, y.At(t), "grid")
		canvas.Text(left-6, y.At(t)+4, svg.End, "tick", tickDuration(t))
	}
	for _, q := range Quantiles {
		canvas.Line(x.At(q.Of), top, x.At(q.Of), bottom, "grid")
		canvas.Text(x.At(q.Of), bottom+14, svg.Middle, "tick", q.Name)
	}
	at, legend := 0.0, bottom+29
	for i := len(l.Rows) - 1; i >= 0; i-- { // the subject on top
		row := l.Rows[i]
		class := latencyClass(s, row.Impl)
		last := -1
		for q, m := range row.Times {
			if !m.Known() || row.NoisyAt(q) {
				last = -1 // nothing is known of what lies between
				continue
			}
			if last >= 0 {
				canvas.Line(x.At(Quantiles[last].Of), y.At(row.Times[last].Center), x.At(Quantiles[q].Of), y.At(m.Center), "curve "+class)
			}
			last = q
		}
		for q, m := range row.Times {
			if m.Known() && !row.NoisyAt(q) {
				canvas.Marker(x.At(Quantiles[q].Of), y.At(m.Center), markRadius-0.6, svg.ShapeOf(s[row.Impl]), "mark "+class,
					fmt.Sprintf("%s, %s: %s", row.Impl, Quantiles[q].Name, Within(m)))
			}
		}
	}
	for _, row := range l.Rows {
		wide := float64(len(row.Impl))*charWidth + 22
		if at > 0 && at+wide > panelWidth {
			at, legend = 0, legend+rowHeight
		}
		canvas.Marker(at+markRadius, legend, markRadius, svg.ShapeOf(s[row.Impl]), "mark "+latencyClass(s, row.Impl), "")
		canvas.Text(at+12, legend+4, svg.Start, "impl", row.Impl)
		at += wide
	}
	return canvas.String()
}

func latencyClass(s series, impl string) string {
	if impl == Floor {
		return "floor"
	}
	return s.class(impl)
}
