package breaker

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/cluster/internal/natstest"
)

func newTestGroup(t *testing.T) *Group[string] {
	t.Helper()
	g, err := NewGroup(natstest.Start(t, 1).JetStream(), Config[string]{Stream: "hints"})
	require.NoError(t, err)
	t.Cleanup(g.Close)
	return g
}

// Votes of keys that nobody mentions again are forgotten.
func TestVotesAreForgotten(t *testing.T) {
	g := newTestGroup(t)
	f := newFollower(nil, g)
	for i := range 3 * firstSweep {
		f.hear(hint{Kind: stillOpen, Key: fmt.Sprint(i), Replica: "other"}, time.Nanosecond)
	}
	require.LessOrEqual(t, len(f.votes), firstSweep)
}

// So are keys that a hint has opened and nobody has called since.
func TestOpeningsAreForgotten(t *testing.T) {
	g := newTestGroup(t)
	f := newFollower(nil, g)
	for i := range 3 * firstSweep {
		f.act(fmt.Sprint(i), time.Nanosecond)
	}
	require.LessOrEqual(t, len(g.opened.keys), firstSweep)
}

// The generation of an event is told as a Snapshot tells it, and only of a key that one
// change has opened.
func TestOpenedKeepsOneChange(t *testing.T) {
	var o opened[string]
	o.init()
	of := func(generation uint64) atomicbreaker.Event { return atomicbreaker.Event{Generation: generation} }
	for generation, want := range map[uint64]int{1: 1, lastGeneration: lastGeneration, lastGeneration + 1: 1, 3*lastGeneration + 2: 2} {
		o.expect("db", time.Now())
		_, is := o.generation("db")
		require.False(t, is, "the listener was not told")
		o.changed("db", of(generation))
		got, is := o.generation("db")
		require.True(t, is)
		require.Equal(t, want, got)
		o.changed("db", of(generation+1))
		_, is = o.generation("db")
		require.False(t, is)
		o.changed("db", of(generation+2))
		_, is = o.generation("db")
		require.False(t, is)
	}
}

// A report lets no probes through while a command is being applied: it might undo that.
func TestReopenGivesWay(t *testing.T) {
	g := newTestGroup(t)
	newFollower(nil, g).act("db", time.Hour)
	g.commands.users++
	require.False(t, g.reopen("db"))
	require.Equal(t, atomicbreaker.Open, g.State("db"))
	g.commands.users--
	require.True(t, g.reopen("db"))
	require.Equal(t, atomicbreaker.HalfOpen, g.State("db"))
	require.Zero(t, g.commands.users)
}

// Commands that nobody will hear of are forgotten, too: those with too long a key. So is one whose time has passed, when it is met.
func TestDroppedCommandsAreForgotten(t *testing.T) {
	server := natstest.Start(t, 1)
	js := server.JetStream()
	server.Kill(0)
	g, err := NewGroup(js, Config[string]{Stream: "hints"})
	require.NoError(t, err)
	t.Cleanup(g.Close)
	given := func() int {
		g.commands.mu.Lock()
		defer g.commands.mu.Unlock()
		return len(g.commands.given)
	}
	g.Trip("short", time.Millisecond)
	for i := range 30 {
		g.Disable(fmt.Sprint(i))
		g.Disable(fmt.Sprint(string(make([]byte, maxKey)), i))
	}
	require.Equal(t, 31, given())
	server.Restart(0)
	require.Eventually(t, func() bool { h := g.Hints(); return h.Published > 0 && h.Waiting == 0 && given() == 0 }, 30*time.Second, time.Millisecond)
}

// A follower that a function of Config has made exit follows no more.
func TestExitedFollowerIsNotConnected(t *testing.T) {
	js := natstest.Start(t, 1).JetStream()
	g, err := NewGroup(js, Config[string]{Stream: "hints", OnError: func(error) { runtime.Goexit() }})
	require.NoError(t, err)
	require.NoError(t, g.Wait(t.Context()))
	g.Close()
	_, err = js.Publish(t.Context(), "hints.else", nil)
	require.NoError(t, err)
	done := make(chan struct{})
	go func() { defer close(done); newFollower(js, g).run(t.Context()) }()
	<-done
	require.EqualValues(t, 1, g.Hints().Heard)
	require.False(t, g.Hints().Connected)
}

// A purged stream is followed on: what it has forgotten stays, and nothing is met again. A
// replica that comes later knows what came after the purge.
func TestStreamPurged(t *testing.T) {
	t.Parallel()
	js := natstest.Start(t, 1).JetStream()
	group := func() *Group[string] {
		g, err := NewGroup(js, Config[string]{Stream: "hints"})
		require.NoError(t, err)
		t.Cleanup(g.Close)
		require.NoError(t, g.Wait(t.Context()))
		return g
	}
	becomes := func(g *Group[string], k string, s atomicbreaker.State) {
		t.Helper()
		require.Eventually(t, func() bool { return g.State(k) == s }, 20*time.Second, time.Millisecond)
	}
	heard := func(g *Group[string], n int64) {
		t.Helper()
		require.Eventually(t, func() bool { return g.Hints().Heard >= n }, 20*time.Second, time.Millisecond)
		require.Equal(t, n, g.Hints().Heard)
	}
	a, b := group(), group()
	a.ForceOpen("before")
	becomes(b, "before", atomicbreaker.ForcedOpen)
	heard(a, 1) // and is not purged before
	stream, err := js.Stream(t.Context(), "hints")
	require.NoError(t, err)
	require.NoError(t, stream.Purge(t.Context()))
	c := group() // finds a stream without messages
	b.Disable("after")
	for _, g := range []*Group[string]{a, b, c} {
		becomes(g, "after", atomicbreaker.Disabled)
	}
	require.Equal(t, atomicbreaker.ForcedOpen, a.State("before"))
	require.Equal(t, atomicbreaker.Closed, c.State("before"))
	require.NoError(t, stream.Purge(t.Context()))
	c.Reset("before")
	c.Reset("after")
	for _, g := range []*Group[string]{a, b} {
		becomes(g, "before", atomicbreaker.Closed)
		becomes(g, "after", atomicbreaker.Closed)
	}
	require.EqualValues(t, 1, c.Hints().Applied, "nothing is applied again")
	heard(a, 4)
}
