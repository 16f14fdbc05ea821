package atomicbreaker

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker/internal/ring"
	"github.com/latchfree/latchfree/internal/atomics"
)

// ErrThrottled says that a Throttle has rejected the call. It matches
// ErrRejected.
var ErrThrottled = fmt.Errorf("%w: throttled, as too many calls were not accepted", ErrRejected)

// Throttle rejects a part of all calls while the thing called does not accept all of
// them, and adapts that part. A Throttle is for a thing that is overloaded, a Breaker
// for a thing that is down.
//
//	err := throttle.Do(ctx, func(ctx context.Context) error {
//		return call(ctx)
//	})
//
// Of the calls of a window of time it counts the requests, which are all calls of
// Allow, and the accepts, which are the calls that went well. The next call is
// rejected with probability
//
//	max(0, (requests − Ratio·accepts) / (requests + 1))
//
// so that about Ratio times as many calls go through as are accepted. This is
// adaptive throttling by the client, from Beyer, Jones, Petoff and Murphy (eds.),
// Site Reliability Engineering, 2016, chapter 21, "Handling Overload".
//
// A request counts when it asks for admission, so calls that hang are counted while
// they do. A rejected call is a request and nothing else. A call that panics, hangs
// or is forgotten was not accepted and needs no report, so there are no permits. An
// accept counts when it is reported, even if its request has left the window.
//
// The probability is computed once in a 240th of the window, and used for that time.
// It is never 1, but after a whole window without an accept only about one call in
// each window goes through. It then takes about Window/Ratio times the logarithm of
// the requests in a window until all calls go through again: with thousands of calls
// a second, choose a window of seconds, or put the Throttle behind a Breaker:
//
//	err := breaker.Do(ctx, func(ctx context.Context) error {
//		return throttle.Do(ctx, call)
//	})
//
// The Breaker keeps the calls of an outage away from the Throttle, and ignores what the
// Throttle rejects. The other way round, a Throttle counts what the Breaker rejects as
// not accepted. In a simulated outage of ten minutes, with 200 calls a second and the
// default Throttle, 99 % of all calls succeed again after
//
//	OpenTimeout                   1 min    1 min, doubled up to 10 min
//	Throttle behind the Breaker   0 s      5 min, at the next probe
//	Throttle alone                11 min   11 min
//	Breaker behind the Throttle   11 min   21 min 30 s
//
// The zero Throttle has the default settings. A Throttle must not be copied
// after first use. All methods may be called concurrently.
type Throttle struct {
	_ atomics.NoCopy
	// As in a Breaker, neighbours' writes do not slow down every call.
	_ atomics.CacheLinePad

	// By CAS of a caller that finds the odds of an earlier interval.
	odds atomics.Uint64

	// Nil means the defaults, until first use. Goes from nil to non-nil once,
	// by CAS, before odds is first written.
	set atomics.Pointer[throttling]

	_ [atomics.CacheLineSize - 16]byte
}

// ThrottleConfig holds the settings of a Throttle. The zero value means the
// defaults.
type ThrottleConfig struct {
	// Name appears in Snapshots.
	Name string

	// Ratio is how many calls go through for each that is accepted, once calls
	// are rejected, and at least 1. With 2, half of what goes through may not
	// be accepted before any call is rejected here. Zero means 2.
	Ratio float64

	// Window is how long calls count, rounded up to a multiple of 15
	// microseconds. They count for up to a fifteenth of it longer. Zero means
	// two minutes.
	Window time.Duration

	// MinRequests is how many requests must be in the window for any to be
	// rejected, up to 262,144. Zero means 20.
	MinRequests int

	// Classify says what an error that is not nil means: Success and Ignored
	// are accepted, anything else is not. Nil errors are accepted. If it
	// panics, so does its caller, and the call was not accepted. ctx is the context
	// of the call, or nil in Throttle.Done.
	//
	// Nil means the function Classify, and that a call which an inner breaker has
	// rejected was not accepted. Set a Classify that tells overload from errors of
	// the caller.
	Classify func(ctx context.Context, err error) Outcome
}

const (
	defaultThrottleRatio  = 2
	defaultThrottleWindow = 2 * time.Minute
	defaultMinRequests    = 20

	// maxMinRequests is half of what halving leaves in a bucket: there is no
	// more than one accept for a request.
	maxMinRequests = ring.Exact / 2

	// intervalsPerTick makes an interval a 240th of the window: the odds follow what
	// happens in a window, and summing is rare where calls are many.
	intervalsPerTick = 16
)

// throttling is a validated ThrottleConfig and what it counts.
type throttling struct {
	name        string
	epoch       time.Time
	classify    func(context.Context, error) Outcome
	ratio       float64
	minRequests uint64
	interval    time.Duration // how long odds are used
	draw        func() uint32 // random numbers; others in tests

	// events has all requests and all accepts; the accepts are the bad ones. As
	// both are in one ring, halving full buckets keeps their ratio, and a call
	// finds the line for its accept where it left the one for its request.
	events *ring.Ring
}

