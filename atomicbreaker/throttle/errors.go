package throttle

import (
	"fmt"

	"github.com/latchfree/latchfree/atomicbreaker"
)

// ErrRejected says that a Throttle has rejected the call. It matches ErrRejected of
// package atomicbreaker.
var ErrRejected = fmt.Errorf("%w: throttled: backend overloaded", atomicbreaker.ErrRejected)
