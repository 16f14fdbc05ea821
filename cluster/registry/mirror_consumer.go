package registry

import (
	"context"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
)

const (
	// interest is how long a server keeps a consumer that nobody listens to, in heartbeats.
	interest = 10
	// How many consumers are made for Config.AtLeader until one is where it should be. The
	// cluster places them at random, and refuses to be asked for a certain server. With three
	// servers, three are made on average, and one time in 657 all are misplaced.
	placements = 16
)

// consumer makes a consumer that delivers to inbox, and returns its name.
func (r *Registry[K, V]) consumer(ctx context.Context, info *jetstream.StreamInfo, inbox string) (string, error) {
	for i := 1; ; i++ {
		name := nuid.Next()
		server, err := r.consumerOf(ctx, name, inbox)
		if err != nil {
			r.release(name) // it may exist
			return "", err
		}
		if !r.config.AtLeader || info.Cluster == nil || server == info.Cluster.Leader || i == placements {
			return name, nil
		}
		r.release(name)
	}
}

// consumerOf makes a consumer, and returns the name of the server that has it.
func (r *Registry[K, V]) consumerOf(ctx context.Context, name, inbox string) (server string, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.config.Timeout)
	defer cancel()
	c, err := r.js.CreatePushConsumer(ctx, r.stream, jetstream.ConsumerConfig{
		Name: name, DeliverSubject: inbox, FilterSubject: r.prefix + ">",
		DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, AckPolicy: jetstream.AckNonePolicy,
		FlowControl: true, IdleHeartbeat: r.config.Heartbeat,
		InactiveThreshold: interest * r.config.Heartbeat,
		Replicas:          1, MemoryStorage: true,
	})
	if err != nil {
		return "", err
	}
	if cluster := c.CachedInfo().Cluster; cluster != nil {
		server = cluster.Leader
	}
	return server, nil
}

// release deletes a consumer that is no longer used. If the bucket does not answer, the
// server does so by itself after a while.
func (r *Registry[K, V]) release(name string) {
	r.workers.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), r.config.Timeout)
		defer cancel()
		if r.conn.IsConnected() {
			_ = r.js.DeleteConsumer(ctx, r.stream, name)
		}
	})
}
