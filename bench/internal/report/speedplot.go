package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/latchfree/latchfree/internal/tools/svg"
)

// labelWidth is where labels of a speed-up plot break into a second line. It
// leaves half of a panel to the plot.
const labelWidth = 17

// speedPlot draws the subject's speed-up over one other implementation in
// every case of a structure, at one CPU count.
func speedPlot(s *Structure, other string, cpu int) string {
	var rows []*Comparison
	var all extent
	all.add(0.5, 0.5, 0.5) // 1× is always inside, with room on both sides
	all.add(2, 2, 2)
	left := 50.0 // room for the word "slower"
	for _, c := range s.Comparisons() {
		if c.Other.Impl != other {
			continue
		}
		l, h := ratioEnds(c.Ratio)
		all.add(l, c.Ratio.Center, h)
		if c.Case.CPU == cpu {
			rows = append(rows, c)
		}
	}
	if len(rows) == 0 {
		return ""
	}
	const top = 34.0
	height := top
	lines := speedLines(rows)
	for _, line := range lines {
		height += line.gap + line.height
		for _, text := range line.label {
			if line.mark != nil {
				left = max(left, float64(utf8.RuneCountInString(text))*charWidth+plotGap)
			}
		}
	}
	right := float64(panelWidth - 118)
	canvas := svg.New(panelWidth, height+20, fmt.Sprintf("%s: speed-up over %s, %s", s.Name, other, CPUs(cpu)))
	x := all.scale(left, right)

	canvas.Text(0, 12, svg.Start, "head", CPUs(cpu))
	speedAxis(canvas, x, left, height)
	y := top
	for _, line := range lines {
		y += line.gap
		mid := y + line.height/2
		first := mid + 4 - float64(len(line.label)-1)*lineHeight/2
		for i, text := range line.label {
			canvas.Text(0, first+float64(i)*lineHeight, svg.Start, line.class, text)
		}
		if line.mark != nil {
			drawSpeed(canvas, x, left, right, mid, line.mark)
		}
		y += line.height
	}
	return canvas.String()
}

// speedAxis draws an axis of speed-ups down to the given height.
func speedAxis(canvas *svg.Canvas, x svg.Log, left, height float64) {
	canvas.Rect(left, 30, x.At(1)-left, height-30, "slower")
	for _, t := range ticks(x, tickTimes) {
		class := "grid"
		if t == 1 {
			class = "one"
		}
		canvas.Line(x.At(t), 30, x.At(t), height, class)
		canvas.Text(x.At(t), height+14, svg.Middle, "tick", tickTimes(t))
	}
	canvas.Text(x.At(1)-5, 26, svg.End, "quiet", "slower")
	canvas.Text(x.At(1)+5, 26, svg.Start, "quiet", "faster")
}

// tickTimes labels a round number: "0.5×".
func tickTimes(x float64) string {
	return strconv.FormatFloat(math.Round(x*1000)/1000, 'f', -1, 64) + "×"
}

// drawSpeed draws one comparison at height mid.
func drawSpeed(canvas *svg.Canvas, x svg.Log, left, right, mid float64, c *Comparison) {
	lo, hi := ratioEnds(c.Ratio)
	class := c.Ratio.Verdict.String()
	canvas.Line(left, mid, right, mid, "row")
	interval(canvas, x, lo, hi, mid, "v-"+class, Times)
	canvas.Marker(x.At(c.Ratio.Center), mid, markRadius, verdictShape(c.Ratio.Verdict), "mark v-"+class,
		fmt.Sprintf("%s %s: %s, %s", title(c.Op), c.Case.Params, Times(c.Ratio.Center), class))
	canvas.Text(panelWidth-68, mid+4, svg.End, "impl own", Times(c.Ratio.Center))
	canvas.Text(panelWidth, mid+4, svg.End, "quiet", Range(c.Ratio))
}

// speedLine is a heading, if it has no mark, or a row of a speed-up plot.
type speedLine struct {
	label  []string
	class  string
	mark   *Comparison
	gap    float64 // above
	height float64
}

// lineHeight is the distance of two lines of one label.
const lineHeight = 13

// speedLines arranges comparisons under the titles of their operations. An
// operation with a single case needs no line of its own for the title.
func speedLines(rows []*Comparison) []speedLine {
	var lines []speedLine
	row := func(text, class string, c *Comparison, gap float64) {
		label := wrap(text, labelWidth)
		height := rowHeight + float64(len(label)-1)*(lineHeight+2)
		lines = append(lines, speedLine{label, class, c, gap, height})
	}
	for i, c := range rows {
		first := i == 0 || rows[i-1].Op != c.Op
		gap := 0.0
		if first && i > 0 && (c.Case.Label != "" || rows[i-1].Case.Label != "") {
			gap = caseGap
		}
		if c.Case.Label == "" {
			row(title(c.Op), "case", c, gap)
			continue
		}
		if first {
			lines = append(lines, speedLine{[]string{title(c.Op)}, "case", nil, gap, caseHeight})
		}
		row(c.Case.Label, "impl", c, 0)
	}
	return lines
}

// wrap breaks text at spaces into lines of at most width characters, where
// words allow it.
func wrap(text string, width int) []string {
	lines := []string{""}
	for word := range strings.FieldsSeq(text) {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case utf8.RuneCountInString(*last)+1+utf8.RuneCountInString(word) <= width:
			*last += " " + word
		default:
			lines = append(lines, word)
		}
	}
	return lines
}
