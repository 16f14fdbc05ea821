package latchgrpc

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/atomicbreaker/retrybudget"
)

// Retries has an interceptor that makes unary calls again while a budget lasts. See
// RetriesConfig for its settings. All methods may be called concurrently.
//
// A call that a breaker or throttle of this client has rejected is not made again.
type Retries struct{ config RetriesConfig }

// RetriesConfig holds the settings of Retries. The zero value means the defaults.
type RetriesConfig struct {
	// Budget bounds the retries of all calls together. Nil means one with the default
	// settings. Use one for each server that is called. A call earns if it ends with OK or
	// a code that ClassifyBreaker takes for a success, as the server works then.
	Budget *retrybudget.Budget

	// Codes are those after which a call is made again. Nil means Unavailable, which says
	// in most cases that the server has not begun with the call. Calls that may be made
	// twice can add others. OK and Canceled must not be among them.
	Codes []codes.Code

	// MaxAttempts is how often a call is made at most, the first time included. Zero means
	// 3, and 1 means no retries.
	MaxAttempts int

	// BaseDelay bounds the time before the first retry. Each further retry doubles the
	// bound, up to MaxDelay. The time is drawn evenly from between zero and the bound.
	// Zero means 50 milliseconds.
	BaseDelay time.Duration

	// MaxDelay is at least BaseDelay. Zero means the greater of one second and BaseDelay.
	MaxDelay time.Duration
}

// NewRetries returns Retries, or an error that names the setting that is wrong and its
// value.
func NewRetries(c RetriesConfig) (*Retries, error) {
	for _, code := range c.Codes {
		if code == codes.OK || code == codes.Canceled || code > codes.Unauthenticated {
			return nil, fmt.Errorf("latchgrpc: RetriesConfig.Codes %v: must be codes of gRPC without OK and Canceled", c.Codes)
		}
	}
	switch {
	case c.MaxAttempts < 0:
		return nil, fmt.Errorf("latchgrpc: RetriesConfig.MaxAttempts %d: must not be negative", c.MaxAttempts)
	case c.BaseDelay < 0:
		return nil, fmt.Errorf("latchgrpc: RetriesConfig.BaseDelay %v: must not be negative", c.BaseDelay)
	}
	if c.BaseDelay == 0 {
		c.BaseDelay = 50 * time.Millisecond
	}
	if c.MaxDelay == 0 {
		c.MaxDelay = max(time.Second, c.BaseDelay)
	}
	if c.MaxDelay < c.BaseDelay {
		return nil, fmt.Errorf("latchgrpc: RetriesConfig.MaxDelay %v: must be 0 or at least BaseDelay, %v", c.MaxDelay, c.BaseDelay)
	}
	if c.MaxAttempts == 0 {
		c.MaxAttempts = 3
	}
	if c.Budget == nil {
		c.Budget = new(retrybudget.Budget)
	}
	if c.Codes == nil {
		c.Codes = []codes.Code{codes.Unavailable}
	}
	c.Codes = append([]codes.Code(nil), c.Codes...)
	return &Retries{c}, nil
}

// MustNewRetries is like NewRetries but panics if a setting is wrong.
func MustNewRetries(c RetriesConfig) *Retries {
	r, err := NewRetries(c)
	if err != nil {
		panic(err)
	}
	return r
}

// UnaryClient returns the interceptor for unary calls of a client.
//
// Between two attempts it waits for a random time, or for as long as the server asks by
// grpc-retry-pushback-ms in its trailer. A negative or malformed pushback means no retry. It
// does not wait beyond the deadline of the context, but returns the error of the last
// attempt at once. If the context ends while it waits, it returns the status of that.
func (r *Retries) UnaryClient() grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		for attempt := 1; ; attempt++ {
			var trailer metadata.MD
			// A copy: the caller may use the array behind opts for another call.
			err := invoker(ctx, method, req, reply, cc, append(opts[:len(opts):len(opts)], grpc.Trailer(&trailer))...)
			if ClassifyBreaker(ctx, err) == atomicbreaker.Success {
				r.config.Budget.Success()
			}
			if attempt >= r.config.MaxAttempts || !r.again(ctx, err) {
				return err
			}
			delay, ok := r.delay(attempt, trailer)
			if deadline, has := ctx.Deadline(); !ok || has && time.Until(deadline) <= delay {
				return err
			}
			if r.config.Budget.Available() == 0 { // or it would wait in vain
				return err
			}
			if ctxErr := sleep(ctx, delay); ctxErr != nil {
				return status.FromContextError(ctxErr).Err()
			}
			if !r.config.Budget.Retry() {
				return err
			}
		}
	}
}

// again reports whether a call that ended with err is to be made again.
func (r *Retries) again(ctx context.Context, err error) bool {
	if err == nil || ctx.Err() != nil || errors.Is(err, atomicbreaker.ErrRejected) {
		return false
	}
	got := status.Code(err)
	for _, code := range r.config.Codes {
		if got == code {
			return true
		}
	}
	return false
}

const pushbackKey = "grpc-retry-pushback-ms"

// delay returns the time before the next attempt, unless the server wants none.
func (r *Retries) delay(attempt int, trailer metadata.MD) (time.Duration, bool) {
	if asked := trailer.Get(pushbackKey); len(asked) != 0 {
		ms, err := strconv.ParseInt(asked[0], 10, 32)
		return time.Duration(ms) * time.Millisecond, len(asked) == 1 && err == nil && ms >= 0
	}
	bound := r.config.BaseDelay
	for range attempt - 1 {
		if bound > r.config.MaxDelay/2 {
			bound = r.config.MaxDelay
			break
		}
		bound *= 2
	}
	return rand.N(bound) + 1, true // never zero, so that others run
}

// sleep returns the error of the context if that ends first.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
