package model

import (
	"time"

	ab "github.com/latchfree/latchfree/atomicbreaker"
)

// Throttle is what a throttle should count and reject at the time Now. It is
// exact if all times lie whole fifteenths of the window apart.
type Throttle struct {
	Ratio       float64
	MinRequests int
	Window, Now time.Duration

	requests, accepts []time.Duration // when they were counted
	odds              float64         // as of the first request
	since             time.Duration   // at this time
}

// Config returns what NewThrottle takes.
func (t *Throttle) Config() ab.ThrottleConfig {
	return ab.ThrottleConfig{Ratio: t.Ratio, MinRequests: t.MinRequests, Window: t.Window}
}

func (t *Throttle) in(times []time.Duration) (n int) {
	for _, at := range times {
		if t.Now-at <= t.Window {
			n++
		}
	}
	return n
}

// Allow counts a request and returns the probability with which it is rejected,
// which the first request of a time finds for all that follow then.
func (t *Throttle) Allow() (odds float64) {
	t.requests = append(t.requests, t.Now)
	if t.since != t.Now {
		t.since, t.odds = t.Now, t.Snapshot().RejectProbability
	}
	return t.odds
}

// Success counts an accept.
func (t *Throttle) Success() { t.accepts = append(t.accepts, t.Now) }

func (t *Throttle) Snapshot() ab.ThrottleSnapshot {
	s := ab.ThrottleSnapshot{Requests: t.in(t.requests), Accepts: t.in(t.accepts)}
	if s.Requests >= t.MinRequests {
		s.RejectProbability = max(0, (float64(s.Requests)-t.Ratio*float64(s.Accepts))/float64(s.Requests+1))
	}
	return s
}
