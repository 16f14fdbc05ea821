package push

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/cluster/internal/natstest"
)

const heartbeat = 100 * time.Millisecond

func opened(t *testing.T, js jetstream.JetStream) *Consumer {
	t.Helper()
	c, err := Open(t.Context(), js, "S", "s.>", heartbeat, 20*time.Second)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// What is stored is delivered, and what looks like a status of the server, too; a closed consumer is deleted.
func TestDeliveries(t *testing.T) {
	js := natstest.Start(t, 1).JetStream()
	s, err := js.CreateStream(within(t), jetstream.StreamConfig{Name: "S", Subjects: []string{"s.>"}, MaxMsgsPerSubject: 1})
	require.NoError(t, err)
	for _, m := range []*nats.Msg{{Subject: "s.a"}, {Subject: "s.a", Data: []byte("x")}, {Subject: "s.b", Header: nats.Header{"Status": {"409"}}}} {
		_, err := js.PublishMsg(within(t), m)
		require.NoError(t, err)
	}
	c := opened(t, js)
	for want := uint64(2); want <= 3; want++ {
		m, ok, err := c.Next(within(t))
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, want, m.Sequence)
		require.WithinDuration(t, time.Now(), m.Stored, 20*time.Second)
	}
	for range 2 * missedHeartbeats { // the server says that there is nothing
		_, ok, err := c.Next(within(t))
		require.NoError(t, err)
		require.False(t, ok)
	}
	c.Close()
	require.Eventually(t, func() bool {
		info, err := s.Info(within(t))
		return err == nil && info.State.Consumers == 0
	}, 20*time.Second, time.Millisecond)
	_, err = Open(within(t), js, "other", "s.>", heartbeat, time.Second)
	require.ErrorIs(t, err, jetstream.ErrStreamNotFound)
}

// A consumer is given up after some heartbeats without a word, and when the server ends it.
func TestGivenUp(t *testing.T) {
	js := natstest.Start(t, 1).JetStream()
	s, err := js.CreateStream(within(t), jetstream.StreamConfig{Name: "S", Subjects: []string{"s.>"}})
	require.NoError(t, err)
	end := func(c *Consumer) (err error) {
		for err == nil {
			_, _, err = c.Next(within(t))
		}
		return err
	}
	c := opened(t, js)
	for name := range s.ConsumerNames(within(t)).Name() {
		require.NoError(t, s.DeleteConsumer(within(t), name))
	}
	require.ErrorIs(t, end(c), ErrSilent)
	for want, m := range map[string]*nats.Msg{
		"a delivery was lost":                         {Header: nats.Header{"Status": {"100"}, "Nats-Last-Consumer": {"999999"}}},
		"the server ends the consumer: Consumer Gone": {Header: nats.Header{"Status": {"409"}, "Description": {"Consumer Gone"}}},
	} {
		c := opened(t, js)
		m.Subject = c.inbox
		require.NoError(t, js.Conn().PublishMsg(m))
		require.EqualError(t, end(c), want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err = opened(t, js).Next(ctx)
	require.ErrorIs(t, err, context.Canceled)
}

// Deliveries come in their order, or the consumer is given up. What is none is passed over.
func TestOrder(t *testing.T) {
	js := natstest.Start(t, 1).JetStream()
	sub, err := js.Conn().SubscribeSync("x")
	require.NoError(t, err)
	c := &Consumer{inbox: "y", delivered: 5}
	m := func(n string) *nats.Msg {
		return &nats.Msg{Subject: "s.b", Sub: sub, Reply: "$JS.ACK.s.c.1.100." + n + ".1.0"}
	}
	got, ok, err := c.Read(m("6"))
	require.NoError(t, err)
	require.True(t, ok)
	require.EqualValues(t, 100, got.Sequence)
	for _, n := range []string{"8", "6"} {
		_, ok, err = c.Read(m(n))
		require.ErrorIs(t, err, ErrMissed)
		require.False(t, ok)
	}
	_, ok, err = c.Read(&nats.Msg{Subject: "s.c", Sub: sub})
	require.NoError(t, err)
	require.False(t, ok)
}

// A reader that was held up takes nothing for silence.
func TestHeldUp(t *testing.T) {
	js := natstest.Start(t, 1).JetStream()
	_, err := js.CreateStream(within(t), jetstream.StreamConfig{Name: "S", Subjects: []string{"s.>"}})
	require.NoError(t, err)
	c := opened(t, js)
	for range 3 { // one that did would do so every other time
		time.Sleep((missedHeartbeats + 1) * heartbeat)
		_, _, err := c.Next(within(t))
		require.NoError(t, err)
	}
}
