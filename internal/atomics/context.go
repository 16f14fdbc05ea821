//go:build !modelcheck

package atomics

import "context"

// WaitContext waits for the event or for the end of ctx, and returns nil or
// ctx.Err(). Where both have come to pass, either may be returned.
func (e *Event) WaitContext(ctx context.Context) error {
	select {
	case <-e.ch:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Go is a go statement.
func Go(f func()) { go f() }

// WithCancel is context.WithCancel. Contexts that can end, and on which shared
// values wait, are made through the seam, because when they end is part of the
// protocol.
func WithCancel(parent context.Context) (context.Context, context.CancelFunc) {
	return context.WithCancel(parent)
}

// WithCancelCause is context.WithCancelCause.
func WithCancelCause(parent context.Context) (context.Context, context.CancelCauseFunc) {
	return context.WithCancelCause(parent)
}

// AfterFunc is context.AfterFunc.
func AfterFunc(ctx context.Context, f func()) (stop func() bool) {
	return context.AfterFunc(ctx, f)
}
