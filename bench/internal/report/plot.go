package report

import (
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/latchfree/latchfree/internal/tools/svg"
)

// Every plot is one panel for one CPU count. Panels are as wide as a phone's
// page and stand side by side where there is room, so text is never scaled far
// from its size.
const (
	panelWidth = 360
	charWidth  = 6.9 // of the 11.5 px sans-serif text, on the wide side
	rowHeight  = 17
	caseHeight = 18 // a heading within a panel
	caseGap    = 12 // above it
	plotGap    = 10 // between labels and plot
	markRadius = 3.6
)

// series numbers the implementations of a report, which decides shape and
// colour: the subject is 0, the baseline 1.
type series map[string]int

func (r *Report) series() series {
	s := series{Subject: 0, r.Baseline: 1}
	for _, l := range r.Latencies {
		for _, row := range l.Rows {
			if _, ok := s[row.Impl]; !ok && row.Impl != Floor {
				s[row.Impl] = len(s)
			}
		}
	}
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
	var all extent
	widest := 0
	for _, c := range op.Cases {
		for _, row := range c.Rows {
			if l, h := ends(row.Time); !row.Noisy() {
				all.add(l, row.Time.Center, h)
			}
			widest = max(widest, utf8.RuneCountInString(row.Label()))
		}
	}
	if all.hi == 0 {
		all.add(1e-9, 1e-9, 1e-9) // all too noisy: any axis
	}
	const top = 24.0
	height := top
	for i, c := range cases {
		height += float64(len(c.Rows)*rowHeight) + caseTop(c, i)
	}
	left := float64(widest)*charWidth + plotGap
	right := float64(panelWidth - 110)
	bottom := height
	canvas := svg.New(panelWidth, height+20, op.Name+": time per operation, "+CPUs(cpu))
	x := all.scale(left, right)

	canvas.Text(0, 12, svg.Start, "head", CPUs(cpu))
	canvas.Text(panelWidth-48, 12, svg.End, "quiet", "time/op")
	canvas.Text(panelWidth, 12, svg.End, "quiet", "allocs")
	for _, t := range ticks(x, tickDuration) {
		canvas.Line(x.At(t), 20, x.At(t), bottom, "grid")
		canvas.Text(x.At(t), bottom+14, svg.Middle, "tick", tickDuration(t))
	}
	y := top
	for i, c := range cases {
		y += caseTop(c, i)
		if c.Label != "" {
			canvas.Text(0, y-5, svg.Start, "case", c.Label)
		}
		for _, row := range c.Rows {
			mid := y + rowHeight/2
			weight := "impl"
			if row.Impl == Subject {
				weight = "impl own"
			}
			canvas.Text(0, mid+4, svg.Start, weight, row.Label())
			canvas.Line(left, mid, right, mid, "row")
			if row.Noisy() {
				canvas.Text(panelWidth-48, mid+4, svg.End, "quiet", TooNoisy)
				y += rowHeight
				continue
			}
			l, h := ends(row.Time)
			class := s.class(row.Impl)
			interval(canvas, x, l, h, mid, class, tickDuration)
			canvas.Marker(x.At(row.Time.Center), mid, markRadius, svg.ShapeOf(s[row.Impl]), "mark "+class,
				fmt.Sprintf("%s: %s %s", row.Impl, Duration(row.Time.Center), Spread(row.Time)))
			canvas.Text(panelWidth-48, mid+4, svg.End, weight, Duration(row.Time.Center))
			canvas.Text(panelWidth, mid+4, svg.End, "quiet", Count(row.Allocs))
			y += rowHeight
		}
	}
	return canvas.String()
}

// caseTop is the room above the rows of case i of a panel: for its label and a
// gap to the case before it.
func caseTop(c *Case, i int) float64 {
	h := 0.0
	if c.Label != "" {
		h += caseHeight
	}
	if i > 0 {
		h += caseGap
	}
	return h
}

// extent is what an axis has to show: all centres, and of the intervals around
// them what does not widen it much. One sample from a bad moment can make an
// interval that leaves no room for anything else.
type extent struct{ lo, hi, least, most float64 }

// wider is how many times as far as the outermost centre an interval may reach.
const wider = 1.5

// add takes an interval with its centre.
func (e *extent) add(lo, center, hi float64) {
	if e.hi == 0 {
		*e = extent{center, center, lo, hi}
	}
	e.lo, e.hi = min(e.lo, center), max(e.hi, center)
	e.least, e.most = min(e.least, lo), max(e.most, hi)
}

// scale returns a logarithmic scale from one position to another. It spans a
// factor of six at least, so that small differences look small and ticks have
// room.
func (e *extent) scale(from, to float64) svg.Log {
	const margin, least = 1.12, 6.0
	lo, hi := max(e.least, e.lo/wider)/margin, min(e.most, e.hi*wider)*margin
	if hi/lo < least {
		grow := math.Sqrt(least / (hi / lo))
		lo, hi = lo/grow, hi*grow
	}
	return svg.NewLog(lo, hi, from, to)
}

// ticks returns as many round numbers as can be labelled side by side.
func ticks(x svg.Log, format func(float64) string) []float64 {
	for most := 5; ; most-- {
		all := x.Ticks(most)
		end, fits := math.Inf(-1), true
		for _, t := range all {
			half := float64(utf8.RuneCountInString(format(t))) * charWidth / 2
			fits = fits && x.At(t)-half > end
			end = x.At(t) + half
		}
		if fits || most == 1 {
			return all
		}
	}
}

// interval draws a line from lo to hi, with an arrow where it leaves the scale.
func interval(canvas *svg.Canvas, x svg.Log, lo, hi, y float64, class string, format func(float64) string) {
	canvas.Line(x.At(lo), y, x.At(hi), y, "ci "+class)
	for _, end := range []float64{lo, hi} {
		if !x.Shows(end) {
			canvas.Arrow(x.At(end), y, markRadius, end == hi, "mark "+class, "goes on to "+format(end))
		}
	}
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
