package atomicbreaker

import (
	"fmt"
	"log/slog"
	"math"
	"time"
)

// Event is a change of a breaker: the end of one generation and the beginning
// of the next. See Config.OnStateChange.
type Event struct {
	Name string // Config.Name

	// From and To are the states before and after. They are equal if a closed
	// breaker was reset, if overdue probes lost their slots, or if
	// RecordFailure opened a breaker again that was open and whose time had passed.
	From, To State

	// Generation counts the changes: it is 1 in a breaker's first event, and
	// one more in each that follows. It is Snapshot.Generation after the
	// change, but does not go round. For a key of a Group it starts again when
	// the key has left the group, and with ResetAll.
	Generation uint64

	Reason Reason

	// The counts of the generation that ended, with the result that ended it,
	// unless that was a Permit.Trip of a closed breaker. InFlight are the probes
	// that will be late or, with ReasonProbeTimeout, are overdue.
	Failures  int // while closed: in a row, among the last calls, or in the window that opened it; while half-open: of probes
	Calls     int // in the window that opened it; 0 if none did
	Successes int // of probes, while half-open
	InFlight  int // probes that have not reported, while half-open

	// Streak is how often the breaker has opened since it was last closed, up
	// to 31. An event that opens the breaker includes that opening. An event that
	// closes it counts the openings before.
	Streak int

	// OpenFor is how long the breaker stays open if To is Open, rounded up to a
	// millisecond; math.MaxInt64 if only Reset helps, also if To is ForcedOpen.
	OpenFor time.Duration

	// Shadow says that the breaker lets calls through nevertheless.
	Shadow bool

	// At is when the change was made. For one Breaker it never goes back from
	// one event to the next.
	At time.Time
}

// Reason is what caused an Event.
type Reason uint8

const (
	_ Reason = iota
	// ReasonThreshold is a failure that was one too many in a row or among the
	// last calls, and opened a closed breaker.
	ReasonThreshold
	// ReasonFailureRate is a failure that was one too many of the calls in a
	// window.
	ReasonFailureRate
	// ReasonFailureCount is a failure that was one too many in a window.
	ReasonFailureCount
	// ReasonSlowRate is a slow call that was one too many of the calls in a
	// window. Event.Failures then counts slow calls.
	ReasonSlowRate
	// ReasonOpenTimeout is the first call after the open time. The breaker is
	// half-open, and the call is its first probe.
	ReasonOpenTimeout
	// ReasonProbeFailed is the failure of a probe or, with
	// Config.ProbeFailureRate, the last result of the probes if too many of them
	// failed. The breaker is open again.
	ReasonProbeFailed
	// ReasonProbeTimeout is a call that became a probe because all probes were
	// overdue. The breaker stays half-open.
	ReasonProbeTimeout
	// ReasonRecovered is the last result that the breaker needed to close.
	ReasonRecovered
	// ReasonRecordSuccess is a success without a permit, which closed an open
	// or half-open breaker.
	ReasonRecordSuccess
	// ReasonRecordFailure is a failure without a permit, which opened a
	// half-open breaker, or again an open one whose time had passed.
	ReasonRecordFailure
	// ReasonReset is a Reset, or a ResetAll of a key that was stored.
	ReasonReset
	// ReasonTrip is Trip of a Breaker, a Group or a Permit.
	ReasonTrip
	// ReasonForceOpen is ForceOpen.
	ReasonForceOpen
	// ReasonDisable is Disable.
	ReasonDisable
	// ReasonForgotten is GroupConfig.ForgetAfter: nobody has called the key for
	// that time.
	ReasonForgotten
	// ReasonHalfOpen is HalfOpen.
	ReasonHalfOpen
	// ReasonTripFunc is a failure or a slow call after which the function of a
	// TripFunc returned true. Event.Failures counts the failures in its window.
	ReasonTripFunc
)

// String returns the name of r without the prefix.
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

// String returns the name, the states, the reason and, if the breaker has
// opened, for how long.
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

// LogValue returns the fields that are not zero as a group, apart from At:
// handlers log a time of their own.
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
		switch {
		case x.full.why != 0:
			e.Failures, e.Calls = int(x.full.bad), int(x.full.calls)
		case from&long != 0:
			e.Failures = x.lost
		case x.why == ReasonThreshold:
			e.Failures = from.miss(s).failures(s)
		default:
			e.Failures = from.failures(s)
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
