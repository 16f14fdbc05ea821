// Package latchfree implements planservice's shared structures with the library.
package latchfree

import (
	"context"
	"slices"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/examples/planservice/api"
	"github.com/latchfree/latchfree/examples/planservice/internal/state"
)

// Config holds the settings.
type Config struct {
	Open         state.Opener
	IdleTimeout  time.Duration // after which an unused engine of a file is closed
	Threshold    int           // failures in a row that open a breaker
	OpenTimeout  time.Duration
	OnTransition func(strategy string, e atomicbreaker.Event)
	Journal      *journal.Journal[api.Change] // nil: in memory
	// What the service had when it stopped.
	Actions    []state.Entry[api.Action]
	Plans      []state.Entry[api.Plan]
	Strategies []state.Entry[api.Strategy]
	// New names begin above it.
	LastVersion uint64
}

// New returns the structures. With a journal, they have its changesets.
func New(ctx context.Context, c Config) (state.Set, error) {
	none := state.Set{}
	actions, err := NewRegistry("actions", c.LastVersion, c.Actions)
	if err != nil {
		return none, err
	}
	plans, err := NewRegistry("plans", c.LastVersion, c.Plans)
	if err != nil {
		return none, err
	}
	strategies, err := NewRegistry("strategies", c.LastVersion, c.Strategies)
	if err != nil {
		return none, err
	}
	breakers, err := NewBreakers(c.Threshold, c.OpenTimeout, c.OnTransition, Local)
	if err != nil {
		return none, err
	}
	engines, err := NewEngines(c.Open, c.IdleTimeout)
	if err != nil {
		return none, err
	}
	var config cowchangeset.Config[api.Change]
	if c.Journal != nil {
		config.Store = c.Journal
	}
	changesets, err := NewChangesets(ctx, config, "")
	if err != nil {
		return none, err
	}
	return state.Set{Name: "latchfree", Actions: actions, Plans: plans, Strategies: strategies,
		Changesets: changesets, Breakers: breakers, Engines: engines, EngineCache: engines.Counts,
		Collectors: slices.Concat(actions.Collectors(), plans.Collectors(), strategies.Collectors(),
			changesets.Collectors(), breakers.Collectors(), engines.Collectors())}, nil
}
