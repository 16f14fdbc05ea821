package report

import (
	"errors"
	"fmt"
	"io"

	"github.com/latchfree/latchfree/internal/tools/svg"
)

// WriteTail writes one drawing, a whole SVG document, of the headline cases of latency:
// for the subject, the baseline and the floor a line from the median to the slowest of ten
// thousand operations, or to the rarest known, with a mark at one in a thousand.
func (r *Report) WriteTail(w io.Writer, theme Theme) error {
	var all extent
	var cases []Headline
	for _, h := range r.Headlines() {
		if h.Latency == nil || h.Latency.Row(Subject) == nil || h.Latency.Row(r.Baseline) == nil {
			continue
		}
		cases = append(cases, h)
		for _, row := range r.tailRows(h.Latency) {
			for q := range tailEnd {
				if m := row.Times[q]; m.Known() && !row.NoisyAt(q) {
					all.add(m.Center, m.Center, m.Center)
				}
			}
		}
	}
	if len(cases) == 0 || all.hi == 0 {
		return errors.New("bench: no picture: no latency was compared with " + r.Baseline)
	}
	const top, left, heading = 34.0, 90.0, 22.0
	height := top
	for _, h := range cases {
		height += heading + float64(len(r.tailRows(h.Latency)))*pictureRow
	}
	x := svg.NewLog(all.least/1.5, all.most*1.5, left, pictureWidth-130)
	canvas := svg.New(pictureWidth, height+20, "Time of single operations: from the median to the slowest of ten thousand")
	canvas.Plain(theme.look)
	canvas.Text(0, 12, svg.Start, "quiet", "time of one operation: from the median (●) over one in a thousand (◆) to one in ten thousand (■)")
	for _, t := range x.Ticks(8) {
		canvas.Line(x.At(t), top, x.At(t), height, "grid")
		canvas.Text(x.At(t), height+14, svg.Middle, "tick", tickDuration(t))
	}
	y := top
	for _, h := range cases {
		canvas.Text(0, y+15, svg.Start, "case", h.Says)
		y += heading
		for _, row := range r.tailRows(h.Latency) {
			r.drawTail(canvas, x, row, y+pictureRow/2)
			y += pictureRow
		}
	}
	_, err := io.WriteString(w, canvas.String()+"\n")
	return err
}

// tailEnd is the number of quantiles that the drawing shows.
const tailEnd = 5

// tailRows returns the rows that the drawing shows.
func (r *Report) tailRows(l *Latency) []*LatencyRow {
	var rows []*LatencyRow
	for _, impl := range []string{Subject, r.Baseline, Floor} {
		if row := l.Row(impl); row != nil {
			rows = append(rows, row)
		}
	}
	return rows
}

func (r *Report) drawTail(canvas *svg.Canvas, x svg.Log, row *LatencyRow, mid float64) {
	class := "s0"
	switch row.Impl {
	case r.Baseline:
		class = "s1"
	case Floor:
		class = "floor"
	}
	canvas.Text(0, mid+4, svg.Start, "quiet", row.Impl)
	last := -1
	for q := range tailEnd {
		m := row.Times[q]
		if !m.Known() || row.NoisyAt(q) {
			last = -1 // nothing is known of what lies between
			continue
		}
		if last >= 0 {
			canvas.Line(x.At(row.Times[last].Center), mid, x.At(m.Center), mid, "ci "+class)
		}
		last = q
	}
	for _, mark := range []struct {
		q     int
		shape svg.Shape
	}{{0, svg.Circle}, {3, svg.Diamond}, {4, svg.Square}} {
		q := mark.q
		if m := row.Times[q]; m.Known() && !row.NoisyAt(q) {
			canvas.Marker(x.At(m.Center), mid, markRadius+0.9, mark.shape, "mark "+class,
				fmt.Sprintf("%s, %s: %s", row.Impl, Quantiles[q].Name, Within(m)))
		}
	}
	says := "–"
	for q := 3; q >= 0; q-- { // p99.9, or the rarest that is known
		if row.NoisyAt(q) {
			says = TooNoisy
			break
		}
		if m := row.Times[q]; m.Known() {
			says = Quantiles[q].Name + " " + Duration(m.Center)
			break
		}
	}
	canvas.Text(pictureWidth, mid+4, svg.End, "case", says)
}

// HasTail reports whether WriteTail has anything to draw.
func (r *Report) HasTail() bool { return r.WriteTail(io.Discard, Light) == nil }
