package latchgrpc

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/latchfree/latchfree/atomicbreaker"
)

// Classify says what the end of a call means. The context is that of the call, and err
// what the interceptor got: nil, or the error of the call or the handler.
type Classify func(ctx context.Context, err error) atomicbreaker.Outcome

// ClassifyBreaker is the default of BreakersConfig.Classify. Failures are Unknown,
// DeadlineExceeded, Internal, Unavailable and DataLoss: the server is down, hangs or is
// broken. Unknown is the code of a handler's error without a status.
//
// ResourceExhausted is Ignored: the server works, but perhaps not for this client. It is
// also the code of a message that is too large. All other codes are Success: a
// server that refuses a request works.
//
// A call whose caller has cancelled its context is Ignored, whatever its error.
// Canceled is Ignored too, unless the deadline of the context has passed. An error that
// matches atomicbreaker.ErrRejected is Ignored, as nothing was sent.
func ClassifyBreaker(ctx context.Context, err error) atomicbreaker.Outcome {
	if err == nil {
		return atomicbreaker.Success
	}
	if errors.Is(err, atomicbreaker.ErrRejected) {
		return atomicbreaker.Ignored
	}
	code, cancelled := codeOf(ctx, err)
	switch {
	case cancelled, code == codes.ResourceExhausted:
		return atomicbreaker.Ignored
	case code == codes.Unknown, code == codes.DeadlineExceeded, code == codes.Internal,
		code == codes.Unavailable, code == codes.DataLoss:
		return atomicbreaker.Failure
	}
	return atomicbreaker.Success
}

// ClassifyThrottle is the default of ThrottlesConfig.Classify. Not accepted are
// ResourceExhausted, Unavailable and DeadlineExceeded, the codes of overload, which also
// are those of rejections. All else is accepted, and so is a call whose caller has
// cancelled its context.
func ClassifyThrottle(ctx context.Context, err error) atomicbreaker.Outcome {
	return FailOn(codes.ResourceExhausted, codes.Unavailable, codes.DeadlineExceeded)(ctx, err)
}

// FailOn returns a Classify that takes these codes for failures, and all others for
// successes. A call whose caller has cancelled its context is Ignored, and so is Canceled
// unless the deadline of the context has passed, which counts as DeadlineExceeded.
func FailOn(failures ...codes.Code) Classify {
	var set uint64
	for _, code := range failures {
		set |= bit(code)
	}
	return func(ctx context.Context, err error) atomicbreaker.Outcome {
		if err == nil {
			return atomicbreaker.Success
		}
		switch code, cancelled := codeOf(ctx, err); {
		case cancelled:
			return atomicbreaker.Ignored
		case set&bit(code) != 0:
			return atomicbreaker.Failure
		}
		return atomicbreaker.Success
	}
}

// bit is zero for codes above 63; gRPC has none above 16.
func bit(code codes.Code) uint64 {
	return 1 << code
}

// codeOf returns the code with which gRPC ends the call, and whether its caller has
// cancelled it.
func codeOf(ctx context.Context, err error) (code codes.Code, cancelled bool) {
	s, ok := status.FromError(err)
	if !ok { // as a server does with a handler's error
		s = status.FromContextError(err)
	}
	code = s.Code()
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return code, true
	case code == codes.Canceled && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return codes.DeadlineExceeded, false
	}
	return code, code == codes.Canceled
}
