package oncecache

import (
	"fmt"
	"math/bits"
	"time"
)

// maxSizeHint keeps the table, a bucket of 64 bytes for two and a half keys, their
// number rounded up to a power of two, within 32 gigabytes: 2³⁰. Where the
// address space has 32 bits, it keeps it within half a gigabyte of it: 2²⁴.
const maxSizeHint = 1 << (18 + 6*(bits.UintSize/32))

// Config holds the settings of a [Cache]. Its zero value holds the defaults,
// which are also those of a zero Cache.
type Config[K comparable, V any] struct {
	// SizeHint is the number of keys to make room for at once: at most 2³⁰, or
	// 2²⁴ on a 32-bit machine. The table does not shrink below that room. Zero
	// means to start small.
	SizeHint int

	// Close, if it is set, makes the values the cache's own: it is called once
	// for each value that was created or set, when that is no longer the
	// key's and no lease holds it. A value that is replaced, deleted or
	// discarded without leases is closed at once, and so is one that is not
	// kept: use [Cache.Acquire] to hold a value. SetIfAbsent leaves a value
	// that it does not store to its caller, and a value that a create function
	// returns beside an error is none.
	//
	// It runs on the goroutine of the call that found nobody else to use the
	// value, outside every lock; that call does not get to know how it ends.
	// Errors, and panics as [*PanicError], are returned by [Cache.Close].
	//
	// Nil means that nothing is ever closed.
	Close func(K, V) error

	// ErrorTTL says how long the error of a create function is kept, so that
	// those who ask for the key meanwhile get it without another call. Zero
	// means not at all, as without ErrorTTL, and less than zero until somebody
	// sets or deletes the key. A key whose error is kept has no value: Get does
	// not find it, and Len, Keys and All leave it out. The error makes room when
	// the key is asked for after its time, and not by a timer of its own; see
	// Sweep. With MaxEntries or IdleTimeout it may make room before.
	//
	// It is called once for each failure, by the goroutine that ran the function,
	// and not for panics, timeouts and cycles; for a key that the function of
	// GetOrCreateMany leaves out it is called with ErrNotFound. Errors that come
	// after all callers have left are not kept, whatever it says. If it panics,
	// that is as if the create function had.
	ErrorTTL func(K, error) time.Duration

	// CreateTimeout bounds how long anyone waits for a create function. After
	// that time its callers get [ErrCreateTimeout], its context is cancelled
	// with that as cause, and the key is free: the next caller starts anew,
	// even though the function, if it ignores its context, still runs. A value
	// that it then returns is closed, if there is a Config.Close function. The
	// caller on whose goroutine it runs gets ErrCreateTimeout when it returns.
	//
	// Zero means that there is no bound.
	CreateTimeout time.Duration

	// MaxEntries bounds how many values, and errors that are kept, stay in the
	// cache: one more makes others go that have not been used for some time,
	// by the SIEVE algorithm. One that a lease holds does not go, so there may be
	// more while leases hold that many, and until the next one comes; a lease
	// that is acquired at the same moment keeps what has gone until it is
	// released, as after Delete. Zero means that there is no bound.
	//
	// With MaxEntries or IdleTimeout, a hit of a value that has not been used
	// since the last search writes a mark beside it. All others write nothing.
	MaxEntries int

	// IdleTimeout removes values, and errors that are kept, that nobody has used
	// for that long, up to half as long again, or up to a millisecond; whoever
	// holds a lease uses it. Zero means that they stay. A timer looks for them
	// while there are any, which Close stops.
	IdleTimeout time.Duration

	// OnLeak is told of a lease that was not released before the garbage
	// collector found that nobody has it any more: its key, and the stack of the
	// goroutine that acquired it, as debug.Stack formats it. The value stays in
	// use. It is meant for tests and for debugging: Acquire then takes several
	// microseconds and a few allocations. OnLeak is called on a goroutine of the
	// runtime: it should be quick, and must not panic.
	OnLeak func(K, []byte)

	// KeepCreating lets creations go on whose callers have all left, so that
	// the next caller finds a value rather than a creation that was cancelled.
	// Set and Close cancel them all the same.
	KeepCreating bool
}

func (c *Config[K, V]) validate() error {
	if c.SizeHint < 0 || c.SizeHint > maxSizeHint {
		return fmt.Errorf("oncecache: Config.SizeHint is %d, must be from 0 to %d", c.SizeHint, maxSizeHint)
	}
	if c.CreateTimeout < 0 {
		return fmt.Errorf("oncecache: Config.CreateTimeout is %v, must not be negative", c.CreateTimeout)
	}
	if c.MaxEntries < 0 {
		return fmt.Errorf("oncecache: Config.MaxEntries is %d, must not be negative", c.MaxEntries)
	}
	if c.IdleTimeout < 0 {
		return fmt.Errorf("oncecache: Config.IdleTimeout is %v, must not be negative", c.IdleTimeout)
	}
	return nil
}
