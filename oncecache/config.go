package oncecache

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"time"
)

// maxSizeHint keeps the table, a bucket of 64 bytes for two and a half keys, their number rounded
// up to a power of two, within 32 gigabytes: 2³⁰. Where the address space has 32 bits, it keeps it
// within half a gigabyte: 2²⁴.
const maxSizeHint = 1 << (18 + 6*(bits.UintSize/32))

// Config holds the settings of a [Cache]. Its zero value holds the defaults, which are also those of a
// zero Cache. Functions may call any method for other keys. A panic of TTLFunc, ErrorTTLFunc or Weight
// counts as one of the create function; Set and SetIfAbsent pass it on, and their caller keeps the value.
type Config[K comparable, V any] struct {
	// SizeHint is the number of keys to make room for at once: at most 2³⁰, or 2²⁴ on a 32-bit machine.
	SizeHint int

	// Create makes the value of a key for [Cache.Load], for all methods that are given no function,
	// and for renewals if Renew is nil.
	Create func(ctx context.Context, k K) (V, error)

	// Close, if set, makes the cache the owner of its values: it is called once for each value that was created or
	// set, when the value has left the cache and no lease holds it. So hold a value by [Cache.Acquire]. A value
	// that a create function for one key returns beside an error is not closed.
	//
	// A value that is set, or returned by a create function, while the key has the same value stays open; but do
	// not set one that a create function of the key is about to return, nor in that function: it might be closed
	// twice, or while leased. Two values are the same if all their parts are: equal by ==, or the same map, slice,
	// function or channel. A pointer or the like also stays open if it is the key's again when it would be closed.
	//
	// Close runs on the goroutine of the Set, Delete, CompareAndDelete, Refresh, Release or Discard that
	// removes the value or is its last user; for a value that is made too late, mostly on that of the function;
	// and otherwise on up to 16 goroutines of the cache. If it hangs, it keeps its goroutine; when all 16 hang, values
	// that the cache removes wait to be closed, and with CloseBeforeCreate so do the creations of their keys.
	// [Cache.Close] returns errors, and panics as [*PanicError].
	//
	// Write a changed value back here, with CloseBeforeCreate: otherwise the next creation may read
	// the source before.
	Close func(K, V) error

	// CloseBeforeCreate makes the next creation of a key wait, within the contexts of its callers and within
	// CreateTimeout, until nothing is left of the key: until values that were removed have no leases and are
	// closed, and create functions that Delete or a timeout has overtaken have returned. It is for resources that
	// must be alone: a file that is locked, a port. A caller that holds a lease of the removed value, or its Close
	// function, would wait for itself. Set, SetIfAbsent and Refresh still put a second value beside the first, and
	// a value that Set refuses as too heavy, or that is for a key not asked for, is closed beside the next. It needs Close.
	CloseBeforeCreate bool

	// OnRemove, if set, is called once for each value that leaves the cache, with the reason and
	// the error of Close. It is meant for counts and logs: to write values back, see Close. Like
	// Close it makes the cache the owner of its values. It runs after Close, on the same goroutine,
	// when the key is free; calls for one key come in any order. Cache.Close returns its panics.
	OnRemove func(K, V, Reason, error)

	// TTL is how long a value may be returned, from when it was created, set or found not modified. No
	// use prolongs it. Zero means that values do not expire.
	//
	// An expired value is removed even while it is leased; its leases stay valid. A timer of the
	// cache marks what has expired, so that a hit reads no clock: an expired value may still be
	// returned until that timer runs, on a busy machine some milliseconds later, or as long as the
	// process was stopped.
	TTL time.Duration

	// TTLFunc is a TTL for each value, from when it returns. Zero or less expires immediately: only
	// the callers of the value's creation get it. [math.MaxInt64] means that the value does not
	// expire. If TTLFunc is set, TTL must be zero.
	TTLFunc func(K, V) time.Duration

	// TTLJitter is the random fraction subtracted from each TTL, from 0 to 1, so that values which were
	// made together do not expire together: with 0.1, an hour is 54 to 60 minutes.
	TTLJitter float64

	// RenewAhead is how long before its TTL ends a value is renewed in the background, by Renew or Create: the
	// first call that uses the value from then on starts the renewal, and all calls get the old value until it is
	// done. So a value that should be fresh for five minutes, and may be used for a day if its source is down, has
	// a TTL of 24 hours and a RenewAhead of 5 minutes less. A constant TTL must be above it; a value of a shorter
	// TTLFunc is renewed after half of that. Zero means that values are not renewed.
	//
	// A renewal is a Refresh. If the old value leaves the cache first, the renewal becomes the creation of the key,
	// which is cancelled if nobody waits for it. If it fails, the old value stays, and the first use after a pause
	// starts the next renewal; the pause is an eighth of RenewAhead, or of the time before it if that is shorter.
	// It begins when the function has returned, even after CreateTimeout. TTLs above 190 years are not renewed.
	RenewAhead time.Duration

	// Renew makes a new value from the old one, as the function of [Cache.Refresh] does. In the background, its
	// context has no values. It needs RenewAhead. Nil means that renewals call Create.
	Renew func(ctx context.Context, k K, old V) (V, error)

	// ErrorTTL is how long the error of a create function is kept and returned without another call. Zero means
	// that errors are not kept; less than zero, until a call sets or deletes the key. MaxEntries and IdleTimeout
	// may remove the error earlier. Not kept are panics, timeouts, cycles, errors of a Refresh that began with a
	// value, errors that come when all callers have left and, with CloseBeforeCreate, errors beside a value.
	ErrorTTL time.Duration

	// ErrorTTLFunc is an ErrorTTL for each error, including the ErrNotFound of a key that the
	// function of GetOrCreateMany leaves out. If it is set, ErrorTTL must be zero.
	ErrorTTLFunc func(K, error) time.Duration

	// CreateTimeout bounds how long anyone waits for a create function. After that time its callers get
	// [ErrCreateTimeout], its context is cancelled with that as cause, and the key is free, even if the function
	// ignores its context and goes on. A value that it then returns is closed. Zero means no bound.
	CreateTimeout time.Duration

	// MaxEntries bounds the number of values and kept errors. Adding one beyond the bound evicts others, by SIEVE:
	// those that no hit has used for some time. What a call replaces or removes counts until it returns. Leased
	// values stay, so there may be more until the next entry comes, and one more for every 64 leases, as a search
	// passes at most 64 leased values. Zero means no bound.
	MaxEntries int

	// MaxWeight bounds the sum of the weights of the values, at most 2⁴⁶. Adding a value beyond the bound evicts
	// others, whatever they weigh. Leased values stay, and count: until the next value comes, the sum may exceed
	// MaxWeight by them, and by one more for every 64 leases. A value that alone weighs more is not kept, and
	// evicts no other key's: its callers get it, as if Delete came at once. Kept errors weigh nothing: for them set
	// MaxEntries too.
	MaxWeight int64

	// Weight returns the weight of a value, for instance its bytes; it is called when the value was
	// made or set. A negative weight counts as a panic. MaxWeight needs it.
	Weight func(K, V) int64

	// IdleTimeout removes values and kept errors that no caller has used for that long; removal may come half of
	// that time later. A lease counts as a use until it ends, a Refresh while it runs; Peek, Info, All and
	// SetIfAbsent do not use what they find. To exempt a value, hold a lease of it. Zero means that idle values
	// stay.
	IdleTimeout time.Duration

	// RecordStats makes [Stats] count look-ups, calls that wait for another's creation, and the time that
	// creations take. A hit then writes to a counter.
	RecordStats bool

	// OnCreate, if set, is called once for each create function that has ended, and for each key of
	// a batch. It gets the time from the beginning of the creation to the end of the function, and
	// the error: a [*PanicError] or [ErrGoexit] if the function did not return, and nil if the old
	// value of a Refresh stays. It runs on the goroutine of the function, after others have their
	// result. Cache.Close returns its panics.
	OnCreate func(K, time.Duration, error)

	// OnLeak is called for a lease that became unreachable before it was released, with the stack
	// of the goroutine that acquired it. It is meant for tests: with OnLeak, Acquire takes several
	// microseconds. The leaked value stays in use. It runs on a goroutine of the runtime, should be
	// quick, and must not panic.
	OnLeak func(K, []byte)
}

