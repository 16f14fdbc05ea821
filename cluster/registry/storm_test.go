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
// Pinned registries are connected to one server each.
func three(t *testing.T, c *natstest.Cluster, pinned bool, adapt ...func(*Config[string, int])) []*Registry[string, int] {
	kv := bucket(t, c.JetStream(), replicated)
	var list []*Registry[string, int]
	for i := range 3 {
		js := c.JetStream()
		if pinned {
			var err error
			js, err = jetstream.New(c.ConnectTo(i))
			require.NoError(t, err)
		}
		list = append(list, opened(t, js, kv, adapt...))
	}
	return list
}

// The answers of three replicas make one history, while the leader of the bucket is
// killed, and connections are reset.
func TestStorm(t *testing.T) {
	t.Parallel()
	c := natstest.Start(t, 3)
	testEarly(t, c)
	testSecondAnswer(t, c)
	all := three(t, c, false, fresh)
	fresh := startFresh(all)
	s := &storm{t: t}
	s.start(all, 9, 3, 2*time.Millisecond, 4*time.Second)
	stream := all[0].stream
	time.Sleep(300 * time.Millisecond)
	fresh.wait(t) // the bucket may have no leader for the rest of the storm
	leader := c.StreamLeader(stream)
	c.Kill(leader)
	time.Sleep(600 * time.Millisecond)
	c.Restart(leader)
	c.ResetClients((leader + 1) % 3)
	time.Sleep(600 * time.Millisecond)
	s.stop()
	fresh.stop(t)
	s.check()
	agree(t, all)
}

// fresh makes Fresh say whether a mirror is.
func fresh(c *Config[string, int]) { c.MaxLag = 400 * time.Millisecond }

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

// The same for longer, with everything that can happen to a cluster.
func TestStormLong(t *testing.T) {
	natstest.NeedsLong(t, "takes two minutes")
	c := natstest.Start(t, 3)
	all := three(t, c, true, fresh)
	stream := all[0].stream
	events := []struct {
		name string
		do   func()
	}{
		{"kill the leader", func() {
			i := c.StreamLeader(stream)
			c.Kill(i)
			time.Sleep(2 * time.Second)
			c.Restart(i)
			c.WaitReady()
		}},
		{"cut the leader off from all", func() {
			i := c.StreamLeader(stream)
			c.Partition(i, true)
			time.Sleep(8 * time.Second)
			c.Heal(i)
		}},
		{"cut the leader off from the other servers", func() {
			i := c.StreamLeader(stream)
			c.Partition(i, false)
			time.Sleep(8 * time.Second)
			c.Heal(i)
		}},
		{"cut clients off", func() {
			for i := range 3 {
				c.CutClients(i, true)
			}
			time.Sleep(3 * time.Second)
			for i := range 3 {
				c.CutClients(i, false)
			}
		}},
		{"reset clients", func() {
			for i := range 3 {
				c.ResetClients(i)
				time.Sleep(200 * time.Millisecond)
			}
		}},
		{"slow servers", func() {
			for i := range 3 {
				c.Slow(i, 20*time.Millisecond)
			}
			time.Sleep(2 * time.Second)
			for i := range 3 {
				c.Slow(i, 0)
			}
		}},
		{"slow clients", func() {
			for i := range 3 {
				c.SlowClients(i, 20*time.Millisecond)
			}
			time.Sleep(2 * time.Second)
			for i := range 3 {
				c.SlowClients(i, 0)
			}
		}},
		{"restart all", c.RestartAll},
	}
	for i, e := range events {
		s := &storm{t: t, prefix: e.name}
		began := time.Now()
		fresh := startFresh(all)
		s.start(all, 9, 3, 10*time.Millisecond, 3*time.Second)
		time.Sleep(500 * time.Millisecond)
		e.do()
		time.Sleep(time.Second)
		s.stop()
		fresh.stop(t)
		t.Logf("%d/%d %s: %v", i+1, len(events), e.name, time.Since(began).Round(time.Millisecond))
		s.check()
		agree(t, all)
	}
	for _, r := range all {
		t.Logf("%+v", r.Stats())
	}
}
