package service

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/latchfree/latchfree/examples/planservice/internal/node"
	"github.com/latchfree/latchfree/examples/planservice/internal/state"
	"github.com/latchfree/latchfree/examples/planservice/internal/state/clustered"
)

const (
	startTimeout = time.Minute      // for the engine's first leader
	writeTimeout = 15 * time.Second // above what a new leader takes
	maxLag       = 15 * time.Second
)

// newReplica starts this replica's part of the engine. Closing the set ends it.
func (s *Service) newReplica(ctx context.Context) (state.Set, error) {
	c := s.config.Cluster
	n, err := node.Start(node.Config{Replica: c.Replica, Peers: c.Peers, Secret: c.Secret, Folder: c.Folder, NoSync: s.config.NoSync, Log: s.log})
	if err != nil {
		return state.Set{}, err
	}
	js, err := jetstream.New(n.Conn)
	if err != nil {
		return state.Set{}, errors.Join(err, n.Close())
	}
	set, err := clustered.New(ctx, clustered.Config{
		JetStream: js, Replica: c.Replica, Replicas: len(c.Peers),
		Open: s.openEngine, IdleTimeout: s.config.EngineIdle,
		Threshold: s.config.Threshold, OpenTimeout: s.config.OpenTimeout, OnTransition: s.onTransition,
		StartTimeout: startTimeout, Timeout: writeTimeout, MaxLag: cmp.Or(c.MaxLag, maxLag), Log: s.log,
	})
	if err != nil {
		return set, errors.Join(err, n.Close())
	}
	structures := set.Close
	set.Close = func(ctx context.Context) error {
		err := structures(ctx)
		if c.Leave != nil {
			c.Leave(ctx) // the others may need this replica's part of the engine
		}
		return errors.Join(err, n.Close())
	}
	return set, nil
}
