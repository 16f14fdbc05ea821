package model

import (
	"math"
	"slices"
	"time"

	ab "github.com/latchfree/latchfree/atomicbreaker"
)

// Policy is when a closed breaker opens: as soon as one of the rules says so.
type Policy []Rule

// Rule is a policy by the reason for which it opens. ReasonThreshold is
// KOfN(N, Last) or, without Last, Consecutive(N). ReasonTripFunc is a TripFunc for N
// calls that are slow or have failed, those that are both counted twice.
type Rule struct {
	Why          ab.Reason
	N, Last      int // N failures; calls at least, for a rate
	Ratio        float64
	Slow, Window time.Duration
}

// call is one that ended.
type call struct {
	at, took time.Duration
	failed   bool
}

// Real returns what New takes.
func (p Policy) Real() ab.Policy {
	var all []ab.Policy
	for _, r := range p {
		switch {
		case r.Why == ab.ReasonFailureRate:
			all = append(all, ab.FailureRate(r.Ratio, r.N, r.Window))
		case r.Why == ab.ReasonFailureCount:
			all = append(all, ab.FailureCount(r.N, r.Window))
		case r.Why == ab.ReasonTripFunc:
			all = append(all, ab.TripFunc(r.Window, r.Slow, func(c ab.Counts) bool { return c.Failures+c.Slow >= r.N }))
		case r.Why == ab.ReasonSlowRate:
			all = append(all, ab.SlowRate(r.Ratio, r.Slow, r.N, r.Window))
		case r.Last > 0:
			all = append(all, ab.KOfN(r.N, r.Last))
		default:
			all = append(all, ab.Consecutive(r.N))
		}
	}
	if len(all) == 1 {
		return all[0]
	}
	return ab.AnyOf(all...)
}

// windows are the rules about the calls of some time. A TripFunc that wants to know slow
// calls has a second one, which opens nothing.
func (p Policy) windows() (timed []Rule) {
	for _, r := range p {
		if r.Window > 0 {
			timed = append(timed, r)
		}
		if r.Why == ab.ReasonTripFunc && r.Slow > 0 {
			timed = append(timed, Rule{Why: ab.ReasonSlowRate, N: math.MaxInt, Slow: r.Slow, Window: r.Window})
		}
	}
	return timed
}

// span is after how long nothing of a call is in any window.
func (p Policy) span() (span time.Duration) {
	for _, r := range p.windows() {
		span = max(span, r.Window/15*16)
	}
	return span
}

// slow reports whether a call was too slow.
func (p Policy) slow(c call) bool {
	return slices.ContainsFunc(p.windows(), func(r Rule) bool { return r.Why == ab.ReasonSlowRate && r.bad(c) })
}

// times reports whether calls are timed.
func (p Policy) times() bool {
	return slices.ContainsFunc(p.windows(), func(r Rule) bool { return r.Why == ab.ReasonSlowRate })
}

func (r Rule) bad(c call) bool {
	if r.Why == ab.ReasonSlowRate {
		return c.took > r.Slow
	}
	return c.failed
}

// sum counts the calls in a window. It is exact if all times lie whole
// fifteenths of the window apart.
func (r Rule) sum(calls []call, now time.Duration) (bad, n int) {
	for _, c := range calls {
		if now-c.at > r.Window {
			continue
		}
		if r.bad(c) {
			bad++
		}
		if r.bad(c) || r.Why != ab.ReasonFailureCount {
			n++
		}
	}
	return bad, n
}

// bads counts for a TripFunc.
func (r Rule) bads(calls []call, now time.Duration) (n int) {
	for _, c := range calls {
		if now-c.at > r.Window {
			continue
		}
		if c.failed {
			n++
		}
		if r.slow(c) {
			n++
		}
	}
	return n
}

// slow reports whether a call was too slow for a TripFunc.
func (r Rule) slow(c call) bool { return r.Slow > 0 && c.took > r.Slow }

// trips reports whether the last of the calls, of which some have failed, opens
// the breaker, apart from windows.
func (p Policy) trips(failed []bool) bool {
	return slices.ContainsFunc(p, func(r Rule) bool {
		switch {
		case r.Why != ab.ReasonThreshold:
			return false
		case r.Last > 0:
			return count(last(failed, r.Last)) >= r.N
		}
		return inARow(failed) >= r.N
	})
}

// keep returns those of the calls that are remembered: the last ones if there
// is a KOfN, otherwise failures since the last success, if they matter.
func (p Policy) keep(failed []bool) []bool {
	n, history := p.back()
	switch {
	case n > 0 && !history:
		n = inARow(failed)
	case history && count(last(failed, n)) > 0:
		n = len(failed) // all, for who may want more of them later
	}
	return last(failed, n)
}

// back returns how many calls matter, and whether all of them do, and not only
// failures in a row.
func (p Policy) back() (n int, history bool) {
	for _, r := range p {
		if r.Why == ab.ReasonThreshold {
			n, history = max(n, r.N, r.Last), history || r.Last > 0
		}
	}
	if n == 0 && slices.ContainsFunc(p, func(r Rule) bool { return r.Why == ab.ReasonTripFunc }) {
		n = 1 // all in a row, for Counts.Consecutive
	}
	return n, history
}

// Last returns how many calls its KOfNs look back on at most.
func (p Policy) Last() (n int) {
	for _, r := range p {
		n = max(n, r.Last)
	}
	return n
}

func last(calls []bool, n int) []bool { return calls[max(0, len(calls)-n):] }

func count(calls []bool) (n int) {
	for _, failed := range calls {
		if failed {
			n++
		}
	}
	return n
}

func inARow(calls []bool) (n int) {
	for n < len(calls) && calls[len(calls)-1-n] {
		n++
	}
	return n
}
