package oncecache

import (
	"errors"
	"runtime/debug"
	"strconv"
)

// A cache with Config.OnRemove owns its values, as one with Config.Close does: the listener
// is told of each of them where it is closed, or would be.

// Reason is why a value has left the cache.
type Reason uint8

const (
	_ Reason = iota
	// ReasonDeleted is Delete, CompareAndDelete or Clear.
	ReasonDeleted
	// ReasonReplaced is Set, or a Refresh that made a new value.
	ReasonReplaced
	// ReasonExpired is Config.TTL, also where another call removes a value that has expired.
	ReasonExpired
	// ReasonIdle is Config.IdleTimeout.
	ReasonIdle
	// ReasonEvicted is Config.MaxEntries or Config.MaxWeight.
	ReasonEvicted
	// ReasonDiscarded is Lease.Discard, or that the value never was its key's: it was
	// made or set too late, or for a key that Delete had removed, or weighed more than
	// Config.MaxWeight, or nobody had asked for it.
	ReasonDiscarded
	// ReasonClosed is Cache.Close.
	ReasonClosed
)

// reason is a Reason without methods, which would be in every program.
type reason = uint8

const (
	whyDeleted   = reason(ReasonDeleted)
	whyReplaced  = reason(ReasonReplaced)
	whyExpired   = reason(ReasonExpired)
	whyIdle      = reason(ReasonIdle)
	whyEvicted   = reason(ReasonEvicted)
	whyDiscarded = reason(ReasonDiscarded)
	whyClosed    = reason(ReasonClosed)
)

// String returns the name of r without the prefix.
func (r Reason) String() string {
	switch r {
	case ReasonDeleted:
		return "Deleted"
	case ReasonReplaced:
		return "Replaced"
	case ReasonExpired:
		return "Expired"
	case ReasonIdle:
		return "Idle"
	case ReasonEvicted:
		return "Evicted"
	case ReasonDiscarded:
		return "Discarded"
	case ReasonClosed:
		return "Closed"
	}
	return "Reason(" + strconv.Itoa(int(r)) + ")"
}

// MarshalText returns the name of r.
func (r Reason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// listen tells Config.OnRemove of the value of e, which Config.Close has closed with err.
// If the listener panics, the caller goes on, as after a panic of Close.
func (c *closing[K]) listen(r *root[K], e *entry[K], err error) {
	returned := false
	defer func() {
		if p := recover(); p != nil {
			r.accounting.note(&PanicError{Value: p, Stack: debug.Stack(), from: fromOnRemove})
		} else if !returned {
			r.accounting.note(errors.New("oncecache: OnRemove function called runtime.Goexit"))
		}
	}()
	c.onRemove(e, reasonOf(e), err)
	returned = true
}

// reasonOf returns why the value of e, which is to be closed, has left the cache.
func reasonOf[K comparable](e *entry[K]) Reason {
	p := e.state.Load()
	if p == nil || p.leases == nil || p.leases.why == 0 {
		return ReasonDiscarded // it never was its key's
	}
	return Reason(p.leases.why)
}
