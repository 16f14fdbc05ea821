package breaker_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/cluster/breaker"
	"github.com/latchfree/latchfree/cluster/internal/natstest"
)

// A replica that trips opens the key at the others, for a bounded time and without an
// echo; when it has recovered, the others let a probe through.
func TestTripAndRecoverySpread(t *testing.T) {
	js := natstest.Start(t, 1).JetStream()
	a, b, c := start(t, js, "a"), start(t, js, "b"), start(t, js, "c")
	a.fail("db", 4)
	require.Equal(t, atomicbreaker.Open, a.State("db"))
	for _, r := range []*replica{b, c} {
		r.becomes(t, "db", atomicbreaker.Open)
		require.LessOrEqual(t, r.Snapshot("db").RetryAfter, 30*time.Second)
		require.Greater(t, r.Snapshot("db").RetryAfter, 14*time.Second)
		require.Equal(t, atomicbreaker.Closed, r.State("cache"))
	}
	require.Equal(t, atomicbreaker.Recovered, a.RecordSuccess("db"))
	for _, r := range []*replica{b, c} {
		r.becomes(t, "db", atomicbreaker.HalfOpen)
		r.succeed(t, "db")
		require.Equal(t, atomicbreaker.Closed, r.State("db"))
		require.Equal(t, []atomicbreaker.Reason{atomicbreaker.ReasonTrip, atomicbreaker.ReasonHalfOpen, atomicbreaker.ReasonRecovered}, r.reasons())
	}
	a.hears(t, 4) // a tripped, a, b and c recovered
	require.EqualValues(t, 2, a.Hints().Published)
	require.EqualValues(t, 1, b.Hints().Published)
	require.EqualValues(t, 1, c.Hints().Published)
	require.NoError(t, a.errors())
}

// A replica whose probes fail keeps its own key open, and no one else's.
func TestFailedProbeOpensNobody(t *testing.T) {
	js := natstest.Start(t, 1).JetStream()
	a, b := start(t, js, "a"), start(t, js, "b")
	a.fail("db", 4)
	b.becomes(t, "db", atomicbreaker.Open)
	b.Group.Group.Reset("db") // here alone
	for n := range int64(3) {
		a.Group.Group.HalfOpen("db")
		a.fail("db", 1)
		require.Equal(t, atomicbreaker.Open, a.State("db"))
		b.hears(t, 2+n)
		require.Equal(t, atomicbreaker.Closed, b.State("db"))
	}
}

// What a replica knows from its own results, and what its operator has decided, is not
// changed by reports.
func TestReportsDoNotOverrule(t *testing.T) {
	js := natstest.Start(t, 1).JetStream()
	a, b := start(t, js, "a", deaf), start(t, js, "b")
	b.fail("own", 4)
	b.Group.Group.ForceOpen("forced")
	b.Group.Group.Disable("disabled")
	for _, k := range []string{"own", "forced", "disabled"} {
		a.fail(k, 4)
	}
	b.hears(t, 4)
	own := b.Snapshot("own")
	require.Equal(t, 1, own.Streak)
	require.Greater(t, own.RetryAfter, 50*time.Second)
	for _, k := range []string{"own", "forced", "disabled"} {
		a.RecordSuccess(k)
	}
	b.hears(t, 7)
	require.Equal(t, atomicbreaker.Open, b.State("own"))
	require.Equal(t, atomicbreaker.ForcedOpen, b.State("forced"))
	require.Equal(t, atomicbreaker.Disabled, b.State("disabled"))
}

// deaf makes a replica that acts on no report.
func deaf(c *breaker.Config[string]) { c.Quorum = 99 }

// A key whose probes decide is left to them.
func TestReportLeavesHalfOpenKeys(t *testing.T) {
	js := natstest.Start(t, 1).JetStream()
	a, b := start(t, js, "a", deaf), start(t, js, "b")
	b.Group.Group.HalfOpen("db")
	a.fail("db", 4)
	b.hears(t, 1)
	require.Equal(t, atomicbreaker.HalfOpen, b.State("db"))
	require.Zero(t, b.Snapshot("db").InFlight)
}

