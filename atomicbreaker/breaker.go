package atomicbreaker

import (
	"context"
	"unsafe"

	"github.com/latchfree/latchfree/internal/atomics"
)

// Breaker stops calls to a dependency that keeps failing, and lets a few through to find out
// whether it has recovered.
//
// The zero Breaker is closed and has the default settings. Do not copy a Breaker after
// first use. All methods may be called concurrently.
type Breaker struct {
	_ atomics.NoCopy
	// Breakers often lie in larger structs or slices. The padding keeps a
	// neighbour's writes from slowing down every call.
	_    atomics.CacheLinePad
	core core
	_    [2*atomics.CacheLineSize - unsafe.Sizeof(core{})]byte
}

// New returns a closed Breaker, or an error that names the wrong setting and its value.
func New(c Config) (*Breaker, error) {
	s, err := c.compile()
	if err != nil {
		return nil, err
	}
	b := new(Breaker)
	s.counters.withTotals(s.totals)
	if s.listener != nil {
		s.listens, b.core.queue = true, &eventQueue{core: &b.core}
	}
	b.core.set.Store(s)
	b.core.watch()
	return b, nil
}

// MustNew is like New but panics if a setting is wrong.
func MustNew(c Config) *Breaker { return must(New(c)) }

// must returns what a constructor has returned, and panics with its error.
func must[T any](v *T, err error) *T {
	if err != nil {
		panic(err)
	}
	return v
}

// Allow asks whether a call may be made now. If so, report the call's result once through the
// Permit: a probe that is never reported keeps its slot, as Config.ProbeTimeout says. Other
// permits need no report. If not, the error is ErrOpen or ErrTooManyProbes.
//
// Allow is wait-free while the breaker is closed, else lock-free. It takes effect by one
// load or, for a probe, CAS.
func (b *Breaker) Allow() (Permit, error) {
	// LP(Allow): a closed breaker admits when its word is read.
	w := b.core.word.Load()
	if w&uint64(modeMask|watched) != closed {
		return b.allowSlow()
	}
	return Permit{core: &b.core, bits: w &^ payloadMask}, nil
}

// allowSlow is outlined so that Allow needs no frame for it.
func (b *Breaker) allowSlow() (Permit, error) {
	a, err := b.core.admit(true)
	if err != nil || a.flags&shadowed != 0 {
		return Permit{}, err
	}
	p := Permit{core: &b.core, bits: bitsFor(a.to.stay(), a.at)}
	if a.owed != nil {
		orElse(a.owed.deliver, func() { p.Cancel() }) // if the listener does not return, nobody gets p
	}
	return p, nil
}

// Do calls fn if the breaker admits the call, and returns fn's error, which Config.Classify
// classifies; otherwise it returns the error of Allow. A panic or runtime.Goexit of fn counts as a
// failure and goes on. If ctx is already done, Do returns its cause. It panics if ctx or fn is nil.
//
// Do is lock-free outside fn. It takes effect as Allow and Permit.Done do.
func (b *Breaker) Do(ctx context.Context, fn func(context.Context) error) (err error) {
	if err := checkCall(ctx, fn == nil); err != nil {
		return err
	}
	p, err := b.Allow()
	if err != nil {
		return err
	}
	err = errNotReturned
	defer func() { p.done(ctx, err) }()
	return fn(ctx)
}

// RecordSuccess reports a success without a permit. A closed breaker counts it as that of a call; an
// open or half-open one closes, with the verdict Recovered. It is Late only while the breaker is
// ForcedOpen.
//
// RecordSuccess is lock-free. It takes effect by one CAS or load.
func (b *Breaker) RecordSuccess() Verdict {
	// LP(RecordSuccess): nothing to change in a closed breaker without failures.
	if word(b.core.word.Load()).pristine() {
		return Counted
	}
	return b.core.report(0, result{outcome: Success, how: direct}, b.core.settings())
}

// RecordFailure reports a failure without a permit. It counts against a closed breaker, and
// opens one that is half-open or whose open time has passed. While the breaker is open it
// is Late.
//
// RecordFailure is lock-free. It takes effect by one CAS or load.
func (b *Breaker) RecordFailure() Verdict {
	return b.core.report(0, result{outcome: Failure, how: direct}, b.core.settings())
}

// IsOpen reports whether the breaker is Open or ForcedOpen. It is false as soon as the open
// time has passed; only Allow limits the number of probes.
//
// IsOpen is wait-free. It takes effect by one load.
func (b *Breaker) IsOpen() bool { return b.State().rejects() }
