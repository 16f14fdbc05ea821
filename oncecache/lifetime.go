package oncecache

import (
	"container/heap"
	"context"
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
)

// A cache with Config.TTL keeps, beside the order of its entries, a heap of those that expire.
// A timer marks the values whose time is over, and takes them out of the table. A hit looks at
// the mark, which it reads anyhow, and at no clock.

// lifetime says when the value of an entry expires. Its fields are under sieve.mu; forever means
// never.
type lifetime struct {
	until time.Duration // when it expires
	next  time.Duration // when the timer has to look at it: until, or when it is to be renewed
	pause time.Duration // after a renewal that has failed
	at    int           // the place in lifetimes.heap, plus one; zero: none

	// left, if it is not nil, ends the wait of a renewal for its outcome when the value has left.
	left context.CancelFunc

	of renewer // never changes; nil: without Config.Renew
}

// renewer is what renews values that are due.
type renewer interface{ renewDue(at *place) }

// What lasts returns for a value that does not expire, and for one that has
// expired before it is stored.
const (
	noLimit time.Duration = 0
	atOnce  time.Duration = -1
)

// lifetimeTick is how exact lifetimes are. Values that expire within one tick share a turn of
// the timer, so that there are no more than a thousand turns a second.
const lifetimeTick = time.Millisecond

// lifetimes has the values of a cache with Config.TTL that expire.
type lifetimes[K comparable] struct {
	ttl    func(*entry[K]) time.Duration // calls Config.TTL
	jitter float64                       // Config.TTLJitter
	renews *background[K]                // nil: without Config.Renew

	// The fields that follow are under sieve.mu.
	heap  nextDue[K]
	timer *sweeper      // nil: there is none
	wakes time.Duration // when the timer fires
}

// lasts returns when the value of e expires if its lifetime begins now, or noLimit, or
// atOnce. It runs user code.
func (l *lifetimes[K]) lasts(r *root[K], e *entry[K]) time.Duration {
	ttl := l.ttl(e)
	return l.end(r.now(), ttl)
}

// lastsAgain is lasts for an entry that a key has, or has had, and which is to be as new. If
// its value cannot be held any more, that does not matter.
func (s *sieve[K]) lastsAgain(r *root[K], e *entry[K]) time.Duration {
	held, ok := r.holdFor(e, e.state.Load(), (*mark).keepUnused)
	if !ok {
		return noLimit
	}
	defer r.giveUp(e, held)
	return s.lives.lasts(r, e)
}

// end returns when a lifetime of ttl ends that begins now.
func (l *lifetimes[K]) end(now, ttl time.Duration) time.Duration {
	switch {
	case ttl <= 0:
		return atOnce
	case ttl == forever:
		return noLimit
	}
	until := now + l.shortened(ttl)
	if until < 0 || until > forever-lifetimeTick {
		return noLimit
	}
	return toTick(until)
}

// toTick rounds up t, which is not near forever.
func toTick(t time.Duration) time.Duration {
	return (t + lifetimeTick - 1) / lifetimeTick * lifetimeTick
}

// shortened takes from ttl what chance takes.
func (l *lifetimes[K]) shortened(ttl time.Duration) time.Duration {
	if l.jitter == 0 {
		return ttl
	}
	chance := float64(atomics.Rank()>>11) / (1 << 53) // less than one
	taken := float64(ttl) * l.jitter * chance
	if taken >= float64(ttl) { // which may be more than ttl, as it is rounded
		return 1
	}
	return max(1, ttl-time.Duration(taken))
}

// limit makes the value of n, which others have not seen, expire at until.
func (l *lifetimes[K]) limit(n *sieveNode[K], until time.Duration) {
	switch until {
	case noLimit:
	case atOnce:
		n.mark().used.Store(expired)
	default:
		n.life = l.begin(until)
	}
}

// begin returns a lifetime that ends at until.
func (l *lifetimes[K]) begin(until time.Duration) *lifetime {
	life := &lifetime{until: until, next: until}
	if l.renews != nil {
		life.of = l.renews
		life.next, life.pause = l.renews.first(until)
	}
	return life
}

// extend makes the value of n expire at until. It leaves n.life where it is, because a use that
// has found due may be about to look there. The caller holds mu.
func (l *lifetimes[K]) extend(n *sieveNode[K], until time.Duration) {
	switch {
	case until == noLimit && n.life != nil:
		n.life.until, n.life.next = forever, forever
	case until == noLimit:
	case n.life == nil:
		n.life = l.begin(until)
	default:
		fresh := l.begin(until)
		n.life.until, n.life.next, n.life.pause = fresh.until, fresh.next, fresh.pause
	}
}

// prolongs makes the value of e expire at until, and reports whether it has not expired
// before.
func (r *root[K]) prolongs(e *entry[K], until time.Duration) bool {
	return !r.expires || r.sieve.prolong(r, e.state.Load().place, until)
}

// prolong is prolongs for the place of an entry. It fails too if the entry has left.
func (s *sieve[K]) prolong(r *root[K], at *place, until time.Duration) bool {
	n, out, ok := sieveNodeOf[K](at), []*sieveNode[K](nil), false
	s.mu.Lock()
	if ok = n.stage != left && !n.mark().isExpired(); ok {
		s.lives.drop(n)
		n.mark().used.And(^uint32(due))
		if until == atOnce {
			out = s.expire(out, n)
		} else if s.lives.extend(n, until); n.stage == there {
			s.lives.push(r, n)
		}
	}
	s.mu.Unlock()
	r.evictAll(out)
	return ok
}

// expire says that the value of n must not be returned any more, and appends n to out if it
// is in the order, and leaves that. The caller holds mu, and removes out from the table.
func (s *sieve[K]) expire(out []*sieveNode[K], n *sieveNode[K]) []*sieveNode[K] {
	n.mark().used.Or(expired)
	if n.stage == there {
		s.remove(n)
		out = append(out, n)
	}
	return out
}

// push adds n to the heap, if it expires, and starts the timer for it. L may be nil. The caller
// holds mu.
func (l *lifetimes[K]) push(r *root[K], n *sieveNode[K]) {
	if n.life != nil && n.life.next != forever {
		heap.Push(&l.heap, n)
		l.arm(r, n.life.next)
	}
}

// drop takes n out of the heap, if it is there. L may be nil. The caller holds mu.
func (l *lifetimes[K]) drop(n *sieveNode[K]) {
	if n.life != nil && n.life.at > 0 {
		heap.Remove(&l.heap, n.life.at-1)
	}
}

// nextDue is a heap of sieve nodes, by the time at which the timer has to look at them.
type nextDue[K comparable] []*sieveNode[K]

func (h nextDue[K]) Len() int           { return len(h) }
func (h nextDue[K]) Less(i, j int) bool { return h[i].life.next < h[j].life.next }
func (h nextDue[K]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].life.at, h[j].life.at = i+1, j+1
}

func (h *nextDue[K]) Push(x any) {
	n := x.(*sieveNode[K])
	*h = append(*h, n)
	n.life.at = len(*h)
}

func (h *nextDue[K]) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	last.life.at = 0
	return last
}
