package atomicbreaker

import (
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
)

// Event is a change of a breaker.
type Event struct {
	Name string // Config.Name

	// From and To are equal if a closed breaker was reset, overdue probes lost their slots,
	// or RecordFailure opened a breaker again.
	From, To State

	// Generation counts the changes, from 1, without wrapping. It starts again when a key
	// has left its group.
	Generation uint64

	Reason Reason

	// The counts of the generation that ended, with the result that ended it, unless that
	// was a Permit.Trip of a closed breaker.
	Failures  int // as in Snapshot, or in the window that opened it
	Calls     int // in the window that opened it; 0 if none did
	Successes int // of probes, while half-open
	InFlight  int // probes without a result, while half-open

	// Streak is how often the breaker has opened since it was last closed, up to 31.
	Streak int

	// OpenFor is how long the breaker stays open; math.MaxInt64 if only Reset helps.
	OpenFor time.Duration

	// Shadow is Config.Shadow.
	Shadow bool

	// At is when the change was made. It never goes back in one Breaker.
	At time.Time
}

// Reason is what caused an Event.
type Reason uint8

const (
	_ Reason = iota
	// ReasonThreshold is one failure too many in a row, or among the last calls.
	ReasonThreshold
	// ReasonFailureRate is a failure that met a FailureRate.
	ReasonFailureRate
	// ReasonFailureCount is a failure that met a FailureCount.
	ReasonFailureCount
	// ReasonSlowRate is a call that met a SlowRate. Event.Failures then counts slow calls.
	ReasonSlowRate
	// ReasonOpenTimeout is the first probe after the open time.
	ReasonOpenTimeout
	// ReasonProbeFailed is a probe that opened the breaker again.
	ReasonProbeFailed
	// ReasonProbeTimeout is a probe after all others were overdue.
	ReasonProbeTimeout
	// ReasonRecovered is a probe that closed the breaker.
	ReasonRecovered
	// ReasonRecordSuccess is a RecordSuccess that closed the breaker.
	ReasonRecordSuccess
	// ReasonRecordFailure is a RecordFailure that opened a breaker, half-open or past its
	// open time.
	ReasonRecordFailure
	// ReasonReset is Reset, or ResetAll of a key in the group.
	ReasonReset
	// ReasonTrip is Trip.
	ReasonTrip
	// ReasonForceOpen is ForceOpen.
	ReasonForceOpen
	// ReasonDisable is Disable.
	ReasonDisable
	// ReasonForgotten is GroupConfig.ForgetAfter.
	ReasonForgotten
	// ReasonHalfOpen is HalfOpen.
	ReasonHalfOpen
	// ReasonTripFunc is a call that met a TripFunc.
	ReasonTripFunc
)

// String returns the name of r.
func (r Reason) String() string {
	return nameOf(uint8(r), "Reason", []string{
		ReasonThreshold:     "Threshold",
		ReasonFailureRate:   "FailureRate",
		ReasonFailureCount:  "FailureCount",
		ReasonSlowRate:      "SlowRate",
		ReasonOpenTimeout:   "OpenTimeout",
		ReasonProbeFailed:   "ProbeFailed",
		ReasonProbeTimeout:  "ProbeTimeout",
		ReasonRecovered:     "Recovered",
		ReasonRecordSuccess: "RecordSuccess",
		ReasonRecordFailure: "RecordFailure",
		ReasonReset:         "Reset",
		ReasonTrip:          "Trip",
		ReasonForceOpen:     "ForceOpen",
		ReasonDisable:       "Disable",
		ReasonForgotten:     "Forgotten",
		ReasonHalfOpen:      "HalfOpen",
		ReasonTripFunc:      "TripFunc",
	})
}

