package atomicbreaker

import (
	"fmt"
	"log/slog"
	"math"
	"time"
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
