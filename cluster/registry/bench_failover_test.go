package registry

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/cluster/internal/natstest"
)

// The longest time between two acknowledged writes when the bucket loses its leader: of
// four writers with a Registry, and of four bare clients that send each write again after
// Config.Timeout. Their two buckets have the same leader, and all share a connection, to the
// leader or to another server. Config has its defaults, or 250 ms for Timeout and Heartbeat.
// An operation is one such event; the figures are medians.
func BenchmarkFailOver(b *testing.B) {
	natstest.NeedsLong(b, "takes minutes")
	for _, e := range []struct {
		name     string
		do, undo func(c *natstest.Cluster, leader int)
	}{
		{"killed", (*natstest.Cluster).Kill, (*natstest.Cluster).Restart},
		{"cut-off", func(c *natstest.Cluster, leader int) { c.Partition(leader, true) }, (*natstest.Cluster).Heal},
		{"steps-down", nil, func(*natstest.Cluster, int) {}},
	} {
		for _, v := range []struct {
			client string
			config Config[string, int]
		}{
			{"other", Config[string, int]{}},
			{"other", Config[string, int]{Timeout: 250 * time.Millisecond, Heartbeat: 250 * time.Millisecond}},
			{"leader", Config[string, int]{}},
		} {
			b.Run(fmt.Sprintf("leader=%s/client-of=%s/Timeout=%v", e.name, v.client, v.config.Timeout), func(b *testing.B) {
				c := natstest.Start(b, 3)
				f := newFailOver(b, c, v.config)
				for b.Loop() {
					leader := f.prepare(v.client == "leader")
					if e.do != nil {
						e.do(c, leader)
					} else {
						c.StepDown(f.streams[0])
						c.StepDown(f.streams[1])
					}
					f.settle()
					for _, g := range f.groups {
						g.mu.Lock()
						g.longest = append(g.longest, g.gap)
						g.mu.Unlock()
					}
					e.undo(c, leader)
					c.WaitReady()
				}
				b.ReportMetric(0, "ns/op")
				for _, g := range f.groups {
					b.Log(g.name, g.longest)
					slices.Sort(g.longest)
					b.ReportMetric(g.longest[len(g.longest)/2].Seconds(), "s-"+g.name)
				}
			})
		}
	}
}

// failOver is writers, and how long they waited.
type failOver struct {
	c       *natstest.Cluster
	js      jetstream.JetStream
	streams []string
	groups  []*writers
}

// writers are some that are measured together.
type writers struct {
	name    string
	longest []time.Duration // gap after each event

	mu   sync.Mutex
	last time.Time     // of an acknowledgement
	gap  time.Duration // the longest since reset
	n    int           // of acknowledgements since reset
}

func (g *writers) acknowledged() {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	g.gap = max(g.gap, now.Sub(g.last))
	g.last = now
	g.n++
}

func newFailOver(b *testing.B, c *natstest.Cluster, config Config[string, int]) *failOver {
	js := c.JetStream()
	mirrored, bare := bucket(b, js, replicated), bucket(b, js, replicated)
	f := &failOver{c: c, js: js, streams: []string{"KV_" + mirrored.Bucket(), "KV_" + bare.Bucket()}}
	r, err := Open(within(b), js, mirrored.Bucket(), config)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, r.Close(within(b))) })
	timeout := r.config.Timeout
	ctx, end := context.WithCancel(context.Background())
	var all sync.WaitGroup
	b.Cleanup(func() { end(); all.Wait() })
	writer := func(name string, write func(k string, n int) error) {
		g := &writers{name: name, last: time.Now()}
		f.groups = append(f.groups, g)
		for i := range 4 {
			all.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					if write(key(i), n) == nil {
						g.acknowledged()
					}
					time.Sleep(2 * time.Millisecond)
				}
			})
		}
	}
	writer("registry", func(k string, n int) error {
		_, err := r.Put(ctx, k, n)
		return err
	})
	writer("bare", func(k string, n int) error {
		for {
			try, cancel := context.WithTimeout(ctx, timeout)
			_, err := bare.Put(try, k, fmt.Append(nil, n))
			cancel()
			if err == nil || ctx.Err() != nil {
				return err
			}
		}
	})
	return f
}

// prepare makes one server the leader of both buckets, that of the client or another one, and
// returns it when all is well.
func (f *failOver) prepare(ofClient bool) (leader int) {
	var client int
	_, _ = fmt.Sscanf(f.js.Conn().ConnectedServerName(), "n%d", &client)
	leader = client
	if !ofClient {
		leader = (client + 1) % 3
	}
	for _, s := range f.streams {
		f.c.Lead(s, leader)
	}
	f.settle()
	for _, g := range f.groups {
		g.mu.Lock()
		g.last, g.gap, g.n = time.Now(), 0, 0
		g.mu.Unlock()
	}
	return leader
}

// settle returns when all writers have had acknowledgements for some seconds.
func (f *failOver) settle() {
	const quiet = 5 * time.Second // more than the mirror takes to notice that it is not fed
	for since := time.Now(); time.Since(since) < quiet; time.Sleep(10 * time.Millisecond) {
		for _, g := range f.groups {
			g.mu.Lock()
			if time.Since(g.last) > 500*time.Millisecond {
				since = time.Now()
			}
			g.mu.Unlock()
		}
	}
}
