package model

import (
	"math"
	"time"
)

// failure is an error that answers for its key until some time.
type failure struct {
	err   error
	until time.Duration
}

// ttl says how long the error of an ending is kept.
func (o *Owner) ttl(k int, e Ending) time.Duration {
	if o.TTL == nil || e.Cut {
		return 0
	}
	return o.TTL(k, e.Err)
}

// keep keeps an error.
func (o *Owner) keep(k int, err error, ttl time.Duration) {
	until := time.Duration(math.MaxInt64)
	if ttl >= 0 {
		until = o.Now + ttl
	}
	o.failures[k] = failure{err, until}
}

// answer returns the error that is kept for k, if there is one.
func (o *Owner) answer(k int) error {
	f, ok := o.failures[k]
	if ok {
		o.touch(k)
	}
	return f.err
}

// Occupied reports whether k has no value, but an error, or is being created.
func (o *Owner) Occupied(k int) bool {
	_, fails := o.failures[k]
	return fails || o.flights[k] != nil
}

// overdue ends a flight whose function goes on.
func (o *Owner) overdue(f *Flight, k int) {
	o.TimedOut++
	o.crews[f].again = o.crews[f].off // who is aboard is an heir
	*f = Flight{Over: true, Err: o.ErrTimeout}
	for _, flights := range []map[int]*Flight{o.flights, o.renewals} {
		if flights[k] == f {
			delete(flights, k)
		}
	}
}
