//go:build modelcheck

package atomics

import (
	"context"
	"time"

	"github.com/latchfree/latchfree/internal/tools/mc"
)

// WithTimeoutCause ends the context by a timer as After makes them. In the model
// it has no deadline, and ends as if it were cancelled.
func WithTimeoutCause(parent context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	if !mc.Modelled() {
		return context.WithTimeoutCause(parent, d, cause)
	}
	ctx, cancel := WithCancelCause(parent)
	stop := After(d, func() { cancel(cause) })
	return ctx, func() { stop(); cancel(nil) }
}
