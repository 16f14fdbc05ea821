package throttle

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/atomicbreaker/internal/ring"
	"github.com/latchfree/latchfree/internal/atomics"
)

// Config holds the settings of a Throttle. The zero value means the defaults.
type Config struct {
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
	// Nil means [atomicbreaker.Classify], and that a call which an inner breaker has
	// rejected was not accepted. Set a Classify that tells overload from errors of
	// the caller.
	Classify func(ctx context.Context, err error) atomicbreaker.Outcome
}

const (
	defaultRatio       = 2
	defaultWindow      = 2 * time.Minute
	defaultMinRequests = 20

	// maxMinRequests is half of what halving leaves in a bucket: there is no
	// more than one accept for a request.
	maxMinRequests = ring.Exact / 2

	// intervalsPerTick makes an interval a 240th of the window: the odds follow what
	// happens in a window, and summing is rare where calls are many.
	intervalsPerTick = 16
)

// settings is a validated Config and what is counted under it.
type settings struct {
	epoch       time.Time
	classify    func(context.Context, error) atomicbreaker.Outcome
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
func (c *Config) compile() (*settings, error) {
	s := &settings{epoch: atomics.Now(), classify: c.Classify, draw: rand.Uint32, ratio: defaultRatio, minRequests: defaultMinRequests}
	if c.Ratio != 0 {
		if !(c.Ratio >= 1 && c.Ratio <= math.MaxFloat64) { // written so that it holds for NaN
			return nil, fmt.Errorf("throttle: Config.Ratio %v: must be 0, or finite and at least 1", c.Ratio)
		}
		s.ratio = c.Ratio
	}
	window := c.Window
	switch {
	case window < 0:
		return nil, fmt.Errorf("throttle: Config.Window %v: must not be negative", window)
	case window == 0:
		window = defaultWindow
	}
	if c.MinRequests < 0 || c.MinRequests > maxMinRequests {
		return nil, fmt.Errorf("throttle: Config.MinRequests %d: must be in 0..%d", c.MinRequests, maxMinRequests)
	}
	if c.MinRequests != 0 {
		s.minRequests = uint64(c.MinRequests)
	}
	s.events = ring.New(window, atomics.Stripes())
	s.interval = s.events.Tick() / intervalsPerTick
	return s, nil
}
