package gobreaker

import (
	"errors"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker"
)

const (
	defaultTimeout = time.Minute
	// maxSlots is what atomicbreaker.Config.Probes can be at most.
	maxSlots = 31
	// A probe is given up after Settings.Timeout, but within these bounds, of which
	// the upper one is below that of atomicbreaker.Config.ProbeTimeout.
	minLostAfter = 10 * time.Second
	maxLostAfter = 36 * time.Hour
)

// core is a breaker without the type of its results.
//
// current says what is counted and for how long; breaker says whether calls are
// admitted, holds the slots of probes and calls the listener. Results change current,
// and then or before that breaker, in an order that keeps these invariants:
//
//   - While current is closed, so is breaker.
//   - breaker is half-open only if current is half-open, or was when it became open.
//   - Only the call that ended the last generation changes the mode of breaker, and
//     nothing ends the next one before that has happened.
//
// breaker has no clock of its own: it is open until HalfOpen.
type core struct {
	name         string
	maxRequests  int64
	interval     time.Duration // of a closed generation; zero: it has no end
	bucketPeriod time.Duration
	buckets      int // 1: a fixed window
	timeout      time.Duration
	lostAfter    time.Duration
	readyToTrip  func(Counts) bool
	isSuccessful func(error) bool // nil: without an error
	isExcluded   func(error) bool // nil: none

	epoch   time.Time
	breaker *atomicbreaker.Breaker
	current atomic.Pointer[generation]

	_     [64]byte   // failures do not slow down the calls that read the above
	trips sync.Mutex // held while a failure of a closed breaker is counted and ReadyToTrip asked
}

func (c *core) init(st Settings) {
	c.name, c.maxRequests = st.Name, int64(max(st.MaxRequests, 1))
	c.isSuccessful, c.isExcluded = st.IsSuccessful, st.IsExcluded
	c.interval, c.bucketPeriod, c.buckets = window(st.Interval, st.BucketPeriod)
	if c.timeout = st.Timeout; c.timeout <= 0 {
		c.timeout = defaultTimeout
	}
	c.lostAfter = min(max(c.timeout, minLostAfter), maxLostAfter)
	if c.readyToTrip = st.ReadyToTrip; c.readyToTrip == nil {
		c.readyToTrip = func(n Counts) bool { return n.ConsecutiveFailures > 5 }
	}
	config := atomicbreaker.Config{
		Name: st.Name, OpenTimeout: -1, Probes: maxSlots, ProbeTimeout: c.lostAfter,
	}
	if listener := st.OnStateChange; listener != nil {
		config.OnStateChange = func(e atomicbreaker.Event) {
			if from, to := stateOf(e.From), stateOf(e.To); from != to { // lost probes change no state
				listener(e.Name, from, to)
			}
		}
	}
	c.breaker = atomicbreaker.MustNew(config)
	c.epoch = time.Now()
	c.current.Store(c.begin(StateClosed, 0))
}

// window returns the length of a window, that of its buckets, and their number, which is 1
// for a fixed window.
func window(interval, period time.Duration) (length, bucket time.Duration, n int) {
	switch {
	case interval <= 0:
		return 0, 0, 1
	case period <= 0:
		return interval, interval, 1
	}
	n = int((interval-1)/period) + 1
	return period * time.Duration(n), period, n
}

func stateOf(s atomicbreaker.State) State {
	switch s {
	case atomicbreaker.Open:
		return StateOpen
	case atomicbreaker.HalfOpen:
		return StateHalfOpen
	}
	return StateClosed
}

// now is how long the breaker exists.
func (c *core) now() time.Duration { return time.Since(c.epoch) }

// never is the end of a generation that no time ends.
const never = math.MaxInt64

// after returns the time d after now, or never if that is beyond all.
func after(now, d time.Duration) time.Duration {
	if d > never-now {
		return never
	}
	return now + d
}

// refresh ends the current generation if its time is over, and returns the one that
// is then current, and the time if that matters to it.
//
// It waits for another caller that has changed current to change the mode of breaker:
// that runs no user code in between.
func (c *core) refresh() (*generation, time.Duration) {
	for {
		g := c.current.Load()
		if g.timeless {
			return g, 0
		}
		now := c.now()
		switch g.state {
		case StateClosed:
			if now > g.until {
				c.current.CompareAndSwap(g, c.begin(StateClosed, now))
				continue
			}
			if g.rolling != nil {
				g.rolling.grow(c.age(g, now))
			}
		case StateOpen:
			if now > g.until {
				if c.breaker.State() != atomicbreaker.Open {
					runtime.Gosched() // the caller that has made g current opens it
				} else if c.current.CompareAndSwap(g, c.begin(StateHalfOpen, now)) {
					c.breaker.HalfOpen() // until then it rejects all, so nothing decides
				}
				continue
			}
		case StateHalfOpen:
			if c.recover(g) {
				continue
			}
			if c.breaker.State() == atomicbreaker.Open {
				runtime.Gosched() // the caller that has made g current calls HalfOpen, or g is over
				continue
			}
		}
		return g, now
	}
}

