package gobreaker

import (
	"errors"
	"fmt"
	"time"
)

// State is a state of a CircuitBreaker.
type State int

// The states of a CircuitBreaker.
const (
	StateClosed State = iota
	StateHalfOpen
	StateOpen
)

// String returns the name of s.
func (s State) String() string {
	switch s {
	case StateClosed:
		return "closed"
	case StateHalfOpen:
		return "half-open"
	case StateOpen:
		return "open"
	}
	return fmt.Sprintf("unknown state: %d", int(s))
}

var (
	// ErrTooManyRequests rejects a call of a half-open breaker that has admitted
	// MaxRequests calls already.
	ErrTooManyRequests = errors.New("too many requests")
	// ErrOpenState rejects a call while the breaker is open.
	ErrOpenState = errors.New("circuit breaker is open")
)

// Counts has the numbers of calls since the state changed or, while the breaker is
// closed, in the window of Settings.Interval. Results of calls that were admitted
// before that are not in it.
type Counts struct {
	Requests             uint32 // calls that were admitted
	TotalSuccesses       uint32
	TotalFailures        uint32
	TotalExclusions      uint32 // see Settings.IsExcluded
	ConsecutiveSuccesses uint32
	ConsecutiveFailures  uint32
}

// Settings configures a CircuitBreaker. Its zero value is valid.
type Settings struct {
	// Name is what Name returns and OnStateChange gets.
	Name string

	// MaxRequests is how many calls a half-open breaker admits, without excluded
	// ones, and how many must succeed in a row before it closes. Zero means 1. At
	// most 31 of these calls are in flight at a time.
	MaxRequests uint32

	// Interval is how long a closed breaker counts before it forgets all counts and
	// starts anew. Zero or less means until it opens.
	Interval time.Duration

	// BucketPeriod makes the window of Interval roll: it consists of buckets that
	// are each so long, and forgets one at a time. Interval is rounded up to a
	// multiple of it. Zero or less means one bucket. With more than one, every call
	// takes a mutex when it begins and when it ends.
	BucketPeriod time.Duration

	// Timeout is how long the breaker stays open. Zero or less means 60 seconds.
	Timeout time.Duration

	// ReadyToTrip is asked after every failure of a closed breaker, with the counts
	// that include it, and opens the breaker if it returns true. It is never called
	// concurrently for one breaker. Failures wait for it, successes do not. It may
	// call Counts and State, and must not make a call that fails. Nil means more
	// than five failures in a row.
	ReadyToTrip func(counts Counts) bool

	// OnStateChange is called for every change of state, in their order, and not
	// concurrently for one breaker. It runs outside of locks: it may use the
	// breaker. It runs before the method that made the change returns or, if it is
	// running already, in the goroutine in which it runs.
	OnStateChange func(name string, from State, to State)

	// IsSuccessful says whether a call with this error, which may be nil, has
	// succeeded. Nil means that only calls without an error have.
	IsSuccessful func(err error) bool

	// IsExcluded says whether a call with this error, which may be nil, is neither
	// a success nor a failure. Nil means that none is.
	IsExcluded func(err error) bool
}

// CircuitBreaker runs functions, and rejects them after too many have failed. Its
// methods may be called concurrently. It must not be copied.
type CircuitBreaker[T any] struct{ core core }

// NewCircuitBreaker returns a closed breaker.
func NewCircuitBreaker[T any](st Settings) *CircuitBreaker[T] {
	cb := new(CircuitBreaker[T])
	cb.core.init(st)
	return cb
}

// Name returns Settings.Name.
func (cb *CircuitBreaker[T]) Name() string { return cb.core.name }

// State returns the state. If Settings.Timeout has passed, it makes the open
// breaker half-open.
func (cb *CircuitBreaker[T]) State() State { return cb.core.State() }

// Counts returns the counts. They are exact while no call begins or ends. Otherwise
// each is of a moment during Counts, and no result is in it without its request.
func (cb *CircuitBreaker[T]) Counts() Counts { return cb.core.Counts() }

// Execute runs req if the breaker admits it, and returns its results. Otherwise it
// returns ErrOpenState or ErrTooManyRequests.
//
// If req panics, IsExcluded and IsSuccessful get an error with the text of the
// panic, and the panic goes on. If req calls runtime.Goexit, that is a failure
// while the breaker is half-open, and otherwise no result.
func (cb *CircuitBreaker[T]) Execute(req func() (T, error)) (result T, err error) {
	var t ticket
	if err := cb.core.admit(&t); err != nil {
		return result, err
	}
	ended := false
	defer func() {
		if ended {
			return
		}
		if e := recover(); e != nil {
			cb.core.endAnyway(&t, fmt.Errorf("%v", e))
			panic(e)
		}
		cb.core.abandon(&t) // runtime.Goexit
	}()
	result, err = req()
	cb.core.end(&t, err)
	ended = true
	return result, err
}
