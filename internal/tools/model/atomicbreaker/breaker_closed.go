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
	}
	return b.settled(c, false)
}

// settled is settle for a call that counts. Held says that no place is left for the key.
func (b *Breaker) settled(c call, held bool) ab.Verdict {
	if _, history := b.Policy.back(); history != b.history {
		b.recent, b.history = nil, history
	}
	if r := b.count(c); r != nil && !held {
		if held = b.full(); !held {
			bad, calls := r.sum(b.timed, b.Now)
			b.open(r.Why, b.end(0))
			e := &b.Events[len(b.Events)-1]
			e.Failures, e.Calls = bad, calls
			return ab.Tripped
		}
	}
	failed := append(slices.Clone(b.recent), c.failed)
	trips := c.failed && b.Policy.trips(failed)
	if trips && !held {
		held = b.full()
	}
	if _, history := b.Policy.back(); !trips || !held || history {
		b.recent = b.Policy.keep(failed)
	} // else the count stays: the next failure may open it
	if trips && !held {
		return b.open(ab.ReasonThreshold, b.end(0))
	}
	if span := b.Policy.span(); count(b.recent) > 0 || c.failed || b.Policy.slow(c) || b.Forget > 0 && b.Forget < span {
		b.touched = b.Now
	} else if b.Keyed && b.watched && b.Now-b.touched >= span {
		b.recover()
	}
	return ab.Counted
}

// failures are those that the policy looks at.
func (b *Breaker) failures() int {
	switch n, history := b.Policy.back(); {
	case history != b.history:
		return 0
	case history:
		return count(last(b.recent, n))
	case n > 0:
		return inARow(b.recent)
	}
	return 0
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
		if r.Why != ab.ReasonTripFunc && r.bad(c) && n >= r.N && float64(bad) >= r.Ratio*float64(n) {
			return &r
		}
	}
	for _, r := range windows {
		if r.Why == ab.ReasonTripFunc && (c.failed || r.slow(c)) && r.bads(b.timed, b.Now) >= r.N {
			return &r
		}
	}
	return nil
}

// Pristine reports whether the key is as good as one that was never used.
func (b *Breaker) Pristine() bool { return b.state == ab.Closed && count(b.recent) == 0 && !b.watched }

// ResetAll is for this key. A pristine one, or one that is forgotten now, is not told of.
func (b *Breaker) ResetAll() {
	b.forget()
	pristine, told, stats := b.Pristine(), b.Events, b.Stats
	if b.set(ab.Closed, ab.ReasonReset, 0); pristine {
		b.Events, b.Stats = told, stats
	}
}

// Sweep forgets what it may, and gives up the windows of a healthy key.
func (b *Breaker) Sweep() {
	if b.forget(); b.state == ab.Closed && count(b.recent) == 0 && b.quiet() {
		b.recover()
	}
}

// quiet reports whether nothing bad is in the windows.
func (b *Breaker) quiet() bool {
	for _, r := range b.Policy.windows() {
		if bad, _ := r.sum(b.timed, b.Now); bad > 0 {
			return false
		}
	}
	return true
}

// recover makes the key pristine.
func (b *Breaker) recover() { b.recent, b.timed, b.watched = nil, nil, false }

// window is what the first windows of each kind hold: for failures, of those that
// count calls if there are any.
func (b *Breaker) window() (c ab.Counts) {
	if len(b.timed) == 0 {
		return c
	}
	slow, rate, failed := false, false, false
	for _, r := range b.Policy.windows() {
		bad, n := r.sum(b.timed, b.Now)
		switch {
		case r.Why == ab.ReasonSlowRate && !slow:
			c.Slow, c.Calls, slow = bad, max(c.Calls, n), true
		case (r.Why == ab.ReasonFailureRate || r.Why == ab.ReasonTripFunc) && !rate:
			c.Failures, c.Calls, rate = bad, max(c.Calls, n), true
		case r.Why == ab.ReasonFailureCount && !rate && !failed:
			c.Failures, failed = bad, true
		}
	}
	if _, history := b.Policy.back(); history == b.history {
		c.Consecutive = inARow(b.recent)
	}
	return c
}
