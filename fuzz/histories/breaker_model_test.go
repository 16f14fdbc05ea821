//go:build !modelcheck

package histories_test

import (
	"fmt"
	"math"
	"strings"
	"time"

	ab "github.com/latchfree/latchfree/atomicbreaker"
)

const (
	breakerClients = 4

	// never is the end of an open time that only Reset ends.
	never = time.Duration(math.MaxInt64)
)

// breakerLimits are the settings of a breaker. OpenFor 0 stands for ever.
type breakerLimits struct {
	threshold, probes, closeAfter int
	last                          int // calls of which threshold failures count; 0: in a row
	openFor, maxOpen, probeFor    time.Duration
}

func (l *breakerLimits) config() ab.Config {
	c := ab.Config{
		Policy: ab.Consecutive(l.threshold), Probes: l.probes, CloseAfter: l.closeAfter,
		OpenTimeout: l.openFor, MaxOpenTimeout: l.maxOpen, ProbeTimeout: l.probeFor,
	}
	if l.last > 0 {
		c.Policy = ab.KOfN(l.threshold, l.last)
	}
	if l.openFor == 0 {
		c.OpenTimeout, c.MaxOpenTimeout, c.ProbeTimeout = -1, 0, 0
	}
	return c
}

// circuit is what a breaker is for one key. A stay is a time in one state; the
// permits of others are late.
type circuit struct {
	limits                      *breakerLimits
	state                       ab.State // Open also when its time has passed
	calls                       string   // the last, while closed: x for a failure
	stay, streak, inFlight, oks int
	period                      int // the stay with which it became half-open
	until, lease                time.Duration
	permits                     [2 * breakerClients]int // their stays, counted from 1
}

func (c *circuit) enter(s ab.State) {
	c.state, c.stay, c.calls, c.inFlight = s, c.stay+1, "", 0
	c.until, c.lease = 0, 0
}

func (c *circuit) close() { c.set(ab.Closed) }

// set is what is done by hand, but for Trip.
func (c *circuit) set(s ab.State) {
	c.enter(s)
	c.streak, c.oks = 0, 0
}

// open opens for d; 0 is for as long as it is its turn.
func (c *circuit) open(d, now time.Duration) {
	c.enter(ab.Open)
	switch {
	case d < 0, d == 0 && c.limits.openFor == 0:
		c.until = never
	case d == 0:
		c.until = now + min(c.limits.openFor<<c.streak, c.limits.maxOpen)
	default:
		c.until = now + min(d, c.limits.maxOpen)
	}
	c.streak = min(c.streak+1, 31)
}

// trip does not make an open time shorter.
func (c circuit) trip(d, now time.Duration) circuit {
	next := c
	if next.open(d, now); c.seen(now) == ab.Open && next.until <= c.until {
		return c
	}
	return next
}

// count counts a call while closed, and reports whether it is enough.
func (c *circuit) count(o ab.Outcome) (opens bool) {
	switch n := c.limits.last; {
	case o == ab.Failure:
		c.calls += "x"
	case n == 0:
		c.calls = ""
	default:
		c.calls += "."
	}
	if n := c.limits.last; n > 0 {
		c.calls = strings.TrimLeft(c.calls[max(0, len(c.calls)-n):], ".")
	}
	return o == ab.Failure && strings.Count(c.calls, "x") >= c.limits.threshold
}

func (c circuit) seen(now time.Duration) ab.State {
	if c.state == ab.Open && now >= c.until {
		return ab.HalfOpen
	}
	return c.state
}

func (c circuit) allow(slot int, now time.Duration) (circuit, error) {
	switch {
	case c.seen(now) == ab.Open, c.state == ab.ForcedOpen:
		return c, ab.ErrOpen
	case c.state == ab.Open:
		c.enter(ab.HalfOpen)
		c.oks, c.period = 0, c.stay
	case c.state == ab.HalfOpen && c.inFlight == c.limits.probes && now < c.lease:
		return c, ab.ErrTooManyProbes
	case c.state == ab.HalfOpen && c.inFlight == c.limits.probes:
		c.enter(ab.HalfOpen) // all are overdue
	}
	if c.state == ab.HalfOpen {
		c.inFlight++
		c.lease = now + c.limits.probeFor
	}
	c.permits[slot] = 1 + c.stay
	return c, nil
}

// take takes a permit from its holder, and reports whether it is worth anything.
// It gives back its slot, which an overdue probe has lost.
func (c circuit) take(slot int) (circuit, bool) {
	stay := c.permits[slot] - 1
	c.permits[slot] = 0
	if c.state == ab.HalfOpen && stay == c.stay {
		c.inFlight--
	}
	return c, stay == c.stay || c.state == ab.HalfOpen && stay >= c.period
}

