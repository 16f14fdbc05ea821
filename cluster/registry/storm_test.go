package registry

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/cluster/internal/natstest"
)

// three returns a registry on a connection of its own for each of three replicas of a
// service, in a bucket of three replicas.
func three(t *testing.T, c *natstest.Cluster, adapt ...func(*Config[string, int])) []*Registry[string, int] {
	kv := bucket(t, c.JetStream(), func(k *jetstream.KeyValueConfig) {
		k.Replicas, k.Storage = 3, jetstream.FileStorage
	})
	var list []*Registry[string, int]
	for range 3 {
		list = append(list, opened(t, c.JetStream(), kv, adapt...))
	}
	return list
}

// The answers of three replicas make one history, while the leader of the bucket is
// killed, and connections are reset.
func TestStorm(t *testing.T) {
	c := natstest.Start(t, 3)
	all := three(t, c)
	s := &storm{t: t}
	s.start(all, 9, 3, 2*time.Millisecond, 4*time.Second)
	stream := all[0].stream
	time.Sleep(300 * time.Millisecond)
	leader := c.StreamLeader(stream)
	c.Kill(leader)
	time.Sleep(600 * time.Millisecond)
	c.Restart(leader)
	c.ResetClients((leader + 1) % 3)
	time.Sleep(600 * time.Millisecond)
	s.stop()
	s.check()
	agree(t, all)
}

// agree waits until all registries show the same.
func agree(t *testing.T, all []*Registry[string, int]) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var want map[string]Entry[string, int]
	for i, r := range all {
		if err := r.Sync(ctx); err != nil {
			t.Fatalf("replica %d: %v, %+v, %+v, following %v", i, err, r.Lag(), r.Stats(), r.mirror.following.Load())
		}
		got := map[string]Entry[string, int]{}
		for e := range r.Entries() {
			got[e.Key] = e
		}
		if i == 0 {
			want = got
		}
		require.Equal(t, want, got)
	}
}
