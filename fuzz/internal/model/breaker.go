package model

import (
	"time"

	ab "github.com/latchfree/latchfree/atomicbreaker"
)

// Breaker is what one breaker should do at the time Now. A permit is a stay.
type Breaker struct {
	Threshold, Probes, CloseAfter       int
	OpenFor, MaxOpen, ProbeTimeout, Now time.Duration
	state                               ab.State // Open also when its time has passed
	stay, fails, streak, inFlight, ok   int
	until, lease                        time.Duration
}

func (b *Breaker) enter(s ab.State) {
	b.state, b.stay, b.fails, b.inFlight, b.until = s, b.stay+1, 0, 0, 0
}
func (b *Breaker) Reset() { b.enter(ab.Closed); b.streak = 0 }
func (b *Breaker) State() ab.State {
	if b.state == ab.Open && b.Now >= b.until {
		return ab.HalfOpen
	}
	return b.state
}
func (b *Breaker) Allow() (stay int, err error) {
	if b.State() == ab.Open {
		return 0, ab.ErrOpen
	}
	if b.state == ab.Open {
		b.enter(ab.HalfOpen)
		b.ok = 0
	}
	if b.state == ab.HalfOpen {
		if b.inFlight == b.Probes && b.Now < b.lease {
			return 0, ab.ErrTooManyProbes
		} else if b.inFlight == b.Probes { // and all are overdue
			b.enter(ab.HalfOpen)
		}
		b.inFlight++
		b.lease = b.Now + b.ProbeTimeout
	}
	return b.stay, nil
}
func (b *Breaker) Done(stay int, o ab.Outcome) ab.Verdict {
	if stay != b.stay {
		return ab.Late
	} else if b.inFlight = max(0, b.inFlight-1); o == ab.Failure { // none in flight while closed
		return b.RecordFailure()
	} else if o == ab.Success && (b.state == ab.Closed || b.ok+1 == b.CloseAfter) {
		return b.RecordSuccess()
	} else if o == ab.Success {
		b.ok++
	}
	return ab.Counted
}
func (b *Breaker) RecordSuccess() ab.Verdict {
	if b.fails = 0; b.state != ab.Closed {
		b.Reset()
		return ab.Recovered
	}
	return ab.Counted
}
func (b *Breaker) RecordFailure() ab.Verdict {
	if b.State() == ab.Open {
		return ab.Late
	} else if b.fails++; b.state == ab.Closed && b.fails < b.Threshold {
		return ab.Counted
	}
	b.enter(ab.Open)
	b.until = b.Now + min(b.OpenFor<<b.streak, b.MaxOpen)
	b.streak = min(b.streak+1, 31)
	return ab.Tripped
}
func (b *Breaker) Snapshot() ab.Snapshot {
	return ab.Snapshot{State: b.State(), Failures: b.fails, Streak: b.streak, InFlight: b.inFlight,
		RetryAfter: max(0, b.until-b.Now)}
}
