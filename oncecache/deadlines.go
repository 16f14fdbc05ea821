package oncecache

import (
	"container/heap"
	"errors"
	"fmt"
	"math"
	"time"
	"weak"

	"github.com/latchfree/latchfree/internal/atomics"
)

// Values that expire, are to be renewed, or may be idle, and errors that are kept, are in the
// heap of the order by when they are to be looked at. One timer fires for the first of them. It
// marks what has expired, so that a hit reads no clock.

// Moments are since longAgo before the cache was made.
const (
	never  time.Duration = math.MaxInt64
	atOnce time.Duration = 0

	// longAgo keeps all moments above zero, also in a bubble of testing/synctest, whose clock
	// begins in the year 2000, if the cache was made outside. It leaves 190 years.
	longAgo = 100 * 365 * 24 * time.Hour
)

// tick is how exact deadlines are. Those within one tick share a turn of the timer, so that
// there are no more than a thousand turns a second.
const tick = time.Millisecond

// fewAtOnce is how many nodes the timer looks at while other calls wait for the order.
const fewAtOnce = 64

// after returns the moment d, which is above zero, after now.
func after(now, d time.Duration) time.Duration {
	if now > never-d-tick {
		return never
	}
	return (now + d + tick - 1) / tick * tick
}

// lifetime says when a place has to be looked at. Its node never changes; the rest is under
// order.mu, once the entry is shared.
type lifetime[K comparable, V any] struct {
	node    *node[K, V]
	expires time.Duration // of the value, or of the error; never
	renews  time.Duration // when the value is due; never
	seen    time.Duration // with IdleTimeout: when it was last found to have been used
	asks    time.Duration // when it is to be asked again; never
	next    time.Duration // in the heap: when it is to be looked at
	at      int           // its index in the heap, plus one; 0: it is not there
}

// live makes the value of n one that is new, and has these limits.
func (n *node[K, V]) live(r *root[K, V], l limits) {
	n.created = l.from
	if n.life == nil {
		return
	}
	n.life.expires, n.life.renews = l.until, never
	if r.config.RenewAhead > 0 && l.until != never && l.until != atOnce {
		n.life.renews = l.until - r.ahead(l.until-l.from)
	}
}

// placeOfError returns the place of e, whose error is kept until then.
func (o *order[K, V]) placeOfError(r *root[K, V], e *entry[K, V], until time.Duration) *node[K, V] {
	n := &node[K, V]{entry: e, created: r.now()}
	n.life = &lifetime[K, V]{node: n, expires: until, renews: never}
	return n
}

// ahead returns how long before its end a value is renewed that lasts so long. TTLJitter subtracts
// the same fraction from it as from a constant TTL.
func (r *root[K, V]) ahead(lasts time.Duration) time.Duration {
	ahead := r.config.RenewAhead
	if ttl := r.config.TTL; ttl > lasts {
		ahead = time.Duration(float64(ahead) * (float64(lasts) / float64(ttl)))
	}
	if ahead >= lasts {
		ahead = lasts / 2 // so that it is not due at once, again and again
	}
	return ahead
}

// idleAfter returns when an entry is to be asked whether it is idle, if it was asked, or began, at now.
func (r *root[K, V]) idleAfter(now time.Duration) time.Duration {
	if d := r.config.IdleTimeout; d > 0 {
		return after(now, max(d/2, tick))
	}
	return never
}

// schedule puts n, which is in the order, into the heap, if it has to be looked at. The caller
// holds mu.
func (o *order[K, V]) schedule(r *root[K, V], n *node[K, V]) {
	l := n.life
	if l == nil {
		return
	}
	l.next = min(l.expires, l.renews, l.asks)
	switch {
	case l.next == never:
		o.unschedule(n)
	case l.at > 0:
		heap.Fix(&o.heap, l.at-1)
	default:
		heap.Push(&o.heap, l)
	}
	o.arm(r)
}

// unschedule takes n out of the heap. The caller holds mu.
func (o *order[K, V]) unschedule(n *node[K, V]) {
	if n.life != nil && n.life.at > 0 {
		heap.Remove(&o.heap, n.life.at-1)
	}
	if len(o.heap) == 0 {
		o.rest()
	}
}

// prolong makes the value of n one that is new, and has these limits. It fails if the value has
// expired or left before.
func (o *order[K, V]) prolong(r *root[K, V], n *node[K, V], l limits) bool {
	o.mu.Lock()
	m := &n.entry.mark
	ok := n.stage != left && !m.isExpired()
	var out []*node[K, V]
	if ok {
		n.live(r, l)
		m.bits.And(^uint32(due))
		switch {
		case l.until == atOnce:
			out = o.expire(out, n)
		case n.stage == there:
			o.schedule(r, n)
		}
	}
	o.mu.Unlock()
	r.evictAll(out)
	return ok
}

// expire says that the value of n must not be returned any more, and takes n out of the order.
// The caller holds mu, and evicts what is appended to out.
func (o *order[K, V]) expire(out []*node[K, V], n *node[K, V]) []*node[K, V] {
	n.entry.mark.bits.Or(expired)
	if n.stage == there {
		o.remove(n)
		out = append(out, n)
	}
	return out
}

// renewLater makes the value of n due again after a pause, if it is still there and was not prolonged.
func (o *order[K, V]) renewLater(r *root[K, V], n *node[K, V]) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if n.stage != there || n.life.renews != never || n.life.expires == never {
		return
	}
	now, lasts := r.now(), n.life.expires-n.created
	ahead := r.ahead(lasts)
	n.life.renews = after(now, max(tick, min(ahead, lasts-ahead)/8))
	o.schedule(r, n)
}

