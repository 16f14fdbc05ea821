package oncecache

import (
	"container/heap"
	"context"
	"runtime/debug"
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
)

// background renews values with Config.Renew before they expire. A timer says that a value is
// due; the use that takes this off again starts a renewal, which is that of Refresh.
type background[K comparable] struct {
	root  *root[K]
	ahead time.Duration                              // Config.RenewAhead
	of    func(e *entry[K], call *renewCall) creator // see renewed
}

// renewing makes l renew values of r, which no other goroutine has seen.
func (l *lifetimes[K]) renewing(r *root[K], ahead time.Duration, of func(*entry[K], *renewCall) creator) {
	l.renews = &background[K]{r, ahead, of}
}

// renewed returns what makes a function of Refresh, which calls renew if it is the value of e
// that is to be replaced, and not one that has come since.
func renewed[K comparable, V any](r *root[K], renew func(context.Context, K, V) (V, error)) func(*entry[K], *renewCall) creator {
	reload := reloading(r, func(ctx context.Context, k K, old V, _ bool) (V, error) { return renew(ctx, k, old) })
	return func(e *entry[K], call *renewCall) creator {
		return creatorOf(func(ctx context.Context, k K) (v V, err error) {
			call.begun.Store(true)
			defer call.ended.TryFire()
			if baseOf[K](ctx) != e {
				return v, errNoBase
			}
			return reload(ctx, k)
		})
	}
}

// renewCall is a call of Config.Renew, whose caller may leave before it has ended.
type renewCall struct {
	begun atomics.Bool
	ended atomics.Event
}

// first returns when the value of a lifetime that begins now, and ends at until, is due for the
// first time, and how long a renewal that has failed pauses.
func (b *background[K]) first(until time.Duration) (due, pause time.Duration) {
	lasts := until - b.root.now()
	ahead := b.ahead
	if ahead >= lasts {
		ahead = lasts / 2 // so that it is not due at once, again and again
	}
	return min(until, toTick(until-ahead)), max(lifetimeTick, min(ahead, lasts-ahead)/8)
}

// renewDue starts a renewal of the value whose place is at. The caller has taken due off.
func (b *background[K]) renewDue(at *place) {
	n := sieveNodeOf[K](at)
	atomics.Go(func() { b.renew(n) })
}

// renew renews the value of n, if it is still its key's. If that fails, the value will be due
// again. It is a caller of the renewal until the value has left; from then on, the
// renewal has the callers that ask for the key, and is called off when all have left.
func (b *background[K]) renew(n *sieveNode[K]) {
	r, e, renewed := b.root, n.entry, false
	s, call := r.sieve.(*sieve[K]), &renewCall{ended: atomics.MakeEvent()}
	defer func() {
		if p := recover(); p != nil {
			failed := &PanicError{Value: p, Stack: debug.Stack()}
			if thrown, ok := p.(rethrown); ok {
				failed = thrown.PanicError
			}
			r.accounting.note(failed)
		}
		if call.begun.Load() {
			call.ended.Wait() // CreateTimeout may have come before: the next must not run beside it
		}
		if !renewed {
			b.again(s, n)
		}
	}()
	ctx, cancel := atomics.WithCancel(context.Background())
	defer cancel()
	s.mu.Lock()
	gone := n.stage == left
	n.life.left = cancel
	s.mu.Unlock()
	if gone {
		return
	}
	at := r.at(e.key)
	if r.entries.Load(at) != e {
		return
	}
	r.overtakeOther(at, e)
	_, err := r.renewing().getOrCreateContext(ctx, at, b.of(e, call))
	renewed = err == nil
}

// again makes the value of n due after a pause, unless it has left by then, or Set has made it
// as new.
func (b *background[K]) again(s *sieve[K], n *sieveNode[K]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n.stage != there || n.life == nil || n.life.at == 0 || n.life.next != n.life.until {
		return
	}
	next := b.root.now() + n.life.pause
	if next > 0 && next < n.life.until {
		n.life.next = toTick(next)
		heap.Fix(&s.lives.heap, n.life.at-1)
		s.lives.arm(b.root, next)
	}
}
