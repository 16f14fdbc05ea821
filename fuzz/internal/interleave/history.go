//go:build modelcheck

package interleave

import (
	"fmt"
	"strings"
)

// history is what happened in one execution.
type history[S any] struct {
	moments []*Moment[S]
	before  [][]int // for each moment, the others that come before it
	work    *int    // how many moments may still be tried; nil: any number
}

// newHistory puts together moments. The threads were done at end.
func newHistory[S any](moments []*Moment[S], end Mark) *history[S] {
	h := new(history[S])
	for _, m := range moments {
		if m.Settle != nil && !m.Settle(m) {
			continue
		}
		if m.To.At == 0 {
			m.To = end
		}
		m.Ways = max(m.Ways, 1)
		h.moments = append(h.moments, m)
	}
	h.before = make([][]int, len(h.moments))
	for i, m := range h.moments {
		for j, other := range h.moments {
			if m.Follows == other || other.To.At < m.From.At {
				h.before[i] = append(h.before[i], j)
			}
		}
	}
	return h
}

// class is equal for histories of one program that are explained alike.
func (h *history[S]) class() string {
	var text strings.Builder
	for i, m := range h.moments {
		fmt.Fprintln(&text, m.Op, m.Got, m.Ways, m.From.Ticks, h.before[i])
	}
	return text.String()
}

// choice is a moment and a way to explain it.
type choice struct{ moment, way int }

// explained reports whether order, which is explained so far, can be
// completed. Fresh makes a model.
func (h *history[S]) explained(fresh func() S, order []choice, done []bool) bool {
	if len(order) == len(h.moments) {
		return true
	}
	for i, m := range h.moments {
		if done[i] || !h.mayComeNext(i, done) {
			continue
		}
		done[i] = true
		for way := range m.Ways {
			longer := append(order, choice{i, way})
			if h.agrees(fresh(), longer) && h.explained(fresh, longer, done) {
				return true
			}
		}
		done[i] = false
	}
	return false
}

// mayComeNext reports whether all that comes before moment i is done.
func (h *history[S]) mayComeNext(i int, done []bool) bool {
	for _, j := range h.before[i] {
		if !done[j] {
			return false
		}
	}
	return true
}

// agrees does what order says on a model, and compares the last result: those
// before were compared when the order was shorter. If there was too much to try, any order will do.
func (h *history[S]) agrees(model S, order []choice) (ok bool) {
	if h.work != nil {
		if *h.work -= len(order); *h.work < 0 {
			return true
		}
	}
	for _, c := range order {
		ok = h.moments[c.moment].Explains(model, c.way)
	}
	return ok
}

// String shows the moments, with the interval in which each lies.
func (h *history[S]) String() string {
	var text strings.Builder
	for _, m := range h.moments {
		fmt.Fprintf(&text, "\t[%d, %d] %s = %s\n", m.From.At, m.To.At, m.Op, m.Got)
	}
	return text.String()
}
