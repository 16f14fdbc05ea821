package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/cluster/internal/natstest"
)

// Where the time of a write goes: one client updates a key by its revision, in three
// buckets of three servers that server 0 leads. Client and consumer are on the servers named. Blocks of calls alternate, and the
// median of each kind is reported, so that other load on the machine meets all alike.
//
//   - bare: kv.Update, in a bucket that nobody follows
//   - followed: the same, while a push consumer follows the bucket, which nobody waits for
//   - delivered: the same, until that consumer has delivered the message
//   - registry: UpdateIf
func BenchmarkWriteTime(b *testing.B) {
	c := natstest.Start(b, 3)
	const leader, follower = 0, 1
	for _, at := range []int{leader, follower} {
		js, err := jetstream.New(c.ConnectTo(at))
		require.NoError(b, err)
		for _, from := range []int{leader, follower, 2} {
			w := newWriteTimes(b, c, js, leader, from)
			for _, pause := range []time.Duration{0, time.Millisecond} {
				b.Run(fmt.Sprintf("client=%d/consumer=%d/pause=%v", at, from, pause), func(b *testing.B) { w.run(b, pause) })
			}
		}
	}
}

// writer is one way to update a key by its revision.
type writer struct {
	name  string
	write func(n int) error
	took  []time.Duration
}

type writeTimes struct{ writers []*writer }

// run makes a pause between two calls, in which what the last one has set off comes to an end.
func (w *writeTimes) run(b *testing.B, pause time.Duration) {
	const block = 20
	for _, x := range w.writers {
		x.took = x.took[:0]
	}
	n := 0
	for b.Loop() {
		for _, x := range w.writers {
			for range block {
				n++
				began := time.Now()
				if err := x.write(n); err != nil {
					b.Fatal(x.name, err)
				}
				x.took = append(x.took, time.Since(began))
				time.Sleep(pause)
			}
		}
	}
	b.ReportMetric(0, "ns/op")
	for _, x := range w.writers {
		slices.Sort(x.took)
		b.ReportMetric(float64(x.took[len(x.took)/2].Nanoseconds())/1000, "µs-"+x.name)
	}
}

func newWriteTimes(b *testing.B, c *natstest.Cluster, js jetstream.JetStream, leader, from int) *writeTimes {
	ctx := context.Background()
	plain, followed, mirrored := bucket(b, js, replicated), bucket(b, js, replicated), bucket(b, js, replicated)
	for _, kv := range []jetstream.KeyValue{plain, followed, mirrored} {
		c.Lead("KV_"+kv.Bucket(), leader)
	}
	bare := func(kv jetstream.KeyValue, key string, then func(uint64)) func(int) error {
		var last uint64
		return func(n int) (err error) {
			data, _ := json.Marshal(plan{"ada", n})
			if last == 0 {
				last, err = kv.Put(ctx, key, data)
			} else {
				rev := last
				last, err = kv.Update(ctx, key, data, rev)
				for inFlight(err) { // the leader acknowledges a write before it forgets that
					last, err = kv.Update(ctx, key, data, rev)
				}
			}
			if then != nil && err == nil {
				then(last)
			}
			return err
		}
	}
	delivered := follow(b, c, js, "KV_"+followed.Bucket(), from)
	r := opened[plan](b, js, mirrored)
	for consumerServer(b, c, r) != from {
		attachAgain(b, r)
	}
	var last Version
	return &writeTimes{[]*writer{
		{name: "bare", write: bare(plain, "k", nil)},
		{name: "followed", write: bare(followed, "k", nil)},
		{name: "delivered", write: bare(followed, "w", func(seq uint64) {
			for <-delivered < seq {
			}
		})},
		{name: "registry", write: func(n int) (err error) {
			if last == 0 {
				last, err = r.Put(ctx, "k", plan{"ada", n})
			} else {
				last, err = r.UpdateIf(ctx, "k", last, plan{"ada", n})
			}
			return err
		}},
	}}
}

// inFlight reports whether a write was refused because of another one of its key.
func inFlight(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == codeWrongLastAny
}

// follow returns a channel of the revisions that a push consumer of a stream delivers, which
// a certain server feeds. It has the settings of a registry's.
func follow(b *testing.B, c *natstest.Cluster, js jetstream.JetStream, stream string, server int) <-chan uint64 {
	ctx := context.Background()
	delivered := make(chan uint64, 1024)
	inbox := js.Conn().NewInbox()
	sub, err := js.Conn().Subscribe(inbox, func(m *nats.Msg) {
		if len(m.Data) == 0 && m.Header.Get("Status") != "" {
			if m.Reply != "" {
				_ = m.Respond(nil)
			}
			return
		}
		meta, err := m.Metadata()
		if err != nil {
			return
		}
		select {
		case delivered <- meta.Sequence.Stream:
		default: // nobody waits
		}
	})
	require.NoError(b, err)
	b.Cleanup(func() { _ = sub.Unsubscribe() })
	for {
		name := nuid.Next()
		_, err := js.CreatePushConsumer(ctx, stream, jetstream.ConsumerConfig{
			Name: name, DeliverSubject: inbox, FilterSubject: "$KV." + stream[len("KV_"):] + ".>",
			DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, AckPolicy: jetstream.AckNonePolicy,
			FlowControl: true, IdleHeartbeat: time.Second, InactiveThreshold: time.Minute, Replicas: 1, MemoryStorage: true,
		})
		require.NoError(b, err)
		if c.ConsumerServer(stream, name) == server {
			return delivered
		}
		require.NoError(b, js.DeleteConsumer(ctx, stream, name))
	}
}

// atOnce is a JetStream that acknowledges writes at once, and stores nothing.
type atOnce struct {
	jetstream.JetStream
	stream string
	last   uint64
}

func (f *atOnce) PublishMsg(ctx context.Context, m *nats.Msg, opts ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	if m.Header.Get(nats.MsgIdHdr) == "" {
		ack, err := f.JetStream.PublishMsg(ctx, m, opts...)
		if err == nil {
			f.last = ack.Sequence
		}
		return ack, err
	}
	f.last++
	return &jetstream.PubAck{Stream: f.stream, Sequence: f.last}, nil
}

// What a write takes besides the bucket: the request, and the way of its acknowledgement to the mirror and back.
func BenchmarkWriteAlone(b *testing.B) {
	c := natstest.Start(b, 1)
	js := &atOnce{JetStream: c.JetStream()}
	kv := bucket(b, js)
	js.stream = "KV_" + kv.Bucket()
	r := opened[plan](b, js, kv, func(c *Config[string, plan]) { c.Heartbeat = time.Minute })
	ctx := context.Background()
	last, err := r.Put(ctx, "k", plan{"ada", 0})
	require.NoError(b, err)
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		if last, err = r.UpdateIf(ctx, "k", last, plan{"ada", n}); err != nil {
			b.Fatal(err)
		}
	}
}
