package oncecache

import (
	"container/heap"
	"time"
	"weak"
)

// arm starts the timer for the first of the heap, unless one fires before, for a caller whose
// clock shows now, or will. The caller holds sieve.mu. The timer does not keep the cache alive.
func (l *lifetimes[K]) arm(r *root[K], now time.Duration) {
	if len(l.heap) == 0 {
		return
	}
	next := l.heap[0].life.next
	if l.timer.fires(r.accounting, now) {
		if l.wakes <= next {
			return
		}
		l.timer.end()
	}
	root := weak.Make(r)
	l.timer = newSweeper(max(0, next-r.now()), func(t *sweeper) {
		if r := root.Value(); r != nil {
			r.sieve.expireAgain(r, t)
		}
	})
	l.wakes = next
}

// rest stops the timer if there is nothing left to expire. L may be nil. The caller holds
// sieve.mu.
func (l *lifetimes[K]) rest() {
	if l != nil && len(l.heap) == 0 && l.timer != nil {
		l.timer.end()
		l.timer = nil
	}
}

// expireAgain is a turn of a timer, and starts the next.
func (s *sieve[K]) expireAgain(r *root[K], by *sweeper) {
	s.expireDue(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lives.timer == by {
		s.lives.timer = nil
	}
	s.lives.arm(r, r.now())
}

// expireDue marks the values whose time is over, and removes them. It unlocks the order after
// every few.
func (s *sieve[K]) expireDue(r *root[K]) (removed int) {
	for more := true; more; {
		var out []*sieveNode[K]
		out, more = s.dueBy(r.now())
		removed += r.evictAll(out)
	}
	return removed
}

// dueBy marks the next few values whose time is over, and takes them out of the order. More
// tells whether there may be others.
func (s *sieve[K]) dueBy(now time.Duration) (out []*sieveNode[K], more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lives
	for range fewSwept {
		if len(l.heap) == 0 || l.heap[0].life.next > now {
			return out, false
		}
		n := l.heap[0]
		if now < n.life.until {
			n.mark().used.Or(due)
			n.life.next = n.life.until
			heap.Fix(&l.heap, 0)
			continue
		}
		out = s.expire(out, n)
	}
	return out, true
}
