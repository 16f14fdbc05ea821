package throttle

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/atomicbreaker/internal/ring"
	"github.com/latchfree/latchfree/internal/atomics"
)

// ErrRejected says that a Throttle has rejected the call. It matches ErrRejected of
// package atomicbreaker.
var ErrRejected = fmt.Errorf("%w: throttled: backend overloaded", atomicbreaker.ErrRejected)

// Throttle counts requests and accepts, and rejects a part of the requests.
//
// The zero Throttle has the default settings. A Throttle must not be copied after first
// use. All methods may be called concurrently.
type Throttle struct {
	_ atomics.NoCopy
	_ atomics.CacheLinePad // neighbours' writes do not slow down every call

	odds atomics.Uint64            // by CAS of a caller that finds those of an earlier interval
	set  atomics.Pointer[settings] // from nil, the defaults, to non-nil once, by CAS, at first use

	_ [atomics.CacheLineSize - 16]byte
}

// Config holds the settings of a Throttle. The zero value means the defaults.
type Config struct {
	// Ratio is how many calls go through for each that is accepted, at least 1. With 2,
	// calls are rejected when fewer than half are accepted. Zero means 2.
	Ratio float64

	// Window is how long calls count, rounded up to a multiple of 15 microseconds. They
	// count for up to a fifteenth of it longer. Zero means two minutes.
	Window time.Duration

	// MinRequests is how many requests must be in the window for any to be
	// rejected, up to 262,144. Zero means 20.
	MinRequests int

	// Classify says what an error that is not nil means: Success and Ignored
	// are accepted, anything else is not. If it panics, so does its caller, and the call
	// was not accepted. ctx is the context of the call, or nil in Throttle.Done.
	//
	// Nil means [atomicbreaker.Classify], and that a call which an inner breaker has
	// rejected was not accepted. Set a Classify that tells overload from errors of
	// the caller.
	Classify func(ctx context.Context, err error) atomicbreaker.Outcome
}

// New returns a Throttle, or an error that names the setting that is wrong and its value.
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

// Allow counts a request, and returns nil if the call may be made or ErrRejected if not.
// When a call that may be made has ended, Done or Success says whether it was accepted.
//
// Allow is lock-free. It takes effect by the CAS that counts the request, and
// decides by the odds that are read after that.
func (t *Throttle) Allow() error {
	s := t.settings()
	// LP(Allow): the CAS in Add, whatever comes of the request.
	at := s.events.Add(s.epoch, atomics.Since(s.epoch), false)
	if o := t.oddsAt(s, at); o.rejects != 0 && s.draw() < o.rejects {
		return ErrRejected
	}
	return nil
}

// Done reports the error with which an admitted call ended: nil is accepted, and
// Config.Classify decides about others. Report a call at most once.
//
// Done is lock-free. It takes effect by the CAS that counts the accept, and
// not at all if there is none.
func (t *Throttle) Done(err error) {
	t.done(nil, err) //lint:ignore SA1012 done takes none
}

// done is Done for a call whose context is known, or nil.
func (t *Throttle) done(ctx context.Context, err error) {
	if err != nil {
		if o := t.settings().classify(ctx, err); o != atomicbreaker.Success && o != atomicbreaker.Ignored {
			return
		}
	}
	// LP(Done): the CAS in Success.
	t.Success()
}

// Success reports that an admitted call was accepted. Report a call at most once.
//
// Success is lock-free. It takes effect by the CAS that counts the accept.
func (t *Throttle) Success() {
	s := t.settings()
	// LP(Success): the CAS in Add.
	s.events.Add(s.epoch, atomics.Since(s.epoch), true)
}

