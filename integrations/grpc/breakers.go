package latchgrpc

import (
	"context"
	"errors"

	"github.com/latchfree/latchfree/atomicbreaker"
)

// Breakers has interceptors that stop calls of what keeps failing. See BreakersConfig for
// its settings. All methods may be called concurrently.
type Breakers struct {
	interceptors
	group *atomicbreaker.Group[string]
}

// BreakersConfig holds the settings of Breakers. The zero value means the defaults.
type BreakersConfig struct {
	// Group holds the breakers, by the results of Key. Several Breakers may share it. Nil
	// means a Group of its own with the default settings, unless there is a Breaker.
	// Classify is used in place of its Config.Classify.
	Group *atomicbreaker.Group[string]

	// Breaker is one for all calls. With it, Group and Key must be nil.
	Breaker *atomicbreaker.Breaker

	// Key returns the breaker of a call. A client's target is that of its
	// grpc.ClientConn; a server's is empty. Nil means MethodKey. A Key that returns
	// only the target makes one breaker for each server.
	Key func(ctx context.Context, target, method string) string

	// Classify says what the end of a call means. Nil means ClassifyBreaker.
	Classify Classify
}

// MethodKey is the default of BreakersConfig.Key: the target, followed by the full method
// name, such as "dns:///db.example/shop.Orders/Get".
func MethodKey(_ context.Context, target, method string) string { return target + method }

// NewBreakers returns Breakers, or an error that names the setting that is wrong.
func NewBreakers(c BreakersConfig) (*Breakers, error) {
	switch {
	case c.Breaker != nil && c.Group != nil:
		return nil, errors.New("latchgrpc: BreakersConfig.Group: must be nil with Breaker")
	case c.Breaker != nil && c.Key != nil:
		return nil, errors.New("latchgrpc: BreakersConfig.Key: must be nil with Breaker")
	}
	if c.Classify == nil {
		c.Classify = ClassifyBreaker
	}
	if c.Breaker != nil {
		return &Breakers{interceptors: interceptors{breakerGate{c}}}, nil
	}
	if c.Group == nil {
		c.Group = new(atomicbreaker.Group[string])
	}
	if c.Key == nil {
		c.Key = MethodKey
	}
	return &Breakers{interceptors{breakerGate{c}}, c.Group}, nil
}

// MustNewBreakers is like NewBreakers but panics if a setting is wrong.
func MustNewBreakers(c BreakersConfig) *Breakers {
	b, err := NewBreakers(c)
	if err != nil {
		panic(err)
	}
	return b
}

// Group returns the group of the breakers, also if BreakersConfig.Group is nil. It
// returns nil if there is a BreakersConfig.Breaker.
func (b *Breakers) Group() *atomicbreaker.Group[string] { return b.group }

// A breakerGate admits what a breaker admits.
type breakerGate struct{ config BreakersConfig }

func (g breakerGate) enter(ctx context.Context, target, method string) (a admission, err error) {
	if g.config.Breaker != nil {
		a.permit, err = g.config.Breaker.Allow()
	} else {
		a.group = true
		a.keyed, err = g.config.Group.Allow(g.config.Key(ctx, target, method))
	}
	return a, err
}

func (g breakerGate) early() bool { return false }

func (g breakerGate) classify(ctx context.Context, err error) atomicbreaker.Outcome {
	return g.config.Classify(ctx, err)
}
