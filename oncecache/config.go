package oncecache

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"time"
)

// maxSizeHint keeps the table, a bucket of 64 bytes for two and a half keys, their
// number rounded up to a power of two, within 32 gigabytes: 2³⁰. Where the
// address space has 32 bits, it keeps it within half a gigabyte of it: 2²⁴.
const maxSizeHint = 1 << (18 + 6*(bits.UintSize/32))

const defaultCloseConcurrency = 16

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
	// discarded without leases is closed at once, and so is a value that is not
	// kept: use [Cache.Acquire] to hold a value. SetIfAbsent leaves a value
	// that it does not store to its caller. A value that a create function
	// returns beside an error is not closed.
	//
	// A value that is set, or returned by a create function, while the key has the
	// same value stays open. Two values are the same if each part of the one, down to the
	// fields of structs, the elements of arrays and what interfaces hold, is equal to that
	// of the other, or the same slice, map or function, or a copy of one NaN. A value that
	// refers to something, as a pointer does, also stays open if it is the key's again by
	// the time at which it would be closed.
	//
	// It runs outside every lock. If Set, Delete, CompareAndDelete, Refresh or a
	// method of a Lease removes a value without users, it runs on the goroutine of
	// that call, which does not return its error. If a creation makes a value too
	// late, it runs on the goroutine of the create function. Values removed by
	// MaxEntries, MaxWeight, IdleTimeout, a batch, Clear or Cache.Close are closed on
	// goroutines of the cache, CloseConcurrency at a time, which end when nothing
	// is left to close: a function that hangs does not stop callers. [Cache.Close]
	// returns errors, and panics as [*PanicError].
	//
	// Nil means that nothing is ever closed.
	Close func(K, V) error

	// OnRemove, if it is set, is called once for each value that leaves the cache: with
	// its key, the reason, and the error of Close. It makes the values the cache's own, as
	// Close does, and all that is said of a cache with a Close function holds: OnRemove is
	// called for the values for which Close is called, when Close has returned. Without a
	// Close function, it is called when Close would be: when the value is no longer the
	// key's and no lease holds it. A value that the key has again, as described at Close,
	// has not left. An error that is kept is no value.
	//
	// It runs outside every lock, on the goroutine that runs Close, and may call any
	// method for any key, also with CloseBeforeCreate: the key is free before. Calls may
	// overlap, and those for one key come in any order. If Close panics or calls
	// runtime.Goexit, OnRemove gets an error that says so. If OnRemove does, Cache.Close
	// returns that, as it does for Close. Cache.Close waits for OnRemove.
	//
	// It is not for writing a changed value back: the next creation of the key does not wait
	// for OnRemove, and may read the source before the write. Do that in Close, with
	// CloseBeforeCreate.
	//
	// Nil means that nobody is told.
	OnRemove func(K, V, Reason, error)

	// CloseConcurrency is how many Close functions, each with OnRemove, may run at a
	// time on goroutines of the cache. If so many hang, values that are removed
	// afterwards wait in a queue. Zero means 16.
	CloseConcurrency int

	// CloseBeforeCreate makes the next creation of a key wait until nothing is
	// left of the key: until a value that was removed has no leases any more and
	// its Close function has returned, and until create functions that Delete or
	// a timeout has overtaken have returned and their values are closed too. It
	// is for resources that must be alone: a file that is locked, a port, an
	// embedded database; and for values that Close writes back to the source from which
	// the next creation reads, if they are changed under leases. Callers wait within their contexts, and CreateTimeout
	// counts from when the wait begins. A create function that asks for its own key
	// after Delete gets a CycleError. A caller that asks for the key while it holds
	// a lease of the removed value, or from that value's Close function, waits for
	// itself until its context ends; so does a Close function that asks for a key
	// whose value waits for CloseConcurrency. Set, SetIfAbsent and Refresh still
	// put a second value beside the first.
	//
	// The default is that a key is free as soon as its value is removed: then a
	// slow Close function, or a lease that is held for long, does not stop callers.
	// It needs Close.
	CloseBeforeCreate bool

	// ErrorTTL says how long the error of a create function is kept, so that
	// callers of the key meanwhile get it without another call. Zero means not at
	// all, as without ErrorTTL, and less than zero until a call sets or deletes the
	// key. A key whose error is kept has no value: Get does not find it, and Len,
	// Keys and All leave it out. An error whose time is over is removed when its
	// key is asked for, or, with up to 63 others, when another error is kept. It
	// has no timer of its own; see Sweep. MaxEntries, MaxWeight or IdleTimeout may
	// remove it before.
	//
	// It is called once for each failure, by the goroutine that ran the function,
	// and not for panics, timeouts and cycles; for a key that the function of
	// GetOrCreateMany leaves out it is called with ErrNotFound. Errors that come
	// after all callers have left are never kept. A panic of ErrorTTL counts as a
	// panic of the create function.
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
	// cache. Adding one beyond the bound evicts others that have not been used for
	// some time, by the SIEVE algorithm. Leased values stay: there may be more than
	// MaxEntries while leases hold that many, and until the next entry comes. A
	// search passes at most 64 leased values: so there may also be one entry too
	// many for every 64 of these. Zero means that there is no bound.
	//
	// With MaxEntries, MaxWeight or IdleTimeout, a hit of a value that has not been used
	// since the last search writes a mark beside it; with TTL, Close or OnRemove, the first
	// hit of a value does. Other hits write nothing.
	MaxEntries int

	// MaxWeight bounds the sum of the weights of the values in the cache, which Weight
	// says: their bytes, for instance. Adding a value beyond the bound evicts others, as
	// described at MaxEntries and whatever they weigh, until there is room; leased values
	// stay, and count. So the sum may exceed MaxWeight by the weight of the leased values,
	// and, if there are 64 or more of these, by that of a few others that a search has not
	// reached. A value that alone weighs more than MaxWeight is not kept, and
	// evicts nothing: its callers get it, as if Delete came at once; Close closes it, and
	// OnRemove gets ReasonDiscarded. An error that is kept weighs nothing. Sums do not
	// overflow. MaxEntries may be set too. Zero means that there is no bound, and Weight
	// must be nil.
	MaxWeight int64

	// Weight returns the weight of a value, in units of MaxWeight. It is called once when
	// a value was made or set, outside every lock, and must not return less than zero:
	// then it panics. If the value changes later, its weight does not. A panic of Weight
	// counts as a panic of the create function, whose value is closed, if there is a Close
	// function; a panic in Set or SetIfAbsent goes on in their caller, which keeps the
	// value. It must be set if MaxWeight is.
	Weight func(K, V) int64

	// IdleTimeout removes values, and errors that are kept, that no caller has used
	// for that long. Removal may come half of that later, or a millisecond if that
	// is more. A lease is a use, a Refresh is not. Zero means that they stay. A
	// timer looks for them while there are any, which Close stops. To exempt one value,
	// hold a lease of it: no value is removed for IdleTimeout, MaxEntries or MaxWeight
	// before its last lease is released.
	IdleTimeout time.Duration

	// TTL, if it is set, says how long a value may be returned: it is called once for each
	// value that a create function, Set, SetIfAbsent, Refresh or Reload makes the key's, and
	// for one that these leave there because it is the very value, or not modified. The time
	// begins when TTL returns, and no use prolongs it. Zero or less means that the value has
	// expired at once: the callers of its creation get it, and later ones do not; so
	// time.Until of a deadline will do. [math.MaxInt64] means that it does not expire.
	//
	// No call returns, yields or takes for present a value that has expired. It is removed,
	// and closed, as IdleTimeout does it, but leases do not delay that it is removed; they
	// stay good. Len counts it until it is removed. Times are rounded up to whole
	// milliseconds since the cache was made. A
	// timer of the cache marks what has expired, so that a hit reads no clock: a value is
	// returned for as long after its time as that timer is late, or a call that is evicting
	// the value, which on a busy machine may be some milliseconds, and as many values expire
	// at once as TTLJitter leaves together. If the process or its machine was frozen
	// meanwhile, a value may be returned late by as long as that.
	//
	// TTL runs outside every lock, on the goroutine of the create function or of Set. A
	// panic of TTL counts as a panic of the create function, and Set and SetIfAbsent pass it
	// on and store nothing. Nil means that values do not expire.
	TTL func(K, V) time.Duration

	// TTLJitter is the part of each TTL that chance may take away, from 0 to 1, so that
	// values which were made together do not expire together: with 0.1, a TTL of an hour is
	// one of 54 to 60 minutes. Zero means that nothing is taken away. It needs TTL.
	TTLJitter float64

	// Renew, if it is set, makes a new value from the old one, as the function of
	// [Cache.Reload] does, in the background: during the last RenewAhead of a value's TTL, the
	// first call that gets the value starts Renew on a goroutine of its own, and all calls go
	// on with the old value until Renew has returned. There is never more than one Renew of a
	// key at a time, nor one beside the function of Refresh or Reload, which share it, unless
	// Set, Delete, Clear or CreateTimeout has ended one that has not returned yet. So a
	// value that should be fresh for an hour, and may be used for an hour more while it is made
	// anew, or cannot be, has a TTL of two hours and a RenewAhead of one. Calls do not
	// wait for Renew: the first call after a long time without any gets an old value.
	//
	// A Renew that fails, panics or calls [runtime.Goexit] leaves the old value there until its
	// TTL is over, and is called again for a call that comes an eighth of RenewAhead later, or
	// of the time before that, if this is shorter. So does one that takes longer than CreateTimeout. Stats counts these failures, and Close
	// returns the panics. If Set or Delete comes while Renew runs, its value is not kept; nor
	// is it if the old value expires meanwhile and no call asks for the key. The context has
	// no values, and is cancelled when Refresh's would be; the renewal counts as a caller
	// only until the old value has left. So a Renew that hangs, and honours its context, ends
	// with that value, or when the callers that then wait for it have left, and the next
	// caller creates anew. Cache.Close waits for Renew as for other create functions.
	//
	// It needs TTL and RenewAhead.
	Renew func(ctx context.Context, k K, old V) (V, error)

	// RenewAhead is how long before the end of its TTL a value may be renewed. It may be nearly
	// all of the TTL: values that should be fresh for five minutes, and may be used for a day
	// while their source is down, have a TTL of 24 hours and a RenewAhead of 23 hours and 55
	// minutes. A value whose TTL, less what TTLJitter takes, is not longer than RenewAhead is
	// renewed after half of it. It needs Renew.
	RenewAhead time.Duration

	// RecordStats makes [Stats] count what costs something: look-ups that find a value and
	// those that do not, calls that wait for another's creation, and the time that
	// creations take. A hit then writes to a counter, which is split by processors, and a
	// creation reads the clock once more. Without it, a hit writes nothing.
	RecordStats bool

	// OnCreate, if it is set, is called once for each create function that has ended, and
	// for each key of a batch: with the key, how long the creation took, and the error,
	// which is a [*PanicError] or [ErrGoexit] if the function did not return. The time is
	// that from the beginning of the creation, as in [Flight], to the end of the function.
	// It is meant for histograms and traces, with [Cache.Stats] for the rest.
	//
	// It runs outside every lock on the goroutine that ran the function, after the callers
	// that waited have their result and after Close functions: a slow one delays only the
	// caller that created. It may call any method. Cache.Close waits for it, and returns
	// its panics as [*PanicError].
	OnCreate func(K, time.Duration, error)

	// OnLeak is called for a lease that became unreachable before it was released:
	// with its key, and the stack of the goroutine that acquired it, as debug.Stack
	// formats it. The garbage collector finds such leases. The value stays in use.
	// OnLeak is meant for tests and for debugging: with it, Acquire takes several
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
		return fmt.Errorf("oncecache: Config.SizeHint %d: must be in 0..%d", c.SizeHint, maxSizeHint)
	}
	if c.CloseConcurrency < 0 {
		return fmt.Errorf("oncecache: Config.CloseConcurrency %d: must not be negative", c.CloseConcurrency)
	}
	if c.CloseBeforeCreate && c.Close == nil {
		return errors.New("oncecache: Config.CloseBeforeCreate true: must be false without Config.Close")
	}
	if c.CreateTimeout < 0 {
		return fmt.Errorf("oncecache: Config.CreateTimeout %v: must not be negative", c.CreateTimeout)
	}
	if c.MaxEntries < 0 {
		return fmt.Errorf("oncecache: Config.MaxEntries %d: must not be negative", c.MaxEntries)
	}
	if c.MaxWeight < 0 {
		return fmt.Errorf("oncecache: Config.MaxWeight %d: must not be negative", c.MaxWeight)
	}
	if c.MaxWeight > 0 && c.Weight == nil {
		return fmt.Errorf("oncecache: Config.MaxWeight %d: must be 0 without Config.Weight", c.MaxWeight)
	}
	if c.MaxWeight == 0 && c.Weight != nil {
		return errors.New("oncecache: Config.Weight: must be nil without Config.MaxWeight")
	}
	if c.IdleTimeout < 0 {
		return fmt.Errorf("oncecache: Config.IdleTimeout %v: must not be negative", c.IdleTimeout)
	}
	if !(c.TTLJitter >= 0 && c.TTLJitter <= 1) { // nor NaN
		return fmt.Errorf("oncecache: Config.TTLJitter %v: must be in 0..1", c.TTLJitter)
	}
	if c.RenewAhead < 0 {
		return fmt.Errorf("oncecache: Config.RenewAhead %v: must not be negative", c.RenewAhead)
	}
	if c.RenewAhead > 0 && (c.Renew == nil || c.TTL == nil) {
		return fmt.Errorf("oncecache: Config.RenewAhead %v: must be 0 without Config.Renew and Config.TTL", c.RenewAhead)
	}
	if c.RenewAhead == 0 && c.Renew != nil {
		return fmt.Errorf("oncecache: Config.RenewAhead %v: must be above 0 with Config.Renew", c.RenewAhead)
	}
	if c.TTLJitter > 0 && c.TTL == nil {
		return fmt.Errorf("oncecache: Config.TTLJitter %v: must be 0 without Config.TTL", c.TTLJitter)
	}
	return nil
}
