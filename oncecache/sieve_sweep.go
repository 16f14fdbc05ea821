package oncecache

import (
	"time"
	"weak"

	"github.com/latchfree/latchfree/internal/atomics"
)

// sweeper is a timer that sweeps once.
type sweeper struct{ stop func() }

// shortestSweep bounds how often a timer sweeps.
const shortestSweep = time.Millisecond

// arm starts the timer of the next sweep, if there is none. The caller holds
// mu. The timer does not keep the cache alive, nor o, which has its entries.
func (o *order[K]) arm(r *root[K]) {
	if o.next != nil {
		return
	}
	root, s := weak.Make(r), new(sweeper)
	s.stop = atomics.After(max(o.idle/2, shortestSweep), func() {
		if r := root.Value(); r != nil {
			r.order.sweepAgain(r, s)
		}
	})
	o.next = s
}

// sweepAgain sweeps for s, and starts the next timer if anything is left and none has
// been started since: the order may have been empty meanwhile.
func (o *order[K]) sweepAgain(r *root[K], s *sweeper) {
	r.sweep()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.next == s {
		o.next = nil
	}
	if o.len > 0 {
		o.arm(r)
	}
}

// sweepPlaces is sweepIdle, if there is a timeout.
func (o *order[K]) sweepPlaces(r *root[K]) (removed int) {
	if o.idle == 0 {
		return 0
	}
	return o.sweepIdle(r)
}

// sweepIdle removes what nobody has used for the timeout. It lets others pass
// after every few entries.
func (o *order[K]) sweepIdle(r *root[K]) (removed int) {
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
