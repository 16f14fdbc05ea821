package breaker

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/atomicbreaker"
)

// listener is a follower without an engine, whose group nobody else tells anything.
func listener(t *testing.T, adapt ...func(*Config[string])) *follower[string] {
	t.Helper()
	c := Config[string]{Stream: "hints"}
	c.Group.Default.Policy = atomicbreaker.Consecutive(2)
	for _, f := range adapt {
		f(&c)
	}
	g, err := NewGroup(unreachable(t), c)
	require.NoError(t, err)
	t.Cleanup(g.Close)
	return newFollower(nil, g)
}

// tell makes the follower meet a hint as a message of the stream that is so old.
func (f *follower[K]) tell(h hint, age time.Duration) {
	if h.Key == "" && h.Kind != resetAll {
		h.Key = "db"
	}
	if h.Replica == "" {
		h.Replica = "there"
	}
	f.meet(f.last+1, time.Now().Add(-age), h.subject("hints"), h.encode())
}

// A report that comes late, twice, or out of order opens nothing for longer than was said, and
// a recovery that comes before its trip takes back nothing.
func TestReportsOutOfOrder(t *testing.T) {
	t.Run("late", func(t *testing.T) {
		f := listener(t)
		f.began = 10
		f.tell(hint{Kind: tripped, For: 10 * time.Second}, 11*time.Second)
		require.Zero(t, f.g.Len())
		require.Empty(t, f.votes)
		f.tell(hint{Kind: tripped, For: 10 * time.Second}, 4*time.Second)
		require.LessOrEqual(t, f.g.Snapshot("db").RetryAfter, 6*time.Second)
	})
	t.Run("twice", func(t *testing.T) {
		f := listener(t, func(c *Config[string]) { c.Quorum = 2 })
		for range 3 {
			f.tell(hint{Kind: tripped, For: time.Minute}, 0)
		}
		require.Equal(t, atomicbreaker.Closed, f.g.State("db"), "it is one vote")
		f.tell(hint{Kind: tripped, For: time.Minute, Replica: "else"}, 0)
		require.Equal(t, atomicbreaker.Open, f.g.State("db"))
		before := f.g.Snapshot("db")
		f.tell(hint{Kind: tripped, For: time.Hour, Replica: "else"}, 0)
		require.Equal(t, before.Generation, f.g.Snapshot("db").Generation)
		require.LessOrEqual(t, f.g.Snapshot("db").RetryAfter, before.RetryAfter)
		for range 2 {
			f.tell(hint{Kind: recovered}, 0)
			require.Equal(t, atomicbreaker.HalfOpen, f.g.State("db"))
		}
	})
	t.Run("recovery first", func(t *testing.T) {
		f := listener(t)
		f.tell(hint{Kind: recovered}, 0)
		require.Zero(t, f.g.Len())
		f.tell(hint{Kind: stillOpen, For: time.Minute}, 0)
		require.Equal(t, atomicbreaker.Closed, f.g.State("db"))
		f.tell(hint{Kind: tripped, For: time.Minute}, 0)
		require.Equal(t, atomicbreaker.Open, f.g.State("db"))
		f.tell(hint{Kind: recovered, Replica: "else"}, 0) // of one that did not open it
		require.Equal(t, atomicbreaker.Open, f.g.State("db"))
	})
	t.Run("a message again", func(t *testing.T) {
		f := listener(t)
		f.tell(hint{Kind: tripped, For: time.Minute}, 0)
		f.g.Group.Reset("db")
		f.last--
		f.meet(f.last, time.Now(), hint{Kind: tripped, Key: "db", Replica: "there"}.subject("hints"), hint{Kind: tripped, Key: "db", Replica: "there", For: time.Minute}.encode())
		require.Equal(t, atomicbreaker.Closed, f.g.State("db"))
	})
}

// What this Group has said is not followed; what the same process has said before it started again is, as of any other.
func TestOwnReports(t *testing.T) {
	f := listener(t)
	f.tell(hint{Kind: tripped, For: time.Minute, Replica: f.g.replica}, 0)
	require.Zero(t, f.g.Len())
	f.tell(hint{Kind: tripped, For: time.Minute, Replica: "before"}, 0)
	require.Equal(t, atomicbreaker.Open, f.g.State("db"))
	f.tell(hint{Kind: recovered, Replica: f.g.replica}, 0)
	require.Equal(t, atomicbreaker.Open, f.g.State("db"), "an own report takes back nothing")
	f.tell(hint{Kind: recovered, Replica: "before"}, 0)
	require.Equal(t, atomicbreaker.HalfOpen, f.g.State("db"))
}

