package latchgrpc

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A rejection is the error of a breaker or throttle, with a status.
type rejection struct{ cause error }

// Error returns the text of a gRPC status.
func (r *rejection) Error() string { return r.GRPCStatus().String() }

// Unwrap returns the error of the breaker or throttle.
func (r *rejection) Unwrap() error { return r.cause }

// GRPCStatus returns the status of a call that was not admitted; see status.FromError.
func (r *rejection) GRPCStatus() *status.Status {
	return status.New(codes.Unavailable, r.cause.Error())
}
