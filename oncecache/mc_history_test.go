//go:build modelcheck

package oncecache_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/internal/tools/mc"
	model "github.com/latchfree/latchfree/internal/tools/model/oncecache"
	"github.com/latchfree/latchfree/oncecache"
)

// protocol explores threads that use a cache together after the actions of
// first, which for an unused cache are none. In every execution, what the operations return and leave behind must be explained by
// some order of their events that agrees with real time; the counters must
// come out even; and create functions may overlap only if a Set or Delete may
// have ended one creation before the function of the other began.
func protocol(t *testing.T, first []action, threads ...[]action) {
	t.Helper()
	protocolOf(t, everything, first, threads...)
}

// protocolOf is protocol to an extent.
func protocolOf(t *testing.T, how extent, first []action, threads ...[]action) {
	t.Helper()
	verdicts := map[string]bool{} // of the histories seen so far
	operations := mc.Listed(threads, func(a action) string { return a.name })
	mc.Check(t, how.of(operations), func(m *mc.M) {
		c := new(cache)
		h := &history{m: m, c: c}
		h.do(first)
		histories := make([]history, len(threads))
		for i := range histories {
			histories[i] = history{m: m, c: c}
			m.Go(func() { histories[i].do(threads[i]) })
		}
		m.Final(func() {
			for i := range histories {
				h.events = append(h.events, histories[i].events...)
				h.creations = append(h.creations, histories[i].creations...)
			}
			v, present := c.Get(key)
			h.events = append(h.events, event{begin: math.MaxInt64, end: math.MaxInt64, name: "Get at the end",
				got: found(v, present), model: (*sequential).get})

			class := h.class()
			explained, seen := verdicts[class]
			if !seen {
				explained = h.explained(nil, 0)
				verdicts[class] = explained
			}
			if !explained {
				m.Failf("no order of events explains\n%v", h)
			}
			if h.overlap() {
				m.Failf("create functions overlap in\n%v", h)
			}
			want := 0
			if present {
				want = 1
			}
			if creating, entries := oncecache.Creating(c); creating != 0 || entries != want || c.Len() != want {
				m.Failf("%d entries, %d of them being created, Len() = %d, want %d", entries, creating, c.Len(), want)
			}
		})
	})
}

// overlap reports whether two create functions ran together for no reason.
func (h *history) overlap() bool {
	for _, a := range h.creations {
		for _, b := range h.creations {
			if a.ran[0] < b.ran[0] && b.ran[0] < a.ran[1] && !slices.ContainsFunc(h.events, func(e event) bool {
				return e.ends && min(a.called, b.called) < e.end && e.begin < b.ran[0]
			}) {
				return true
			}
		}
	}
	return false
}

// explained reports whether order, of which done is the set, can be completed.
func (h *history) explained(order []int, done uint) bool {
	if !h.agrees(order) {
		return false
	}
	for i, e := range h.events {
		if done>>i&1 == 0 && h.mayComeNext(i, e, done) && h.explained(append(order, i), done|1<<i) {
			return true
		}
	}
	return len(order) == len(h.events)
}

// mayComeNext reports whether e, the i-th event, has nothing before it that is
// still to come.
func (h *history) mayComeNext(i int, e event, done uint) bool {
	for j, o := range h.events {
		if done>>j&1 == 0 && (o.end < e.begin || e.follows && j == i-1) {
			return false
		}
	}
	return true
}

// agrees runs order on a fresh model and compares the last result: those
// before were compared when the order was shorter.
func (h *history) agrees(order []int) bool {
	s := sequential{model.NewCache(), map[*int]*model.Flight{}}
	got, want := "", ""
	for _, i := range order {
		got, want = h.events[i].model(&s), h.events[i].got
	}
	return got == want
}

// class is equal for histories with the same verdict.
func (h *history) class() string {
	var text strings.Builder
	for _, e := range h.events {
		before := uint(0)
		for i, o := range h.events {
			if o.end < e.begin {
				before |= 1 << i
			}
		}
		fmt.Fprintln(&text, e.name, e.got, before)
	}
	return text.String()
}

func (h *history) String() string {
	var text strings.Builder
	for _, e := range h.events {
		fmt.Fprintf(&text, "\t[%d, %d] %s = %s\n", e.begin, e.end, e.name, e.got)
	}
	return text.String()
}
