package latchgrpc

import (
	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/atomicbreaker/throttle"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A rejection is the error of a breaker or throttle, with a status.
type rejection struct{ cause error }

// Rejections without details are made once: an open breaker has nothing to allocate.
var (
	rejectedOpen      = &rejection{atomicbreaker.ErrOpen}
	rejectedProbe     = &rejection{atomicbreaker.ErrTooManyProbes}
	rejectedThrottled = &rejection{throttle.ErrRejected}
)

func reject(cause error) error {
	switch cause {
	case atomicbreaker.ErrOpen:
		return rejectedOpen
	case atomicbreaker.ErrTooManyProbes:
		return rejectedProbe
	case throttle.ErrRejected:
		return rejectedThrottled
	}
	return &rejection{cause}
}

// Error returns the text of a gRPC status.
func (r *rejection) Error() string { return r.GRPCStatus().String() }

// Unwrap returns the error of the breaker or throttle.
func (r *rejection) Unwrap() error { return r.cause }

// GRPCStatus returns the status of a call that was not admitted; see status.FromError.
func (r *rejection) GRPCStatus() *status.Status {
	return status.New(codes.Unavailable, r.cause.Error())
}
