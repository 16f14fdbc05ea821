package latchfree

import (
	"fmt"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/examples/planservice/api"
	"github.com/latchfree/latchfree/examples/planservice/internal/state"
	latchprom "github.com/latchfree/latchfree/integrations/prometheus"
)

// Breakers keeps a breaker for each strategy.
type Breakers struct {
	g           Group
	local       *atomicbreaker.Group[string]
	threshold   int
	transitions latchprom.GroupTransitions
}

// Group is what Breakers needs of a group of breakers.
type Group interface {
	Allow(strategy string) (atomicbreaker.GroupPermit[string], error)
	Reset(strategy string)
	ResetAll()
	Snapshot(strategy string) atomicbreaker.Snapshot
}

// Local makes the group of one process. It is also the local part of itself.
func Local(c atomicbreaker.GroupConfig[string]) (g Group, local *atomicbreaker.Group[string], err error) {
	local, err = atomicbreaker.NewGroup(c)
	return local, local, err
}

// NewBreakers returns breakers that so many failures in a row open. OnTransition may be nil.
func NewBreakers(threshold int, openTimeout time.Duration, onTransition func(string, atomicbreaker.Event),
	newGroup func(atomicbreaker.GroupConfig[string]) (Group, *atomicbreaker.Group[string], error)) (Breakers, error) {
	transitions := latchprom.NewGroupTransitions("strategies")
	count := latchprom.CountKey[string](transitions)
	g, local, err := newGroup(atomicbreaker.GroupConfig[string]{
		Default: atomicbreaker.Config{
			Policy:      atomicbreaker.Consecutive(threshold),
			OpenTimeout: openTimeout,
		},
		OnStateChange: func(strategy string, e atomicbreaker.Event) {
			count(strategy, e)
			if onTransition != nil {
				onTransition(strategy, e)
			}
		},
	})
	return Breakers{g, local, threshold, transitions}, err
}

func (b Breakers) Allow(strategy string) (func(error) string, error) {
	permit, err := b.g.Allow(strategy)
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", state.ErrRejected, err)
	}
	return func(err error) string { return permit.Done(err).String() }, nil
}

func (b Breakers) Reset(strategy string) { b.g.Reset(strategy) }

func (b Breakers) ResetAll() { b.g.ResetAll() }

func (b Breakers) Get(strategy string) api.Breaker {
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

// shownStrategies is how many breakers have metrics of their own. Clients name strategies,
// so there may be any number; the others are summed.
const shownStrategies = 20

// Collectors returns what Prometheus may ask of the breakers.
func (b Breakers) Collectors() []prometheus.Collector {
	return []prometheus.Collector{
		latchprom.Group("strategies", b.local, latchprom.GroupOptions[string]{MaxKeys: shownStrategies}),
		b.transitions,
	}
}
