package breaker

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/cluster/internal/natstest"
)

// deposed is a stream about which a leader answers that is cut off from the others, until it
// has answered so often: it does not know the last messages.
type deposed struct {
	jetstream.Stream
	answers, missing int
}

func (d *deposed) stale(info *jetstream.StreamInfo) *jetstream.StreamInfo {
	if d.answers == 0 || info == nil {
		return info
	}
	d.answers--
	old := *info
	old.State.LastSeq -= uint64(d.missing)
	return &old
}

func (d *deposed) CachedInfo() *jetstream.StreamInfo { return d.stale(d.Stream.CachedInfo()) }

// A leader that is cut off does not make a replica meet all messages again, when the replica
// begins to follow.
func TestDeposedLeader(t *testing.T) {
	t.Parallel()
	js := natstest.Start(t, 1).JetStream()
	g, err := NewGroup(js, Config[string]{Stream: "hints"})
	require.NoError(t, err)
	for _, k := range []string{"a", "b", "c"} {
		g.Disable(k)
	}
	require.Eventually(t, func() bool { return g.Hints().Heard == 3 }, 20*time.Second, time.Millisecond)
	g.Close()
	f := newFollower(js, g)
	stream, err := js.Stream(t.Context(), "hints")
	require.NoError(t, err)
	follow := func(s jetstream.Stream, d time.Duration) {
		ctx, cancel := context.WithTimeout(t.Context(), d)
		defer cancel()
		_ = f.followStream(ctx, s, g.acked.Load())
	}
	for end := time.Now().Add(20 * time.Second); f.last < 3 && time.Now().Before(end); {
		follow(stream, time.Second) // enough, unless the machine is busy
	}
	require.EqualValues(t, 3, f.last)
	met := g.counts.heard.Load()
	g.Group.Reset("a") // here alone
	follow(&deposed{stream, 1, 1}, time.Second)
	require.Equal(t, atomicbreaker.Closed, g.State("a"))
	require.LessOrEqual(t, g.counts.heard.Load()-met, int64(1), "its own question only")
}
