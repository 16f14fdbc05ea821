package oncecache

import (
	"errors"
	"fmt"
)

// ErrClosed is what callers get who ask for a key of a closed cache, or wait
// for one when it is closed.
var ErrClosed = errors.New("oncecache: cache is closed")

// ErrGoexit is what callers who waited for a creation get when the function
// that created called [runtime.Goexit], as testing.T.FailNow does.
var ErrGoexit = errors.New("oncecache: create function called runtime.Goexit")

// ErrCreateTimeout is what callers get whose creation took longer than
// Config.CreateTimeout.
var ErrCreateTimeout = errors.New("oncecache: create function takes too long")

// ErrNotFound is what [Cache.Wait] returns for a key that has no value, and is
// not being created.
var ErrNotFound = errors.New("oncecache: no such key")

// errAgain sends its callers back to the table: the creation that they waited
// for was abandoned before they came and has failed, or the value that they
// found has left the table.
var errAgain = errors.New("oncecache: look again")

// PanicError is what callers who waited for a creation get when the function
// that created panicked. The caller that ran the function gets the panic.
type PanicError struct {
	Value   any    // what the function panicked with
	Stack   []byte // the stack of the goroutine that panicked, as debug.Stack formats it
	closing bool   // it was Config.Close
}

// Error returns a text that contains the panic's value, but not the stack.
func (e *PanicError) Error() string {
	if e.closing {
		return fmt.Sprintf("oncecache: Close function panicked: %v", e.Value)
	}
	return fmt.Sprintf("oncecache: create function panicked: %v", e.Value)
}

// Unwrap returns the panic's value if it is an error, and otherwise nil.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// rethrown is what a caller panics with whose create function panicked on
// another goroutine. Its text has the stack, which the caller's does not have.
type rethrown struct{ *PanicError }

// Error returns the text of the panic and the stack where it began.
func (r rethrown) Error() string {
	return fmt.Sprintf("%s\n\n%s", r.PanicError.Error(), r.Stack)
}

// Unwrap returns the panic as the others get it.
func (r rethrown) Unwrap() error { return r.PanicError }