// alarm is a timer that fires once.
type alarm struct {
	stop   func()
	fires  time.Duration
	bubble uint64 // the bubble of testing/synctest in which it was made; 0: none
}

// arm starts a timer for the first of the heap, unless one fires before. The timer does not keep
// the cache alive. The caller holds mu.
//
// The timers of a bubble fire in that alone, and may not be stopped outside.
func (o *order[K, V]) arm(r *root[K, V]) {
	if len(o.heap) == 0 {
		return
	}
	next := o.heap[0].next
	if t := o.timer; t != nil && (t.bubble == 0 || t.bubble == atomics.Bubble()) {
		if t.fires <= next {
			return
		}
		o.rest()
	}
	alone, t := weak.Make(r), &alarm{fires: next, bubble: atomics.Bubble()}
	t.stop = atomics.After(max(0, next-r.now()), func() {
		if r := alone.Value(); r != nil {
			r.order.look(r, t)
		}
	})
	o.timer = t
}

// rest stops the timer. The caller holds mu.
func (o *order[K, V]) rest() {
	if t := o.timer; t != nil && (t.bubble == 0 || t.bubble == atomics.Bubble()) {
		t.stop()
	}
	o.timer = nil
}

// look is a turn of the timer by, and starts the next. It unlocks the order after every few nodes.
// A timer that another has taken the place of looks at nothing: that may be of a bubble, with
// another clock.
func (o *order[K, V]) look(r *root[K, V], by *alarm) {
	for more := true; more; {
		var out []*node[K, V]
		out, more = o.few(r, by)
		r.evictAll(out)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.timer == by {
		o.timer = nil
		o.arm(r)
	}
}

// few looks at the next few nodes whose time has come, and takes those out whose entries are to
// leave. More tells whether there may be others.
func (o *order[K, V]) few(r *root[K, V], by *alarm) (out []*node[K, V], more bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := r.now()
	for range fewAtOnce {
		if o.timer != by || len(o.heap) == 0 || o.heap[0].next > now {
			return out, false
		}
		out = o.check(r, o.heap[0].node, now, out)
	}
	return out, true
}

// check looks at n, whose time has come. The caller holds mu.
func (o *order[K, V]) check(r *root[K, V], n *node[K, V], now time.Duration, out []*node[K, V]) []*node[K, V] {
	life := n.life
	if life.expires <= now {
		return o.expire(out, n)
	}
	m := &n.entry.mark
	if life.renews <= now {
		m.bits.Or(due)
		life.renews = never
	}
	if life.asks <= now {
		life.asks = r.idleAfter(now)
		leased := n.leased() // first: the end of a lease notes the use before it counts itself off
		switch {
		case m.asked(usedForIdle) || leased:
			life.seen = now
		case now-life.seen >= r.config.IdleTimeout && m.doom(n.leased, usedForIdle, idle):
			o.remove(n)
			return append(out, n)
		}
	}
	o.schedule(r, n)
	return out
}

// byNext is a heap of lifetimes.
type byNext[K comparable, V any] []*lifetime[K, V]

func (h byNext[K, V]) Len() int           { return len(h) }
func (h byNext[K, V]) Less(i, j int) bool { return h[i].next < h[j].next }
func (h byNext[K, V]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i+1, j+1
}

func (h *byNext[K, V]) Push(x any) {
	l := x.(*lifetime[K, V])
	*h = append(*h, l)
	l.at = len(*h)
}

func (h *byNext[K, V]) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	last.at = 0
	return last
}

// valueLimits returns the limits of the value of e, which no key has yet. It calls functions of the user.
func (r *root[K, V]) valueLimits(e *entry[K, V]) (l limits) {
	if !r.bounded {
		return l
	}
	if weight := r.config.Weight; weight != nil {
		w := weight(e.key, e.value)
		if w < 0 {
			panic(fmt.Sprintf("oncecache: Config.Weight returned %d for key %v: must not be negative", w, e.key))
		}
		if r.order.heavy(w) {
			return limits{weight: tooHeavy}
		}
		l.weight = w
	}
	r.expiry(e, &l)
	return l
}

// expiry sets when the value of e expires if it is new now. It calls a function of the user.
func (r *root[K, V]) expiry(e *entry[K, V], l *limits) {
	ttl := r.config.TTL
	if ttl == 0 {
		ttl = never
	}
	if of := r.config.TTLFunc; of != nil {
		ttl = of(e.key, e.value)
	}
	l.from = r.now()
	switch {
	case ttl <= 0:
		l.until = atOnce
	case ttl == never:
		l.until = never
	default:
		l.until = after(l.from, r.shortened(ttl))
	}
}

// shortened subtracts from ttl what TTLJitter says.
func (r *root[K, V]) shortened(ttl time.Duration) time.Duration {
	jitter := r.config.TTLJitter
	if jitter == 0 {
		return ttl
	}
	chance := float64(atomics.Rank()>>11) / (1 << 53) // less than one
	// Taken may be more than ttl, as it is rounded.
	taken := float64(ttl) * jitter * chance
	return max(1, ttl-time.Duration(taken))
}

// errorLimits returns how long an error of k is kept. It calls a function of the user.
func (r *root[K, V]) errorLimits(k K, err error) (l limits) {
	ttl := r.config.ErrorTTL
	if of := r.config.ErrorTTLFunc; of != nil || ttl != 0 {
		if cycle := (*CycleError)(nil); errors.As(err, &cycle) {
			return l // says nothing about the key: the next caller may come from elsewhere
		}
		if of != nil {
			ttl = of(k, err)
		}
	}
	switch {
	case ttl < 0:
		l.keeps, l.until = true, never
	case ttl > 0:
		l.keeps, l.until = true, r.now()+ttl
		if l.until < 0 {
			l.until = never
		}
	}
	return l
}
