package broken

import "context"

// FailedTryLock says that another has the mutex.
func FailedTryLock[M interface{ TryLock() bool }](M) bool { return false }

// SkippedWaitContext says that the event has fired.
func SkippedWaitContext[E interface {
	WaitContext(context.Context) error
}](E, context.Context) error {
	return nil
}

// Detached returns a context that never ends and holds nothing in place of one
// that does.
func Detached(context.Context) context.Context { return context.Background() }