// An opening that was prolonged by the replica's own results outlives the recovery of
// the one that has caused it.
func TestRecoveryTakesBackOnlyItsOwn(t *testing.T) {
	js := natstest.Start(t, 1).JetStream()
	a, b := start(t, js, "a"), start(t, js, "b")
	a.fail("db", 4)
	b.becomes(t, "db", atomicbreaker.Open)
	b.Group.Group.HalfOpen("db")
	b.fail("db", 1) // a probe
	a.RecordSuccess("db")
	b.hears(t, 3)
	require.Equal(t, atomicbreaker.Open, b.State("db"))
}

// So does one that they have caused after the key has left the group, where its generations
// begin again.
func TestRecoveryTakesBackNothingOfAnotherLife(t *testing.T) {
	js := natstest.Start(t, 1).JetStream()
	a, b := start(t, js, "a"), start(t, js, "b")
	a.fail("db", 4)
	b.becomes(t, "db", atomicbreaker.Open)
	hinted := b.Snapshot("db").Generation
	b.Group.Group.Reset("db")
	require.Zero(t, b.Len())
	b.fail("db", 4)
	require.Equal(t, hinted, b.Snapshot("db").Generation)
	a.RecordSuccess("db")
	b.hears(t, 3)
	require.Equal(t, atomicbreaker.Open, b.State("db"))
}

func TestQuorum(t *testing.T) {
	js := natstest.Start(t, 1).JetStream()
	quorum := func(c *breaker.Config[string]) { c.Quorum = 2 }
	a, b, c := start(t, js, "a"), start(t, js, "b"), start(t, js, "c", quorum)
	a.Group.Group.Disable("x") // so that a hears, and does not open
	b.fail("db", 4)
	c.hears(t, 1)
	b.Group.Group.Reset("db")
	b.fail("db", 4)
	c.hears(t, 2) // the same replica again
	require.Equal(t, atomicbreaker.Closed, c.State("db"))
	a.becomes(t, "db", atomicbreaker.Open)
	a.Group.Group.Reset("db")
	a.fail("db", 4)
	c.becomes(t, "db", atomicbreaker.Open)
	a.RecordSuccess("db")
	c.becomes(t, "db", atomicbreaker.HalfOpen)
}

// A recovery opens nothing while enough others say that the key is open.
func TestQuorumHolds(t *testing.T) {
	js := natstest.Start(t, 1).JetStream()
	a, b, d := start(t, js, "a", deaf), start(t, js, "b", deaf), start(t, js, "d", deaf)
	c := start(t, js, "c", func(c *breaker.Config[string]) { c.Quorum = 2 })
	for _, r := range []*replica{a, b, d} {
		r.fail("db", 4)
	}
	c.hears(t, 3)
	require.Equal(t, atomicbreaker.Open, c.State("db"))
	a.RecordSuccess("db")
	c.hears(t, 4)
	require.Equal(t, atomicbreaker.Open, c.State("db"))
	b.RecordSuccess("db")
	c.becomes(t, "db", atomicbreaker.HalfOpen)
}

// A vote ends with the open time that was reported.
func TestVotesEnd(t *testing.T) {
	js := natstest.Start(t, 1).JetStream()
	b, c := start(t, js, "b"), start(t, js, "c", func(c *breaker.Config[string]) { c.Quorum = 2 })
	reportTrip(t, js, "a", 50*time.Millisecond)
	c.hears(t, 1)
	time.Sleep(60 * time.Millisecond)
	b.Group.Group.Reset("db")
	b.fail("db", 4)
	c.hears(t, 2)
	require.Equal(t, atomicbreaker.Closed, c.State("db"))
}

// reportTrip publishes what a replica would that has opened the key "db" for so long. A replica
// publishes nothing if that time has passed before it can.
func reportTrip(t *testing.T, js jetstream.JetStream, replica string, d time.Duration) {
	t.Helper()
	_, err := js.Publish(t.Context(), "hints.s.kZGI."+replica, fmt.Appendf(nil, `{"kind":"tripped","key":"ZGI=","replica":%q,"for":%d}`, replica, d))
	require.NoError(t, err)
}