// compile validates c. The epoch is taken here.
func (c *ThrottleConfig) compile() (*throttling, error) {
	s := &throttling{name: c.Name, epoch: atomics.Now(), classify: c.Classify, draw: rand.Uint32,
		ratio: defaultThrottleRatio, minRequests: defaultMinRequests}
	if c.Ratio != 0 {
		if !(c.Ratio >= 1 && c.Ratio <= math.MaxFloat64) { // written so that it holds for NaN
			return nil, fmt.Errorf("atomicbreaker: ThrottleConfig.Ratio %v: must be 0, or finite and at least 1", c.Ratio)
		}
		s.ratio = c.Ratio
	}
	window := c.Window
	switch {
	case window < 0:
		return nil, fmt.Errorf("atomicbreaker: ThrottleConfig.Window %v: must not be negative", window)
	case window == 0:
		window = defaultThrottleWindow
	}
	if c.MinRequests < 0 || c.MinRequests > maxMinRequests {
		return nil, fmt.Errorf("atomicbreaker: ThrottleConfig.MinRequests %d: must be in 0..%d", c.MinRequests, maxMinRequests)
	}
	if c.MinRequests != 0 {
		s.minRequests = uint64(c.MinRequests)
	}
	s.events = ring.New(window, atomics.Stripes())
	s.interval = s.events.Tick() / intervalsPerTick
	return s, nil
}

// NewThrottle returns a Throttle that has counted nothing, or an error that
// names the setting that is wrong and its value.
func NewThrottle(c ThrottleConfig) (*Throttle, error) {
	s, err := c.compile()
	if err != nil {
		return nil, err
	}
	t := new(Throttle)
	t.set.Store(s)
	return t, nil
}

// MustNewThrottle is like NewThrottle but panics if a setting is wrong.
func MustNewThrottle(c ThrottleConfig) *Throttle {
	return must(NewThrottle(c))
}

// Allow counts a request, and returns nil if the call may be made or
// ErrThrottled if not. When a call that may be made has ended, Done or Success
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
		return ErrThrottled
	}
	return nil
}

// Done reports the error with which an admitted call ended: with nil the call was
// accepted, and ThrottleConfig.Classify decides about other errors. Report a call at
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

// Report reports an outcome of an admitted call that the caller has found out: with
// Success and Ignored the call was accepted, and any other changes nothing. Report a
// call at most once.
//
// Report is lock-free. It takes effect by the CAS that counts the accept, and not at
// all if there is none.
func (t *Throttle) Report(o Outcome) {
	// LP(Report): the CAS in Success.
	if o.accepted() {
		t.Success()
	}
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
	if err := begin(ctx, fn == nil); err != nil {
		return err
	}
	// LP(Do): those of Allow and Done.
	if err := t.Allow(); err != nil {
		return err
	}
	err := fn(ctx)
	t.done(ctx, err)
	return err
}

// ThrottleSnapshot has the counts of a throttle in its window.
type ThrottleSnapshot struct {
	Name     string // ThrottleConfig.Name
	Requests int    // calls that asked for admission
	Accepts  int    // calls that were reported as accepted

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
func (t *Throttle) Snapshot() ThrottleSnapshot {
	s := t.set.Load()
	if s == nil {
		return ThrottleSnapshot{}
	}
	// LP(Snapshot): the loads in sum.
	requests, accepts := s.counts(atomics.Since(s.epoch))
	return ThrottleSnapshot{s.name, int(requests), int(accepts), s.probability(requests, accepts)}
}

// settings returns what was configured and, in a zero Throttle, installs the
// defaults, whose epoch and ring every later caller then shares.
func (t *Throttle) settings() *throttling {
	if s := t.set.Load(); s != nil {
		return s
	}
	return install(&t.set, new(ThrottleConfig).compile)
}

// accepts classifies the error of a call. It runs user code.
func (s *throttling) accepts(ctx context.Context, err error) bool {
	if s.classify == nil {
		return !errors.Is(err, ErrRejected) && Classify(ctx, err).accepted()
	}
	return s.classify(ctx, err).accepted()
}

// accepted reports whether a throttle takes a call with the outcome for accepted.
func (o Outcome) accepted() bool { return o == Success || o == Ignored }

// counts returns how many requests and accepts are in the window.
func (s *throttling) counts(now time.Duration) (requests, accepts uint64) {
	accepts, events := s.events.Sum(now)
	return events - accepts, accepts
}

// probability returns that with which a call is rejected.
func (s *throttling) probability(requests, accepts uint64) float64 {
	if requests < s.minRequests {
		return 0
	}
	return max(0, (float64(requests)-s.ratio*float64(accepts))/float64(requests+1))
}

// odds are the probability of a rejection, and the interval for which it was
// worked out. Of all numbers below 2^32, those below rejects reject. In a word:
//
//	 63........32  31.........0
//	┌────────────┬────────────┐
//	│ interval 32    │ rejects 32 │
//	└────────────┴────────────┘
//
// Intervals are numbered from the epoch modulo 2^32, so odds that nobody has used
// for so many intervals may be used for one more. The zero word rejects nothing in
// the first interval.
type odds struct{ interval, rejects uint32 }

func oddsOf(w uint64) odds  { return odds{uint32(w >> 32), uint32(w)} }
func (o odds) word() uint64 { return uint64(o.interval)<<32 | uint64(o.rejects) }

// oddsAt returns the odds of an interval. The first caller computes them. If several
// callers do, each uses its own, and one publishes them.
func (t *Throttle) oddsAt(s *throttling, now time.Duration) odds {
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
