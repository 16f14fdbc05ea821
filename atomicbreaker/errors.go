package atomicbreaker

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Reasons why a call was not admitted.
var (
	// ErrRejected matches every rejection.
	ErrRejected = errors.New("atomicbreaker: call rejected")

	// ErrOpen says that the breaker is open. It matches ErrRejected.
	ErrOpen = fmt.Errorf("%w: breaker is open", ErrRejected)

	// ErrTooManyProbes says that the breaker is half-open and that all its
	// probes are in flight. It matches ErrRejected.
	ErrTooManyProbes = fmt.Errorf("%w: breaker is half-open and all probes are in flight", ErrRejected)
)

// OpenError is a rejection with details. It matches ErrRejected, and ErrOpen or
// ErrTooManyProbes. See Config.DetailedErrors.
type OpenError struct {
	Name  string // Config.Name
	State State  // Open, HalfOpen or ForcedOpen

	// RetryAfter is the time until the breaker may let a call through: until its
	// open time has passed, or until a probe's time has. math.MaxInt64 means that
	// only Reset helps. Another call may come first, and a half-open breaker may
	// close earlier.
	RetryAfter time.Duration

	reason error
}

// Error returns the text of the error that Unwrap returns, with the name and the time.
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
		e.RetryAfter = unending(w.openLeft(now))
	case halfOpen:
		e.RetryAfter = w.leaseLeft(s, now, idle)
	default:
		e.RetryAfter = math.MaxInt64
	}
	return e
}
