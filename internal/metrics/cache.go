package metrics

import (
	"errors"
	"time"

	"github.com/latchfree/latchfree/oncecache"
)

// Cache returns the source of c, with its creations under way if flights is set.
func Cache[K comparable, V any](c *oncecache.Cache[K, V], flights bool) *Source {
	s := &Source{Type: "cache"}
	entries := s.family("cache.entries", "{entry}", "Values in the cache.", Amount)
	weight := s.family("cache.weight", "1", "Sum of the weights of the values, with Config.MaxWeight.", Amount)
	created := s.family("cache.created", "{creation}", "Create functions that returned a value.", Counter)
	failed := s.family("cache.create.failures", "{creation}", "Create functions that returned an error.", Counter)
	panicked := s.family("cache.create.panics", "{creation}", "Create functions that panicked or called runtime.Goexit.", Counter)
	timedOut := s.family("cache.create.timeouts", "{creation}", "Creations that took longer than Config.CreateTimeout; their functions count elsewhere too when they end.", Counter)
	renewals := s.family("cache.renewals", "{renewal}", "Renewals that have begun in the background; their functions count elsewhere too when they end.", Counter)
	removed := s.family("cache.removals", "{entry}", "Values and kept errors that the cache removed by itself.", Counter, "cache.reason")
	closed := s.family("cache.value_closes", "{value}", "Calls of Config.Close that have ended.", Counter)
	reasons := []oncecache.Reason{oncecache.ReasonEvicted, oncecache.ReasonIdle, oncecache.ReasonExpired}
	lookups, underWay := func(Emit, oncecache.Stats) {}, func(Emit) {}
	if c.Stats().Recorded {
		hits := s.family("cache.hits", "{call}", "Look-ups that found a value.", Counter)
		misses := s.family("cache.misses", "{call}", "Look-ups that did not find a value.", Counter)
		joined := s.family("cache.joined", "{call}", "How often a call waited for the creation of another.", Counter)
		lookups = func(emit Emit, now oncecache.Stats) {
			emit(hits, float64(now.Hits))
			emit(misses, float64(now.Misses))
			emit(joined, float64(now.Joined))
		}
	}
	if flights {
		creations := s.family("cache.create.in_flight", "{creation}", "Creations that are under way.", Amount)
		waiting := s.family("cache.create.waiting", "{call}", "Goroutines that wait for a creation and do not run its function.", Amount)
		oldest := s.family("cache.create.oldest", "s", "How long ago the oldest creation under way began; 0 without one.", Gauge)
		underWay = func(emit Emit) {
			n, callers, age := 0, 0, time.Duration(0)
			for f := range c.InFlight() {
				n++
				callers += f.Waiting
				age = max(age, time.Since(f.Since))
			}
			emit(creations, float64(n))
			emit(waiting, float64(callers))
			emit(oldest, age.Seconds())
		}
	}
	s.Read = func(emit Emit) {
		now := c.Stats()
		emit(entries, float64(c.Len()))
		emit(weight, float64(now.Weight))
		emit(created, float64(now.Created))
		emit(failed, float64(now.Failed))
		emit(panicked, float64(now.Panicked))
		emit(timedOut, float64(now.TimedOut))
		emit(renewals, float64(now.Renewals))
		for i, n := range []uint64{now.Evicted, now.Idle, now.Expired} {
			emit(removed, float64(n), reasons[i].String())
		}
		emit(closed, float64(now.Closed))
		lookups(emit, now)
		underWay(emit)
	}
	return s
}

// Creations is a histogram of how long creations take.
func Creations() *Family {
	return &Family{"cache.create.duration", "s", "How long creations took, by the result of the function: ok, error or panic.", Gauge, []string{"cache.result"}}
}

// Results returns the values of the label of Creations.
func Results() []string { return []string{"ok", "error", "panic"} }

// Result returns how a create function has ended. OnCreate gets ErrNotModified only if there is
// no value that could stay, which is an error.
func Result(err error) string {
	var p *oncecache.PanicError
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &p) || errors.Is(err, oncecache.ErrGoexit):
		return "panic"
	}
	return "error"
}