// A key that leaves the group, and is made anew, between the hint and its effect, or between
// that and the recovery, has nothing of it.
func TestKeysLeaveBetween(t *testing.T) {
	for name, leave := range map[string]func(g *Group[string]){
		"reset":     func(g *Group[string]) { g.Group.Reset("db") },
		"reset all": func(g *Group[string]) { g.Group.ResetAll() },
		"swept":     func(g *Group[string]) { g.Group.Reset("db"); g.Sweep() },
		"forced":    func(g *Group[string]) { g.Group.ForceOpen("db"); g.Group.Reset("db") },
	} {
		t.Run(name, func(t *testing.T) {
			f := listener(t)
			f.tell(hint{Kind: tripped, For: time.Minute}, 0)
			hinted := f.g.Snapshot("db")
			require.Equal(t, atomicbreaker.Open, hinted.State)
			leave(f.g)
			require.Zero(t, f.g.Len())
			for range 2 {
				f.g.RecordFailure("db")
			}
			require.Equal(t, atomicbreaker.Open, f.g.State("db"))
			f.tell(hint{Kind: recovered}, 0)
			require.Equal(t, atomicbreaker.Open, f.g.State("db"), "own results have opened it")
			f.g.RecordSuccess("db")
			require.Zero(t, f.g.Len())
			require.Empty(t, f.g.opened.keys)
			f.tell(hint{Kind: tripped, For: time.Minute}, 0) // anew
			require.Equal(t, atomicbreaker.Open, f.g.State("db"))
			f.tell(hint{Kind: recovered}, 0)
			require.Equal(t, atomicbreaker.HalfOpen, f.g.State("db"))
		})
	}
}

// A report opens no key whose probes decide since the follower has looked: here an operator
// makes it half-open before the report takes its permit.
func TestReportMeetsProbes(t *testing.T) {
	f := listener(t)
	f.g.RecordFailure("db")
	f.g.Group.HalfOpen("db")
	f.trip("db", time.Minute)
	require.Equal(t, atomicbreaker.HalfOpen, f.g.State("db"))
	require.Zero(t, f.g.Snapshot("db").InFlight)
	require.Zero(t, f.g.Hints().Applied)
}

// A clock that is minutes off makes a replica ignore old reports, or open for up to MaxOpenTimeout, and
// shortens or prolongs old Trips; forced states, what ends them, and all that comes now count.
func TestClocksDiffer(t *testing.T) {
	for name, off := range map[string]time.Duration{"ahead": 5 * time.Minute, "behind": -5 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			f := listener(t)
			for _, k := range []string{"ended", "tripped by hand"} {
				f.g.Group.ForceOpen(k)
			}
			f.began = 6
			f.tell(hint{Kind: forceOpen, Key: "forced"}, off)
			f.tell(hint{Kind: reset, Key: "ended"}, off)
			f.tell(hint{Kind: trip, Key: "tripped by hand", For: time.Minute}, off)
			f.tell(hint{Kind: trip, Key: "other", For: time.Minute}, off)
			f.tell(hint{Kind: tripped, Key: "report", For: time.Minute}, off)
			f.tell(hint{Kind: recovered, Key: "none"}, off)
			want := atomicbreaker.Open
			if off > 0 {
				want = atomicbreaker.Closed
			}
			require.Equal(t, atomicbreaker.ForcedOpen, f.g.State("forced"))
			require.Equal(t, atomicbreaker.Closed, f.g.State("ended"))
			require.NotEqual(t, atomicbreaker.ForcedOpen, f.g.State("tripped by hand"))
			require.Equal(t, want, f.g.State("other"))
			require.LessOrEqual(t, f.g.Snapshot("other").RetryAfter, time.Minute+time.Second) // rounded up
			require.Equal(t, want, f.g.State("report"))
			require.LessOrEqual(t, f.g.Snapshot("report").RetryAfter, defaultMaxOpenTimeout)
			f.tell(hint{Kind: tripped, Key: "now", For: time.Minute}, off)
			f.tell(hint{Kind: trip, Key: "by hand now", For: time.Minute}, off)
			require.Equal(t, atomicbreaker.Open, f.g.State("now"))
			require.Equal(t, atomicbreaker.Open, f.g.State("by hand now"))
		})
	}
}

// An own Trip that is met when its time has passed leaves no trace of having been given.
func TestOwnTripPasses(t *testing.T) {
	f := listener(t)
	f.g.Trip("db", time.Millisecond)
	id := f.g.commands.given[hint{Kind: trip, Key: "db"}.subject("hints")]
	require.NotEmpty(t, id)
	f.began = 1
	f.tell(hint{Kind: trip, For: time.Millisecond, Replica: f.g.replica, ID: id}, time.Second)
	require.Empty(t, f.g.commands.given)
}

