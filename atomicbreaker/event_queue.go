package atomicbreaker

import (
	"slices"

	"github.com/latchfree/latchfree/internal/atomics"
)

// An eventQueue brings the events of one breaker to its listener: one at a time, in
// the order of their generations, and each once.
//
// Callers that have changed the breaker push their events, in any order. A caller
// that pushes on a queue that nobody holds becomes its holder, and delivers until
// nothing is left. So only the holder waits for the listener. If a listener changes
// its own breaker, the event is pushed, and delivered when the listener has returned.
type eventQueue struct {
	// head is the newest event that was pushed and not collected. Below the
	// events is nil or busy.
	//
	//	nil        nobody holds the queue, and nothing was pushed
	//	busy       someone holds it; nothing was pushed
	//	an event   someone holds it
	//	gone       the queue is out of use for ever
	//
	// Nil or busy becomes an event by push; the caller that replaced nil is the holder.
	// Only the holder collects: it replaces anything by busy, and busy by nil or
	// gone when it lets go.
	head atomics.Pointer[queuedEvent]

	busy, gone queuedEvent // only their addresses matter

	// The holder's. waiting has the events that were collected and not delivered
	// yet, because the event before is missing: by core, in the order in which the
	// cores first had an event here, and for one core by generation.
	waiting    []*queuedEvent
	delivering *queuedEvent // while the listener runs

	subscriber subscriber // never changes
}

// A queuedEvent says that a core has begun a generation, or that one is its last.
type queuedEvent struct {
	below *queuedEvent // written before the push, and then by the holder
	core  *core
	gen   uint32
	event *Event // nil if gen is the core's last
}

// A subscriber calls a listener, and cleans up after it.
type subscriber interface {
	// notify calls the listener. It runs user code.
	notify(*core, *Event)
	// notified is called after each event, when core.delivered counts it.
	notified(*core)
	// disposable reports whether a queue is to be thrown away once it is empty, and
	// dispose throws it away.
	disposable() bool
	dispose()
}

// A breakerListener is the subscriber of a Breaker: the listener of its settings.
type breakerListener struct{ *core }

func (l breakerListener) notify(_ *core, e *Event) {
	if f := l.set.Load().listener; f != nil {
		f(*e)
	}
}
func (l breakerListener) notified(*core)   {}
func (l breakerListener) disposable() bool { return false }
func (l breakerListener) dispose()         {}

// push publishes e. It returns the queue if the caller now holds it, and reports
// whether the queue was still in use, which that of a Breaker always is.
//
// The CAS fails only if another has been pushed, or the holder has taken all or
// let go.
func (q *eventQueue) push(e *queuedEvent) (owed *eventQueue, ok bool) {
	for {
		top := q.head.Load()
		if top == &q.gone {
			return nil, false
		}
		e.below = top
		if q.head.CompareAndSwap(top, e) {
			if top == nil {
				owed = q
			}
			return owed, true
		}
	}
}

// deliver calls the listener until no event is left that can be delivered. The
// caller holds the queue, and does nothing afterwards that must be done. It may
// be called on nil.
//
// If the listener panics or calls runtime.Goexit, the same goroutine delivers
// the rest while it unwinds.
func (q *eventQueue) deliver() {
	if q == nil {
		return
	}
	orElse(q.drain, func() {
		q.delivered()
		q.deliver()
	})
}

// drain delivers the events that are due.
//
// It retries only if something was pushed.
func (q *eventQueue) drain() {
	for {
		q.collect()
		for q.due() {
			q.delivering, q.waiting[0] = q.waiting[0], nil
			q.waiting = q.waiting[1:]
			if q.delivering.event != nil {
				q.subscriber.notify(q.delivering.core, q.delivering.event)
			}
			q.delivered()
		}
		if q.release() {
			return
		}
	}
}

// due reports whether the next event can be delivered: nothing before it is
// missing.
func (q *eventQueue) due() bool {
	if len(q.waiting) == 0 {
		return false
	}
	e := q.waiting[0]
	delivered := e.core.delivered.Load()
	if e.event == nil {
		return e.gen == generation(delivered)
	}
	e.event.Generation = delivered + 1
	return e.gen == generation(delivered+1)
}

// delivered follows every call of the listener, however it has ended.
func (q *eventQueue) delivered() {
	e := q.delivering
	q.delivering = nil
	if e.event != nil {
		e.core.delivered.Store(e.event.Generation)
		q.subscriber.notified(e.core)
	}
}

// collect moves the events that were pushed to waiting.
func (q *eventQueue) collect() {
	var oldest *queuedEvent
	for e := q.head.Swap(&q.busy); e != nil && e != &q.busy; {
		e.below, e, oldest = oldest, e.below, e
	}
	for oldest != nil {
		e := oldest
		oldest, e.below = e.below, nil
		q.insert(e)
	}
}

// insert puts e in its place, which nearly always is the last one.
func (q *eventQueue) insert(e *queuedEvent) {
	at := len(q.waiting)
	for i, m := range slices.Backward(q.waiting) {
		if m.core == e.core {
			if !e.before(m) {
				break
			}
			at = i
		}
	}
	q.waiting = slices.Insert(q.waiting, at, e)
}

// before reports whether e comes before m of the same core. That is right while
// fewer than genMask generations wait for their delivery.
func (e *queuedEvent) before(m *queuedEvent) bool {
	if e.gen == m.gen {
		return e.event != nil
	}
	delivered := generation(e.core.delivered.Load())
	ahead := func(gen uint32) uint32 { return (gen + genMask - delivered) % genMask }
	return ahead(e.gen) < ahead(m.gen)
}

// release lets go of the queue unless something was pushed.
func (q *eventQueue) release() bool {
	if len(q.waiting) == 0 {
		q.waiting = nil // not an array of what was once held
	}
	if q.waiting != nil || !q.subscriber.disposable() {
		return q.head.CompareAndSwap(&q.busy, nil)
	}
	if !q.head.CompareAndSwap(&q.busy, &q.gone) {
		return false
	}
	q.subscriber.dispose()
	return true
}
