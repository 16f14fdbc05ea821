package atomicbreaker

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Every rejection matches ErrRejected.
var (
	// ErrRejected is what every rejection wraps.
	ErrRejected = errors.New("atomicbreaker: call rejected")

	// ErrOpen says that the breaker is open.
	ErrOpen = fmt.Errorf("%w: breaker is open", ErrRejected)

	// ErrTooManyProbes says that all probes of a half-open breaker are in flight.
	ErrTooManyProbes = fmt.Errorf("%w: breaker is half-open and all probes are in flight", ErrRejected)
)

// OpenError is a rejection with Config.DetailedErrors. It matches ErrRejected, and ErrOpen
// or ErrTooManyProbes.
type OpenError struct {
	Name  string // Config.Name
	State State  // Open, HalfOpen or ForcedOpen

	// RetryAfter is the rest of the open time, or of the newest probe's time. math.MaxInt64
	// means that only Reset helps.
	RetryAfter time.Duration

	reason error
}

// Error returns the text of Unwrap with the details.
func (e *OpenError) Error() string {
	s := e.Unwrap().Error()
	if e.Name != "" {
		s += " (" + e.Name + ")"
	}
	if e.RetryAfter == math.MaxInt64 {
		return s + ", until reset"
	}
	return fmt.Sprintf("%s, retry after %v", s, e.RetryAfter)
}

// Unwrap returns ErrOpen or ErrTooManyProbes.
func (e *OpenError) Unwrap() error {
	if e.reason == nil {
		return ErrOpen
	}
	return e.reason
}

// refuse returns the error for a caller that was not admitted. A sentinel error
// allocates nothing.
func (s *settings) refuse(w word, reason error, now, idle time.Duration) error {
	if !s.detailed {
		return reason
	}
	e := &OpenError{Name: s.name, State: w.state(), reason: reason}
	switch w.mode() {
	case open:
		e.RetryAfter = w.openLeft(now)
	case halfOpen:
		e.RetryAfter = w.leaseLeft(s, now, idle)
	default:
		e.RetryAfter = math.MaxInt64
	}
	return e
}
