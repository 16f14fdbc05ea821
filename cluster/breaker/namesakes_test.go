package breaker_test

import (
	"testing"

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
	js := natstest.Start(t, 1).JetStream()
	a := start(t, js, "a")
	a.fail("db", 4)
	a.ForceOpen("forced")
	a.hears(t, 2)
	a.Close()
	a = start(t, js, "a")
	require.Equal(t, atomicbreaker.Closed, a.State("db"))
	require.Equal(t, atomicbreaker.ForcedOpen, a.State("forced"))
	b := start(t, js, "b")
	b.ForceOpen("more")
	a.becomes(t, "more", atomicbreaker.ForcedOpen)
	require.NoError(t, a.errors())
	require.Zero(t, a.Hints().Namesakes)
	require.Zero(t, b.Hints().Namesakes)
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
