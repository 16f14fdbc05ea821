package changeset_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/cluster/changeset"
	"github.com/latchfree/latchfree/cluster/internal/natstest"
	"github.com/latchfree/latchfree/cowchangeset"
)

// storm is recorders that note what was acknowledged.
type storm struct {
	t       testing.TB
	tracker *cowchangeset.Tracker[string]
	prefix  string
	wg      sync.WaitGroup
	stop    atomic.Bool
	acked   sync.Map // value → receipt
	tried   sync.Map
	n       atomic.Int64 // acknowledged
	slowest atomic.Int64 // nanoseconds between two acknowledgements
	last    atomic.Int64
}

// record begins recorders, each of which records until stop, or an ErrFenced.
func record(t testing.TB, s cowchangeset.Store[string], prefix string, recorders int) *storm {
	t.Helper()
	// An election takes 4 to 9 seconds and may fail, and a claim may need two in a row.
	tracker, err := cowchangeset.Resume(background, cowchangeset.Config[string]{Store: s, StoreTimeout: time.Minute})
	require.NoError(t, err)
	w := &storm{t: t, tracker: tracker, prefix: prefix}
	_, err = tracker.Start(background)
	require.NoError(t, err)
	w.last.Store(time.Now().UnixNano())
	for g := range recorders {
		w.wg.Go(func() {
			for i := 0; !w.stop.Load(); i++ {
				value := fmt.Sprintf("%s-%d-%d", prefix, g, i)
				w.tried.Store(value, true)
				receipt, err := tracker.Record(value)
				if err == nil {
					w.acked.Store(value, receipt)
					w.n.Add(1)
					now := time.Now().UnixNano()
					if gap := now - w.last.Swap(now); gap > w.slowest.Load() {
						w.slowest.Store(gap)
					}
				} else if errors.Is(err, changeset.ErrFenced) {
					return
				}
			}
		})
	}
	w.wg.Go(func() {
		for !w.stop.Load() {
			time.Sleep(20 * time.Millisecond)
			if _, err := tracker.Start(background); errors.Is(err, changeset.ErrFenced) {
				return
			}
		}
	})
	return w
}

// more waits until n more records are acknowledged.
func (w *storm) more(n int64) time.Duration {
	w.t.Helper()
	began, target := time.Now(), w.n.Load()+n
	require.Eventually(w.t, func() bool { return w.n.Load() >= target }, time.Minute, time.Millisecond)
	return time.Since(began)
}

// end stops the recorders.
func (w *storm) end() {
	w.stop.Store(true)
	w.wg.Wait()
}

// check finds each acknowledged value once, at the place that its receipt names, in what
// a store has, and nothing that was never recorded.
func check(t testing.TB, all []cowchangeset.Saved[string], storms ...*storm) {
	t.Helper()
	found := make(map[string]int)
	place := make(map[string]cowchangeset.Receipt)
	for _, c := range all {
		for _, e := range c.Entries {
			found[e.Value]++
			place[e.Value] = cowchangeset.Receipt{ChangesetID: c.ID, Ordinal: c.Ordinal, Seq: e.Seq}
			require.Equal(t, 1, found[e.Value], e.Value)
		}
	}
	total := 0
	for _, w := range storms {
		w.acked.Range(func(value, receipt any) bool {
			require.Equal(t, receipt, place[value.(string)], value)
			return true
		})
		w.tried.Range(func(value, _ any) bool {
			total += found[value.(string)]
			return true
		})
	}
	require.Equal(t, len(found), total, "something was never recorded")
}

// loaded returns what a new Store has.
func loaded(t testing.TB, js jetstream.JetStream, name string) []cowchangeset.Saved[string] {
	t.Helper()
	s := open(t, js, name)
	require.NoError(t, s.Claim(background))
	return saved(t, s)
}

// Checks C2.

// Recorders lose nothing when the stream's leader is killed, and when another replica
// takes the trail over meanwhile; nor, in the long form, when all servers start again.
func TestStorm(t *testing.T) {
	t.Parallel()
	c := natstest.Start(t, 3)
	js := c.JetStream()
	name := stream(t, js, 3)
	one := record(t, open(t, js, name), "one", 64)
	one.more(500)
	leader := c.StreamLeader(name)
	c.Kill(leader)
	t.Log("killed:", one.more(500))
	if long() {
		c.Restart(leader)
		c.RestartAll()
		t.Log("restarted:", one.more(500))
	}
	two := record(t, open(t, c.JetStream(), name), "two", 16)
	two.more(500)
	one.wg.Wait() // all are fenced
	two.end()
	t.Log("longest gap:", time.Duration(one.slowest.Load()))
	check(t, loaded(t, js, name), one, two)
}

// A writer at a leader that is cut off from the other servers gets no acknowledgement.
// Another replica takes over, and nothing that either was told is lost.
func TestPartition(t *testing.T) {
	t.Parallel()
	natstest.NeedsLong(t, "an election takes up to 9 seconds")
	c := natstest.Start(t, 3)
	js := c.JetStream()
	name := stream(t, js, 3)
	leader := c.StreamLeader(name)
	pinned, err := jetstream.New(c.ConnectTo(leader))
	require.NoError(t, err)
	one := record(t, open(t, pinned, name), "one", 64)
	one.more(500)
	c.Partition(leader, false)
	time.Sleep(50 * time.Millisecond) // what was under way is acknowledged, or never
	before := one.n.Load()
	elsewhere, err := jetstream.New(c.ConnectTo((leader + 1) % 3))
	require.NoError(t, err)
	began := time.Now()
	s, err := changeset.Open(within(t, 40*time.Second), elsewhere, changeset.Options[string]{Stream: name})
	require.NoError(t, err)
	two := record(t, s, "two", 64)
	t.Log("taken over after", time.Since(began))
	two.more(500)
	require.Equal(t, before, one.n.Load(), "a leader without a quorum has acknowledged")
	c.Heal(leader)
	one.wg.Wait()
	two.end()
	check(t, loaded(t, js, name), one, two)
}

func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(background, d)
	t.Cleanup(cancel)
	return ctx
}
