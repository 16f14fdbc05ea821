package breaker

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/cluster/internal/natstest"
)

// unreachable is an engine that never is there.
func unreachable(t *testing.T) jetstream.JetStream {
	t.Helper()
	away, err := nats.Connect("127.0.0.1:1", nats.RetryOnFailedConnect(true))
	require.NoError(t, err)
	t.Cleanup(away.Close)
	js, err := jetstream.New(away)
	require.NoError(t, err)
	return js
}

// Close drops what waits, counts it, and refuses what comes, also for subjects that waited.
func TestCloseDropsWhatWaits(t *testing.T) {
	g, err := NewGroup(unreachable(t), Config[string]{Stream: "hints"})
	require.NoError(t, err)
	g.Disable("a")
	g.Disable("b")
	g.Close()
	require.Equal(t, Hints{Dropped: 2}, g.Hints())
	g.ForceOpen("a")
	g.Close()
	require.Equal(t, Hints{Dropped: 3}, g.Hints())
	require.Equal(t, atomicbreaker.ForcedOpen, g.State("a"))
	require.Empty(t, g.commands.given)
}

// Close returns at each step of a group that speaks and hears, and what it had to say is
// published or dropped.
func TestCloseAtEachStep(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t, 1)
	js := server.JetStream()
	const commands = 5
	for step := range 12 {
		g, err := NewGroup(js, Config[string]{Stream: "hints"})
		require.NoError(t, err)
		var speaking sync.WaitGroup
		speaking.Go(func() {
			for i := range commands {
				g.Disable(fmt.Sprint(step, "-", i))
				time.Sleep(time.Millisecond)
			}
		})
		time.Sleep(time.Duration(step) * time.Millisecond)
		var closing sync.WaitGroup
		for range 2 {
			closing.Go(g.Close)
		}
		closing.Wait()
		speaking.Wait()
		h := g.Hints()
		require.Zero(t, h.Waiting)
		require.EqualValues(t, commands, h.Published+h.Dropped)
		require.False(t, h.Connected)
		for i := range commands {
			require.Equal(t, atomicbreaker.Disabled, g.State(fmt.Sprint(step, "-", i)))
		}
	}
}

// Close returns while the engine leaves a publish without an answer.
func TestCloseWhilePublishing(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t, 1)
	js := server.JetStream()
	g, err := NewGroup(js, Config[string]{Stream: "hints"})
	require.NoError(t, err)
	require.NoError(t, g.Wait(t.Context()))
	server.SlowClients(0, time.Second)
	before := js.Conn().Stats().OutMsgs
	g.Disable("db")
	require.Eventually(t, func() bool { return js.Conn().Stats().OutMsgs > before }, 20*time.Second, time.Millisecond)
	began := time.Now()
	g.Close()
	require.Less(t, time.Since(began), publishTimeout/2)
	require.Equal(t, Hints{Dropped: 1, Heard: g.Hints().Heard}, g.Hints())
}

// Close returns while the engine does not answer, whatever the group has asked it.
func TestCloseWhileEngineIsSilent(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t, 1)
	js := server.JetStream()
	for step := range 8 {
		g, err := NewGroup(js, Config[string]{Stream: "hints"})
		require.NoError(t, err)
		g.Disable("db")
		time.Sleep(time.Duration(step) * 2 * time.Millisecond)
		server.SlowClients(0, 2*time.Second)
		time.Sleep(time.Millisecond)
		began := time.Now()
		g.Close()
		require.Less(t, time.Since(began), time.Second)
		server.SlowClients(0, 0)
	}
}
