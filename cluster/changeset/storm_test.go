package changeset_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/cluster/changeset"
	"github.com/latchfree/latchfree/cluster/internal/natstest"
)

// Servers are killed, cut off, slowed and started again in a random order, while replicas
// record and take the trail from each other, and one follows. Nothing that was
// acknowledged is lost or there twice, and the follower sees what is there.
//
// CLUSTER_LONG is the number of seconds, or 1 for a minute. CLUSTER_SEED repeats an order.
func TestStormLong(t *testing.T) {
	natstest.NeedsLong(t, "takes a minute")
	seconds, _ := strconv.Atoi(os.Getenv("CLUSTER_LONG"))
	if seconds <= 1 {
		seconds = 60
	}
	seed := uint64(time.Now().UnixNano())
	if s, err := strconv.ParseUint(os.Getenv("CLUSTER_SEED"), 10, 64); err == nil {
		seed = s
	}
	r := rand.New(rand.NewPCG(seed, 1))
	t.Log("seed", seed)
	c := natstest.Start(t, 3)
	js := c.JetStream()
	name := stream(t, js, 3)

	followed := make(map[string]bool)
	following, errs := make(chan struct{}), make(chan error, 1)
	done := within(t, time.Hour)
	reader := openReader(t, c.JetStream(), name)
	upTo := make(chan uint64, 1)
	go func() {
		defer close(following)
		last := uint64(0)
		for e, err := range reader.Follow(done, changeset.Position{}) {
			if err != nil {
				errs <- err
				return
			}
			for _, v := range e.Entries {
				if followed[v.Value] {
					errs <- fmt.Errorf("%q is followed twice", v.Value)
					return
				}
				followed[v.Value] = true
			}
			select {
			case last = <-upTo:
			default:
			}
			if last > 0 && e.Position.Sequence >= last {
				return
			}
		}
	}()

	// A replica whose server is cut off, and answers it, cannot claim anything until that is
	// back, which is after take.
	take := func(n, cutOff int) *storm {
		server := r.IntN(3)
		if server == cutOff {
			server = (server + 1) % 3
		}
		nc, err := jetstream.New(c.ConnectTo(server))
		require.NoError(t, err)
		if r.IntN(2) == 0 && cutOff < 0 {
			nc = c.JetStream()
		}
		s, err := changeset.Open(within(t, time.Minute), nc, changeset.Options[string]{Stream: name, Holder: fmt.Sprint(n)})
		require.NoError(t, err)
		return record(t, s, fmt.Sprint("r", n), 1+r.IntN(64))
	}
	storms := []*storm{take(0, -1)}
	writer := func() *storm { return storms[len(storms)-1] }
	for began := time.Now(); time.Since(began) < time.Duration(seconds)*time.Second; {
		server := r.IntN(3)
		if r.IntN(2) == 0 {
			server = c.StreamLeader(name)
		}
		before := writer().n.Load()
		what := ""
		switch r.IntN(7) {
		case 0:
			what = fmt.Sprint("kill ", server)
			c.Kill(server)
			time.Sleep(time.Duration(r.IntN(3000)) * time.Millisecond)
			c.Restart(server)
		case 1:
			clients := r.IntN(2) == 0
			what = fmt.Sprint("cut off ", server, ", clients too: ", clients)
			c.Partition(server, clients)
			time.Sleep(time.Duration(r.IntN(12000)) * time.Millisecond)
			if r.IntN(2) == 0 && !clients {
				what += ", take over"
				storms = append(storms, take(len(storms), server))
			}
			c.Heal(server)
		case 2:
			what = fmt.Sprint("slow ", server)
			c.Slow(server, time.Duration(r.IntN(30))*time.Millisecond)
			time.Sleep(time.Duration(r.IntN(2000)) * time.Millisecond)
			c.Slow(server, 0)
		case 3:
			what = fmt.Sprint("reset clients of ", server)
			c.ResetClients(server)
		case 4:
			what = fmt.Sprint("cut clients of ", server)
			c.CutClients(server, true)
			time.Sleep(time.Duration(r.IntN(3000)) * time.Millisecond)
			c.CutClients(server, false)
		case 5:
			what = "restart all"
			c.RestartAll()
		case 6:
			what = "take over"
			storms = append(storms, take(len(storms), -1))
		}
		c.WaitReady()
		took := writer().more(20)
		t.Logf("%5.1f s: %s: %d records meanwhile, 20 more after %v", time.Since(began).Seconds(), what, max(0, writer().n.Load()-before), took.Round(time.Millisecond))
	}
	writer().end()
	for _, w := range storms {
		w.end()
	}
	all := loaded(t, js, name)
	check(t, all, storms...)
	end, err := reader.End(within(t, time.Minute))
	require.NoError(t, err)
	upTo <- end.Sequence
	s := open(t, js, name)
	require.NoError(t, s.Claim(background)) // which wakes the follower
	select {
	case <-following:
	case <-time.After(time.Minute):
		t.Fatal("the follower is stuck")
	}
	select {
	case err := <-errs:
		t.Fatal(err)
	default:
	}
	entries := 0
	for _, c := range all {
		entries += len(c.Entries)
		for _, e := range c.Entries {
			require.True(t, followed[e.Value], e.Value)
		}
	}
	require.Len(t, followed, entries)
	t.Log(len(storms), "writers,", len(all), "changesets,", entries, "entries")
}
