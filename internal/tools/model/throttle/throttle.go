// Package model has the sequential model of a Throttle of package throttle. See internal/tools/model.
package model

import "time"

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
		t.since = t.Now
		_, _, t.odds = t.Counts()
	}
	return t.odds
}

// Success counts an accept.
func (t *Throttle) Success() { t.accepts = append(t.accepts, t.Now) }

// Counts returns what is in the window, and the probability that follows from that.
func (t *Throttle) Counts() (requests, accepts int, odds float64) {
	requests, accepts = t.in(t.requests), t.in(t.accepts)
	if requests >= t.MinRequests {
		odds = max(0, (float64(requests)-t.Ratio*float64(accepts))/float64(requests+1))
	}
	return requests, accepts, odds
}
