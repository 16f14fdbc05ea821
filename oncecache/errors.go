package oncecache

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ErrClosed is the error of callers that ask for a key of a closed cache, or wait for a
// creation when the cache is closed.
var ErrClosed = errors.New("oncecache: cache is closed")

// ErrGoexit is the error of callers that waited for a creation whose function called
// [runtime.Goexit], as testing.T.FailNow does.
var ErrGoexit = errors.New("oncecache: create function called runtime.Goexit")

// ErrCreateTimeout is the error of callers whose creation took longer than Config.CreateTimeout.
var ErrCreateTimeout = errors.New("oncecache: create timed out")

// ErrNotFound is the error of [Cache.Wait] for a key that has no value and is not being
// created, and of a key that the function of [Cache.GetOrCreateMany] leaves out.
var ErrNotFound = errors.New("oncecache: no such key")

// ErrNotModified is returned by the function of [Cache.Refresh], or by Config.Renew, if the old
// value is still right.
var ErrNotModified = errors.New("oncecache: not modified")

// errAgain sends its callers back to the table: the creation that they waited for was
// abandoned before they came and has failed, or the value that they found has left the table.
var errAgain = errors.New("oncecache: look again")

// PanicError is the error of callers that waited for a creation whose function
// panicked. The caller that ran the function gets the panic.
type PanicError struct {
	Value any    // the value of the panic
	Stack []byte // the stack of the goroutine that panicked, as debug.Stack formats it
	from  source // which function of the user has panicked
}

// source is a function of the user.
type source uint8

const (
	fromCreate source = iota
	fromClose
	fromOnRemove
	fromOnCreate
)

func (s source) String() string {
	return [...]string{fromCreate: "create", fromClose: "Close", fromOnRemove: "OnRemove", fromOnCreate: "OnCreate"}[s]
}

// Error returns a text that contains the panic's value, but not the stack.
func (e *PanicError) Error() string {
	return fmt.Sprintf("oncecache: %v function panicked: %v", e.from, e.Value)
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

// PendingError is the error of [Cache.Close] when its context ends first. It has the keys that
// Close was still waiting for, oldest first. A key may appear more than once, and one that another call is
// just removing may be missing. If only OnCreate functions run, it has none.
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
		if len(of.keys) > 0 {
			fmt.Fprintf(&b, "; %s %s", of.what, firstOf(of.keys))
		}
	}
	fmt.Fprintf(&b, ": %v", e.err)
	return b.String()
}

// Unwrap returns the error of the context.
func (e *PendingError) Unwrap() error { return e.err }

// KeyErrors has the errors of a batch by key. [Cache.GetOrCreateMany] returns it, and its function may.
type KeyErrors[K comparable] map[K]error

// Error returns a text with each error once, and the first few keys that have it.
func (e KeyErrors[K]) Error() string {
	keys := map[string][]string{} // by the text of their error
	for k, err := range e {
		text := fmt.Sprint(err)
		keys[text] = append(keys[text], fmt.Sprint(k))
	}
	lines := slices.Sorted(maps.Keys(keys))
	for i, text := range lines {
		slices.Sort(keys[text])
		lines[i] = firstOf(keys[text]) + ": " + text
	}
	return strings.Join(lines, "\n")
}

// firstOf returns the first few keys, and how many more there are.
func firstOf[K any](keys []K) string {
	const few = 5
	var b strings.Builder
	for i, k := range keys[:min(few, len(keys))] {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprint(&b, k)
	}
	if n := len(keys); n > few {
		fmt.Fprintf(&b, " and %d more", n-few)
	}
	return b.String()
}

// keyErrorsIn returns the KeyErrors that err is or wraps.
func keyErrorsIn[K comparable](err error) (each KeyErrors[K], ok bool) {
	ok = errors.As(err, &each)
	return each, ok
}

// Unwrap returns the errors.
func (e KeyErrors[K]) Unwrap() (errs []error) {
	for _, err := range e {
		errs = append(errs, err)
	}
	return errs
}

// errBound is the error of a bound that cannot be changed to n.
func errBound(name string, n int64) error {
	return fmt.Errorf("oncecache: Config.%s %d: must be above 0, within its range, and set from the start", name, n)
}
