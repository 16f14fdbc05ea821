package report

import (
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/latchfree/latchfree/bench/internal/svg"
)

// Every plot is one panel for one CPU count. Panels are narrow enough for a
// phone and stand side by side where there is room, so text is never scaled
// far from its size.
const (
	panelWidth = 420
	charWidth  = 6.3 // of the 11.5 px sans-serif text, on the wide side
	rowHeight  = 17
	caseHeight = 20
	plotGap    = 10 // between labels and plot
	markRadius = 3.6
)

// series numbers the implementations of a report, which decides shape and
// colour: the subject is 0, the baseline 1.
type series map[string]int

func (r *Report) series() series {
	s := series{Subject: 0, r.Baseline: 1}
	for _, st := range r.Structures {
		for _, op := range st.Ops {
			for _, c := range op.Cases {
				for _, row := range c.Rows {
					if _, ok := s[row.Impl]; !ok {
						s[row.Impl] = len(s)
					}
				}
			}
		}
	}
	return s
}

// class returns the style class of an implementation. There are seven
// colours; labels and shapes tell more series apart.
func (s series) class(impl string) string { return fmt.Sprintf("s%d", s[impl]%7) }

// onCPU returns the operation's cases at one CPU count.
func (op *Op) onCPU(cpu int) []*Case {
	var cases []*Case
	for _, c := range op.Cases {
		if c.CPU == cpu {
			cases = append(cases, c)
		}
	}
	return cases
}

// timePlot draws time per operation of every implementation, case by case, at
// one CPU count. All panels of an operation have one scale.
func timePlot(op *Op, cpu int, s series) string {
	cases := op.onCPU(cpu)
	if len(cases) == 0 {
		return ""
	}
	lo, hi := math.Inf(1), 0.0
	widest := 0
	for _, c := range op.Cases {
		for _, row := range c.Rows {
			l, h := ends(row.Time)
			lo, hi = min(lo, l), max(hi, h)
			widest = max(widest, utf8.RuneCountInString(row.Impl))
		}
	}
	height := 24.0
	for _, c := range cases {
		height += float64(len(c.Rows)*rowHeight) + caseTop(c)
	}
	left := float64(widest)*charWidth + plotGap
	right := float64(panelWidth - 110)
	bottom := height
	canvas := svg.New(panelWidth, height+20, op.Name+": time per operation, "+CPUs(cpu))
	x := svg.NewLog(lo/1.12, hi*1.12, left, right)

	canvas.Text(0, 12, svg.Start, "head", CPUs(cpu))
	canvas.Text(panelWidth-48, 12, svg.End, "quiet", "time/op")
	canvas.Text(panelWidth, 12, svg.End, "quiet", "allocs")
	for _, t := range x.Ticks(5) {
		canvas.Line(x.At(t), 20, x.At(t), bottom, "grid")
		canvas.Text(x.At(t), bottom+14, svg.Middle, "tick", tickDuration(t))
	}
	y := 24.0
	for _, c := range cases {
		if c.Label != "" {
			canvas.Text(0, y+14, svg.Start, "case", c.Label)
		}
		y += caseTop(c)
		for _, row := range c.Rows {
			mid := y + rowHeight/2
			weight := "impl"
			if row.Impl == Subject {
				weight = "impl own"
			}
			canvas.Text(0, mid+4, svg.Start, weight, row.Impl)
			canvas.Line(left, mid, right, mid, "row")
			l, h := ends(row.Time)
			class := s.class(row.Impl)
			canvas.Line(x.At(l), mid, x.At(h), mid, "ci "+class)
			canvas.Marker(x.At(row.Time.Center), mid, markRadius, svg.ShapeOf(s[row.Impl]), "mark "+class,
				fmt.Sprintf("%s: %s %s", row.Impl, Duration(row.Time.Center), Spread(row.Time)))
			canvas.Text(panelWidth-48, mid+4, svg.End, weight, Duration(row.Time.Center))
			canvas.Text(panelWidth, mid+4, svg.End, "quiet", Count(row.Allocs))
			y += rowHeight
		}
	}
	return canvas.String()
}

// caseTop is the room above a case's rows: its label's or only a gap.
func caseTop(c *Case) float64 {
	if c.Label == "" {
		return 4
	}
	return caseHeight + 4
}