// recover makes the generation current that follows the last success of g, if the
// breaker is closed. Any caller may do so for another.
func (c *core) recover(g *generation) bool {
	next := g.probes.next.Load()
	if next == nil || c.breaker.State() != atomicbreaker.Closed {
		return false
	}
	c.current.CompareAndSwap(g, next)
	return true
}

// age returns in which bucket of a closed generation now is.
func (c *core) age(g *generation, now time.Duration) uint64 {
	return uint64((now - g.start) / c.bucketPeriod)
}

// State is that of the API.
func (c *core) State() State {
	g, _ := c.refresh()
	return g.state
}

// Counts is that of the API. Like gobreaker's it does not look at the clock.
func (c *core) Counts() Counts {
	g := c.current.Load()
	if g.state == StateHalfOpen && c.recover(g) {
		g = c.current.Load()
	}
	return g.counts()
}

// A ticket is the right to make a call, and says where its result counts.
type ticket struct {
	in     *generation
	age    uint64 // in buckets of a rolling window
	permit atomicbreaker.Permit
}

// admit admits a call, fills in its ticket and counts it, or returns ErrOpenState or
// ErrTooManyRequests.
//
// It tries again only if another caller has ended a generation.
func (c *core) admit(t *ticket) error {
	for {
		g, now := c.refresh()
		switch g.state {
		case StateOpen:
			return ErrOpenState
		case StateHalfOpen:
			if err := c.admitProbe(t, g, now); err != errDecided {
				return err
			}
		default:
			if c.admitClosed(t, g) {
				return nil
			}
		}
	}
}

// admitClosed is admit in a closed generation. It reports whether that was current.
func (c *core) admitClosed(t *ticket, g *generation) bool {
	p, err := c.breaker.Allow()
	if err != nil {
		return false
	}
	*t = ticket{g, g.request(), p}
	// If g is current after that, it was so all the time, and the breaker was closed.
	if c.current.Load() == g {
		return true
	}
	p.Cancel() // it may be a probe of a later generation
	return false
}

// errDecided says that a probe came after the last result of its generation.
var errDecided = errors.New("decided")

// admitProbe is admit in a half-open generation.
func (c *core) admitProbe(t *ticket, g *generation, now time.Duration) error {
	if g.probes.full(c, now) {
		return ErrTooManyRequests
	}
	p, err := c.breaker.Allow()
	switch {
	case errors.Is(err, atomicbreaker.ErrTooManyProbes):
		return ErrTooManyRequests
	case err != nil:
		return ErrOpenState
	}
	// The breaker leaves this stay only after a result has decided, and that
	// excludes take.
	if err := g.probes.take(c, now); err != nil {
		p.Cancel()
		if err == errDecided && c.current.Load() == g && c.breaker.State() != atomicbreaker.Closed {
			return ErrTooManyRequests // it is about to close, but still full
		}
		return err
	}
	*t = ticket{in: g, permit: p}
	return nil
}

// A result is how a call ended.
type result int

const (
	success result = iota
	failure
	exclusion
)

// end counts the result of a call. It runs all functions of Settings but the listener
// of another caller's change.
func (c *core) end(t *ticket, err error) {
	g, now := c.refresh()
	if g != t.in {
		return
	}
	r := failure
	switch {
	case c.isExcluded != nil && c.isExcluded(err):
		r = exclusion
	case c.isSuccessful == nil && err == nil, c.isSuccessful != nil && c.isSuccessful(err):
		r = success
	}
	switch {
	case g.state == StateHalfOpen:
		c.endProbe(t, r, now)
	case r == failure:
		if c.fail(t) {
			c.breaker.Trip(-1)
		}
	default: // if the generation has ended meanwhile, nobody reads its counts
		g.count(r, t.age)
	}
}

// fail counts a failure of a closed generation and reports whether it ends it.
// The caller then opens the breaker, which stays closed until then.
func (c *core) fail(t *ticket) bool {
	c.trips.Lock()
	defer c.trips.Unlock()
	if c.current.Load() != t.in {
		return false
	}
	now := c.now()
	if !c.readyToTrip(t.in.fail(t.age)) {
		return false
	}
	next := c.begin(StateOpen, now)
	for !c.current.CompareAndSwap(c.current.Load(), next) {
		// The window has ended, which is all that can happen to a closed breaker meanwhile.
	}
	return true
}

// endProbe counts a result of a half-open generation, and acts on it if it decides.
func (c *core) endProbe(t *ticket, r result, now time.Duration) {
	switch decides := t.in.probes.end(c, r, now); {
	case !decides:
		t.permit.Cancel() // gives the slot back, if the breaker is still half-open
	case r == failure:
		c.breaker.Trip(-1)
	default:
		c.breaker.Reset() // whoever needs it next calls recover
	}
}

// endAnyway is end for a caller that will not try again if user code panics.
func (c *core) endAnyway(t *ticket, err error) {
	ended := false
	defer func() {
		if !ended {
			c.abandon(t)
		}
	}()
	c.end(t, err)
	ended = true
}

// abandon ends a call without a result. A probe has failed, or its slot would be lost.
func (c *core) abandon(t *ticket) {
	if t.in.state == StateHalfOpen {
		c.endProbe(t, failure, c.now())
	}
}
