package latchfree

import (
	"fmt"
	"math"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/examples/planservice/api"
	"github.com/latchfree/latchfree/examples/planservice/internal/state"
)

type breakers struct {
	g *atomicbreaker.Group[string]
}

func newBreakers(c Config) (breakers, error) {
	g, err := atomicbreaker.NewGroup(atomicbreaker.GroupConfig[string]{
		Default: atomicbreaker.Config{
			Trip:        atomicbreaker.Consecutive(c.Threshold),
			OpenTimeout: c.OpenTimeout,
		},
		OnStateChange: c.OnTransition,
	})
	return breakers{g}, err
}

func (b breakers) Allow(strategy string) (func(error) string, error) {
	permit, err := b.g.Allow(strategy)
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", state.ErrRejected, err)
	}
	return func(err error) string { return permit.Done(err).String() }, nil
}

func (b breakers) Reset(strategy string) { b.g.Reset(strategy) }

func (b breakers) ResetAll() { b.g.ResetAll() }

func (b breakers) Get(strategy string) api.Breaker {
	s := b.g.Snapshot(strategy)
	retry := s.RetryAfter.Milliseconds()
	if s.RetryAfter == time.Duration(math.MaxInt64) {
		retry = -1
	}
	return api.Breaker{Strategy: strategy, State: s.State.String(), Failures: s.Failures,
		Generation: uint64(s.Generation), RetryAfter: retry}
}
