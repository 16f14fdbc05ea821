package model

import (
	"time"

	ab "github.com/latchfree/latchfree/atomicbreaker"
)

// Breaker is what one breaker should do at the time Now. A permit is a stay.
type Breaker struct {
	Threshold, Probes, CloseAfter       int
	OpenFor, MaxOpen, ProbeTimeout, Now time.Duration
	Events                              []ab.Event
	state                               ab.State // Open also when its time has passed
	stay, fails, streak, inFlight, ok   int
	until, lease                        time.Duration
}

func (b *Breaker) enter(s ab.State, why ab.Reason) {
	b.Events = append(b.Events, ab.Event{From: b.state, To: s, Reason: why, Failures: b.fails, Successes: b.ok,
		InFlight: b.inFlight, Streak: b.streak, OpenFor: max(0, b.until-b.Now)})
	b.stay, b.fails, b.inFlight = b.stay+1, 0, 0
	if s != b.state {
		b.state, b.ok = s, 0
	}
}
func (b *Breaker) close(why ab.Reason) { b.until = 0; b.enter(ab.Closed, why); b.streak = 0 }
func (b *Breaker) Reset()              { b.close(ab.ReasonReset) }
func (b *Breaker) State() ab.State {
	if b.state == ab.Open && b.Now >= b.until {
		return ab.HalfOpen
	}
	return b.state
}
func (b *Breaker) Allow() (stay int, err error) {
	if b.State() == ab.Open {
		return 0, ab.ErrOpen
	} else if b.state == ab.Open {
		b.enter(ab.HalfOpen, ab.ReasonOpenTimeout)
	} else if b.state == ab.HalfOpen && b.inFlight == b.Probes && b.Now < b.lease {
		return 0, ab.ErrTooManyProbes
	} else if b.state == ab.HalfOpen && b.inFlight == b.Probes { // and all are overdue
		b.enter(ab.HalfOpen, ab.ReasonProbeTimeout)
	}
	if b.state == ab.HalfOpen {
		b.inFlight++
		b.lease = b.Now + b.ProbeTimeout
	}
	return b.stay, nil
}
func (b *Breaker) Done(stay int, o ab.Outcome) ab.Verdict {
	if stay != b.stay {
		return ab.Late
	} else if b.inFlight = max(0, b.inFlight-1); o == ab.Failure { // none in flight while closed
		return b.fail(ab.ReasonProbeFailed)
	} else if o == ab.Success && b.state == ab.HalfOpen {
		b.ok++
	}
	if o == ab.Ignored || b.state == ab.HalfOpen && b.ok < b.CloseAfter {
		return ab.Counted
	}
	return b.succeed(ab.ReasonRecovered)
}
func (b *Breaker) RecordSuccess() ab.Verdict { return b.succeed(ab.ReasonRecordSuccess) }
func (b *Breaker) RecordFailure() ab.Verdict { return b.fail(ab.ReasonRecordFailure) }
func (b *Breaker) succeed(why ab.Reason) ab.Verdict {
	if b.fails = 0; b.state == ab.Closed {
		return ab.Counted
	}
	b.close(why)
	return ab.Recovered
}
func (b *Breaker) fail(why ab.Reason) ab.Verdict {
	if b.State() == ab.Open {
		return ab.Late
	} else if b.state == ab.Closed {
		if b.fails++; b.fails < b.Threshold {
			return ab.Counted
		}
		why = ab.ReasonThreshold
	}
	b.until = b.Now + min(b.OpenFor<<b.streak, b.MaxOpen)
	b.streak = min(b.streak+1, 31)
	b.enter(ab.Open, why)
	return ab.Tripped
}
func (b *Breaker) Snapshot() ab.Snapshot {
	return ab.Snapshot{State: b.State(), Failures: b.fails, Streak: b.streak, Successes: b.ok, InFlight: b.inFlight,
		RetryAfter: max(0, b.until-b.Now)}
}
