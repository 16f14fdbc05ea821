package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/latchfree/latchfree/internal/tools/svg"
)

// answer says in a few words what a user of a structure gains, and when he does not:
// from all cases against the baseline on the most CPUs, the headline cases against
// everybody, and the longest waits that a headline case can tell apart.
func (r *Report) answer(s *Structure) string {
	if len(r.CPUs) == 0 {
		return ""
	}
	most := slices.Max(r.CPUs)
	var parts []string
	others := append(s.Others(r.Baseline), r.Baseline) // the first is the baseline, if it is there
	for _, sum := range r.summaries(s) {
		if sum.Other == others[0] && sum.CPU == most {
			parts = append(parts, fmt.Sprintf("faster than %s in %d of %d cases on %s, slower in %d (median %s)",
				sum.Other, sum.Faster, sum.Cases(), CPUs(sum.CPU), sum.Slower, Times(sum.Median)))
		}
	}
	if n := s.noisyOn(most); n > 0 {
		parts = append(parts, "too noisy to be compared: "+rows(n))
	}
	var gained, lost []string
	for _, h := range r.Headlines() {
		if h.Speed == nil || h.Speed.CPU != most || !strings.HasPrefix(h.Name, s.Name) {
			continue
		}
		var worst *Comparison
		for _, c := range s.Comparisons() {
			switch {
			case c.Case != h.Speed:
			case c.Ratio.Verdict == Slower && (worst == nil || c.Ratio.Center < worst.Ratio.Center):
				worst = c
			case c.Ratio.Verdict == Faster && c.Other.Impl == others[0]:
				gained = append(gained, fmt.Sprintf("%s (%s)", h.Says, Times(c.Ratio.Center)))
			}
		}
		if worst != nil {
			lost = append(lost, fmt.Sprintf("%s (%s of %s)", h.Says, Times(worst.Ratio.Center), worst.Other.Impl))
		}
	}
	if len(gained) > 0 {
		parts = append(parts, "gains: "+strings.Join(gained, ", "))
	}
	if len(lost) > 0 {
		parts = append(parts, "loses: "+strings.Join(lost, ", "))
	}
	for _, h := range r.Headlines() {
		if h.Latency != nil && h.Latency.Structure == s.Name {
			if tail := r.tail(h); tail != "" {
				parts = append(parts, tail)
			}
		}
	}
	for _, sum := range r.summaries(s) {
		if sum.Other == others[0] && sum.CPU == 1 && most > 1 {
			parts = append(parts, fmt.Sprintf("at 1 CPU faster in %d, slower in %d", sum.Faster, sum.Slower))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	text := strings.Join(parts, "; ") + "."
	return strings.ToUpper(text[:1]) + text[1:]
}

// noisyOn returns how many rows on so many CPUs are too noisy.
func (s *Structure) noisyOn(cpu int) int {
	n := 0
	for _, op := range s.Ops {
		for _, c := range op.onCPU(cpu) {
			for _, row := range c.Rows {
				if row.Noisy() {
					n++
				}
			}
		}
	}
	return n
}

// tail compares the rarest quantile that differs from that of the baseline: their
// intervals do not touch, and one at least is not the floor's.
func (r *Report) tail(h Headline) string {
	ours, other := h.Latency.Row(Subject), h.Latency.Row(r.Baseline)
	if ours == nil || other == nil {
		return ""
	}
	for q := len(Quantiles) - 1; q >= 1; q-- {
		a, b := ours.Times[q], other.Times[q]
		if !a.Known() || !b.Known() || ours.NoisyAt(q) || other.NoisyAt(q) || math.IsInf(a.Hi, 0) || math.IsInf(b.Hi, 0) {
			continue
		}
		if h.Latency.AtFloor(ours, q) && h.Latency.AtFloor(other, q) {
			continue
		}
		if a.Hi < b.Lo || b.Hi < a.Lo {
			verdict := "less"
			if a.Lo > b.Hi {
				verdict = "more"
			}
			return fmt.Sprintf("waits %s in %s: %s %s, %s %s", verdict, h.Says, strings.Replace(Quantiles[q].Name, "max", "longest", 1), Duration(a.Center), r.Baseline, Duration(b.Center))
		}
	}
	return "no wait differs in " + h.Says
}

// Answers returns a sentence for each structure.
func (r *Report) Answers() []Answer {
	var all []Answer
	for _, s := range r.Structures {
		if says := r.answer(s); says != "" {
			all = append(all, Answer{s.Name, says})
		}
	}
	return all
}

// Answer is what a user gains by a structure, and when he does not.
type Answer struct{ Structure, Says string }

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
