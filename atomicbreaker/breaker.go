package atomicbreaker

import (
	"context"
	"math"
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
)

// Breaker stops calls to something that keeps failing, and lets a few
// through from time to time to find out whether it works again. See Config for
// its settings.
//
// The zero Breaker is closed and has the default settings. A Breaker must not
// be copied after first use. All methods may be called concurrently.
type Breaker struct {
	_ atomics.NoCopy
	// Breakers often lie in larger structs or slices. The padding keeps a
	// neighbour's writes from slowing down every call.
	_    atomics.CacheLinePad
	core core
	_    [atomics.CacheLineSize - 24]byte
}

// New returns a closed Breaker, or an error that names the setting that is
// wrong and its value.
func New(c Config) (*Breaker, error) {
	s, err := c.compile(nil)
	if err != nil {
		return nil, err
	}
	if c.OnStateChange != nil {
		s.listens, s.feed = true, &feed{to: listener(c.OnStateChange)}
	}
	b := new(Breaker)
	b.core.set.Store(s)
	return b, nil
}

// MustNew is like New but panics if a setting is wrong.
func MustNew(c Config) *Breaker {
	b, err := New(c)
	if err != nil {
		panic(err)
	}
	return b
}

// Allow asks whether a call may be made now. If so, the result of the call
// must be reported once through the Permit. If not, the error is ErrOpen or
// ErrTooManyProbes, and both match ErrRejected.
//
// A permit that is never reported does no harm while the breaker is closed.
// A probe that is never reported keeps its slot for Config.ProbeTimeout.
//
// Allow is wait-free while the breaker is closed, and lock-free otherwise. It
// takes effect when the state is read or, if the call is a probe, by the CAS
// that takes its slot.
func (b *Breaker) Allow() (Permit, error) {
	// LP(Allow): a closed breaker admits when its word is read.
	w := b.core.word.Load()
	if w>>modeShift != closed {
		return b.allowSlow()
	}
	return Permit{core: &b.core, bits: w &^ payloadMask}, nil
}

// allowSlow is outlined so that Allow can be inlined.
func (b *Breaker) allowSlow() (Permit, error) {
	w, a, owed := b.core.admit()
	if a != admitted {
		return Permit{}, a.err()
	}
	p := Permit{core: &b.core, bits: uint64(w.stay())}
	if owed != nil {
		p.pay(owed)
	}
	return p, nil
}

// Do calls fn if the breaker admits it, and returns its error or that of
// Allow. The error is classified by Config.Classify. If fn panics or calls
// runtime.Goexit, the call has failed, and the panic goes on with its stack.
//
// Do does not call fn if ctx is already done, and returns the cause. It panics
// if ctx or fn is nil.
//
// Do is lock-free outside fn. It takes effect as Allow and Permit.Done do.
func (b *Breaker) Do(ctx context.Context, fn func(context.Context) error) error {
	if err := begin(ctx, fn == nil); err != nil {
		return err
	}
	p, err := b.Allow()
	if err != nil {
		return err
	}
	return p.run(ctx, fn)
}

// State returns what the breaker would do with a call now. It changes nothing:
// a breaker whose open time has passed is half-open, whether or not a probe
// has been made.
//
// State is wait-free. It takes effect when the state is read.
func (b *Breaker) State() State { return b.core.read().state }

// Reset closes the breaker with no failures. The results of all calls admitted
// before are late.
//
// Reset is lock-free. It takes effect by the CAS that closes the breaker.
func (b *Breaker) Reset() {
	_, owed := b.core.reset()
	owed.deliver()
}

// Snapshot returns the state with its details, all of one moment.
//
// Snapshot is wait-free. It takes effect when the state is read.
func (b *Breaker) Snapshot() Snapshot { return b.core.snapshot() }

// Snapshot is what a breaker looked like at one moment.
type Snapshot struct {
	Name       string        // Config.Name
	State      State         // as State returns it
	Failures   int           // since the last success, while closed
	Streak     int           // times opened since last closed, up to 31
	Successes  int           // of probes, while half-open
	InFlight   int           // probes that have not reported, while half-open
	Generation int           // goes up with every change of mode and reset; after 2^20-1 comes 1
	RetryAfter time.Duration // until a probe may be made, while open; math.MaxInt64 if only Reset helps
}

func (c *core) snapshot() Snapshot {
	s, _ := c.snapshotAlive()
	return s
}

// snapshotAlive also reports whether the core is not that of a dead cell.
func (c *core) snapshotAlive() (s Snapshot, alive bool) {
	v := c.read()
	s = Snapshot{State: v.state, Streak: v.word.streak(), Generation: int(v.word.gen()), RetryAfter: unending(v.left)}
	if v.reading != nil {
		s.Name = v.reading.name
	}
	switch v.word.mode() {
	case closed:
		s.Failures = int(v.word.fails())
	case halfOpen:
		s.Successes, s.InFlight = v.word.ok(), v.word.inflight()
	}
	return s, v.word.mode() != tombstone
}

// unending is how users are told of an open time.
func unending(d time.Duration) time.Duration {
	if d == latched {
		return math.MaxInt64
	}
	return d
}