func TestClose(t *testing.T) {
	server := natstest.Start(t, 1)
	nc := server.Connect()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	a := start(t, js, "a")
	require.NotEmpty(t, goroutines())
	a.Close()
	a.Close()
	require.Empty(t, goroutines())
	eventually(t, func() bool { return nc.NumSubscriptions() <= 1 }) // that of the connection for its requests
	a.fail("db", 4)
	require.Equal(t, atomicbreaker.Open, a.State("db"))
	a.ForceOpen("db")
	require.Equal(t, atomicbreaker.ForcedOpen, a.State("db"))
	require.EqualValues(t, 2, a.Hints().Dropped)

	away, err := nats.Connect("127.0.0.1:1", nats.RetryOnFailedConnect(true))
	require.NoError(t, err)
	defer away.Close()
	js, err = jetstream.New(away)
	require.NoError(t, err)
	b := launch(t, js, "b")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, b.Wait(ctx), context.Canceled)
	b.Close()
	require.ErrorIs(t, b.Wait(t.Context()), breaker.ErrClosed)
}

func TestNewGroupRejects(t *testing.T) {
	js := natstest.Start(t, 1).JetStream()
	for name, c := range map[string]breaker.Config[string]{
		`Stream ""`:                    {},
		`Stream "a.b"`:                 {Stream: "a.b"},
		`Stream "ssss`:                 {Stream: strings.Repeat("s", 256)},
		"StreamReplicas 6":             {Stream: "s", StreamReplicas: 6},
		"Quorum -1":                    {Stream: "s", Quorum: -1},
		"MaxOpenTimeout -1ns":          {Stream: "s", MaxOpenTimeout: -1},
		"atomicbreaker: Config.Jitter": {Stream: "s", Group: atomicbreaker.GroupConfig[string]{Default: atomicbreaker.Config{Jitter: 2}}},
	} {
		_, err := breaker.NewGroup(js, c)
		require.ErrorContains(t, err, name)
		if !strings.HasPrefix(name, "atomicbreaker") {
			require.ErrorContains(t, err, "breaker: Config."+name)
		}
	}
	require.PanicsWithValue(t, "breaker: NewGroup called with a nil JetStream", func() {
		breaker.NewGroup[string](nil, breaker.Config[string]{Stream: "s"})
	})
}

// Update changes the settings and keeps the listener of hints.
func TestUpdate(t *testing.T) {
	js := natstest.Start(t, 1).JetStream()
	a, b := start(t, js, "a"), start(t, js, "b")
	require.NoError(t, a.Update(atomicbreaker.GroupConfig[string]{Default: atomicbreaker.Config{Policy: atomicbreaker.Consecutive(1)}}))
	require.Error(t, a.Update(atomicbreaker.GroupConfig[string]{Default: atomicbreaker.Config{Jitter: 2}}))
	a.fail("db", 1)
	b.becomes(t, "db", atomicbreaker.Open)
}

// A breaker that only tries its settings tells nobody.
func TestShadowIsSilent(t *testing.T) {
	js := natstest.Start(t, 1).JetStream()
	a := start(t, js, "a", func(c *breaker.Config[string]) { c.Group.Default.Shadow = true })
	a.fail("db", 4)
	a.ForceOpen("other")
	a.hears(t, 1)
	require.EqualValues(t, 1, a.Hints().Published)
}

// A key that no subject can hold is known here alone, and stops no other.
func TestLongKey(t *testing.T) {
	js := natstest.Start(t, 1).JetStream()
	a, b := start(t, js, "a"), start(t, js, "b")
	a.ForceOpen(strings.Repeat("k", 5000))
	a.ForceOpen(strings.Repeat("k", 1024))
	b.becomes(t, strings.Repeat("k", 1024), atomicbreaker.ForcedOpen)
	require.Equal(t, atomicbreaker.ForcedOpen, a.State(strings.Repeat("k", 5000)))
	require.EqualValues(t, 1, a.Hints().Dropped)
	require.NoError(t, a.errors())
}

// Open times without end are bounded for others, and keys may be any bytes.
func TestOddReports(t *testing.T) {
	js := natstest.Start(t, 1).JetStream()
	a, b := start(t, js, "a", func(c *breaker.Config[string]) { c.Group.Default.OpenTimeout = -1 }), start(t, js, "b")
	for _, k := range []string{"", "a b.c*>", "\xff\x00", strings.Repeat("long", 100)} {
		a.fail(k, 4)
		require.EqualValues(t, math.MaxInt64, a.Snapshot(k).RetryAfter)
		b.becomes(t, k, atomicbreaker.Open)
		require.LessOrEqual(t, b.Snapshot(k).RetryAfter, 30*time.Second)
	}
}
