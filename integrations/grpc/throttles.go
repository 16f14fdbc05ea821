package latchgrpc

import (
	"context"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/atomicbreaker/throttle"
)

// Throttles has interceptors that reject a part of all calls while the others are not
// accepted; see package throttle. A client's interceptor takes load off the server
// that it calls. A server's takes load off what its handlers call. All methods may be
// called concurrently.
//
// A stream is accepted with the first message that a client receives or a server sends, or
// with its end if that comes first, so that a stream that lasts is no overload.
type Throttles struct{ interceptors }

// ThrottlesConfig holds the settings of Throttles. The zero value means the defaults.
type ThrottlesConfig struct {
	// Throttle decides about all calls. Nil means one with the default settings. Use one
	// for each server that is called. Classify is used in place of its
	// throttle.Config.Classify.
	Throttle *throttle.Throttle

	// Classify says whether a call was accepted: those that are Success or Ignored were.
	// Nil means ClassifyThrottle.
	Classify Classify
}

// NewThrottles returns Throttles. The error is always nil; it is for settings that can
// be wrong.
func NewThrottles(c ThrottlesConfig) (*Throttles, error) {
	if c.Throttle == nil {
		c.Throttle = new(throttle.Throttle)
	}
	if c.Classify == nil {
		c.Classify = ClassifyThrottle
	}
	return &Throttles{interceptors{throttleGate{c}}}, nil
}

// MustNewThrottles is like NewThrottles but panics if a setting is wrong.
func MustNewThrottles(c ThrottlesConfig) *Throttles {
	t, err := NewThrottles(c)
	if err != nil {
		panic(err)
	}
	return t
}

// A throttleGate admits what a throttle admits.
type throttleGate struct{ config ThrottlesConfig }

func (g throttleGate) enter(context.Context, string, string) (admission, error) {
	return admission{throttle: g.config.Throttle}, g.config.Throttle.Allow()
}

func (g throttleGate) early() bool { return true }

func (g throttleGate) classify(ctx context.Context, err error) atomicbreaker.Outcome {
	return g.config.Classify(ctx, err)
}
