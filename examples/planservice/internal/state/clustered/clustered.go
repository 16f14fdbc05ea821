// Package clustered implements planservice's shared structures for replicas that agree.
// Actions, plans and strategies are in buckets, which each replica mirrors. Each replica
// writes a trail of changesets of its own, and follows those of the others. Breakers tell
// each other what they find out. Engines are those of package latchfree.
package clustered

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/cluster/breaker"
	"github.com/latchfree/latchfree/cluster/changeset"
	"github.com/latchfree/latchfree/cluster/registry"
	"github.com/latchfree/latchfree/examples/planservice/api"
	"github.com/latchfree/latchfree/examples/planservice/internal/state"
	"github.com/latchfree/latchfree/examples/planservice/internal/state/latchfree"
)

// Config holds the settings.
type Config struct {
	JetStream    jetstream.JetStream
	Replica      int // the number of this replica, which no other has that runs
	Replicas     int // how many there are
	Open         state.Opener
	IdleTimeout  time.Duration // after which an unused engine of a file is closed
	Threshold    int           // failures in a row that open a breaker
	OpenTimeout  time.Duration
	OnTransition func(strategy string, e atomicbreaker.Event)
	StartTimeout time.Duration // how long New waits for the engine
	Timeout      time.Duration // how long a write does
	MaxLag       time.Duration // how old a mirror may be that counts as fresh
	Log          *slog.Logger
}

// Names of buckets and streams.
const (
	actionBucket   = "planservice-actions"
	planBucket     = "planservice-plans"
	strategyBucket = "planservice-strategies"
	hintStream     = "planservice-breakers"
)

func trailName(replica int) string { return fmt.Sprint("planservice-changes-", replica) }

// New makes what the engine does not have yet, takes over the trail of this replica, and
// returns the structures. It waits for a majority of the replicas.
func New(ctx context.Context, c Config) (set state.Set, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.StartTimeout)
	defer cancel()
	closing := closers{}
	defer func() {
		if err != nil {
			err = errors.Join(err, closing.close(context.WithoutCancel(ctx)))
		}
	}()
	if err := provide(ctx, c); err != nil {
		return set, err
	}
	set = state.Set{Name: "clustered", Replica: strconv.Itoa(c.Replica)}
	a, err := openRegistry[api.Action](ctx, c, actionBucket, &closing)
	if err != nil {
		return set, err
	}
	p, err := openRegistry[api.Plan](ctx, c, planBucket, &closing)
	if err != nil {
		return set, err
	}
	s, err := openRegistry[api.Strategy](ctx, c, strategyBucket, &closing)
	if err != nil {
		return set, err
	}
	b, hints, err := newBreakers(ctx, c, &closing)
	if err != nil {
		return set, err
	}
	e, err := latchfree.NewEngines(c.Open, c.IdleTimeout)
	if err != nil {
		return set, err
	}
	t, err := newChangesets(ctx, c, &closing)
	if err != nil {
		return set, err
	}
	set.Actions, set.Plans, set.Strategies, set.Breakers, set.Engines, set.Changesets = a, p, s, b, e, t
	set.Collectors = slices.Concat(a.collectors(), p.collectors(), s.collectors(), b.Collectors(), hints, e.Collectors(), t.Collectors())
	set.Fresh = func() error {
		if err := errors.Join(a.r.Fresh(), p.r.Fresh(), s.r.Fresh()); err != nil {
			return fmt.Errorf("%w (%w)", state.ErrUnavailable, err)
		}
		return nil
	}
	set.Mirrors = func() []api.Mirror { return []api.Mirror{a.mirror(), p.mirror(), s.mirror()} }
	set.EngineCache = e.Counts
	set.Close = closing.close
	return set, nil
}

// provide makes the buckets and the trails of all replicas, as all replicas do that start
// together: the engine makes one of those that are the same.
func provide(ctx context.Context, c Config) error {
	for _, bucket := range []string{actionBucket, planBucket, strategyBucket} {
		err := insist(ctx, c, bucket, func(ctx context.Context) error {
			_, err := c.JetStream.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: bucket, Replicas: c.Replicas})
			return err
		})
		if err != nil {
			return err
		}
	}
	for replica := range c.Replicas {
		err := insist(ctx, c, trailName(replica), func(ctx context.Context) error {
			_, err := c.JetStream.CreateStream(ctx, changeset.StreamConfig(trailName(replica), c.Replicas))
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// insist makes a request until it succeeds or ctx ends: a cluster that has no leader yet
// refuses it, or does not answer.
func insist(ctx context.Context, c Config, what string, request func(context.Context) error) error {
	for {
		attempt, cancel := context.WithTimeout(ctx, 2*time.Second)
		err := request(attempt)
		cancel()
		if err == nil {
			return nil
		}
		c.Log.Debug("the engine is not ready", "for", what, "error", err)
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("clustered: %s: %w: %w", what, context.Cause(ctx), err)
		}
	}
}

// newBreakers returns breakers that have heard of all that stands in the stream of hints.
func newBreakers(ctx context.Context, c Config, closing *closers) (latchfree.Breakers, []collector, error) {
	var group *breaker.Group[string]
	b, err := latchfree.NewBreakers(c.Threshold, c.OpenTimeout, c.OnTransition,
		func(local atomicbreaker.GroupConfig[string]) (latchfree.Group, *atomicbreaker.Group[string], error) {
			g, err := breaker.NewGroup(c.JetStream, breaker.Config[string]{
				Group: local, Stream: hintStream, StreamReplicas: c.Replicas,
				OnError: func(err error) { c.Log.Debug("hints of breakers", "error", err) },
			})
			if err != nil {
				return nil, nil, err
			}
			group = g
			return g, g.Group, nil
		})
	if err != nil {
		return b, nil, err
	}
	closing.add(func(context.Context) error { group.Close(); return nil })
	return b, hints(group), group.Wait(ctx)
}

// closers are called together: each may wait for an engine that does not answer.
type closers struct{ all []func(context.Context) error }

func (c *closers) add(f func(context.Context) error) { c.all = append(c.all, f) }

func (c *closers) close(ctx context.Context) error {
	errs := make([]error, len(c.all))
	var closed sync.WaitGroup
	for i, f := range c.all {
		closed.Go(func() { errs[i] = f(ctx) })
	}
	closed.Wait()
	return errors.Join(errs...)
}

// Errors of the engine, as those of package state.
var translated = map[error]error{
	registry.ErrUnavailable: state.ErrUnavailable,
	registry.ErrUnknown:     state.ErrUnknown,
	registry.ErrClosed:      state.ErrUnavailable,
}

func translate(err error) error {
	for from, to := range translated {
		if errors.Is(err, from) {
			return fmt.Errorf("%w (%w)", to, err)
		}
	}
	return latchfree.Translate(err)
}
