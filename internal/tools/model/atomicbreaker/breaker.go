// Package model has the sequential models of a Breaker and of a key of a Group. See internal/tools/model.
package model

import (
	"math"
	"slices"
	"time"

	ab "github.com/latchfree/latchfree/atomicbreaker"
)

// Breaker is what one breaker should do at the time Now. A key of a Group is
// Keyed.
type Breaker struct {
	Settings
	Keyed  bool
	Forget time.Duration // GroupConfig.ForgetAfter, or 0 for never
	Now    time.Duration
	Events []ab.Event
	Stats  ab.Stats
	Places *Places // of the keys that are open, or nil

	state                  ab.State // Open also when its time has passed
	stay, streak, inFlight int
	ok, bad                int // results of probes
	period                 int // the stay with which it became half-open
	until, lease           time.Duration

	recent  []bool        // of the last calls, while closed: whether they failed
	history bool          // they are of a policy with a KOfN
	timed   []call        // in windows
	watched bool          // successes of the key count in windows too
	touched time.Duration // when it last counted what it is kept for
	probed  time.Duration // when the newest probe was admitted, or HalfOpen made it half-open
}

// Settings are what Update changes.
type Settings struct {
	Policy                         Policy
	Probes, CloseAfter             int
	ProbeRate                      float64
	OpenFor, MaxOpen, ProbeTimeout time.Duration
	Constant                       bool            // MaxOpenTimeout is zero: MaxOpen is for Trip alone
	Backoff                        []time.Duration // for the first openings in a row; the last is for all others
	Shadow                         bool
	Totals                         bool
}

// Config returns what New takes.
func (s Settings) Config() ab.Config {
	c := ab.Config{Policy: s.Policy.Real(), Probes: s.Probes, CloseAfter: s.CloseAfter, ProbeFailureRate: s.ProbeRate, Shadow: s.Shadow,
		OpenTimeout: s.OpenFor, MaxOpenTimeout: s.MaxOpen, ProbeTimeout: s.ProbeTimeout, RecordTotals: s.Totals}
	if s.Constant {
		c.MaxOpenTimeout = 0
	}
	if s.Backoff != nil {
		c.Backoff = func(streak int) time.Duration { return s.Backoff[min(streak, len(s.Backoff))-1] }
	}
	return c
}

// Places are those of GroupConfig.MaxOpen: at most so many keys open by failures. Zero
// means no bound.
type Places struct{ Most, Taken int }

// full reports whether the key may not open. It counts that.
func (b *Breaker) full() bool {
	if b.Places == nil || b.Places.Most == 0 || b.Places.Taken < b.Places.Most {
		return false
	}
	b.Stats.Withheld++
	return true
}

// out reports whether a key in a state takes a place.
func out(s ab.State) bool { return s == ab.Open || s == ab.HalfOpen }

// Permit says in which stay a call was admitted, and when if that matters. That
// of a call which a shadow would have rejected is of no stay and, without totals, Void.
type Permit struct {
	stay        int
	timed, Void bool
	begun       time.Duration
}

const never = time.Duration(math.MaxInt64)

func (b *Breaker) left() time.Duration {
	if b.until == never {
		return never
	}
	return max(0, b.until-b.Now)
}

func (b *Breaker) enter(s ab.State, why ab.Reason) {
	b.tell(ab.Event{To: s, Reason: why, Failures: b.failures() + b.bad})
	if b.Places != nil && out(s) && !out(b.state) {
		b.Places.Taken++
	} else if b.Places != nil && !out(s) && out(b.state) {
		b.Places.Taken--
	}
	if b.stay, b.inFlight = b.stay+1, 0; s != b.state {
		b.state, b.ok, b.bad, b.period = s, 0, 0, b.stay
	}
	b.recent, b.timed, b.watched = nil, nil, false
	switch s {
	case ab.Closed:
		b.Stats.Closed++
	case ab.Open, ab.ForcedOpen:
		b.Stats.Opened++
	}
}
func (b *Breaker) tell(e ab.Event) {
	e.From, e.Successes, e.InFlight, e.Streak, e.OpenFor, e.Shadow = b.state, b.ok, b.inFlight, b.streak, b.left(), b.Shadow
	b.Events = append(b.Events, e)
}
func (b *Breaker) set(s ab.State, why ab.Reason, until time.Duration) {
	b.until = until
	b.enter(s, why)
	b.streak = 0
}
func (b *Breaker) Reset() {
	b.forget()
	b.set(ab.Closed, ab.ReasonReset, 0)
}
func (b *Breaker) ForceOpen() {
	b.forget()
	if b.state != ab.ForcedOpen {
		b.set(ab.ForcedOpen, ab.ReasonForceOpen, never)
	}
}
func (b *Breaker) HalfOpen() {
	b.forget()
	if b.state != ab.HalfOpen {
		b.until, b.lease, b.probed = 0, 0, b.Now
		b.enter(ab.HalfOpen, ab.ReasonHalfOpen)
	}
}
func (b *Breaker) Disable() {
	b.forget()
	if b.state != ab.Disabled {
		b.set(ab.Disabled, ab.ReasonDisable, 0)
	}
}

