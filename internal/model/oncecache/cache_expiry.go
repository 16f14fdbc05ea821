package model

import (
	"maps"
	"time"
)

// expiry is when values expire.
type expiry struct {
	ends map[int]time.Duration // by key; none: the value does not expire
}

// limit sets an end to the value of k, if it has one, and reports whether that has not come.
func (o *Owner) limit(k int) bool {
	v, ok := o.ready[k]
	if !ok || o.Lifetime == nil {
		return true
	}
	ttl := o.Lifetime(k, v)
	if ttl <= 0 {
		o.expire(k)
		return false
	}
	delete(o.ends, k)
	if end := o.Now + ttl; end > 0 {
		o.ends[k] = end
	}
	return true
}

func (o *Owner) expire(k int) {
	o.Expired++
	o.drop(k, "Expired")
}

// expireAll removes the values whose end has come.
func (o *Owner) expireAll() {
	for k, end := range maps.Clone(o.ends) {
		if end <= o.Now {
			o.expire(k)
		}
	}
}
