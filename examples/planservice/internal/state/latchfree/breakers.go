package latchfree

import (
	"fmt"
	"math"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/examples/planservice/api"
	"github.com/latchfree/latchfree/examples/planservice/internal/state"
	latchprom "github.com/latchfree/latchfree/integrations/prometheus"
)

type breakers struct {
	g           *atomicbreaker.Group[string]
	threshold   int
	transitions latchprom.GroupTransitions
}

func newBreakers(c Config) (breakers, error) {
	transitions := latchprom.NewGroupTransitions("strategies")
	count := latchprom.CountKey[string](transitions)
	g, err := atomicbreaker.NewGroup(atomicbreaker.GroupConfig[string]{
		Default: atomicbreaker.Config{
			Trip:        atomicbreaker.Consecutive(c.Threshold),
			OpenTimeout: c.OpenTimeout,
		},
		OnStateChange: func(strategy string, e atomicbreaker.Event) {
			count(strategy, e)
			if c.OnTransition != nil {
				c.OnTransition(strategy, e)
			}
		},
	})
	return breakers{g, c.Threshold, transitions}, err
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
	// The snapshot counts anew in each mode. Threshold failures in a row opened the breaker,
	// and one failed probe each time that it opened again.
	failures := s.Failures
	if s.Streak > 0 {
		failures = b.threshold + s.Streak - 1
	}
	return api.Breaker{Strategy: strategy, State: s.State.String(), Failures: failures,
		Generation: uint64(s.Generation), RetryAfter: retry}
}
