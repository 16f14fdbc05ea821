package report

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/latchfree/latchfree/internal/svg"
)

// answer says in one sentence how the subject did in a structure, against the
// first of its others, at each CPU count.
func (r *Report) answer(s *Structure) string {
	others := s.Others(r.Baseline)
	if len(others) == 0 {
		return ""
	}
	var parts []string
	for _, sum := range r.summaries(s) {
		if sum.Other == others[0] {
			parts = append(parts, fmt.Sprintf("on %s in %d of %d cases (median %s, worst %s)",
				CPUs(sum.CPU), sum.Faster, sum.Cases(), Times(sum.Median), Times(sum.Worst.Ratio.Center)))
		}
	}
	return fmt.Sprintf("Faster than %s %s.", others[0], strings.Join(parts, ", "))
}

// answerPlot draws the speed-up over each other implementation of a structure at
// one CPU count: the median of all cases, and a line from the worst to the best.
func answerPlot(r *Report, s *Structure, cpu int) string {
	var sums []*Summary
	var all extent
	all.add(0.5, 0.5, 0.5)
	all.add(2, 2, 2)
	left := 50.0
	for _, sum := range r.summaries(s) {
		if sum.CPU == cpu {
			sums = append(sums, sum)
			all.add(sum.Worst.Ratio.Center, sum.Median, sum.Best.Ratio.Center)
			left = max(left, float64(utf8.RuneCountInString(sum.Other))*charWidth+plotGap)
		}
	}
	if len(sums) == 0 {
		return ""
	}
	const top, right = 34.0, panelWidth - 118
	height := top + float64(len(sums)*rowHeight)
	canvas := svg.New(panelWidth, height+20, fmt.Sprintf("%s: speed-up in the median case, %s", s.Name, CPUs(cpu)))
	x := all.scale(left, right)
	canvas.Text(0, 12, svg.Start, "head", CPUs(cpu))
	canvas.Text(panelWidth-68, 26, svg.End, "quiet", "median")
	canvas.Text(panelWidth, 26, svg.End, "quiet", "worst–best")
	speedAxis(canvas, x, left, height)
	for i, sum := range sums {
		mid := top + (float64(i)+0.5)*rowHeight
		canvas.Text(0, mid+4, svg.Start, "impl", sum.Other)
		canvas.Line(left, mid, right, mid, "row")
		verdict := Undecided // here: neither
		switch {
		case sum.Median > 1:
			verdict = Faster
		case sum.Median < 1:
			verdict = Slower
		}
		class := "v-" + verdict.String()
		interval(canvas, x, sum.Worst.Ratio.Center, sum.Best.Ratio.Center, mid, class, Times)
		canvas.Marker(x.At(sum.Median), mid, markRadius, verdictShape(verdict), "mark "+class,
			fmt.Sprintf("against %s: %s in the median of %d cases", sum.Other, Times(sum.Median), sum.Cases()))
		canvas.Text(panelWidth-68, mid+4, svg.End, "impl own", Times(sum.Median))
		canvas.Text(panelWidth, mid+4, svg.End, "quiet",
			strings.ReplaceAll(Times(sum.Worst.Ratio.Center)+"–"+Times(sum.Best.Ratio.Center), "×", ""))
	}
	return canvas.String()
}
