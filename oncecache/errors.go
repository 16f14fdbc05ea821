package oncecache

import (
	"errors"
	"fmt"
)

// ErrGoexit is what callers who waited for a creation get when the function
// that created called [runtime.Goexit], as testing.T.FailNow does.
var ErrGoexit = errors.New("oncecache: create function called runtime.Goexit")

// PanicError is what callers who waited for a creation get when the function
// that created panicked. The caller that ran the function gets the panic.
type PanicError struct {
	Value any    // what the function panicked with
	Stack []byte // the stack of the goroutine that panicked, as debug.Stack formats it
}

// Error returns a text that contains the panic's value, but not the stack.
func (e *PanicError) Error() string {
	return fmt.Sprintf("oncecache: create function panicked: %v", e.Value)
}

// Unwrap returns the panic's value if it is an error, and otherwise nil.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}
