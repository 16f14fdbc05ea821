// Package latchfree implements planservice's shared structures with the library.
package latchfree

import (
	"context"
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
	Actions []state.Entry[api.Action]
	Plans   []state.Entry[api.Plan]
	// New names begin above it.
	LastVersion uint64
}

// New returns the structures. With a journal, they have its changesets.
func New(ctx context.Context, c Config) (state.Set, error) {
	none := state.Set{}
	actions, err := newRegistry(c.LastVersion, c.Actions)
	if err != nil {
		return none, err
	}
	plans, err := newRegistry(c.LastVersion, c.Plans)
	if err != nil {
		return none, err
	}
	breakers, err := newBreakers(c)
	if err != nil {
		return none, err
	}
	engines, err := newEngines(c)
	if err != nil {
		return none, err
	}
	changesets := &changesets{journal: c.Journal}
	config := cowchangeset.Config[api.Change]{NewID: newID}
	if c.Journal == nil {
		changesets.tracker, err = cowchangeset.New(config)
	} else {
		config.Store = c.Journal
		changesets.tracker, err = cowchangeset.Resume(ctx, config)
	}
	if err != nil {
		return none, err
	}
	changesets.index()
	return state.Set{Name: "latchfree", Actions: actions, Plans: plans,
		Changesets: changesets, Breakers: breakers, Engines: engines}, nil
}
