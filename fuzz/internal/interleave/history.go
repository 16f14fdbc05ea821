//go:build modelcheck

package interleave

import (
	"fmt"
	"strings"
)

// history is what happened in one execution.
type history[S any] struct {
	moments []Moment[S]
	before  [][]int // for each moment, the others that come before it
}

// newHistory puts together the moments of all callers.
func newHistory[S any](of ...[]Moment[S]) *history[S] {
	h := new(history[S])
	for _, moments := range of {
		first := len(h.moments)
		for _, m := range moments {
			if m.Follows > 0 {
				m.Follows += first
			}
			h.moments = append(h.moments, m)
		}
	}
	h.before = make([][]int, len(h.moments))
	for i, m := range h.moments {
		for j, other := range h.moments {
			if other.To.At < m.From.At || j == m.Follows-1 {
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
		fmt.Fprintln(&text, m.Op, m.Got, m.From.Ticks, m.To.Ticks, h.before[i])
	}
	return text.String()
}

// choice is a moment and the time that it is taken for.
type choice struct{ moment, ticks int }

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
		for ticks := m.From.Ticks; ticks <= m.To.Ticks; ticks++ {
			longer := append(order, choice{i, ticks})
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
// before were compared when the order was shorter.
func (h *history[S]) agrees(model S, order []choice) (ok bool) {
	for _, c := range order {
		ok = h.moments[c.moment].Explains(model, c.ticks)
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
