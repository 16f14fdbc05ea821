package gobreaker

import (
	"sync"
	"sync/atomic"
)

// rolling are the counts of a closed generation with more than one bucket. No user
// code runs under the mutex.
type rolling struct {
	mu      sync.Mutex
	n       Counts        // of all buckets; its runs may have begun before them
	age     atomic.Uint64 // of the newest bucket; it only grows, under the mutex
	buckets []Counts
}

func (r *rolling) at(age uint64) *Counts { return &r.buckets[age%uint64(len(r.buckets))] }

// grow makes the bucket of this age the newest one, and forgets those that it and
// those between replace.
func (r *rolling) grow(age uint64) {
	if age <= r.age.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	newest := r.age.Load()
	switch {
	case age <= newest:
		return
	case age-newest >= uint64(len(r.buckets)):
		clear(r.buckets)
		r.n = Counts{}
	default:
		for newest < age {
			newest++
			r.forget(r.at(newest))
		}
	}
	r.age.Store(age)
}

// forget empties the oldest bucket. A run loses its part in it if it goes back to that
// and no result of the other kind has interrupted it, as in gobreaker.
func (r *rolling) forget(oldest *Counts) {
	if r.n.ConsecutiveSuccesses == r.n.TotalSuccesses-oldest.TotalSuccesses+oldest.ConsecutiveSuccesses {
		r.n.ConsecutiveSuccesses -= oldest.ConsecutiveSuccesses
	}
	if r.n.ConsecutiveFailures == r.n.TotalFailures-oldest.TotalFailures+oldest.ConsecutiveFailures {
		r.n.ConsecutiveFailures -= oldest.ConsecutiveFailures
	}
	r.n.Requests -= oldest.Requests
	r.n.TotalSuccesses -= oldest.TotalSuccesses
	r.n.TotalFailures -= oldest.TotalFailures
	r.n.TotalExclusions -= oldest.TotalExclusions
	*oldest = Counts{}
}

// request counts a call in the newest bucket, and returns the age of that.
func (r *rolling) request() (age uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	age = r.age.Load()
	r.n.Requests++
	r.at(age).Requests++
	return age
}

// end counts a result in the bucket of its request, unless that is forgotten, and
// returns all counts.
func (r *rolling) end(res result, age uint64) Counts {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.age.Load()-age < uint64(len(r.buckets)) {
		r.n.end(res)
		r.at(age).end(res)
	}
	return r.n
}

func (r *rolling) counts() Counts {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.n
}
