package model

import (
	"slices"

	ab "github.com/latchfree/latchfree/atomicbreaker"
)

// What a closed breaker counts.

// settle counts a call that ended while closed.
func (b *Breaker) settle(c call, o ab.Outcome) ab.Verdict {
	if b.state != ab.Closed || o == ab.Ignored {
		return ab.Counted
	} else if r := b.count(c); r != nil {
		bad, calls := r.sum(b.timed, b.Now)
		b.open(r.Why, b.end(0))
		e := &b.Events[len(b.Events)-1]
		e.Failures, e.Calls = bad, calls
		return ab.Tripped
	}
	failed := append(slices.Clone(b.recent), c.failed)
	if b.recent = b.Policy.keep(failed); c.failed && b.Policy.trips(failed) {
		return b.open(ab.ReasonThreshold, b.end(0))
	}
	return ab.Counted
}

// count counts a call in the windows, and returns the first that it fills. A
// key's begin with a failure or a slow call.
func (b *Breaker) count(c call) *Rule {
	windows := b.Policy.windows()
	if len(windows) == 0 || b.Keyed && !b.watched && !c.failed && !b.Policy.slow(c) {
		return nil
	}
	b.timed, b.watched = append(b.timed, c), true
	for _, r := range windows {
		bad, n := r.sum(b.timed, b.Now)
		if r.bad(c) && n >= r.N && float64(bad) >= r.Ratio*float64(n) {
			return &r
		}
	}
	return nil
}

// Pristine reports whether the key is as good as one that was never used.
func (b *Breaker) Pristine() bool { return b.state == ab.Closed && count(b.recent) == 0 && !b.watched }

// ResetAll is for this key. Nobody is told of a pristine one.
func (b *Breaker) ResetAll() {
	pristine, told, stats := b.Pristine(), b.Events, b.Stats
	if b.Reset(); pristine {
		b.Events = told
	}
	b.Stats = stats
}

// Sweep gives up the windows of a healthy key; with Idle, when that has passed.
func (b *Breaker) Sweep() {
	if b.state != ab.Closed || count(b.recent) > 0 {
		return
	}
	for _, r := range b.Policy.windows() {
		if bad, _ := r.sum(b.timed, b.Now); bad > 0 {
			return
		}
	}
	if b.watched {
		b.watched, b.healthy = false, b.Now
		if b.Idle > 0 {
			return
		}
	}
	if b.Now-b.healthy >= b.Idle {
		b.timed = nil
	}
}
