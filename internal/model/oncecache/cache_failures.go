package model

import (
	"maps"
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

// keep keeps an error, and makes room for it: those that are over go.
func (o *Owner) keep(k int, err error, ttl time.Duration) {
	until := o.Now + ttl
	if ttl < 0 {
		until = math.MaxInt64
	}
	o.failures[k] = failure{err, until}
	for k := range maps.Clone(o.failures) {
		o.Expire(k)
	}
}

// answer returns the error that is kept for k, if there is one. One that is over
// makes room when it is asked for.
func (o *Owner) answer(k int) error {
	o.Expire(k)
	f, ok := o.failures[k]
	if ok {
		o.touch(k)
	}
	return f.err
}

// Expire removes the error of k, if its time is over.
func (o *Owner) Expire(k int) {
	if f, ok := o.failures[k]; ok && f.until <= o.Now {
		o.drop(k, "")
	}
}

// Occupied reports whether k has no value, but an error, maybe one that is
// over, or is being created.
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