// speedPlot draws the subject's speed-up over the baseline in every case of a
// structure, at one CPU count.
func speedPlot(s *Structure, baseline string, cpu int) string {
	var rows []*Comparison
	lo, hi := 0.5, 2.0 // 1× is always inside, with room on both sides
	widest := 0
	for _, c := range s.Comparisons() {
		if c.Other.Impl != baseline {
			continue
		}
		l, h := ratioEnds(c.Ratio)
		lo, hi = min(lo, l), max(hi, h)
		widest = max(widest, utf8.RuneCountInString(c.Case.Label))
		if c.Case.CPU == cpu {
			rows = append(rows, c)
		}
	}
	if len(rows) == 0 {
		return ""
	}
	// A label longer than this stands on a line of its own, above its mark.
	const longest = 24
	stacked := widest > longest
	height := 34.0
	for i, c := range rows {
		height += rowTop(rows, i) + speedRow(c, stacked)
	}
	left := float64(widest)*charWidth + plotGap
	if stacked {
		left = 0
	}
	left = max(left, 50)
	right := float64(panelWidth - 118)
	canvas := svg.New(panelWidth, height+20, fmt.Sprintf("%s: speed-up over %s, %s", s.Name, baseline, CPUs(cpu)))
	x := svg.NewLog(lo/1.12, hi*1.12, left, right)

	canvas.Text(0, 12, svg.Start, "head", CPUs(cpu))
	canvas.Rect(left, 30, x.At(1)-left, height-30, "slower")
	for _, t := range x.Ticks(6) {
		class := "grid"
		if t == 1 {
			class = "one"
		}
		canvas.Line(x.At(t), 30, x.At(t), height, class)
		canvas.Text(x.At(t), height+14, svg.Middle, "tick", strconv.FormatFloat(t, 'g', -1, 64)+"×")
	}
	canvas.Text(x.At(1)-5, 26, svg.End, "quiet", "slower")
	canvas.Text(x.At(1)+5, 26, svg.Start, "quiet", "faster than "+baseline)
	y := 34.0
	for i, c := range rows {
		if top := rowTop(rows, i); top > 0 {
			canvas.Text(0, y+16, svg.Start, "case", title(c.Op))
			y += top
		}
		label := c.Case.Label
		if label == "" {
			label = c.Op.Shared
		}
		mid := y + speedRow(c, stacked) - rowHeight/2
		if stacked && label != "" {
			canvas.Text(0, mid-rowHeight/2-1, svg.Start, "impl", label)
		} else if !stacked && c.Case.Label != "" {
			canvas.Text(0, mid+4, svg.Start, "impl", label)
		}
		l, h := ratioEnds(c.Ratio)
		class := c.Ratio.Verdict.String()
		canvas.Line(left, mid, right, mid, "row")
		canvas.Line(x.At(l), mid, x.At(h), mid, "ci v-"+class)
		canvas.Marker(x.At(c.Ratio.Center), mid, markRadius, verdictShape(c.Ratio.Verdict), "mark v-"+class,
			fmt.Sprintf("%s %s: %s, %s", title(c.Op), label, Times(c.Ratio.Center), class))
		canvas.Text(panelWidth-68, mid+4, svg.End, "impl own", Times(c.Ratio.Center))
		canvas.Text(panelWidth, mid+4, svg.End, "quiet", Range(c.Ratio))
		y += speedRow(c, stacked)
	}
	return canvas.String()
}

// rowTop is the room for an operation's title above its first row.
func rowTop(rows []*Comparison, i int) float64 {
	if i > 0 && rows[i-1].Op == rows[i].Op {
		return 0
	}
	return caseHeight + 4
}

func speedRow(c *Comparison, stacked bool) float64 {
	if stacked && c.Case.Label != "" {
		return 2 * rowHeight
	}
	return rowHeight
}

func verdictShape(v Verdict) svg.Shape {
	switch v {
	case Faster:
		return svg.Circle
	case Slower:
		return svg.Diamond
	}
	return svg.Square
}

// title names an operation within its structure.
func title(op *Op) string {
	if op.Title == "" {
		return op.Name
	}
	return op.Title
}

// ends returns an interval that can be drawn: its centre alone if it is
// infinite.
func ends(m Measure) (lo, hi float64) {
	if math.IsInf(m.Lo, 0) || math.IsInf(m.Hi, 0) || m.Lo <= 0 {
		return m.Center, m.Center
	}
	return m.Lo, m.Hi
}

func ratioEnds(r Ratio) (lo, hi float64) {
	if math.IsInf(r.Hi, 0) || r.Lo <= 0 {
		return r.Center, r.Center
	}
	return r.Lo, r.Hi
}

// tickDuration labels a round number of seconds: "20 ns".
func tickDuration(sec float64) string {
	units := []string{"ns", "µs", "ms", "s"}
	v, i := sec*1e9, 0
	for v >= 999 && i < len(units)-1 {
		v, i = v/1000, i+1
	}
	return strconv.FormatFloat(v, 'g', 3, 64) + " " + units[i]
}
