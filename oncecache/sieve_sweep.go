package oncecache

import (
	"time"
	"weak"

	"github.com/latchfree/latchfree/internal/atomics"
)

// sweeper is a timer that sweeps once.
type sweeper struct {
	stop func()
	in   uint64 // the bubble of testing/synctest in which it was made; zero: none
}

// newSweeper returns a timer that calls f with itself after d.
func newSweeper(d time.Duration, f func(*sweeper)) *sweeper {
	t := &sweeper{in: atomics.Bubble()}
	t.stop = atomics.After(d, func() { f(t) })
	return t
}

// fires reports whether t, which may be nil, will fire for a caller whose clock shows now, or a
// later time: the timers of a bubble fire in that alone.
func (t *sweeper) fires(a *accounting, now time.Duration) bool {
	return t != nil && (t.in == 0 && now >= a.real() || t.in == atomics.Bubble())
}

// end stops t. If that is a timer of another bubble, it must not be stopped, and does no harm.
func (t *sweeper) end() {
	if t.in == 0 || t.in == atomics.Bubble() {
		t.stop()
	}
}

// shortestSweep bounds how often a timer sweeps.
const shortestSweep = time.Millisecond

// arm starts the timer of the next sweep, if there is none, for a caller whose clock
// shows now. The caller holds mu. The timer does not keep the cache alive, nor s, which has
// its entries.
func (s *sieve[K]) arm(r *root[K], now time.Duration) {
	if s.next.fires(r.accounting, now) {
		return
	}
	root := weak.Make(r)
	s.next = newSweeper(max(s.idle/2, shortestSweep), func(next *sweeper) {
		if r := root.Value(); r != nil {
			r.sieve.sweepAgain(r, next)
		}
	})
}

// sweepAgain sweeps for a sweeper, and starts the next timer if anything is left and
// none has been started since: the order may have been empty meanwhile.
func (s *sieve[K]) sweepAgain(r *root[K], by *sweeper) {
	r.sweep()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == by {
		s.next = nil
	}
	if s.len > 0 {
		s.arm(r, r.now())
	}
}

// sweepPlaces removes what has expired, and is sweepIdle, if there is a timeout.
func (s *sieve[K]) sweepPlaces(r *root[K]) (removed int) {
	if s.lives != nil {
		removed = s.expireDue(r)
	}
	if s.idle > 0 {
		removed += s.sweepIdle(r)
	}
	return removed
}

// sweepIdle removes the entries that no caller has used for the timeout. It unlocks the
// order after every few entries.
func (s *sieve[K]) sweepIdle(r *root[K]) (removed int) {
	s.sweeping.Lock()
	defer s.sweeping.Unlock()
	s.mu.Lock()
	s.swept = s.oldest
	s.mu.Unlock()
	for more := true; more; {
		var out []*sieveNode[K]
		out, more = s.idlers(r.now())
		removed += r.evictAll(out)
	}
	return removed
}

// fewSwept is how many entries a sweep looks at while other calls wait for the order.
const fewSwept = 64

// idlers dooms those of the next few entries that are idle, and takes them out.
// More tells whether there are others. The caller holds sweeping.
func (s *sieve[K]) idlers(now time.Duration) (out []*sieveNode[K], more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range fewSwept {
		n := s.swept
		if n == nil {
			return out, false
		}
		s.swept = n.newer
		leased := n.leased() // first: the end of a lease notes the use before it counts itself off
		switch {
		case n.mark().asked(usedForIdle) || leased:
			n.seen = now
		case now-n.seen >= s.idle && n.mark().doom(n.leased, usedForIdle, idle):
			s.remove(n)
			out = append(out, n)
		}
	}
	return out, true
}
