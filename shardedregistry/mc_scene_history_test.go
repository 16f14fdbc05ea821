//go:build modelcheck

package shardedregistry_test

import (
	"fmt"
	"slices"
	"strings"

	model "github.com/latchfree/latchfree/internal/tools/model/shardedregistry"
)

// What happened in an execution of a scene, and whether some order of it explains what everybody
// has seen. An order is one of the parts of acts: what takes effect at once, on one key or on both.
// In between, what is due may expire.

// sceneKeys are the keys of scenes, as they are stored. Of two shards each is in one.
var sceneKeys = [2]string{"a", "f"}

// A part of an act takes effect at once. It changes the model as the act has changed the registry,
// and reports whether the act could see there what it has seen. Parts with a lower rank come first.
type part struct {
	rank int
	do   func(w *world) bool
}

// An act is what an operation did in a part of its time, with what it has seen.
type act struct {
	name, seen string
	begin, end int64
	among      [][]part // of which one happened
	mine       int      // whose memory it uses
	lags       int      // how often time has passed since it began, at most
}

// world is the model of a registry, and what is known beside it.
type world struct {
	*model.Registry
	changes [2][]model.Event         // of each key, all
	memory  [maxActors]model.Version // what the operations have learnt
	began   [maxActors][2]int        // how many changes there had been when a loop began
	mine    int                      // of the act
}

func (w *world) copy() *world {
	c := *w
	c.Registry = w.Registry.Copy()
	for i, all := range w.changes {
		c.changes[i] = slices.Clip(all)
	}
	return &c
}

// note takes down what has changed.
func (w *world) note() {
	for i, k := range sceneKeys {
		last, ok := w.Last(k)
		if n := len(w.changes[i]); ok && (n == 0 || w.changes[i][n-1] != last) {
			w.changes[i] = append(w.changes[i], last)
		}
	}
}

// expire lets what is due expire, and notes that.
func (w *world) expire() bool { w.Expire(); w.note(); return true }

// history is the acts of one execution.
type history struct {
	acts   []*act
	lives  bool // there is a time to live
	clock  *modelClock
	last   *world          // in the end of the order that explains
	budget int             // how many positions it still looks at
	seen   map[string]bool // where it has been, by the keys of positions and worlds
}

// position is how far an order has come.
type position struct {
	chosen []int8 // of each act's alternatives; -1: none yet
	done   []uint16
	passed int // how often time has passed
}

// lags are how much a clock is slow, for each key, in times that time has passed.
type lags [2]int

// modelClock is what the model computes deadlines by.
type modelClock struct {
	lags  lags
	asked [2]bool // for which keys it was read
}

// key is equal where the rest of an order is.
func (p *position) key(key []byte) []byte {
	for i, n := range p.chosen {
		key = append(key, byte(n), byte(p.done[i]), byte(p.done[i]>>8))
	}
	return append(key, byte(p.passed))
}

func (w *world) key(key []byte) []byte {
	for i, k := range sceneKeys {
		left, expires := w.Left(k)
		key = fmt.Append(key, w.changes[i], left, expires)
	}
	return fmt.Append(key, w.memory, w.began)
}

// How many positions are looked at before it remembers where it has been, and in all.
const (
	fewPositions  = 100
	manyPositions = 100_000
)

// explains reports whether some order from w on explains the acts.
func (h *history) explains(w *world) bool {
	p := position{chosen: make([]int8, len(h.acts)), done: make([]uint16, len(h.acts))}
	for i, a := range h.acts {
		p.chosen[i] = -1
		for _, o := range h.acts {
			if o.name == timePasses && o.end > a.begin {
				a.lags++
			}
		}
	}
	h.seen, h.budget = map[string]bool{}, manyPositions
	return h.from(w, p)
}

// over reports whether act i is over at p.
func (h *history) over(p *position, i int) bool {
	return p.chosen[i] >= 0 && int(p.done[i]) == 1<<len(h.acts[i].among[p.chosen[i]])-1
}

func (h *history) from(w *world, p position) bool {
	if h.budget--; h.budget < 0 {
		return false
	}
	if h.budget < manyPositions-fewPositions { // most orders are found at once
		key := string(p.key(w.key(make([]byte, 0, 200))))
		if h.seen[key] {
			return false // another order has led here
		}
		h.seen[key] = true
	}
	first, left := int64(1<<62), false // when the first act that is not over ends
	for i, a := range h.acts {
		if !h.over(&p, i) {
			first, left = min(first, a.end), true
		}
	}
	if !left {
		h.last = w
		return true
	}
	for i, a := range h.acts {
		if h.over(&p, i) || a.begin > first {
			continue
		}
		for j, parts := range a.among {
			if p.chosen[i] >= 0 && int(p.chosen[i]) != j {
				continue
			}
			if h.goesOn(w, p, i, j, parts) {
				return true
			}
		}
	}
	if !h.lives {
		return false
	}
	for _, k := range sceneKeys {
		if w.Due(k) {
			next := w.copy()
			next.ExpireKey(k)
			next.note()
			if h.from(next, p) {
				return true
			}
		}
	}
	return false
}

// goesOn tries the parts of alternative j of act i that may be next.
func (h *history) goesOn(w *world, p position, i, j int, parts []part) bool {
	a, least := h.acts[i], 1<<30
	for n, one := range parts {
		if p.done[i]>>n&1 == 0 {
			least = min(least, one.rank)
		}
	}
	for n, one := range parts {
		if p.done[i]>>n&1 != 0 || one.rank != least {
			continue
		}
		limit := [2]int{}
		for lag := (lags{}); ; {
			next := w.copy()
			next.mine = a.mine
			h.clock.lags, h.clock.asked = lag, [2]bool{}
			ok, asked := one.do(next), h.clock.asked
			h.clock.lags = lags{}
			if ok && h.follows(next, p, i, j, n) {
				return true
			}
			// It may have read the clock before time passed, for each key of which it did.
			for k := range asked {
				if asked[k] {
					limit[k] = min(a.lags, p.passed)
				}
			}
			if !lag.next(limit) {
				break
			}
		}
	}
	return false
}

// next makes lag the next one up to a limit, and reports whether there is one.
func (lag *lags) next(limit [2]int) bool {
	for k := range lag {
		if lag[k] < limit[k] {
			lag[k]++
			return true
		}
		lag[k] = 0
	}
	return false
}

// follows goes on after part n of alternative j of act i.
func (h *history) follows(w *world, p position, i, j, n int) bool {
	w.note()
	q := position{slices.Clone(p.chosen), slices.Clone(p.done), p.passed}
	q.chosen[i] = int8(j)
	q.done[i] |= 1 << n
	if h.acts[i].name == timePasses {
		q.passed++
	}
	return h.from(w, q)
}

// String lists what was seen.
func (h *history) String() string {
	var b strings.Builder
	for _, a := range h.acts {
		fmt.Fprintf(&b, "\t[%d, %d] %s = %s\n", a.begin, a.end, a.name, a.seen)
	}
	return b.String()
}
