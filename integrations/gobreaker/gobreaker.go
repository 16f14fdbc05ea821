// Package gobreaker has a part of the API of github.com/sony/gobreaker/v2 on
// atomicbreaker.Breaker. atomicbreaker/MIGRATING.md lists how the two differ.
//
// It differs further in this: Counts leaves out calls in flight while closed,
// TotalExclusions and ConsecutiveSuccesses, which are 0. A MaxRequests above 31
// panics. BucketPeriod only rounds Interval up: every window rolls.
// NewDistributedCircuitBreaker does not exist.
package gobreaker

import (
	"errors"
	"fmt"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker"
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
	// ErrTooManyRequests rejects a call while all half-open calls are in use.
	ErrTooManyRequests = errors.New("too many requests")
	// ErrOpenState rejects a call while the breaker is open.
	ErrOpenState = errors.New("circuit breaker is open")
)

// Counts has what the package's doc says of calls that have ended.
type Counts struct {
	Requests             uint32
	TotalSuccesses       uint32
	TotalFailures        uint32
	TotalExclusions      uint32
	ConsecutiveSuccesses uint32
	ConsecutiveFailures  uint32
}

// Settings has the fields of gobreaker's Settings, with their zero values.
type Settings struct {
	Name          string
	MaxRequests   uint32
	Interval      time.Duration
	BucketPeriod  time.Duration
	Timeout       time.Duration
	ReadyToTrip   func(counts Counts) bool
	OnStateChange func(name string, from State, to State)
	IsSuccessful  func(err error) bool
	IsExcluded    func(err error) bool
}

// sinceClosed is the window without an Interval.
const sinceClosed = 365 * 24 * time.Hour

func (st Settings) config() atomicbreaker.Config {
	open := st.Timeout
	if open <= 0 {
		open = time.Minute
	}
	if open > 397*24*time.Hour { // atomicbreaker takes it for "until Reset"
		panic(fmt.Sprintf("gobreaker: Settings.Timeout %v is above 397 days", open))
	}
	window := st.Interval
	switch {
	case window <= 0:
		window = sinceClosed
	case st.BucketPeriod > 0:
		window = (window + st.BucketPeriod - 1) / st.BucketPeriod * st.BucketPeriod
	}
	ready := st.ReadyToTrip
	if ready == nil {
		ready = func(c Counts) bool { return c.ConsecutiveFailures > 5 }
	}
	probes := int(max(1, st.MaxRequests))
	c := atomicbreaker.Config{
		Name: st.Name, OpenTimeout: open, MaxOpenTimeout: open, Probes: probes, CloseAfter: probes,
		Trip: atomicbreaker.TripFunc(window, 0, func(c atomicbreaker.Counts) bool {
			return ready(counts(c, min(c.Consecutive, c.Failures)))
		}),
	}
	if st.OnStateChange != nil {
		c.OnStateChange = func(e atomicbreaker.Event) {
			if from, to := state(e.From), state(e.To); from != to {
				st.OnStateChange(e.Name, from, to)
			}
		}
	}
	return c
}

func counts(c atomicbreaker.Counts, inARow int) Counts {
	return Counts{Requests: uint32(c.Calls), TotalSuccesses: uint32(c.Calls - c.Failures),
		TotalFailures: uint32(c.Failures), ConsecutiveFailures: uint32(inARow)}
}

func state(s atomicbreaker.State) State {
	switch s {
	case atomicbreaker.Open:
		return StateOpen
	case atomicbreaker.HalfOpen:
		return StateHalfOpen
	}
	return StateClosed
}

// TwoStepCircuitBreaker admits calls whose ends the caller reports.
type TwoStepCircuitBreaker[T any] struct {
	b  *atomicbreaker.Breaker
	st Settings
}

// NewTwoStepCircuitBreaker returns a closed breaker. It panics if
// atomicbreaker.New rejects the settings.
func NewTwoStepCircuitBreaker[T any](st Settings) *TwoStepCircuitBreaker[T] {
	return &TwoStepCircuitBreaker[T]{b: atomicbreaker.MustNew(st.config()), st: st}
}

// Name returns Settings.Name.
func (t *TwoStepCircuitBreaker[T]) Name() string { return t.st.Name }

// State returns the state and changes nothing.
func (t *TwoStepCircuitBreaker[T]) State() State { return state(t.b.State()) }

// Counts returns the counts of the window, or of the probes while half-open.
func (t *TwoStepCircuitBreaker[T]) Counts() Counts {
	s := t.b.Snapshot()
	switch s.State {
	case atomicbreaker.Closed:
		return counts(s.Window, min(s.Failures, s.Window.Failures))
	case atomicbreaker.HalfOpen:
		return Counts{Requests: uint32(s.InFlight + s.Successes), TotalSuccesses: uint32(s.Successes)}
	}
	return Counts{}
}

// Allow admits a call, whose error done reports, or returns an error.
func (t *TwoStepCircuitBreaker[T]) Allow() (done func(err error), err error) {
	p, err := t.allow()
	if err != nil {
		return nil, err
	}
	return func(err error) { t.done(p, err) }, nil
}

func (t *TwoStepCircuitBreaker[T]) allow() (atomicbreaker.Permit, error) {
	p, err := t.b.Allow()
	switch {
	case err == nil:
		return p, nil
	case errors.Is(err, atomicbreaker.ErrTooManyProbes):
		return p, ErrTooManyRequests
	}
	return p, ErrOpenState
}

func (t *TwoStepCircuitBreaker[T]) done(p atomicbreaker.Permit, err error) {
	classified := false
	defer func() {
		if !classified { // IsExcluded or IsSuccessful panicked
			p.Failure()
		}
	}()
	excluded := t.st.IsExcluded != nil && t.st.IsExcluded(err)
	good := err == nil
	if !excluded && t.st.IsSuccessful != nil {
		good = t.st.IsSuccessful(err)
	}
	classified = true
	switch {
	case excluded:
		p.Cancel()
	case good:
		p.Success()
	default:
		p.Failure()
	}
}

// CircuitBreaker runs functions.
type CircuitBreaker[T any] struct{ t *TwoStepCircuitBreaker[T] }

// NewCircuitBreaker is like NewTwoStepCircuitBreaker.
func NewCircuitBreaker[T any](st Settings) *CircuitBreaker[T] {
	return &CircuitBreaker[T]{NewTwoStepCircuitBreaker[T](st)}
}

// Name returns Settings.Name.
func (cb *CircuitBreaker[T]) Name() string { return cb.t.Name() }

// State returns the state and changes nothing.
func (cb *CircuitBreaker[T]) State() State { return cb.t.State() }

// Counts is as TwoStepCircuitBreaker.Counts.
func (cb *CircuitBreaker[T]) Counts() Counts { return cb.t.Counts() }

// Execute runs req if the breaker admits it. After a panic IsSuccessful gets an
// error with its text, and the panic goes on; runtime.Goexit is a failure.
func (cb *CircuitBreaker[T]) Execute(req func() (T, error)) (result T, err error) {
	p, err := cb.t.allow()
	if err != nil {
		return result, err
	}
	returned := false
	defer func() {
		if returned {
			return
		}
		if e := recover(); e != nil {
			cb.t.done(p, fmt.Errorf("%v", e))
			panic(e)
		}
		p.Failure() // runtime.Goexit
	}()
	result, err = req()
	returned = true
	cb.t.done(p, err)
	return result, err
}
