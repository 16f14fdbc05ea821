package changeset_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/cluster/internal/natstest"
)

// How long nobody gets an acknowledgement when the stream's leader is cut off from all:
// recorders with a Store, and a publisher that sends each message until it is
// acknowledged, each attempt for a second. The election takes 4 to 9 seconds of it.
func TestFailOver(t *testing.T) {
	natstest.NeedsLong(t, "takes a minute")
	c := natstest.Start(t, 3)
	js := c.JetStream()
	name, bare := stream(t, js, 3), stream(t, js, 3)
	w := record(t, open(t, js, name), "r", 16)
	var gaps, bareGaps []time.Duration
	for range 3 {
		w.more(100)
		w.slowest.Store(0)
		leader := c.StreamLeader(name)
		c.Partition(leader, true)
		w.more(100)
		gaps = append(gaps, time.Duration(w.slowest.Load()).Round(time.Millisecond))
		t.Log("store:", gaps[len(gaps)-1])
		c.Heal(leader)
		c.WaitReady()
	}
	w.end()
	publish := func() {
		for {
			ctx, cancel := context.WithTimeout(background, time.Second)
			_, err := js.Publish(ctx, bare+".bare", []byte("x"))
			cancel()
			if err == nil {
				return
			}
		}
	}
	for range 3 {
		for range 100 {
			publish()
		}
		leader := c.StreamLeader(bare)
		c.Partition(leader, true)
		began := time.Now()
		publish()
		bareGaps = append(bareGaps, time.Since(began).Round(time.Millisecond))
		t.Log("bare client:", bareGaps[len(bareGaps)-1])
		c.Heal(leader)
		c.WaitReady()
	}
	check(t, loaded(t, js, name), w)
	slices.Sort(gaps)
	slices.Sort(bareGaps)
	t.Logf("median fail-over: store %v, bare client %v", gaps[1], bareGaps[1])
	require.Less(t, gaps[0], 30*time.Second)
}