// end returns until when the breaker is open if it opens for d; 0: its turn.
func (b *Breaker) end(d time.Duration) time.Duration {
	if d < 0 {
		return never
	} else if d == 0 && b.Backoff != nil {
		d = b.Backoff[min(b.streak, len(b.Backoff)-1)]
	} else if d == 0 && b.OpenFor < 0 {
		return never
	} else if d == 0 {
		d = b.OpenFor
		for range b.streak {
			if !b.Constant {
				d = min(2*d, b.MaxOpen)
			}
		}
	}
	return b.Now + min(d, b.MaxOpen)
}
func (b *Breaker) open(why ab.Reason, until time.Duration) ab.Verdict {
	b.until, b.streak = until, min(b.streak+1, 31)
	b.enter(ab.Open, why)
	return ab.Tripped
}
func (b *Breaker) Trip(d time.Duration) {
	b.forget()
	if until := b.end(d); b.Would() != ab.Open || until > b.until {
		b.open(ab.ReasonTrip, until)
	}
}

// Stays counts the changes of state, without a limit.
func (b *Breaker) Stays() int { return b.stay }

// Update keeps the state, and windows that stay the same.
func (b *Breaker) Update(s Settings) {
	if !slices.Equal(s.Policy.windows(), b.Policy.windows()) {
		b.timed = nil
	}
	b.Settings = s
}

// forgotten reports whether nobody has called the key for so long.
func (b *Breaker) forgotten() bool {
	switch {
	case b.Forget == 0 || !b.Keyed:
		return false
	case b.state == ab.Closed:
		return !b.Pristine() && b.Now >= b.touched+b.Forget
	case b.state == ab.Open:
		return b.until != never && b.Now >= b.until+b.Forget
	}
	return b.state == ab.HalfOpen && b.Now >= b.lease && b.Now >= b.probed+b.ProbeTimeout+b.Forget
}
func (b *Breaker) forget() {
	if !b.forgotten() {
		return
	} else if b.state == ab.Closed {
		b.recover()
	} else {
		b.set(ab.Closed, ab.ReasonForgotten, 0)
	}
}

// Would is the state, whether or not it is a shadow's.
func (b *Breaker) Would() ab.State {
	if b.forgotten() {
		return ab.Closed
	} else if b.state == ab.Open && b.Now >= b.until {
		return ab.HalfOpen
	}
	return b.state
}
func (b *Breaker) State() ab.State {
	if b.Shadow {
		return ab.Shadow
	}
	return b.Would()
}
func (b *Breaker) reject(err error) (Permit, error) {
	if b.Stats.Rejected++; b.Shadow {
		return Permit{stay: -1, Void: !b.Totals}, nil
	}
	return Permit{}, err
}
func (b *Breaker) Allow() (Permit, error) {
	b.forget()
	if s := b.Would(); s == ab.Open || s == ab.ForcedOpen {
		return b.reject(ab.ErrOpen)
	} else if b.state == ab.Open {
		b.enter(ab.HalfOpen, ab.ReasonOpenTimeout)
	} else if s == ab.HalfOpen && b.inFlight >= b.Probes && b.Now < b.lease {
		return b.reject(ab.ErrTooManyProbes)
	} else if s == ab.HalfOpen && b.inFlight >= b.Probes { // and all are overdue
		b.enter(ab.HalfOpen, ab.ReasonProbeTimeout)
	}
	if b.state == ab.HalfOpen {
		b.inFlight++
		b.lease, b.probed = b.Now+b.ProbeTimeout, b.Now
	}
	return Permit{stay: b.stay, timed: b.Policy.times(), begun: b.Now}, nil
}

