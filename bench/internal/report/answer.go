package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/latchfree/latchfree/internal/tools/svg"
)

// answer says what a user of a structure gains, and when he does not: the longest waits
// that a headline case can tell apart, the headline cases on the most CPUs, and how many
// of all cases are faster and slower than the baseline's.
func (r *Report) answer(s *Structure) string {
	if len(r.CPUs) == 0 {
		return ""
	}
	most := slices.Max(r.CPUs)
	others := append(s.Others(r.Baseline), r.Baseline) // the first is the baseline, if it is there
	var sentences, gained, lost []string
	for _, h := range r.Headlines() {
		if h.Latency != nil && h.Latency.Structure == s.Name {
			if tail := r.tail(h); tail != "" {
				sentences = append(sentences, tail)
			}
		}
		if h.Speed == nil || h.Speed.CPU != most || !strings.HasPrefix(h.Name, s.Name) {
			continue
		}
		var worst *Comparison
		for _, c := range s.Comparisons() {
			switch {
			case c.Case != h.Speed:
			case c.Ratio.Verdict == Slower && !c.againstLess() && (worst == nil || c.Ratio.Center < worst.Ratio.Center):
				worst = c
			case c.Ratio.Verdict == Faster && c.Other.Impl == others[0]:
				gained = append(gained, fmt.Sprintf("%s (%s)", h.Says, Times(c.Ratio.Center)))
			}
		}
		if worst != nil {
			lost = append(lost, fmt.Sprintf("%s (%s of %s)", h.Says, Times(1/worst.Ratio.Center), worst.Other.Impl))
		}
	}
	if len(gained) > 0 {
		sentences = append(sentences, fmt.Sprintf("Faster than %s on %s: %s", others[0], CPUs(most), strings.Join(gained, ", ")))
	}
	if len(lost) > 0 {
		sentences = append(sentences, "Takes longer: "+strings.Join(lost, ", "))
	}
	var counts []string
	for _, cpu := range slices.Compact([]int{most, 1}) {
		for _, sum := range r.summaries(s) {
			if sum.Other == others[0] && sum.CPU == cpu {
				counts = append(counts, fmt.Sprintf("%d of %d on %s (%d slower)", sum.Faster, sum.Cases(), CPUs(cpu), sum.Slower))
			}
		}
	}
	if len(counts) > 0 {
		sentences = append(sentences, fmt.Sprintf("Of all cases, faster than %s in %s", others[0], strings.Join(counts, ", ")))
	}
	if n := s.noisyOn(most); n > 0 {
		sentences = append(sentences, "Too noisy to be compared: "+rows(n))
	}
	if len(sentences) == 0 {
		return ""
	}
	return strings.Join(sentences, ". ") + "."
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
// intervals do not touch, and one at least is not the floor's. Where none does, it says
// whether all could be compared.
func (r *Report) tail(h Headline) string {
	ours, other := h.Latency.Row(Subject), h.Latency.Row(r.Baseline)
	if ours == nil || other == nil {
		return ""
	}
	compared, unclear := false, false
	for q := len(Quantiles) - 1; q >= 1; q-- {
		a, b := ours.Times[q], other.Times[q]
		if !a.Known() || !b.Known() {
			continue
		}
		if ours.NoisyAt(q) || other.NoisyAt(q) || math.IsInf(a.Hi, 0) || math.IsInf(b.Hi, 0) {
			unclear = true
			continue
		}
		compared = true
		if h.Latency.AtFloor(ours, q) && h.Latency.AtFloor(other, q) {
			continue
		}
		if a.Hi < b.Lo || b.Hi < a.Lo {
			return fmt.Sprintf("%s: %s %s, with %s %s", sentence(h.Says), strings.Replace(Quantiles[q].Name, "max", "longest", 1), Duration(a.Center), r.Baseline, Duration(b.Center))
		}
	}
	if unclear || !compared {
		return sentence(h.Says) + ": no wait can be told apart"
	}
	return sentence(h.Says) + ": no wait differs"
}

// sentence begins with a capital.
func sentence(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

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

// farthest is the largest speed-up that its axis shows.
const farthest = 50

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
			all.add(sum.Worst.Ratio.Center, min(sum.Median, farthest), min(sum.Best.Ratio.Center, farthest))
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
	canvas.Text(0, 12, svg.Start, "head", s.Name)
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
		if x.Shows(sum.Median) {
			canvas.Marker(x.At(sum.Median), mid, markRadius, verdictShape(verdict), "mark "+class,
				fmt.Sprintf("against %s: %s in the median of %d cases", sum.Other, Times(sum.Median), sum.Cases()))
		}
		canvas.Text(panelWidth-68, mid+4, svg.End, "impl own", Times(sum.Median))
		canvas.Text(panelWidth, mid+4, svg.End, "quiet",
			strings.ReplaceAll(Times(sum.Worst.Ratio.Center)+"–"+Times(sum.Best.Ratio.Center), "×", ""))
	}
	return canvas.String()
}
