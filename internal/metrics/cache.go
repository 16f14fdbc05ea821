package metrics

import (
	"errors"
	"time"

	"github.com/latchfree/latchfree/oncecache"
)

var (
	cacheEntries   = Family{"cache.entries", "{entry}", "Values in the cache.", Amount, nil}
	cacheWeight    = Family{"cache.weight", "1", "Sum of the weights of the values, with Config.MaxWeight.", Amount, nil}
	cacheCreated   = Family{"cache.created", "{creation}", "Create functions that returned a value.", Counter, nil}
	cacheFailed    = Family{"cache.create.failures", "{creation}", "Create functions that returned an error.", Counter, nil}
	cachePanicked  = Family{"cache.create.panics", "{creation}", "Create functions that panicked or called runtime.Goexit.", Counter, nil}
	cacheTimedOut  = Family{"cache.create.timeouts", "{creation}", "Creations that took longer than Config.CreateTimeout; their functions count elsewhere too when they end.", Counter, nil}
	cacheRemoved   = Family{"cache.removals", "{entry}", "Values and kept errors that the cache removed by itself.", Counter, []string{"cache.reason"}}
	cacheClosed    = Family{"cache.value_closes", "{value}", "Calls of Config.Close that have ended.", Counter, nil}
	cacheHits      = Family{"cache.hits", "{call}", "Look-ups that found a value.", Counter, nil}
	cacheMisses    = Family{"cache.misses", "{call}", "Look-ups that did not find a value.", Counter, nil}
	cacheJoined    = Family{"cache.joined", "{call}", "Calls that waited for the creation of another call.", Counter, nil}
	cacheFlights   = Family{"cache.create.in_flight", "{creation}", "Creations that are under way.", Amount, nil}
	cacheWaiting   = Family{"cache.create.waiting", "{call}", "Goroutines that wait for a creation and do not run its function.", Amount, nil}
	cacheOldest    = Family{"cache.create.oldest", "s", "How long ago the oldest creation under way began; 0 without one.", Gauge, nil}
	removalReasons = [...]oncecache.Reason{oncecache.ReasonEvicted, oncecache.ReasonIdle, oncecache.ReasonExpired}

	// Creations is a histogram of how long creations take.
	Creations = Family{"cache.create.duration", "s", "How long creations took, by the result of the function: ok, error or panic.", Gauge, []string{"cache.result"}}
)

// Cache returns the source of c, with its creations under way if flights is set.
func Cache[K comparable, V any](c *oncecache.Cache[K, V], flights bool) *Source {
	families := []*Family{&cacheEntries, &cacheWeight, &cacheCreated, &cacheFailed, &cachePanicked, &cacheTimedOut, &cacheRemoved, &cacheClosed}
	recorded := c.Stats().Recorded
	if recorded {
		families = append(families, &cacheHits, &cacheMisses, &cacheJoined)
	}
	if flights {
		families = append(families, &cacheFlights, &cacheWaiting, &cacheOldest)
	}
	return &Source{"cache", families, func(emit Emit) {
		s := c.Stats()
		emit(&cacheEntries, float64(c.Len()))
		emit(&cacheWeight, float64(s.Weight))
		emit(&cacheCreated, float64(s.Created))
		emit(&cacheFailed, float64(s.Failed))
		emit(&cachePanicked, float64(s.Panicked))
		emit(&cacheTimedOut, float64(s.TimedOut))
		for i, n := range []uint64{s.Evicted, s.Idle, s.Expired} {
			emit(&cacheRemoved, float64(n), removalReasons[i].String())
		}
		emit(&cacheClosed, float64(s.Closed))
		if recorded {
			emit(&cacheHits, float64(s.Hits))
			emit(&cacheMisses, float64(s.Misses))
			emit(&cacheJoined, float64(s.Joined))
		}
		if flights {
			creating, waiting, oldest := 0, 0, time.Duration(0)
			for f := range c.InFlight() {
				creating++
				waiting += f.Waiting
				oldest = max(oldest, time.Since(f.Since))
			}
			emit(&cacheFlights, float64(creating))
			emit(&cacheWaiting, float64(waiting))
			emit(&cacheOldest, oldest.Seconds())
		}
	}}
}

// Results are the values of the label of Creations.
var Results = []string{"ok", "error", "panic"}

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
