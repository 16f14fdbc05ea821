package model

import (
	"math"
	"time"
)

// ExpiryOps is what both a registry with Config.TTL and its model do.
type ExpiryOps interface {
	RegistryOps
	Renew(string, Version, time.Duration) error
}

// ttl runs Config.TTL, if there is one.
func (r *Registry) ttl(key string, v int) time.Duration {
	if r.config.TTL == nil {
		return math.MaxInt64
	}
	return r.config.TTL(key, v)
}

// lives gives key a deadline, unless that is centuries away.
func (r *Registry) lives(key string, ttl time.Duration) {
	switch {
	case ttl <= 0:
		r.deadlines[key] = 0 // long ago
	case ttl >= math.MaxInt64-r.now-time.Second:
		delete(r.deadlines, key)
	default:
		r.deadlines[key] = r.now + ttl
	}
}

func (r *Registry) Renew(given string, want Version, ttl time.Duration) error {
	key, err := r.normalize(given)
	if err == nil {
		err = r.want(given, want)
	}
	if err == nil {
		r.lives(key, ttl)
	}
	return err
}

// Pass lets time pass. Deadlines are rounded up to whole milliseconds.
func (r *Registry) Pass(d time.Duration) { r.now += d }

// Left returns how long key has to live, if it expires.
func (r *Registry) Left(key string) (left time.Duration, expires bool) {
	until, ok := r.deadlines[key]
	return (until+time.Millisecond-1)/time.Millisecond*time.Millisecond - r.now, ok
}

// Due reports whether the deadline of key has come.
func (r *Registry) Due(key string) bool {
	left, expires := r.Left(key)
	return expires && left <= 0
}

// Expire deletes what timers delete that run now.
func (r *Registry) Expire() {
	for e := range r.Entries() {
		if r.Due(e.Key) {
			r.ExpireKey(e.Key)
		}
	}
}

// ExpireKey does what a timer does for key, which is due.
func (r *Registry) ExpireKey(key string) {
	r.Delete(key)
	gone := r.gone[key]
	gone.Expired = true
	r.gone[key] = gone
}
