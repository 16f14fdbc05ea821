package oncecache

import (
	"errors"
	"fmt"
	"strings"
)

// ErrClosed is the error of callers that ask for a key of a closed cache, or wait for a
// creation when the cache is closed.
var ErrClosed = errors.New("oncecache: cache is closed")

// ErrGoexit is the error of callers that waited for a creation whose function called
// [runtime.Goexit], as testing.T.FailNow does.
var ErrGoexit = errors.New("oncecache: create function called runtime.Goexit")

// ErrCreateTimeout is the error of callers whose creation took longer than
// Config.CreateTimeout.
var ErrCreateTimeout = errors.New("oncecache: create function takes too long")

// ErrNotFound is the error of [Cache.Wait] for a key that has no value and is not being
// created, and of a key that the function of [Cache.GetOrCreateMany] leaves out.
var ErrNotFound = errors.New("oncecache: no such key")

// ErrNotModified is returned by the function of [Cache.Refresh] or [Cache.Reload] if the
// old value is still right. Then the old value stays, as if it was new.
var ErrNotModified = errors.New("oncecache: not modified")

// errAgain sends its callers back to the table: the creation that they waited for was
// abandoned before they came and has failed, or must begin again as one that can be
// called off; or the value that they found has left the table.
var errAgain = errors.New("oncecache: look again")

// errNoBase ends a Refresh whose key has no value any more when it begins.
var errNoBase = errors.New("oncecache: nothing to refresh")

// PanicError is the error of callers that waited for a creation whose function
// panicked. The caller that ran the function gets the panic.
type PanicError struct {
	Value any    // the value of the panic
	Stack []byte // the stack of the goroutine that panicked, as debug.Stack formats it
	from  source // which function of the user has panicked
}

// source has no type of its own, which would be in every program.
type source = uint8

const (
	fromCreate source = iota
	fromClose
	fromOnRemove
	fromOnCreate
)

// Error returns a text that contains the panic's value, but not the stack.
func (e *PanicError) Error() string {
	return fmt.Sprintf("oncecache: %s function panicked: %v", [...]string{fromCreate: "create", fromClose: "Close", fromOnRemove: "OnRemove", fromOnCreate: "OnCreate"}[e.from], e.Value)
}

// Unwrap returns the panic's value if it is an error, and otherwise nil.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// rethrown is the panic of a caller whose create function panicked on another goroutine.
// Its text has that stack, which the caller's stack does not show.
type rethrown struct{ *PanicError }

// Error returns the text of the panic and the stack where it began.
func (r rethrown) Error() string {
	return fmt.Sprintf("%s\n\n%s", r.PanicError.Error(), r.Stack)
}

// Unwrap returns the panic as the others get it.
func (r rethrown) Unwrap() error { return r.PanicError }

// PendingError is the error of [Cache.Close] when its context ends before all is over.
// It has the keys that Close has not waited for, in no order. A key may be there more
// than once, and a key that changes from one kind to another just then may be missing.
type PendingError struct {
	Creating []any // their create functions have not returned
	Leased   []any // their values have not been released
	Closing  []any // their Close or OnRemove functions run, or wait for their turn

	err error // of the context
}

// Error returns a text with the first few keys of each kind.
func (e *PendingError) Error() string {
	var b strings.Builder
	b.WriteString("oncecache: not closed in time")
	for _, of := range []struct {
		what string
		keys []any
	}{{"creating", e.Creating}, {"leased", e.Leased}, {"closing", e.Closing}} {
		const few = 5
		for i, k := range of.keys {
			switch {
			case i == 0:
				fmt.Fprintf(&b, "; %s %v", of.what, k)
			case i < few:
				fmt.Fprintf(&b, ", %v", k)
			case i == few:
				fmt.Fprintf(&b, " and %d more", len(of.keys)-few)
			}
		}
	}
	fmt.Fprintf(&b, ": %v", e.err)
	return b.String()
}

// Unwrap returns the error of the context.
func (e *PendingError) Unwrap() error { return e.err }

// KeyErrors has the errors of a batch by key. [Cache.GetOrCreateMany] returns it if it
// does not have all values. The function of GetOrCreateMany may return it; any other
// error that the function returns is that of every key without a value.
type KeyErrors[K comparable] map[K]error

// Error returns a text with each error once, and the keys that have it.
func (e KeyErrors[K]) Error() string {
	keys := map[string][]string{} // by the text of their error
	for k, err := range e {
		text := fmt.Sprint(err)
		keys[text] = append(keys[text], fmt.Sprint(k))
	}
	return errorLines(keys)
}

// errorLines returns a line for each text, with the first few of its keys.
func errorLines(keys map[string][]string) string {
	lines := make([]string, 0, len(keys))
	for text := range keys {
		lines = append(lines, text)
	}
	sortTexts(lines)
	for i, text := range lines {
		of := keys[text]
		sortTexts(of)
		const few = 5
		more := ""
		if n := len(of); n > few {
			of, more = of[:few], fmt.Sprintf(" and %d more", n-few)
		}
		lines[i] = strings.Join(of, ", ") + more + ": " + text
	}
	return strings.Join(lines, "\n")
}

// keyErrorsIn returns the KeyErrors that err is or wraps.
func keyErrorsIn[K comparable](err error) (each KeyErrors[K], ok bool) {
	ok = err != nil && errors.As(err, &each)
	return each, ok
}

// Unwrap returns the errors.
func (e KeyErrors[K]) Unwrap() (errs []error) {
	for _, err := range e {
		errs = append(errs, err)
	}
	return errs
}
