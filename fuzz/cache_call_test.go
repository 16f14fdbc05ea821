package fuzz

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/fuzz/internal/model"
	"github.com/latchfree/latchfree/oncecache"
)

var errRefused = errors.New("connection refused")

// cacheEnding is how a create function ends.
type cacheEnding byte

const (
	endsInValue cacheEnding = iota
	endsInError
	endsInPanic
	endsInGoexit
	cacheEndings
)

// err is what the ending is for those who wait, but that a panic's error
// carries its value.
func (e cacheEnding) err() error {
	return [...]error{nil, errRefused, errPanicked, oncecache.ErrGoexit}[e]
}

var errPanicked = errors.New("disk full")

// cacheKind is by which method a call asks.
type cacheKind byte

const (
	asksPlainly     cacheKind = iota // GetOrCreate
	asksWithContext                  // GetOrCreateContext
	acquires                         // Acquire
)

// cacheCall is one call that may create, on a goroutine of its own.
type cacheCall struct {
	kind    cacheKind
	key     int
	flight  *model.Flight
	creates bool // according to the model
	makes   int  // the value, if it creates one

	ctx   context.Context
	leave context.CancelFunc
	left  bool
	seen  bool // it holds a lease, or did

	end    chan cacheEnding // how the create function is told to end
	ending cacheEnding
	ended  bool // it was told

	// Written by the goroutine, and read after synctest.Wait.
	begun, done, exited bool
	value               int
	lease               *oncecache.Lease[int, int]
	err                 error
	panicked            any
}

func (k *cacheCall) run(c *oncecache.Cache[int, int]) {
	returned := false
	defer func() {
		if k.panicked = recover(); k.panicked == nil {
			k.exited = !returned
		}
		k.done = true
	}()
	create := func(context.Context, int) (int, error) { return k.create() }
	switch k.kind {
	case asksPlainly:
		k.value, k.err = c.GetOrCreate(k.key, k.create)
	case asksWithContext:
		k.value, k.err = c.GetOrCreateContext(k.ctx, k.key, create)
	case acquires:
		l, err := c.Acquire(k.ctx, k.key, create)
		if k.err = err; err == nil {
			k.lease, k.value = &l, l.Value()
		}
	}
	returned = true
}

func (k *cacheCall) create() (int, error) {
	k.begun = true
	switch <-k.end {
	case endsInError:
		return k.makes, errRefused
	case endsInPanic:
		panic(errPanicked)
	case endsInGoexit:
		runtime.Goexit()
	}
	return k.makes, nil
}

// inline reports whether the call runs its create function itself.
func (k *cacheCall) inline() bool { return k.creates && k.kind == asksPlainly }

// check compares the call with what the model says about it by now.
func (k *cacheCall) check(t *testing.T) {
	require.Equal(t, k.creates, k.begun, "create function called")
	if k.inline() {
		require.Equal(t, k.ended, k.done, "owner returned")
	} else {
		require.Equal(t, k.left || k.flight.Over, k.done, "caller returned")
	}
	if !k.done {
		return
	}
	if k.left {
		require.Equal(t, context.Canceled, k.err)
		return
	}
	panics := k.ended && k.ending == endsInPanic && (k.inline() || k.flight.Err == errPanicked)
	exits := k.inline() && k.ending == endsInGoexit
	require.Equal(t, exits, k.exited, "exited")
	switch {
	case panics && k.inline():
		require.Equal(t, errPanicked, k.panicked)
	case panics:
		err, _ := k.panicked.(error)
		require.ErrorIs(t, err, errPanicked)
		require.ErrorAs(t, err, new(*oncecache.PanicError))
	default:
		require.Nil(t, k.panicked)
	}
	if panics || exits {
		return
	}
	require.Equal(t, k.flight.Value, k.value)
	require.ErrorIs(t, k.err, k.flight.Err)
	if k.flight.Err == errPanicked {
		require.ErrorAs(t, k.err, new(*oncecache.PanicError))
	}
}