// Do calls fn if Allow admits it, reports its error by Done, and returns it. If fn panics
// or calls runtime.Goexit, the call was not accepted, and the panic goes on with its stack.
//
// If ctx is already done, Do neither calls fn nor counts a request, and returns the
// cause. It panics if ctx or fn is nil.
//
// Do is lock-free outside fn. It takes effect as Allow and Done do.
func (t *Throttle) Do(ctx context.Context, fn func(context.Context) error) error {
	switch {
	case ctx == nil:
		panic("throttle: Do called with a nil context")
	case fn == nil:
		panic("throttle: Do called with a nil function")
	case ctx.Err() != nil:
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
// Snapshot is wait-free. It takes effect as one read of each bucket, so it counts the
// calls that were there when it began, and some or all of those that come or go meanwhile.
func (t *Throttle) Snapshot() Snapshot {
	s := t.set.Load()
	if s == nil {
		return Snapshot{}
	}
	// LP(Snapshot): the loads in Sum.
	accepts, events := s.events.Sum(atomics.Since(s.epoch))
	return Snapshot{int(events - accepts), int(accepts), s.probability(accepts, events)}
}

// settings returns what was configured and, in a zero Throttle, installs the
// defaults, whose epoch and ring every later caller then shares.
func (t *Throttle) settings() *settings {
	if s := t.set.Load(); s != nil {
		return s
	}
	s, _ := Config{}.compile() // the defaults are valid
	return t.set.Install(s)
}

// maxMinRequests is half of what halving leaves in a bucket: there is no more than one
// accept for a request.
const maxMinRequests = ring.Exact / 2

// settings is a validated Config and what is counted under it.
type settings struct {
	epoch       time.Time
	classify    func(context.Context, error) atomicbreaker.Outcome
	ratio       float64
	minRequests uint64
	interval    time.Duration // how long odds are used
	draw        func() uint32 // random numbers; others in tests

	// events has all requests, and all accepts as the bad ones. As both are in one
	// ring, halving full buckets keeps their ratio.
	events *ring.Ring
}

// compile validates c. The epoch is taken here.
func (c Config) compile() (*settings, error) {
	if c.Ratio == 0 {
		c.Ratio = 2
	}
	if c.Window == 0 {
		c.Window = 2 * time.Minute
	}
	if c.MinRequests == 0 {
		c.MinRequests = 20
	}
	if c.Classify == nil {
		c.Classify = classify
	}
	switch {
	case !(c.Ratio >= 1 && c.Ratio <= math.MaxFloat64): // written so that it holds for NaN
		return nil, fmt.Errorf("throttle: Config.Ratio %v: must be 0, or finite and at least 1", c.Ratio)
	case c.Window < 0:
		return nil, fmt.Errorf("throttle: Config.Window %v: must not be negative", c.Window)
	case c.MinRequests < 0 || c.MinRequests > maxMinRequests:
		return nil, fmt.Errorf("throttle: Config.MinRequests %d: must be in 0..%d", c.MinRequests, maxMinRequests)
	}
	events := ring.New(c.Window, atomics.Stripes())
	return &settings{
		epoch: atomics.Now(), classify: c.Classify, ratio: c.Ratio, minRequests: uint64(c.MinRequests),
		interval: events.Tick() / intervalsPerTick, draw: rand.Uint32, events: events,
	}, nil
}

// classify is the default of Config.Classify.
func classify(ctx context.Context, err error) atomicbreaker.Outcome {
	if errors.Is(err, atomicbreaker.ErrRejected) {
		return atomicbreaker.Failure
	}
	return atomicbreaker.Classify(ctx, err)
}

// probability returns that with which a call is rejected.
func (s *settings) probability(accepts, events uint64) float64 {
	requests := events - accepts
	if requests < s.minRequests {
		return 0
	}
	return max(0, (float64(requests)-s.ratio*float64(accepts))/float64(requests+1))
}

// odds are the probability of a rejection, and the interval in which it is used. Of all
// numbers below 2^32, those below rejects reject. In a word:
//
//	 63.........32  31.........0
//	┌─────────────┬────────────┐
//	│ interval 32 │ rejects 32 │
//	└─────────────┴────────────┘
//
// Intervals are numbered from the epoch modulo 2^32, so after as many idle intervals old
// odds may be used for one more. The zero word rejects nothing in the first interval.
type odds struct{ interval, rejects uint32 }

// intervalsPerTick makes an interval a 240th of the window: the odds follow what happens,
// and many calls share one sum, which reads 1024 words with 64 stripes.
const intervalsPerTick = 16

func oddsOf(w uint64) odds  { return odds{uint32(w >> 32), uint32(w)} }
func (o odds) word() uint64 { return uint64(o.interval)<<32 | uint64(o.rejects) }

// oddsAt returns the odds of an interval. The first caller computes them. If several
// callers do, each uses its own, and one publishes them.
func (t *Throttle) oddsAt(s *settings, now time.Duration) odds {
	interval := uint32(uint64(now / s.interval))
	w := t.odds.Load()
	if o := oddsOf(w); o.interval == interval {
		return o
	}
	// A probability is at most n/(n+1), and n has at most 30 bits, so this is below 2^32.
	o := odds{interval, uint32(s.probability(s.events.Sum(now)) * (1 << 32))}
	t.odds.CompareAndSwap(w, o.word())
	return o
}
