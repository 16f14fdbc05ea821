package breaker_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/cluster/breaker"
	"github.com/latchfree/latchfree/cluster/internal/natstest"
)

func TestCommandsApplyToAll(t *testing.T) {
	js := natstest.Start(t, 1).JetStream()
	a, b := start(t, js, "a"), start(t, js, "b")
	for n, step := range []struct {
		command func()
		want    atomicbreaker.State
	}{
		{func() { a.Trip("db", time.Minute) }, atomicbreaker.Open},
		{func() { a.Disable("db") }, atomicbreaker.Disabled},
		{func() { b.ForceOpen("db") }, atomicbreaker.ForcedOpen},
		{func() { a.HalfOpen("db") }, atomicbreaker.HalfOpen},
		{func() { b.Trip("db", -1) }, atomicbreaker.Open},
		{func() { a.Reset("db") }, atomicbreaker.Closed},
		{func() { b.Trip("db", 0) }, atomicbreaker.Open},
		{func() { a.ResetAll() }, atomicbreaker.Closed},
	} {
		step.command()
		a.becomes(t, "db", step.want)
		b.becomes(t, "db", step.want)
		a.hears(t, int64(n+1)) // before another message takes the place of this one
		b.hears(t, int64(n+1))
	}
	// Each has applied its own commands once, and those of the other.
	require.EqualValues(t, 3, a.Hints().Applied)
	require.EqualValues(t, 5, b.Hints().Applied)
}

// A replica that starts later has the forced states and open keys of the others, and not
// what was undone.
func TestLateComer(t *testing.T) {
	js := natstest.Start(t, 1).JetStream()
	a := start(t, js, "a")
	a.ForceOpen("forced")
	a.Disable("undone")
	a.Reset("undone")
	a.fail("tripped", 4)
	a.fail("recovered", 4)
	a.RecordSuccess("recovered")
	a.Trip("short", 5*time.Millisecond)
	a.Trip("long", time.Hour)
	settle(t, "said", a, start(t, js, "witness"))
	time.Sleep(10 * time.Millisecond)
	b := start(t, js, "b")
	for k, want := range map[string]atomicbreaker.State{
		"forced": atomicbreaker.ForcedOpen, "undone": atomicbreaker.Closed, "tripped": atomicbreaker.Open,
		"recovered": atomicbreaker.Closed, "short": atomicbreaker.Closed, "long": atomicbreaker.Open,
	} {
		require.Equal(t, want, b.State(k), k)
	}
	// So has one that comes back.
	a.Close()
	a = start(t, js, "a")
	require.Equal(t, atomicbreaker.ForcedOpen, a.State("forced"))
	require.Equal(t, atomicbreaker.Closed, a.State("undone"))
	require.Equal(t, atomicbreaker.Open, a.State("tripped")) // what it has said before it ended counts as another one's
}

// Whatever operators command at the same time, all replicas end in the same state.
func TestCommandsConverge(t *testing.T) {
	js := natstest.Start(t, 1).JetStream()
	replicas := []*replica{start(t, js, "a"), start(t, js, "b"), start(t, js, "c")}
	const rounds, each = 30, 6
	for round := range rounds {
		var wg sync.WaitGroup
		for i, r := range replicas {
			for w := range 2 {
				rng := rand.New(rand.NewPCG(uint64(round), uint64(2*i+w)))
				wg.Go(func() {
					for range each {
						k := fmt.Sprint("k", rng.IntN(3))
						switch rng.IntN(9) {
						case 0, 1:
							r.ForceOpen(k)
						case 2, 3:
							r.Disable(k)
						case 4, 5:
							r.Trip(k, time.Hour)
						case 6, 7:
							r.Reset(k)
						case 8:
							r.ResetAll()
						}
						time.Sleep(time.Duration(rng.IntN(300)) * time.Microsecond)
					}
				})
			}
		}
		wg.Wait()
		settle(t, fmt.Sprint("round ", round), replicas...)
		for k := range 3 {
			key := fmt.Sprint("k", k)
			want := replicas[0].State(key)
			for _, r := range replicas[1:] {
				require.Equal(t, want, r.State(key))
			}
		}
	}
}

// Goroutines of one replica command in one order, here and in the stream.
func TestConcurrentCommands(t *testing.T) {
	js := natstest.Start(t, 1).JetStream()
	a := start(t, js, "a")
	for range 300 {
		var wg sync.WaitGroup
		for w := range 8 {
			wg.Go(func() {
				switch w % 3 {
				case 0:
					a.ForceOpen("db")
				case 1:
					a.Disable("db")
				case 2:
					a.ResetAll()
				}
			})
		}
		wg.Wait()
		eventually(t, func() bool { return a.Hints().Waiting == 0 })
		require.Equal(t, lastCommand(t, js), a.State("db"))
	}
}

