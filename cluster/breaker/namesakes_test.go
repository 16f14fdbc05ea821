package breaker_test

import (
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/cluster/breaker"
	"github.com/latchfree/latchfree/cluster/internal/natstest"
)

// Two replicas with one name hear each other, end in the same state, and are told of it once.
func TestNamesakes(t *testing.T) {
	js := natstest.Start(t, 1).JetStream()
	a, b := start(t, js, "same"), start(t, js, "same")
	a.fail("db", 4)
	b.becomes(t, "db", atomicbreaker.Open)
	require.Equal(t, atomicbreaker.Recovered, a.RecordSuccess("db"))
	b.becomes(t, "db", atomicbreaker.HalfOpen)
	a.ForceOpen("other")
	b.becomes(t, "other", atomicbreaker.ForcedOpen)
	eventually(t, func() bool { return b.Hints().Namesakes == 3 })
	require.ErrorIs(t, b.errors(), breaker.ErrNamesake)
	require.EqualError(t, b.errors(), `breaker: another replica has the same name: "same"`)
	require.NoError(t, a.errors())
	b.Reset("other")
	a.becomes(t, "other", atomicbreaker.Closed)
	eventually(t, func() bool { return a.Hints().Namesakes > 0 })
	require.ErrorIs(t, a.errors(), breaker.ErrNamesake)
}

// What a replica of the same name has said before this one came counts as said in an
// earlier life.
func TestEarlierLifeIsNoNamesake(t *testing.T) {
	t.Parallel()
	server, _, a, hold := restorable(t)
	a.fail("db", 4)
	a.ForceOpen("forced")
	a.hears(t, 2)
	js := server.JetStream()
	again := start(t, js, "a")
	require.Equal(t, atomicbreaker.Closed, again.State("db"))
	require.Equal(t, atomicbreaker.ForcedOpen, again.State("forced"))
	require.NoError(t, again.errors())
	again.Close()

	// Also when all is met again: another stream takes the place of the one that was followed.
	release := hold()
	require.NoError(t, js.DeleteStream(t.Context(), "hints"))
	_, err := js.CreateStream(t.Context(), jetstream.StreamConfig{
		Name: "hints", Subjects: []string{"hints.>"}, MaxMsgsPerSubject: 1, AllowMsgTTL: true,
	})
	require.NoError(t, err)
	for subject, payload := range map[string]string{
		"hints.c.kZGI":      `{"kind":"disable","key":"ZGI=","replica":"a","life":"earlier"}`,
		"hints.s.kb2xk.a":   `{"kind":"tripped","key":"b2xk","replica":"a","life":"earlier","for":60000000000}`,
		"hints.c.kbGFzdA":   `{"kind":"disable","key":"bGFzdA==","replica":"a","life":"earlier"}`,
		"hints.s.kb3Blbg.b": `{"kind":"tripped","key":"b3Blbg==","replica":"b","life":"other","for":60000000000}`,
	} {
		_, err = js.Publish(t.Context(), subject, []byte(payload))
		require.NoError(t, err)
	}
	release()
	a.becomes(t, "db", atomicbreaker.Disabled)
	a.becomes(t, "last", atomicbreaker.Disabled)
	a.becomes(t, "open", atomicbreaker.Open)
	a.hears(t, 6)
	require.Equal(t, atomicbreaker.Closed, a.State("old"))
	require.NotErrorIs(t, a.errors(), breaker.ErrNamesake)
	require.Zero(t, a.Hints().Namesakes)
}

// Commands that two replicas with one name give at the same time end in one state.
func TestNamesakesConverge(t *testing.T) {
	server := natstest.Start(t, 1)
	a, b := start(t, server.JetStream(), "same"), start(t, server.JetStream(), "same")
	for range 50 {
		a.ForceOpen("db")
		b.Disable("db")
		eventually(t, func() bool { return a.Hints().Waiting == 0 && b.Hints().Waiting == 0 })
		last := lastCommand(t, server.JetStream())
		a.becomes(t, "db", last)
		b.becomes(t, "db", last)
	}
}
