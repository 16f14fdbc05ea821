package gobreaker

// TwoStepCircuitBreaker is a CircuitBreaker for calls that cannot be wrapped in a
// function: Allow admits a call, and its caller reports the result.
type TwoStepCircuitBreaker[T any] struct{ core core }

// NewTwoStepCircuitBreaker returns a closed breaker.
func NewTwoStepCircuitBreaker[T any](st Settings) *TwoStepCircuitBreaker[T] {
	b := new(TwoStepCircuitBreaker[T])
	b.core.init(st)
	return b
}

// Name returns Settings.Name.
func (b *TwoStepCircuitBreaker[T]) Name() string { return b.core.name }

// State is like CircuitBreaker.State.
func (b *TwoStepCircuitBreaker[T]) State() State { return b.core.State() }

// Counts is like CircuitBreaker.Counts.
func (b *TwoStepCircuitBreaker[T]) Counts() Counts { return b.core.Counts() }

// Allow admits a call, or returns ErrOpenState or ErrTooManyRequests. The caller must
// report the error of an admitted call, or nil, by done once. Each further report
// counts as the result of another call.
func (b *TwoStepCircuitBreaker[T]) Allow() (done func(err error), err error) {
	var t ticket
	if err := b.core.admit(&t); err != nil {
		return nil, err
	}
	held := t // only this is on the heap, within the function
	return func(err error) {
		t := held
		b.core.endAnyway(&t, err)
	}, nil
}
