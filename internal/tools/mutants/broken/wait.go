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
