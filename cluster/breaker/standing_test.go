package breaker

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/cluster/internal/natstest"
)

// A server that is behind lists a command that was replaced: the stream was not restored.
func TestListedByServerBehind(t *testing.T) {
	js := natstest.Start(t, 1).JetStream()
	g, err := NewGroup(js, Config[string]{Stream: "hints"})
	require.NoError(t, err)
	t.Cleanup(g.Close)
	for n, command := range []func(string){g.Disable, g.Reset} {
		command("db")
		require.Eventually(t, func() bool { return g.Hints().Heard == int64(n+1) }, 20*time.Second, time.Millisecond)
	}
	g.Close()
	f := newFollower(js, g)
	stream, err := js.Stream(t.Context(), "hints")
	require.NoError(t, err)
	subject := hint{Kind: reset, Key: "db"}.subject("hints")
	f.meet(1, time.Now(), subject, hint{Kind: disable, Key: "db"}.encode())
	f.meet(2, time.Now(), subject, hint{Kind: reset, Key: "db"}.encode())
	for _, behind := range []bool{true, false} {
		require.NoError(t, f.listed(t.Context(), subject, 1))
		require.Len(t, f.standing.older, 1)
		if !behind { // the later one has come
			require.NoError(t, f.listed(t.Context(), subject, 2))
			require.Empty(t, f.standing.older)
		}
		restored, err := f.restored(t.Context(), stream)
		require.NoError(t, err)
		require.False(t, restored)
		require.Empty(t, f.standing.older)
	}
	require.NoError(t, f.listed(t.Context(), "hints.s.kZGI.b", 1), "no command")
	require.Empty(t, f.standing.older)
}

// What was met long ago is forgotten.
func TestStandingIsForgotten(t *testing.T) {
	s := newStanding()
	for i := range 3 * firstSweep {
		s.note(fmt.Sprint(i), 1)
		s.met[fmt.Sprint(i)] = met{1, time.Now().Add(-3 * commandKept)}
	}
	require.LessOrEqual(t, len(s.met), firstSweep)
}