func (c *Config[K, V]) validate() error {
	expires := c.TTL > 0 || c.TTLFunc != nil
	switch {
	case c.SizeHint < 0 || c.SizeHint > maxSizeHint:
		return fmt.Errorf("oncecache: Config.SizeHint %d: must be in 0..%d", c.SizeHint, maxSizeHint)
	case c.CloseBeforeCreate && c.Close == nil:
		return errors.New("oncecache: Config.CloseBeforeCreate true: must be false without Config.Close")
	case c.CreateTimeout < 0:
		return fmt.Errorf("oncecache: Config.CreateTimeout %v: must not be negative", c.CreateTimeout)
	case c.MaxEntries < 0:
		return fmt.Errorf("oncecache: Config.MaxEntries %d: must not be negative", c.MaxEntries)
	case c.MaxWeight < 0 || c.MaxWeight > maxMaxWeight:
		return fmt.Errorf("oncecache: Config.MaxWeight %d: must be in 0..%d", c.MaxWeight, int64(maxMaxWeight))
	case c.MaxWeight > 0 && c.Weight == nil:
		return fmt.Errorf("oncecache: Config.MaxWeight %d: must be 0 without Config.Weight", c.MaxWeight)
	case c.MaxWeight == 0 && c.Weight != nil:
		return errors.New("oncecache: Config.Weight: must be nil without Config.MaxWeight")
	case c.IdleTimeout < 0:
		return fmt.Errorf("oncecache: Config.IdleTimeout %v: must not be negative", c.IdleTimeout)
	case c.TTL < 0:
		return fmt.Errorf("oncecache: Config.TTL %v: must not be negative", c.TTL)
	case c.TTL > 0 && c.TTLFunc != nil:
		return fmt.Errorf("oncecache: Config.TTL %v: must be 0 with Config.TTLFunc", c.TTL)
	case !(c.TTLJitter >= 0 && c.TTLJitter <= 1): // nor NaN
		return fmt.Errorf("oncecache: Config.TTLJitter %v: must be in 0..1", c.TTLJitter)
	case c.TTLJitter > 0 && !expires:
		return fmt.Errorf("oncecache: Config.TTLJitter %v: must be 0 without Config.TTL and Config.TTLFunc", c.TTLJitter)
	case c.RenewAhead < 0:
		return fmt.Errorf("oncecache: Config.RenewAhead %v: must not be negative", c.RenewAhead)
	case c.RenewAhead > 0 && !expires:
		return fmt.Errorf("oncecache: Config.RenewAhead %v: must be 0 without Config.TTL and Config.TTLFunc", c.RenewAhead)
	case c.RenewAhead > 0 && c.Renew == nil && c.Create == nil:
		return fmt.Errorf("oncecache: Config.RenewAhead %v: must be 0 without Config.Renew and Config.Create", c.RenewAhead)
	case c.TTL > 0 && c.RenewAhead >= c.TTL:
		return fmt.Errorf("oncecache: Config.RenewAhead %v: must be below Config.TTL, which is %v", c.RenewAhead, c.TTL)
	case c.RenewAhead == 0 && c.Renew != nil:
		return fmt.Errorf("oncecache: Config.RenewAhead %v: must be above 0 with Config.Renew", c.RenewAhead)
	case c.ErrorTTL != 0 && c.ErrorTTLFunc != nil:
		return fmt.Errorf("oncecache: Config.ErrorTTL %v: must be 0 with Config.ErrorTTLFunc", c.ErrorTTL)
	}
	return nil
}
