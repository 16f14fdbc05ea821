package oncecache

import (
	"time"
	"weak"

	"github.com/latchfree/latchfree/internal/atomics"
)

// settled follows the end of a creation, or Set, that has left an entry in the
// table: the entry takes its place in the order, and others may have to go.
func (r *root[K]) settled(e *entry[K]) {
	if r.order == nil {
		return
	}
	p := e.state.Load()
	if p == nil || p.mark == nil {
		return // Close, or the timer, has come between
	}
	r.evictAll(r.order.add(r, standingOf[K](p.mark)))
}

// evictAll removes doomed entries, all of them before any is closed, and returns
// how many it was that did.
func (r *root[K]) evictAll(out []*standing[K]) (evicted int) {
	var free []*entry[K]
	for _, s := range out {
		removed, closes := r.evict(s.entry)
		if removed {
			evicted++
		}
		if closes {
			free = append(free, s.entry)
		}
	}
	r.later(free...)
	return evicted
}

// evict removes a doomed entry, unless somebody else has, and reports whether its
// value is to be closed then.
func (r *root[K]) evict(e *entry[K]) (removed, closes bool) {
	if !r.remove(e) {
		return false, false
	}
	r.books.evicted.Add(1)
	return true, r.release(e, r.leave(e))
}

// sweeper is a timer that sweeps once.
type sweeper struct{ stop func() }

// shortestSweep bounds how often a timer sweeps.
const shortestSweep = time.Millisecond

// arm starts the timer of the next sweep, if there is none. The caller holds
// mu. The timer does not keep the cache alive.
func (o *order[K]) arm(r *root[K]) {
	if o.next != nil {
		return
	}
	root, s := weak.Make(r), new(sweeper)
	s.stop = atomics.After(max(o.idle/2, shortestSweep), func() {
		if r := root.Value(); r != nil {
			r.tick(s)
		}
	})
	o.next = s
}

// tick sweeps for s, and starts the next timer if anything is left and none has
// been started since: the order may have been empty meanwhile.
func (r *root[K]) tick(s *sweeper) {
	r.sweep()
	o := r.order
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.next == s {
		o.next = nil
	}
	if o.len > 0 {
		o.arm(r)
	}
}

// Sweep removes the values that nobody has used for Config.IdleTimeout, and the
// errors whose time is over, and returns their number. With an IdleTimeout a
// timer does this too, and otherwise the failures of creations from time to
// time: it need not be called. What it removes is closed on goroutines of the
// cache.
//
// Sweep is blocking on the mutex of one bucket at a time, on that of the errors
// and, with an IdleTimeout, on that of the order of the entries and on another
// Sweep. It takes effect for each key when the entry is removed.
func (c *Cache[K, V]) Sweep() int { return c.sweep() }

func (c *core[K]) sweep() int {
	r := c.root.Load()
	if r == nil {
		return 0
	}
	return r.sweep() // LP(Sweep)
}

func (r *root[K]) sweep() (removed int) {
	if o := r.order; o != nil && o.idle > 0 {
		removed = r.sweepIdle()
	}
	if r.kept != nil {
		for {
			some, more := r.expireSome()
			removed += some
			if !more {
				break
			}
		}
	}
	return removed
}

// sweepIdle removes what nobody has used for the timeout. It lets others pass
// after every few entries.
func (r *root[K]) sweepIdle() (removed int) {
	o := r.order
	o.sweeping.Lock()
	defer o.sweeping.Unlock()
	o.mu.Lock()
	o.swept = o.oldest
	o.mu.Unlock()
	for more := true; more; {
		var out []*standing[K]
		out, more = o.idlers(r.now())
		removed += r.evictAll(out)
	}
	return removed
}

// fewSwept is how many entries a sweep looks at while others wait.
const fewSwept = 64

// idlers dooms those of the next few entries that are idle, and takes them out.
// More tells whether there are others. The caller holds sweeping.
func (o *order[K]) idlers(now time.Duration) (out []*standing[K], more bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for range fewSwept {
		s := o.swept
		if s == nil {
			return out, false
		}
		o.swept = s.newer
		leased := s.leased() // first: who ends a lease notes the use before
		switch {
		case s.asked(usedForIdle) || leased:
			s.seen = now
		case now-s.seen >= o.idle && s.doom(s.leased, usedForIdle):
			o.remove(s)
			out = append(out, s)
		}
	}
	return out, true
}