// A function of Config that exits while a hint is followed takes that hint with it, and no other.
func TestFollowedFunctionsExit(t *testing.T) {
	for name, adapt := range map[string]func(*Config[string]){
		"PerKey": func(c *Config[string]) {
			c.Group.PerKey = func(k string) atomicbreaker.Config {
				if k == "exits" {
					runtime.Goexit()
				}
				return atomicbreaker.Config{}
			}
		},
		"OnStateChange": func(c *Config[string]) {
			c.Group.OnStateChange = func(k string, _ atomicbreaker.Event) {
				if k == "exits" {
					runtime.Goexit()
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := listener(t, adapt)
			for i, h := range []hint{
				{Kind: tripped, For: time.Minute}, {Kind: recovered}, {Kind: forceOpen}, {Kind: disable},
				{Kind: trip, For: 1}, {Kind: halfOpen}, {Kind: reset}, {Kind: resetAll},
			} {
				if h.Kind != resetAll {
					h.Key = "exits"
				}
				done := make(chan struct{})
				go func() { defer close(done); f.tell(h, 0) }()
				<-done
				require.Zero(t, f.g.commands.users, h.Kind)
				k := fmt.Sprint("next", i)
				f.tell(hint{Kind: tripped, Key: k, For: time.Minute}, 0)
				require.Equal(t, atomicbreaker.Open, f.g.State(k), h.Kind)
			}
			require.EqualValues(t, 16, f.g.Hints().Heard)
		})
	}
}

// A command that changes a key at all replicas ends the votes for it: who
// has said that it is open has it as the command says.
func TestCommandsEndVotes(t *testing.T) {
	for _, command := range []hint{{Kind: reset}, {Kind: resetAll}, {Kind: halfOpen}, {Kind: forceOpen}, {Kind: disable}} {
		for _, own := range []bool{false, true} {
			t.Run(fmt.Sprint(command.Kind, " own ", own), func(t *testing.T) {
				f := listener(t, func(c *Config[string]) { c.Quorum = 2 })
				for _, k := range []string{"db", "other"} {
					f.tell(hint{Kind: tripped, Key: k, For: time.Minute, Replica: "a"}, 0)
				}
				said := command
				if said.Kind != resetAll {
					said.Key = "db"
				}
				if own {
					f.g.command(said)
					said.Replica = f.g.replica
					said.ID = f.g.commands.given[said.subject("hints")]
				}
				f.tell(said, 0)
				f.g.Group.Reset("db")
				for _, k := range []string{"db", "other"} {
					f.tell(hint{Kind: tripped, Key: k, For: time.Minute, Replica: "b"}, 0)
				}
				require.Equal(t, atomicbreaker.Closed, f.g.State("db"))
				want := atomicbreaker.Open
				if command.Kind == resetAll {
					want = atomicbreaker.Closed
				}
				require.Equal(t, want, f.g.State("other"))
				f.tell(hint{Kind: tripped, For: time.Minute, Replica: "c"}, 0)
				require.Equal(t, atomicbreaker.Open, f.g.State("db"))
			})
		}
	}
	t.Run("a Trip leaves them", func(t *testing.T) {
		f := listener(t, func(c *Config[string]) { c.Quorum = 2 })
		f.tell(hint{Kind: tripped, For: time.Minute, Replica: "a"}, 0)
		f.tell(hint{Kind: trip, For: over}, 0)
		f.tell(hint{Kind: tripped, For: time.Minute, Replica: "b"}, 0)
		require.Equal(t, atomicbreaker.Open, f.g.State("db"))
	})
}

// An Update stays even if the PerKey that comes with it does not return for some keys.
func TestUpdateStaysIfPerKeyPanics(t *testing.T) {
	f := listener(t)
	f.g.RecordFailure("panics") // so that it is stored
	c := atomicbreaker.GroupConfig[string]{PerKey: func(k string) atomicbreaker.Config {
		if k == "panics" {
			panic("injected")
		}
		return atomicbreaker.Config{Policy: atomicbreaker.Consecutive(7)}
	}}
	require.PanicsWithValue(t, "injected", func() { f.g.Update(c) })
	require.Equal(t, "Consecutive(7)", f.g.Config("db").Policy.String())
}

// A report that would open more keys than GroupConfig.MaxOpen allows opens none, and counts as a
// failure.
func TestReportsBeyondTheQuota(t *testing.T) {
	f := listener(t, func(c *Config[string]) {
		c.Group.MaxOpen = 1
		c.Group.Default.Policy = atomicbreaker.Consecutive(3)
	})
	f.g.RecordFailure("two")
	for _, k := range []string{"one", "two"} {
		for range 3 {
			f.tell(hint{Kind: tripped, Key: k, For: time.Minute}, 0)
		}
	}
	require.Equal(t, atomicbreaker.Open, f.g.State("one"))
	require.Equal(t, atomicbreaker.Closed, f.g.State("two"))
	require.Len(t, f.g.opened.keys, 1)
	f.g.Group.Reset("one") // there is room
	f.g.RecordFailure("two")
	require.Equal(t, atomicbreaker.Open, f.g.State("two"))
	f.tell(hint{Kind: recovered, Key: "two"}, 0)
	require.Equal(t, atomicbreaker.Open, f.g.State("two"), "own results have opened it")
}