// reportTrip is report of a failure that says for how long.
func (c circuit) reportTrip(slot int, d, now time.Duration) (circuit, ab.Verdict) {
	c, valid := c.take(slot)
	switch {
	case !valid:
		return c, ab.Late
	case c.state == ab.Disabled:
		return c, ab.Counted
	}
	c.open(d, now)
	return c, ab.Tripped
}

func (c circuit) report(slot int, o ab.Outcome, now time.Duration) (circuit, ab.Verdict) {
	c, valid := c.take(slot)
	if !valid {
		return c, ab.Late
	}
	if c.state == ab.HalfOpen && o == ab.Success && c.oks+1 < c.limits.closeAfter {
		c.oks++
		return c, ab.Counted
	}
	if o == ab.Ignored {
		return c, ab.Counted
	}
	return c.record(o, now)
}

func (c circuit) record(o ab.Outcome, now time.Duration) (circuit, ab.Verdict) {
	switch {
	case c.state == ab.Disabled:
		return c, ab.Counted
	case c.state == ab.ForcedOpen || o == ab.Failure && c.seen(now) == ab.Open:
		return c, ab.Late
	case c.state == ab.Closed && !c.count(o):
		return c, ab.Counted
	case o == ab.Success:
		c.close()
		return c, ab.Recovered
	}
	c.open(0, now)
	return c, ab.Tripped
}

func (c circuit) look(now time.Duration) snapshot {
	s := snapshot{c.seen(now), strings.Count(c.calls, "x"), c.streak, c.inFlight, 0}
	switch {
	case s.State == ab.ForcedOpen, s.State == ab.Open && c.until == never:
		s.RetryAfter = never
	case s.State == ab.Open:
		s.RetryAfter = c.until - now
	}
	return s
}

// snapshot is what a model can tell of an ab.Snapshot.
type snapshot struct {
	State                      ab.State
	Failures, Streak, InFlight int
	RetryAfter                 time.Duration
}

func shorten(s ab.Snapshot) snapshot {
	return snapshot{s.State, s.Failures, s.Streak, s.InFlight, s.RetryAfter}
}

// breakerEvent is an operation of a breaker on one key.
type breakerEvent struct {
	op      string
	slot    int           // of a permit
	outcome ab.Outcome    // reported
	now     time.Duration // the time, which stands still meanwhile
	d       time.Duration // of a Trip
	got     any           // returned; nil if nothing was, or it is not known
}

func (e breakerEvent) Kind() string {
	if s, ok := e.got.(snapshot); ok {
		return fmt.Sprint(e.op, " ", s.State)
	}
	return fmt.Sprint(e.op, " ", e.got)
}

func (e breakerEvent) String() string {
	s := fmt.Sprintf("%s %+v at %v", e.op, e.got, e.now)
	if e.op == "Allow" || e.op == "report" || e.op == "Permit.Trip" {
		s = fmt.Sprintf("%s, permit %d", s, e.slot)
	}
	if e.op == "Trip" || e.op == "Permit.Trip" {
		s = fmt.Sprintf("%s, for %v", s, e.d)
	}
	if e.op == "report" || e.op == "record" {
		s = fmt.Sprintf("%v %s", e.outcome, s)
	}
	return s
}

func (e breakerEvent) After(c circuit) (circuit, bool) {
	switch e.op {
	case "Allow":
		next, err := c.allow(e.slot, e.now)
		return next, err == e.got
	case "report":
		next, v := c.report(e.slot, e.outcome, e.now)
		return next, e.got == nil || v == e.got
	case "record":
		next, v := c.record(e.outcome, e.now)
		return next, v == e.got
	case "Permit.Trip":
		next, v := c.reportTrip(e.slot, e.d, e.now)
		return next, v == e.got
	case "Trip":
		return c.trip(e.d, e.now), true
	case "ForceOpen":
		if c.state != ab.ForcedOpen {
			c.set(ab.ForcedOpen)
		}
		return c, true
	case "Disable":
		if c.state != ab.Disabled {
			c.set(ab.Disabled)
		}
		return c, true
	case "Reset":
		c.close()
		return c, true
	case "State":
		return c, c.seen(e.now) == e.got
	case "IsOpen":
		return c, (c.seen(e.now) == ab.Open || c.state == ab.ForcedOpen) == e.got
	case "Snapshot":
		return c, c.look(e.now) == e.got
	}
	panic(e.op)
}
