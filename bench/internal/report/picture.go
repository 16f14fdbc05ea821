package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/latchfree/latchfree/internal/tools/svg"
)

// Theme is the colours of a picture: those of page.css.
type Theme struct{ ink, quiet, hair, tint, own, other, third string }

// The themes on light and on dark paper.
var (
	Light = Theme{"#1d2126", "#646b75", "#e5e7ea", "#f4f1ee", "#0072b2", "#d55e00", "#009e73"}
	Dark  = Theme{"#e3e6ea", "#98a0ab", "#2b3036", "#1f2125", "#56b4e9", "#e8743b", "#2bbf93"}
)

// look returns what page.css says of plots, as attributes.
func (t Theme) look(element, class string) string {
	colour := t.own
	for _, word := range strings.Fields(class) {
		switch word {
		case "lost", "s1":
			colour = t.other
		case "s2":
			colour = t.third
		case "floor":
			colour = t.quiet
		}
	}
	first, _, _ := strings.Cut(class, " ")
	switch {
	case element == "text":
		fill, size, weight := t.ink, "13", "400"
		switch first {
		case "case", "head":
			weight = "600"
		case "tick", "quiet":
			fill, size = t.quiet, "12"
		}
		return fmt.Sprintf(`fill="%s" font-size="%s" font-weight="%s" font-family="sans-serif"`, fill, size, weight)
	case first == "slower":
		return fmt.Sprintf(`fill="%s"`, t.tint)
	case first == "one":
		return fmt.Sprintf(`stroke="%s" stroke-width="1"`, t.ink)
	case first == "ci":
		return fmt.Sprintf(`stroke="%s" stroke-width="2.5" stroke-linecap="round" stroke-opacity="0.55"`, colour)
	case element == "line":
		return fmt.Sprintf(`stroke="%s" stroke-width="1"`, t.hair)
	}
	return fmt.Sprintf(`fill="%s"`, colour)
}

// Measures of a picture.
const (
	pictureWidth  = 760
	pictureChar   = 7.6
	pictureTop    = 34.0
	pictureRow    = 19.0
	pictureGap    = 7.0 // between structures
	pictureMedian = pictureWidth - 150
)

// HasBaseline reports whether anything was compared with the baseline.
func (r *Report) HasBaseline() bool { return len(r.againstBaseline()) > 0 }

// WritePicture writes one drawing, a whole SVG document, of how the subject compares with
// the baseline: for each structure and CPU count, two and more if there are any, the median
// speed-up of all cases, on a line from the worst case to the best. What is slower has
// another colour.
func (r *Report) WritePicture(w io.Writer, theme Theme) error {
	sums := r.againstBaseline()
	if len(sums) == 0 {
		return fmt.Errorf("bench: no picture: nothing was compared with %s", r.Baseline)
	}
	var all extent
	all.add(0.5, 0.5, 0.5)
	all.add(2, 2, 2)
	name, cpus := 0, 0
	height := pictureTop
	for i, s := range sums {
		all.add(s.Worst.Ratio.Center, s.Median, s.Best.Ratio.Center)
		name = max(name, utf8.RuneCountInString(s.Structure))
		cpus = max(cpus, utf8.RuneCountInString(CPUs(s.CPU)))
		height += pictureRow
		if i > 0 && sums[i-1].Structure != s.Structure {
			height += pictureGap
		}
	}
	second := float64(name)*pictureChar + 22
	left := second + float64(cpus)*pictureChar + plotGap
	x := svg.NewLog(max(all.least/1.12, 0.1), min(all.most*1.12, 50), left, pictureMedian-60)

	canvas := svg.New(pictureWidth, height+20, "Speed-up over "+r.Baseline+": the median case, and a line from the worst to the best")
	canvas.Plain(theme.look)
	canvas.Text(0, 26, svg.Start, "quiet", "speed-up over "+r.Baseline)
	canvas.Text(pictureMedian, 26, svg.End, "quiet", "median")
	canvas.Text(pictureWidth, 26, svg.End, "quiet", "cases that are faster")
	speedAxis(canvas, x, left, height)
	y := pictureTop
	for i, s := range sums {
		first := i == 0 || sums[i-1].Structure != s.Structure
		if first && i > 0 {
			y += pictureGap
		}
		mid := y + pictureRow/2
		if first {
			canvas.Text(0, mid+4, svg.Start, "case", s.Structure)
		}
		canvas.Text(second, mid+4, svg.Start, "quiet", CPUs(s.CPU))
		drawRange(canvas, x, s, mid)
		canvas.Text(pictureMedian, mid+4, svg.End, "case", Times(s.Median))
		canvas.Text(pictureWidth, mid+4, svg.End, "quiet", fmt.Sprintf("%d of %d", s.Faster, s.Cases()))
		y += pictureRow
	}
	_, err := io.WriteString(w, canvas.String()+"\n")
	return err
}

// againstBaseline returns the summaries of the subject against the baseline. One CPU counts
// if there is nothing else: where no lock is contended, nothing is bought.
func (r *Report) againstBaseline() []*Summary {
	var own []*Summary
	for _, s := range r.Summaries() {
		if s.Other == r.Baseline {
			own = append(own, s)
		}
	}
	if slices.ContainsFunc(own, func(s *Summary) bool { return s.CPU > 1 }) {
		own = slices.DeleteFunc(own, func(s *Summary) bool { return s.CPU == 1 })
	}
	slices.SortStableFunc(own, func(a, b *Summary) int {
		if a.Structure != b.Structure {
			return 0 // they stand together already
		}
		return a.CPU - b.CPU
	})
	return own
}

// drawRange draws the line from the worst case to the best, and the median on it.
func drawRange(canvas *svg.Canvas, x svg.Log, s *Summary, mid float64) {
	worst, best, one := x.At(s.Worst.Ratio.Center), x.At(s.Best.Ratio.Center), x.At(1)
	if worst < one {
		canvas.Line(worst, mid, min(one, best), mid, "ci lost")
	}
	if best > one {
		canvas.Line(max(one, worst), mid, best, mid, "ci")
	}
	for _, end := range []float64{s.Worst.Ratio.Center, s.Best.Ratio.Center} {
		if !x.Shows(end) {
			class := "mark"
			if end < 1 {
				class = "mark lost"
			}
			canvas.Arrow(x.At(end), mid, markRadius, end > 1, class, "goes on to "+Times(end))
		}
	}
	class := "mark"
	if s.Median < 1 {
		class = "mark lost"
	}
	canvas.Marker(x.At(s.Median), mid, markRadius+0.9, svg.Circle, class,
		fmt.Sprintf("%s, %s: %s in the median of %d cases, worst %s, best %s", s.Structure, CPUs(s.CPU),
			Times(s.Median), s.Cases(), Times(s.Worst.Ratio.Center), Times(s.Best.Ratio.Center)))
}