// The stream forgets what is true for a time only, and keeps forced states.
func TestHintsExpire(t *testing.T) {
	js := natstest.Start(t, 1).JetStream()
	a := start(t, js, "a")
	a.fail("tripped", 4)
	a.Trip("for a while", 90*time.Second)
	a.ForceOpen("forced")
	a.Trip("until reset", -1)
	a.Reset("reset")
	a.ResetAll()
	a.Trip("for ever", math.MaxInt64)
	a.hears(t, 7)
	stream, err := js.Stream(t.Context(), "hints")
	require.NoError(t, err)
	for i, want := range []time.Duration{time.Minute, time.Hour, 0, 0, time.Hour, 0, 0} {
		m, err := stream.GetMsg(t.Context(), uint64(i+1))
		require.NoError(t, err)
		ttl, _ := time.ParseDuration(m.Header.Get(jetstream.MsgTTLHeader)) // 0 if there is none
		require.InDelta(t, want.Seconds(), ttl.Seconds(), min(want.Seconds(), 30))
	}
	b := start(t, js, "b")
	require.Equal(t, atomicbreaker.Closed, b.State("forced"), "also when an hour has passed: what ResetAll ends stays in the stream")
	require.Equal(t, atomicbreaker.Open, b.State("for ever"))
}

// settle returns when all replicas have met all that they had to say.
func settle(t *testing.T, mark string, replicas ...*replica) {
	t.Helper()
	for _, r := range replicas {
		eventually(t, func() bool { return r.Hints().Waiting == 0 })
	}
	for i, r := range replicas { // the stream keeps the order
		k := fmt.Sprint(mark, i)
		r.Disable(k)
		for _, other := range replicas {
			other.becomes(t, k, atomicbreaker.Disabled)
		}
	}
	for _, r := range replicas {
		eventually(t, func() bool { return r.Hints().Waiting == 0 })
	}
}

// A listener may command, and one that panics or exits blocks nothing.
func TestListenerCommands(t *testing.T) {
	js := natstest.Start(t, 1).JetStream()
	var a *replica
	a = start(t, js, "a", func(c *breaker.Config[string]) {
		c.Group.OnStateChange = func(k string, e atomicbreaker.Event) {
			switch {
			case k == "panics":
				panic("listener")
			case k == "db" && e.Reason == atomicbreaker.ReasonForceOpen:
				a.Reset("db")
				a.Disable("other")
			}
		}
	})
	a.ForceOpen("db")
	require.Equal(t, atomicbreaker.Closed, a.State("db"))
	require.Equal(t, atomicbreaker.Disabled, a.State("other"))
	require.PanicsWithValue(t, "listener", func() { a.ForceOpen("panics") })
	a.ForceOpen("next")
	b := start(t, js, "b")
	for k, want := range map[string]atomicbreaker.State{
		"db": atomicbreaker.Closed, "other": atomicbreaker.Disabled,
		"panics": atomicbreaker.ForcedOpen, "next": atomicbreaker.ForcedOpen,
	} {
		b.becomes(t, k, want)
		require.Equal(t, want, a.State(k), k)
	}
}

// A command that another replica's has undone meanwhile stands if it is the later one in
// the stream.
func TestOwnCommandIsAppliedAgain(t *testing.T) {
	server := natstest.Start(t, 1)
	js := server.JetStream()
	a, b := start(t, server.JetStream(), "a"), start(t, js, "b")
	server.SlowClients(0, 50*time.Millisecond)
	b.Disable("db")
	for b.Hints().Published == 0 {
		time.Sleep(time.Millisecond)
	}
	a.ForceOpen("db") // before a hears of b's
	server.SlowClients(0, 0)
	a.hears(t, 2)
	b.hears(t, 2)
	b.becomes(t, "db", a.State("db"))
	last := lastCommand(t, js)
	a.becomes(t, "db", last)
}

// lastCommand returns the state that the last message of the stream commands.
func lastCommand(t *testing.T, js jetstream.JetStream) atomicbreaker.State {
	t.Helper()
	stream, err := js.Stream(t.Context(), "hints")
	require.NoError(t, err)
	info, err := stream.Info(t.Context())
	require.NoError(t, err)
	m, err := stream.GetMsg(t.Context(), info.State.LastSeq)
	require.NoError(t, err)
	switch {
	case strings.Contains(string(m.Data), `"disable"`):
		return atomicbreaker.Disabled
	case strings.Contains(string(m.Data), `"resetAll"`):
		return atomicbreaker.Closed
	}
	return atomicbreaker.ForcedOpen
}
