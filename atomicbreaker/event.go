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
	// or RecordFailure or Trip opened a breaker again.
	From, To State

	// Generation counts the changes, from 1, without wrapping. It starts again when a key
	// has left its group.
	Generation uint64

	Reason Reason

	// The counts of the generation that ended, with the result that ended it, unless that
	// was a Permit.Trip of a closed breaker.
	Failures  int // as in Snapshot, or in the window that opened it
	Calls     int // in the window that opened it, of a FailureCount the failures; 0 if none did
	Successes int // of probes, while half-open
	InFlight  int // probes without a result, while half-open

	// Streak is how often the breaker has opened since it was last closed, ForcedOpen or Disabled,
	// up to 31.
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
	return logGroup(
		slog.String("name", e.Name),
		slog.String("from", e.From.String()),
		slog.String("to", e.To.String()),
		slog.String("reason", e.Reason.String()),
		slog.Uint64("generation", e.Generation),
		slog.Int("failures", e.Failures),
		slog.Int("calls", e.Calls),
		slog.Int("successes", e.Successes),
		slog.Int("in_flight", e.InFlight),
		slog.Int("streak", e.Streak),
		slog.Duration("open_for", e.OpenFor),
		slog.Bool("shadow", e.Shadow),
	)
}

// describe makes e, which is zero, the event of a change, but for its generation.
func (s *settings) describe(e *Event, from word, x *change) {
	to := x.next
	e.Name, e.From, e.To, e.Reason, e.At, e.Shadow = s.name, from.state(), to.state(), x.why, x.at, s.shadow
	e.Streak = max(from.streak(), to.streak())
	switch from.mode() {
	case closed:
		e.Failures = x.lost
		if x.full.why != 0 {
			e.Failures, e.Calls = int(x.full.bad), int(x.full.calls)
		}
	case halfOpen:
		if x.seen != 0 {
			from = x.seen
		}
		e.Successes, e.Failures, e.InFlight = from.ok(), from.failed(), from.inflight()
	}
	switch to.mode() {
	case open:
		e.OpenFor = to.openLeft(x.at.Sub(s.epoch))
		if e.OpenFor < math.MaxInt64 {
			e.OpenFor = (e.OpenFor + openTick - 1).Truncate(openTick)
		}
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

	// head is nil while nobody holds the queue. Otherwise it is the newest event that was
	// pushed for the holder and not collected; below the oldest is busy. DESIGN.md has its
	// transitions.
	head atomics.Pointer[queuedEvent]
	busy queuedEvent // only its address matters

	// delivered is the number of generations whose events have been delivered. Only the
	// holder writes it.
	delivered atomics.Uint64

	// The holder's. own and waiting have the events that were collected, or pushed by a
	// holder, and not delivered yet: own one of them, so that it allocates nothing, unless
	// its generation is zero; and waiting the others, by generation, or nil.
	waiting    map[uint32]*queuedEvent
	delivering *queuedEvent // while the listener runs
	own        queuedEvent
}

// A queuedEvent says that the breaker has begun a generation.
type queuedEvent struct {
	below *queuedEvent // the event that was pushed before. Never changes after the push
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
			if !q.head.CompareAndSwap(nil, &q.busy) {
				continue
			}
			if q.own.gen == 0 {
				q.own = queuedEvent{gen: gen, event: *e}
			} else {
				q.keep(&queuedEvent{gen: gen, event: *e})
			}
			return q
		case pushed == nil:
			pushed = &queuedEvent{gen: gen, event: *e}
		}
		pushed.below = top
		if q.head.CompareAndSwap(top, pushed) {
			return nil
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
		q.count()
		q.deliver()
	})
}

// drain delivers the events that are due, and lets go of the queue.
//
// It retries only if something was pushed.
func (q *eventQueue) drain() {
	for {
		for q.next() {
			q.notify(&q.delivering.event)
			q.count()
		}
		if q.head.CompareAndSwap(&q.busy, nil) {
			return
		}
		for e := q.head.Swap(&q.busy); e != &q.busy; e = e.below {
			q.keep(e)
		}
	}
}

// keep makes an event wait for those before it.
func (q *eventQueue) keep(e *queuedEvent) {
	switch {
	case q.own.gen == 0:
		q.own = queuedEvent{gen: e.gen, event: e.event}
		return
	case q.waiting == nil:
		q.waiting = make(map[uint32]*queuedEvent)
	}
	q.waiting[e.gen] = e
}

// next makes the event of the next generation the one to deliver, and reports whether it is
// there. No two that wait have one number, while fewer than genMask generations do.
func (q *eventQueue) next() bool {
	n, e := q.delivered.Load()+1, &q.own
	if gen := generation(n); e.gen != gen {
		if e = q.waiting[gen]; e == nil {
			return false
		}
		if delete(q.waiting, gen); len(q.waiting) == 0 {
			q.waiting = nil // or it would stay as large as it has been
		}
	}
	e.event.Generation, q.delivering = n, e
	return true
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