// valid reports whether a permit's result is not late. An overdue probe has lost
// its slot, not its voice.
func (b *Breaker) valid(p Permit) bool {
	if p.Void {
		return false
	}
	if p.stay == b.stay || b.state == ab.HalfOpen && p.stay >= b.period {
		b.forget()
	}
	if p.stay == b.stay {
		b.inFlight = max(0, b.inFlight-1) // none is in flight while closed
	} else if b.state != ab.HalfOpen || p.stay < b.period {
		b.Stats.Late++
		return false
	}
	return true
}

// ended counts a call whose outcome is reported.
func (b *Breaker) ended(o ab.Outcome) {
	if b.Totals {
		*[]*uint64{&b.Stats.TotalSuccesses, &b.Stats.TotalFailures, &b.Stats.TotalIgnored}[o]++
	}
}

// Counted returns what Stats returns.
func (b *Breaker) Counted() ab.Stats {
	s := b.Stats
	s.Recorded = b.Totals
	return s
}

// Add adds the counts of a key to those of others.
func Add(s *ab.Stats, of ab.Stats) {
	s.Opened += of.Opened
	s.Closed += of.Closed
	s.Rejected += of.Rejected
	s.Late += of.Late
	s.Withheld += of.Withheld
	s.TotalSuccesses += of.TotalSuccesses
	s.TotalFailures += of.TotalFailures
	s.TotalIgnored += of.TotalIgnored
	s.Recorded = of.Recorded
}
func (b *Breaker) Done(p Permit, o ab.Outcome) ab.Verdict {
	if !p.Void {
		b.ended(o)
	}
	c := call{at: b.Now, failed: o == ab.Failure, took: b.took(p)}
	if !b.valid(p) {
		return ab.Late
	} else if o == ab.Ignored || b.state != ab.HalfOpen {
		return b.settle(c, o)
	}
	return b.probe(c.failed || b.Policy.slow(c))
}

// took is how long the call of a permit took, if that matters.
func (b *Breaker) took(p Permit) time.Duration {
	if p.timed {
		return b.Now - p.begun
	}
	return 0
}

// probe counts the result of a probe.
func (b *Breaker) probe(failed bool) ab.Verdict {
	if failed {
		b.bad++
	} else {
		b.ok++
	}
	switch all := b.ok + b.bad; {
	case b.bad > 0 && b.ProbeRate == 0, all >= b.CloseAfter && b.ProbeRate > 0 && float64(b.bad) >= b.ProbeRate*float64(all):
		return b.open(ab.ReasonProbeFailed, b.end(0))
	case all < b.CloseAfter:
		return ab.Counted
	}
	b.set(ab.Closed, ab.ReasonRecovered, 0)
	return ab.Recovered
}

// DoneTrip is a permit's Trip.
func (b *Breaker) DoneTrip(p Permit, d time.Duration) ab.Verdict {
	if !p.Void {
		b.ended(ab.Failure)
	}
	if !b.valid(p) {
		return ab.Late
	} else if b.state == ab.Disabled {
		return ab.Counted
	}
	if b.state == ab.HalfOpen {
		b.bad++
	} else if b.full() {
		return b.settled(call{at: b.Now, failed: true, took: b.took(p)}, true)
	}
	return b.open(ab.ReasonTrip, b.end(d))
}
func (b *Breaker) RecordSuccess() ab.Verdict {
	b.ended(ab.Success)
	b.forget()
	switch b.state {
	case ab.ForcedOpen:
		b.Stats.Late++
		return ab.Late
	case ab.Closed, ab.Disabled:
		return b.settle(call{at: b.Now}, ab.Success)
	}
	b.set(ab.Closed, ab.ReasonRecordSuccess, 0)
	return ab.Recovered
}
func (b *Breaker) RecordFailure() ab.Verdict {
	b.ended(ab.Failure)
	b.forget()
	switch b.Would() {
	case ab.Open, ab.ForcedOpen:
		b.Stats.Late++
		return ab.Late
	case ab.Closed, ab.Disabled:
		return b.settle(call{at: b.Now, failed: true}, ab.Failure)
	}
	return b.open(ab.ReasonRecordFailure, b.end(0))
}

// RetryAfter is how long a call that is rejected now should wait.
func (b *Breaker) RetryAfter() time.Duration {
	if b.state == ab.HalfOpen {
		return b.lease - b.Now
	}
	return b.left()
}

func (b *Breaker) Snapshot() ab.Snapshot {
	if b.forgotten() {
		return ab.Snapshot{State: b.State()}
	}
	return ab.Snapshot{Window: b.window(), State: b.State(), Would: b.Would(), Failures: b.failures() + b.bad, Streak: b.streak, Successes: b.ok,
		InFlight: b.inFlight, RetryAfter: b.left()}
}