// MarshalText returns the name of r.
func (r Reason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// String returns a line about e.
func (e Event) String() string {
	s := fmt.Sprintf("%v to %v: %v", e.From, e.To, e.Reason)
	if e.Name != "" {
		s = e.Name + ": " + s
	}
	if e.Shadow {
		s += " (shadow)"
	}
	switch {
	case e.To != Open:
		return s
	case e.OpenFor == math.MaxInt64:
		return s + ", until reset"
	}
	return s + ", for " + e.OpenFor.String()
}

// LogValue returns the fields that are not zero as a group, apart from At.
func (e Event) LogValue() slog.Value {
	attrs := make([]slog.Attr, 0, 10)
	if e.Name != "" {
		attrs = append(attrs, slog.String("name", e.Name))
	}
	attrs = append(attrs,
		slog.String("from", e.From.String()),
		slog.String("to", e.To.String()),
		slog.String("reason", e.Reason.String()),
		slog.Uint64("generation", e.Generation))
	attrs = appendCounts(attrs, []count{
		{"failures", e.Failures}, {"calls", e.Calls}, {"successes", e.Successes}, {"in_flight", e.InFlight}, {"streak", e.Streak},
	})
	if e.OpenFor != 0 {
		attrs = append(attrs, slog.Duration("open_for", e.OpenFor))
	}
	if e.Shadow {
		attrs = append(attrs, slog.Bool("shadow", true))
	}
	return slog.GroupValue(attrs...)
}

// describe makes e, which is zero, the event of a change. Its generation is known when
// it is delivered. Both are big: as values they would be copied, which takes as long
// as all the rest.
func (s *settings) describe(e *Event, from word, x *change) {
	to := x.next
	e.Name, e.From, e.To, e.Reason, e.At, e.Shadow = s.name, from.state(), to.state(), x.why, x.at, s.shadow
	switch from.mode() {
	case closed:
		e.Failures = x.lost
		if x.full.why != 0 {
			e.Failures, e.Calls = int(x.full.bad), int(x.full.calls)
		}
	case open:
		e.Streak = from.streak()
	case halfOpen:
		if x.seen != 0 {
			from = x.seen
		}
		e.Streak, e.Successes, e.Failures, e.InFlight = from.streak(), from.ok(), from.failed(), from.inflight()
	}
	switch to.mode() {
	case open:
		e.Streak = max(e.Streak, to.streak())
		e.OpenFor = unending(to.openLeft(x.at.Sub(s.epoch)))
		if e.OpenFor < math.MaxInt64 {
			e.OpenFor = (e.OpenFor + openTick - 1).Truncate(openTick)
		}
	case halfOpen:
		e.Streak = max(e.Streak, to.streak())
	case forcedOpen:
		e.OpenFor = math.MaxInt64
	}
}

// An eventQueue brings the events of one breaker to its listener: one at a time, in
// the order of their generations, and each once.
//
// Callers that have changed the breaker push their events, in any order. A caller
// that pushes on a queue that nobody holds becomes its holder, and delivers until
// nothing is left. So only the holder waits for the listener. If a listener changes
// its own breaker, the event is pushed, and delivered when the listener has returned.
type eventQueue struct {
	core *core // whose queue this is; never changes

	// head is the newest event that was pushed for the holder and not collected. Below
	// the events is busy.
	//
	//	nil        nobody holds the queue
	//	busy       someone holds it; nothing was pushed for the holder
	//	an event   someone holds it
	//
	// Push replaces nil by busy, and its caller is the holder; it replaces busy or an event
	// by an event. Only the holder collects: it replaces anything by busy, and busy by
	// nil when it lets go.
	head atomics.Pointer[queuedEvent]
	busy queuedEvent // only its address matters

	// delivered is the number of generations whose events have been delivered. Only the
	// holder writes it.
	delivered atomics.Uint64

	// The holder's. waiting has the events that were collected, or pushed by a holder, and
	// not delivered yet, by generation.
	waiting    *queuedEvent
	newest     *queuedEvent // the last one of waiting, if there is one
	delivering *queuedEvent // while the listener runs

	// own is what the holder pushed when it became the holder, so that this allocates
	// nothing. It is free if its generation is zero. It may wait longer than its holder
	// holds.
	own queuedEvent
}

// A queuedEvent says that the breaker has begun a generation.
type queuedEvent struct {
	below *queuedEvent // while pushed, the event pushed before; in waiting, the next one. The holder's after the push
	gen   uint32
	event Event
}

// deliveredUpTo reports whether the events of all stays up to that of w have been
// delivered.
func (c *core) deliveredUpTo(w word) bool {
	return c.queue == nil || generation(c.queue.delivered.Load()) == w.gen()
}

// push publishes the event with which the breaker has begun gen. It returns the queue if
// the caller now holds it.
//
// A CAS fails only if another has been pushed, or the holder has taken all or
// let go.
func (q *eventQueue) push(gen uint32, e *Event) (owed *eventQueue) {
	var pushed *queuedEvent
	for {
		top := q.head.Load()
		switch {
		case top == nil:
			if q.head.CompareAndSwap(nil, &q.busy) {
				q.insert(q.newEvent(gen, e))
				return q
			}
			continue
		case pushed == nil:
			pushed = &queuedEvent{gen: gen, event: *e}
		}
		pushed.below = top
		if q.head.CompareAndSwap(top, pushed) {
			return nil
		}
	}
}

// newEvent returns what the holder pushes: own, if that is free.
func (q *eventQueue) newEvent(gen uint32, e *Event) *queuedEvent {
	if q.own.gen != 0 {
		return &queuedEvent{gen: gen, event: *e}
	}
	q.own = queuedEvent{gen: gen, event: *e}
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
		q.count()
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
			q.delivering = e
			q.notify(&e.event)
			q.count()
		}
		if q.head.CompareAndSwap(&q.busy, nil) {
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
	e.event.Generation = q.delivered.Load() + 1
	return e.gen == generation(e.event.Generation)
}

// notify calls the listener. It runs user code.
func (q *eventQueue) notify(e *Event) {
	if of := q.core.owner; of != nil {
		of.notify(e)
	} else if tell := q.core.set.Load().listener; tell != nil {
		tell(*e)
	}
}

// count counts the event for which the listener was called, however that has ended.
func (q *eventQueue) count() {
	e := q.delivering
	q.delivering = nil
	q.delivered.Store(e.event.Generation)
	if e == &q.own {
		e.gen = 0
	}
	if of := q.core.owner; of != nil {
		of.notified()
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
	if q.waiting != nil && q.before(q.newest, e) {
		at = &q.newest.below
	}
	for *at != nil && !q.before(e, *at) {
		at = &(*at).below
	}
	if e.below, *at = *at, e; e.below == nil {
		q.newest = e
	}
}

// before reports whether e comes before m. That is right while fewer than genMask
// generations wait for their delivery.
func (q *eventQueue) before(e, m *queuedEvent) bool {
	delivered := generation(q.delivered.Load())
	ahead := func(gen uint32) uint32 { return (gen + genMask - delivered) % genMask }
	return ahead(e.gen) < ahead(m.gen)
}
