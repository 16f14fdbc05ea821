package model

import (
	"maps"
	"time"
)

// tick is how exact deadlines are.
const tick = time.Millisecond

// expiry is since when values are new, and when they expire.
type expiry struct {
	born map[int]time.Duration // by key
	ends map[int]time.Duration // by key; none: the value does not expire
}

// after is when what begins now and lasts so long is over.
func (o *Owner) after(d time.Duration) time.Duration { return (o.Now + d + tick - 1) / tick * tick }

// limit makes the value of k a new one, and reports whether it has not expired at once.
func (o *Owner) limit(k int) bool {
	v, ok := o.ready[k]
	if !ok {
		return true
	}
	delete(o.ends, k)
	o.born[k] = o.Now
	if o.Lifetime == nil {
		return true
	}
	ttl := o.Lifetime(k, v)
	if ttl <= 0 {
		o.expire(k)
		return false
	}
	if end := o.Now + ttl; end > 0 {
		o.ends[k] = o.after(ttl)
	}
	return true
}

func (o *Owner) expire(k int) {
	o.Expired++
	o.drop(k, "Expired")
}

// expireAll removes the values and failures whose end has come.
func (o *Owner) expireAll() {
	for k, end := range maps.Clone(o.ends) {
		if end <= o.Now {
			o.expire(k)
		}
	}
	for k, f := range maps.Clone(o.failures) {
		if f.until <= o.Now {
			o.drop(k, "")
		}
	}
}

// Info is what is known of the value of k.
func (o *Owner) Info(k int) (born, ends time.Duration, leases int, ok bool) {
	v, ok := o.ready[k]
	if !ok {
		return 0, 0, 0, false
	}
	if o.counts() {
		leases = o.users[v] - 1
	}
	if o.bounded() {
		born = o.born[k]
	}
	return born, o.ends[k], leases, true
}
