package throttle

import (
	"context"
	"errors"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/internal/atomics"
)

// Throttle counts requests and accepts, and rejects a part of the requests.
//
// The zero Throttle has the default settings. A Throttle must not be copied
// after first use. All methods may be called concurrently.
type Throttle struct {
	_ atomics.NoCopy
	// Neighbours' writes do not slow down every call.
	_ atomics.CacheLinePad

	// By CAS of a caller that finds the odds of an earlier interval.
	odds atomics.Uint64

	// Nil means the defaults, until first use. Goes from nil to non-nil once,
	// by CAS, before odds is first written.
	set atomics.Pointer[settings]

	_ [atomics.CacheLineSize - 16]byte
}

// New returns a Throttle that has counted nothing, or an error that names the setting
// that is wrong and its value.
func New(c Config) (*Throttle, error) {
	s, err := c.compile()
	if err != nil {
		return nil, err
	}
	t := new(Throttle)
	t.set.Store(s)
	return t, nil
}

// MustNew is like New but panics if a setting is wrong.
func MustNew(c Config) *Throttle {
	t, err := New(c)
	if err != nil {
		panic(err)
	}
	return t
}

// Allow counts a request, and returns nil if the call may be made or
// ErrRejected if not. When a call that may be made has ended, Done or Success
// says whether it was accepted.
//
// Allow is lock-free. It takes effect by the CAS that counts the request, and
// decides by the odds that are read after that.
func (t *Throttle) Allow() error {
	s := t.settings()
	// LP(Allow): whatever comes of it, the request is counted by the CAS in
	// add.
	at := s.events.Add(s.epoch, atomics.Since(s.epoch), false)
	if o := t.oddsAt(s, at); o.rejects != 0 && s.draw() < o.rejects {
		return ErrRejected
	}
	return nil
}

// Done reports the error with which an admitted call ended: with nil the call was
// accepted, and Config.Classify decides about other errors. Report a call at
// most once.
//
// Done is lock-free. It takes effect by the CAS that counts the accept, and
// not at all if there is none.
func (t *Throttle) Done(err error) {
	t.done(nil, err) //lint:ignore SA1012 done takes none
}

// done is Done for a call whose context is known, or nil.
func (t *Throttle) done(ctx context.Context, err error) {
	// LP(Done): the CAS in Success.
	if err == nil || t.settings().accepts(ctx, err) {
		t.Success()
	}
}

// Success reports that an admitted call was accepted. Report a call at most once.
//
// Success is lock-free. It takes effect by the CAS that counts the accept.
func (t *Throttle) Success() {
	s := t.settings()
	// LP(Success): the CAS in add.
	s.events.Add(s.epoch, atomics.Since(s.epoch), true)
}

// Do calls fn if Allow admits it, reports its error by Done, and returns it. If
// fn panics or calls runtime.Goexit, the call was not accepted, and the panic
// goes on with its stack.
//
// If ctx is already done, Do neither calls fn nor counts a request, and returns the
// cause. It panics if ctx or fn is nil.
//
// Do is lock-free outside fn. It takes effect as Allow and Done do.
func (t *Throttle) Do(ctx context.Context, fn func(context.Context) error) error {
	if ctx == nil {
		panic("throttle: Do called with a nil context")
	}
	if fn == nil {
		panic("throttle: Do called with a nil function")
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	// LP(Do): those of Allow and Done.
	if err := t.Allow(); err != nil {
		return err
	}
	err := fn(ctx)
	t.done(ctx, err)
	return err
}

// Snapshot has the counts of a throttle in its window.
type Snapshot struct {
	Requests int // calls that asked for admission
	Accepts  int // calls that were reported as accepted

	// RejectProbability follows from Requests and Accepts, in [0, 1). Allow may
	// use one that is a 240th of the window older.
	RejectProbability float64
}

// Snapshot returns the counts of the window that ends now. Beyond 524,288 requests
// and accepts in a fifteenth of the window they may be lower than the true counts, in
// about the same proportion.
//
// Snapshot is wait-free. It takes effect as one read of each bucket, so it is exact
// if nobody uses the throttle meanwhile. Otherwise it counts the calls that were there
// when it began, and some or all of those that come or go meanwhile.
func (t *Throttle) Snapshot() Snapshot {
	s := t.set.Load()
	if s == nil {
		return Snapshot{}
	}
	// LP(Snapshot): the loads in sum.
	requests, accepts := s.counts(atomics.Since(s.epoch))
	return Snapshot{int(requests), int(accepts), s.probability(requests, accepts)}
}

// settings returns what was configured and, in a zero Throttle, installs the
// defaults, whose epoch and ring every later caller then shares.
func (t *Throttle) settings() *settings {
	if s := t.set.Load(); s != nil {
		return s
	}
	s, _ := new(Config).compile() // the defaults are valid
	return t.set.Install(s)
}

// accepts classifies the error of a call. It runs user code.
func (s *settings) accepts(ctx context.Context, err error) bool {
	if s.classify == nil {
		if errors.Is(err, atomicbreaker.ErrRejected) {
			return false
		}
		return accepted(atomicbreaker.Classify(ctx, err))
	}
	return accepted(s.classify(ctx, err))
}

// accepted reports whether a call with the outcome was accepted.
func accepted(o atomicbreaker.Outcome) bool {
	return o == atomicbreaker.Success || o == atomicbreaker.Ignored
}

// counts returns how many requests and accepts are in the window.
func (s *settings) counts(now time.Duration) (requests, accepts uint64) {
	accepts, events := s.events.Sum(now)
	return events - accepts, accepts
}

// probability returns that with which a call is rejected.
func (s *settings) probability(requests, accepts uint64) float64 {
	if requests < s.minRequests {
		return 0
	}
	return max(0, (float64(requests)-s.ratio*float64(accepts))/float64(requests+1))
}

// oddsAt returns the odds of an interval. The first caller computes them. If several
// callers do, each uses its own, and one publishes them.
func (t *Throttle) oddsAt(s *settings, now time.Duration) odds {
	interval := uint32(uint64(now / s.interval))
	w := t.odds.Load()
	if o := oddsOf(w); o.interval == interval {
		return o
	}
	// A probability is at most n/(n+1), where n has at most 30 bits, so this
	// is less than 2^32.
	o := odds{interval, uint32(s.probability(s.counts(now)) * (1 << 32))}
	t.odds.CompareAndSwap(w, o.word())
	return o
}
