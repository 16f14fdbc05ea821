package atomicbreaker

import (
	"errors"
	"fmt"
)

// Reasons why a call was not admitted.
var (
	// ErrRejected matches every rejection.
	ErrRejected = errors.New("atomicbreaker: call rejected")

	// ErrOpen says that the breaker is open. It matches ErrRejected.
	ErrOpen = fmt.Errorf("%w: breaker is open", ErrRejected)

	// ErrTooManyProbes says that the breaker is half-open and that all its
	// probes are out. It matches ErrRejected.
	ErrTooManyProbes = fmt.Errorf("%w: breaker is half-open and all probes are in flight", ErrRejected)
)

// err returns the error for the caller, a sentinel: a rejection allocates
// nothing.
func (a admission) err() error {
	switch a {
	case rejectedOpen:
		return ErrOpen
	case rejectedProbes:
		return ErrTooManyProbes
	}
	return nil
}
