package atomicbreaker

import "github.com/latchfree/latchfree/internal/atomics"

// An eventQueue brings the events of one breaker to its listener: one at a time, in
// the order of their generations, and each once.
//
// Callers that have changed the breaker push their events, in any order. A caller
// that pushes on a queue that nobody holds becomes its holder, and delivers until
// nothing is left. So only the holder waits for the listener. If a listener changes
// its own breaker, the event is pushed, and delivered when the listener has returned.
type eventQueue struct {
	// head is the newest event that was pushed for the holder and not collected. Below
	// the events is busy.
	//
	//	nil        nobody holds the queue
	//	busy       someone holds it; nothing was pushed for the holder
	//	an event   someone holds it
	//	gone       the queue is out of use for ever
	//
	// Push replaces nil by busy, and its caller is the holder; it replaces busy or an event
	// by an event. Only the holder collects: it replaces anything by busy, and busy by
	// nil or gone when it lets go.
	head atomics.Pointer[queuedEvent]

	busy, gone queuedEvent // only their addresses matter

	// The holder's. waiting has the events that were collected, or pushed by a holder, and
	// not delivered yet: by core, in the order in which the cores first had an event here,
	// and for one core by generation.
	waiting    *queuedEvent
	newest     *queuedEvent // the last one of waiting; nil if there is none
	delivering *queuedEvent // while the listener runs

	// own is what the holder pushed when it became the holder, so that this allocates
	// nothing. It is free if it has no core. It may wait longer than its holder holds.
	own      queuedEvent
	ownEvent Event

	subscriber subscriber // never changes
}

// A queuedEvent says that a core has begun a generation, or that one is its last.
type queuedEvent struct {
	below *queuedEvent // written before the push; then by the holder, and the one behind it in waiting
	core  *core
	gen   uint32
	event *Event // nil if gen is the core's last
}

// queued returns what says that c has begun gen with e or, if that is nil, that gen is
// its last.
func queued(c *core, gen uint32, e *Event) *queuedEvent {
	if e == nil {
		return &queuedEvent{core: c, gen: gen}
	}
	both := &struct {
		queuedEvent
		Event
	}{queuedEvent{core: c, gen: gen}, *e}
	both.event = &both.Event
	return &both.queuedEvent
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

// push publishes that c has begun gen with e or, if that is nil, that gen is its last.
// It returns the queue if the caller now holds it, and reports whether the queue was
// still in use, which that of a Breaker always is.
//
// A CAS fails only if another has been pushed, or the holder has taken all or
// let go.
func (q *eventQueue) push(c *core, gen uint32, e *Event) (owed *eventQueue, ok bool) {
	var pushed *queuedEvent
	for {
		top := q.head.Load()
		switch {
		case top == &q.gone:
			return nil, false
		case top == nil:
			if q.head.CompareAndSwap(nil, &q.busy) {
				q.insert(q.keep(c, gen, e))
				return q, true
			}
			continue
		case pushed == nil:
			pushed = queued(c, gen, e)
		}
		pushed.below = top
		if q.head.CompareAndSwap(top, pushed) {
			return nil, true
		}
	}
}

// keep is queued for the holder: in own, if that is free.
func (q *eventQueue) keep(c *core, gen uint32, e *Event) *queuedEvent {
	if q.own.core != nil {
		return queued(c, gen, e)
	}
	q.own = queuedEvent{core: c, gen: gen}
	if e != nil {
		q.ownEvent, q.own.event = *e, &q.ownEvent
	}
	return &q.own
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
			e := q.waiting
			q.waiting, e.below = e.below, nil // own stays, and would keep those behind it
			if q.waiting == nil {
				q.newest = nil
			}
			if q.delivering = e; e.event != nil {
				q.subscriber.notify(e.core, e.event)
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
	e := q.waiting
	if e == nil {
		return false
	}
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
	if e == &q.own {
		e.core = nil
	}
}

// collect moves the events that were pushed to waiting, if any were.
func (q *eventQueue) collect() {
	if q.head.Load() == &q.busy {
		return
	}
	var oldest *queuedEvent
	for e := q.head.Swap(&q.busy); e != &q.busy; {
		e.below, e, oldest = oldest, e.below, e
	}
	for oldest != nil {
		e := oldest
		oldest = e.below
		q.insert(e)
	}
}

// insert puts e in its place, which nearly always is the last one.
func (q *eventQueue) insert(e *queuedEvent) {
	at := &q.waiting
	if n := q.newest; n != nil && n.core == e.core && !e.before(n) {
		at = &n.below
	}
	for *at != nil && ((*at).core != e.core || !e.before(*at)) {
		at = &(*at).below
	}
	if e.below, *at = *at, e; e.below == nil {
		q.newest = e
	}
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
	if q.waiting != nil || !q.subscriber.disposable() {
		return q.head.CompareAndSwap(&q.busy, nil)
	}
	if !q.head.CompareAndSwap(&q.busy, &q.gone) {
		return false
	}
	q.subscriber.dispose()
	return true
}
