//go:build modelcheck

package atomicbreaker

import (
	"context"
	"testing"
	"time"

	"github.com/latchfree/latchfree/internal/tools/mc"
)

// floor is what the operations of a world do something to.
type floor struct {
	*Breaker
	permits []Permit
	taken   mc.Tally
}

// hall is a floor of a group.
type hall struct {
	*Group[string]
	permits []GroupPermit[string]
	taken   mc.Tally
}

// permit returns a permit that nobody has been given. Each thread calls it before its first step,
// one after the other.
func (f *floor) permit() Permit {
	f.taken.Add(1)
	return f.permits[f.taken.Value()-1]
}

func (h *hall) permit() GroupPermit[string] {
	h.taken.Add(1)
	return h.permits[h.taken.Value()-1]
}

type (
	floorOp = mc.Operation[*floor]
	hallOp  = mc.Operation[*hall]
)

// built returns how a floor is made: with permits, and after more.
func built(c Config, more ...func(b *Breaker)) func() *floor {
	return func() *floor {
		f := &floor{Breaker: MustNew(c)}
		for range 5 {
			p, _ := f.Allow()
			f.permits = append(f.permits, p)
		}
		for _, m := range more {
			m(f.Breaker)
		}
		return f
	}
}

func builtGroup(c Config, listener bool, more ...func(g *Group[string])) func() *hall {
	return func() *hall {
		config := GroupConfig[string]{Default: c}
		if listener {
			config.OnStateChange = func(string, Event) {}
		}
		h := &hall{Group: MustNewGroup(config)}
		for range 5 {
			p, _ := h.Allow("a")
			h.permits = append(h.permits, p)
		}
		for _, m := range more {
			m(h.Group)
		}
		return h
	}
}

func nothing(context.Context) error { return nil }

func noValue(context.Context) (int, error) { return 0, nil }

func does(name string, do func(f *floor)) floorOp { return floorOp{Name: name, Do: do} }

func inGroup(name string, do func(h *hall)) hallOp { return hallOp{Name: name, Do: do} }

// reads are the operations of a breaker that only read. Allow is one while it is closed.
func reads(allow, snapshot floorOp, state, stats int) []floorOp {
	return []floorOp{
		allow, snapshot,
		does("Breaker.State", func(f *floor) { f.State() }).Bounded(state),
		does("Breaker.IsOpen", func(f *floor) { f.IsOpen() }).Bounded(state),
		does("Breaker.Stats", func(f *floor) { f.Stats() }).Bounded(stats),
	}
}

var (
	opAllow         = does("Breaker.Allow", func(f *floor) { f.Allow() })
	opSnapshot      = does("Breaker.Snapshot", func(f *floor) { f.Snapshot() })
	opRecordSuccess = does("Breaker.RecordSuccess", func(f *floor) { f.RecordSuccess() })
	opRecordFailure = does("Breaker.RecordFailure", func(f *floor) { f.RecordFailure() })
)

// reports are the operations of results.
func reports() []floorOp {
	return []floorOp{
		opRecordSuccess.Free(), opRecordFailure.Free(),
		does("Permit.Success", func(f *floor) { f.permit().Success() }).Free(),
		does("Permit.Failure", func(f *floor) { f.permit().Failure() }).Free(),
		does("Permit.Done", func(f *floor) { f.permit().Done(nil) }).Free(),
		does("Permit.Cancel", func(f *floor) { f.permit().Cancel() }).Free(),
		does("Permit.Report", func(f *floor) { f.permit().Report(Failure) }).Free(),
		does("Breaker.Do", func(f *floor) { f.Do(context.Background(), nothing) }).Free(),
		does("Execute", func(f *floor) { Execute(f.Breaker, func() (int, error) { return 0, nil }) }).Free(),
		does("ExecuteContext", func(f *floor) { ExecuteContext(context.Background(), f.Breaker, noValue) }).Free(),
		does("ExecuteResult", func(f *floor) {
			ExecuteResult(context.Background(), f.Breaker, noValue, func(int, error) Outcome { return Success })
		}).Free(),
	}
}

// commands are the operations that change the state by themselves.
func commands() []floorOp {
	return []floorOp{
		does("Breaker.Reset", func(f *floor) { f.Reset() }).Free(),
		does("Breaker.Trip", func(f *floor) { f.Trip(time.Second) }).Free(),
		does("Breaker.HalfOpen", func(f *floor) { f.HalfOpen() }).Free(),
		does("Breaker.ForceOpen", func(f *floor) { f.ForceOpen() }).Free(),
		does("Breaker.Disable", func(f *floor) { f.Disable() }).Free(),
		does("Breaker.Update", func(f *floor) { f.Update(Config{Policy: Consecutive(3)}) }).Free(),
		does("Permit.Trip", func(f *floor) { f.permit().Trip(time.Second) }).Free(),
	}
}

func joined(lists ...[]floorOp) (all []floorOp) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// Every operation progresses as its documentation says, whoever stops for ever.
func TestProgress(t *testing.T) {
	ctx := context.Background()
	const bucket, mutex, event = mc.Bucket, mc.Mutex, mc.Event
	listened := Config{Policy: Consecutive(1), OnStateChange: func(Event) {}}
	worlds := []mc.Scenario{
		mc.World[*floor]{Name: "a closed breaker", New: built(Config{Policy: Consecutive(100)}),
			Operations: joined(reads(opAllow.Bounded(1), opSnapshot.Bounded(3), 2, 2), reports())},
		mc.World[*floor]{Name: "a breaker that trips", New: built(Config{Policy: Consecutive(1)}),
			Operations: joined(reads(opAllow.Free(), opSnapshot.Bounded(3), 3, 12), reports()[:3], commands())},
		mc.World[*floor]{Name: "a half-open breaker", New: built(Config{Policy: Consecutive(1), Probes: 2, CloseAfter: 2}, (*Breaker).HalfOpen),
			Operations: joined(reads(opAllow.Free(), opSnapshot.Bounded(3), 3, 12), reports()[:8])},
		mc.World[*floor]{Name: "a breaker with a listener", New: built(listened),
			Operations: joined(reads(opAllow.Free(), opSnapshot.Bounded(3), 3, 12)[:2], reports()[:2], commands()[:3])},
		mc.World[*hall]{Name: "keys that stay in a group", New: builtGroup(Config{Policy: Consecutive(100)}, false, func(g *Group[string]) { g.RecordFailure("a") }),
			Operations: []hallOp{
				inGroup("Group.State", func(h *hall) { h.State("a") }).Bounded(9),
				inGroup("Group.IsOpen", func(h *hall) { h.IsOpen("a") }).Bounded(10),
				inGroup("Group.Snapshot", func(h *hall) { h.Snapshot("a") }).Bounded(9),
				inGroup("Group.Stats", func(h *hall) { h.Stats() }).Bounded(13),
				inGroup("Group.Len", func(h *hall) { h.Len() }).Bounded(2),
				inGroup("Group.Config", func(h *hall) { h.Config("a") }).Bounded(2),
				inGroup("Group.Allow", func(h *hall) { h.Allow("a") }).Free(),
				inGroup("Group.RecordFailure", func(h *hall) { h.RecordFailure("a") }).Free(),
				inGroup("GroupPermit.Failure", func(h *hall) { h.permit().Failure() }).Free(),
				inGroup("GroupPermit.Report", func(h *hall) { h.permit().Report(Failure) }).Free(),
				inGroup("GroupPermit.Cancel", func(h *hall) { h.permit().Cancel() }).Free(),
				inGroup("GroupPermit.Done", func(h *hall) { h.permit().Done(context.DeadlineExceeded) }).Free(),
				inGroup("GroupPermit.Trip", func(h *hall) { h.permit().Trip(time.Second) }).Free(),
				inGroup("Group.Trip", func(h *hall) { h.Trip("a", time.Second) }).Free(),
				inGroup("Group.HalfOpen", func(h *hall) { h.HalfOpen("a") }).Free(),
				inGroup("Group.ForceOpen", func(h *hall) { h.ForceOpen("a") }).Free(),
				inGroup("Group.Disable", func(h *hall) { h.Disable("a") }).Free(),
				inGroup("Group.RecordFailure of another key", func(h *hall) { h.RecordFailure("b") }),
			}},
		mc.World[*hall]{Name: "absent keys", New: builtGroup(Config{Policy: Consecutive(2)}, false), Operations: []hallOp{
			inGroup("Group.State", func(h *hall) { h.State("a") }).Bounded(4),
			inGroup("Group.Allow", func(h *hall) { h.Allow("a") }).Free(),
			inGroup("Group.RecordSuccess", func(h *hall) { h.RecordSuccess("a") }).Free(),
			inGroup("GroupPermit.Success", func(h *hall) { h.permit().Success() }).Free(),
			inGroup("Group.Do", func(h *hall) { h.Do(ctx, "a", nothing) }).Free(),
			inGroup("ExecuteGroup", func(h *hall) { ExecuteGroup(ctx, h.Group, "a", noValue) }).Free(),
			inGroup("Group.RecordFailure of another key", func(h *hall) { h.RecordFailure("b") }),
		}},
		mc.World[*hall]{Name: "KOfN in a group", New: builtGroup(Config{Policy: KOfN(2, 70)}, false), Pairs: true, Operations: []hallOp{
			inGroup("Group.Snapshot", func(h *hall) { h.Snapshot("a") }).Free(),
			inGroup("Group.RecordFailure", func(h *hall) { h.RecordFailure("a") }).Waits(bucket),
			inGroup("Group.RecordSuccess", func(h *hall) { h.RecordSuccess("a") }),
		}},
		mc.World[*hall]{Name: "commands to keys that come and go", New: builtGroup(Config{Policy: Consecutive(2)}, false), Pairs: true, Operations: []hallOp{
			inGroup("GroupPermit.Report", func(h *hall) { h.permit().Report(Failure) }).Waits(bucket),
			inGroup("GroupPermit.Done", func(h *hall) { h.permit().Done(context.DeadlineExceeded) }).Waits(bucket),
			inGroup("GroupPermit.Trip", func(h *hall) { h.permit().Trip(time.Second) }).Waits(bucket),
			inGroup("Group.HalfOpen", func(h *hall) { h.HalfOpen("a") }).Waits(bucket),
			inGroup("Group.ForceOpen", func(h *hall) { h.ForceOpen("a") }).Waits(bucket),
			inGroup("Group.Disable", func(h *hall) { h.Disable("a") }).Waits(bucket),
			inGroup("Group.Reset", func(h *hall) { h.Reset("a") }).Waits(bucket),
		}},
		mc.World[*hall]{Name: "keys that come and go", New: builtGroup(Config{Policy: Consecutive(2)}, false), Operations: []hallOp{
			inGroup("Group.State", func(h *hall) { h.State("a") }).Bounded(7),
			inGroup("Group.IsOpen", func(h *hall) { h.IsOpen("a") }).Bounded(8),
			inGroup("Group.Allow", func(h *hall) { h.Allow("a") }).Waits(bucket),
			inGroup("Group.RecordFailure", func(h *hall) { h.RecordFailure("a") }).Waits(bucket),
			inGroup("Group.RecordSuccess", func(h *hall) { h.RecordSuccess("a") }).Waits(bucket),
			inGroup("GroupPermit.Failure", func(h *hall) { h.permit().Failure() }).Waits(bucket),
			inGroup("GroupPermit.Success", func(h *hall) { h.permit().Success() }).Waits(bucket),
			inGroup("Group.Reset", func(h *hall) { h.Reset("a") }).Waits(bucket | mutex),
			inGroup("Group.Trip", func(h *hall) { h.Trip("a", time.Second) }).Waits(bucket),
			inGroup("Group.ResetAll", func(h *hall) { h.ResetAll() }).Waits(bucket | mutex),
			inGroup("Group.Sweep", func(h *hall) { h.Sweep() }).Waits(bucket),
			inGroup("Group.All", func(h *hall) {
				for range h.All() {
				}
			}).Waits(bucket),
			inGroup("Group.Update", func(h *hall) { h.Update(GroupConfig[string]{Default: Config{Policy: Consecutive(3)}}) }).Waits(bucket | mutex),
			inGroup("Group.Do", func(h *hall) { h.Do(ctx, "a", nothing) }).Waits(bucket),
			inGroup("ExecuteGroup", func(h *hall) { ExecuteGroup(ctx, h.Group, "a", noValue) }).Waits(bucket),
		}},
		mc.World[*hall]{Name: "keys with a listener", New: builtGroup(Config{Policy: Consecutive(1)}, true), Operations: []hallOp{
			inGroup("Group.State", func(h *hall) { h.State("a") }).Bounded(7),
			inGroup("Group.RecordFailure", func(h *hall) { h.RecordFailure("a") }).Waits(bucket | mutex),
			inGroup("GroupPermit.Failure", func(h *hall) { h.permit().Failure() }).Waits(bucket | mutex),
			inGroup("Group.Reset", func(h *hall) { h.Reset("a") }).Waits(bucket | mutex),
			inGroup("Group.ResetAll", func(h *hall) { h.ResetAll() }).Waits(bucket | mutex),
			inGroup("Group.Sweep", func(h *hall) { h.Sweep() }).Waits(bucket),
		}},
		mc.World[*hall]{Name: "keys that are forgotten", New: builtGroup(Config{}, false, func(g *Group[string]) { g.Trip("a", time.Second) }), Operations: []hallOp{
			inGroup("time passes", func(*hall) { mc.Pass(2 * time.Hour) }),
			inGroup("Group.Sweep", func(h *hall) { h.Sweep() }).Waits(bucket | mutex),
			inGroup("Group.ResetAll", func(h *hall) { h.ResetAll() }).Waits(bucket | mutex),
		}},
	}
	for name, policy := range map[string]Policy{
		"FailureCount": FailureCount(2, time.Second),
		"FailureRate":  FailureRate(0.5, 2, time.Second),
		"KOfN":         KOfN(2, 70),
		"SlowRate":     SlowRate(0.5, time.Second, 2, time.Minute),
		"TripFunc":     TripFunc(time.Second, 0, func(c Counts) bool { return c.Failures > 1 }),
		"AnyOf":        AnyOf(Consecutive(2), FailureCount(2, time.Second)),
	} {
		snapshot := opSnapshot // of a length that depends on the policy
		if name == "KOfN" {
			snapshot = opSnapshot.Free()
		}
		worlds = append(worlds, mc.World[*floor]{Name: "policy " + name, New: built(Config{Policy: policy}), Pairs: true, Operations: []floorOp{
			opAllow.Free(), snapshot, opRecordSuccess.Free(), opRecordFailure.Free(),
			does("time passes", func(*floor) { mc.Pass(600 * time.Millisecond) }),
		}})
	}
	mc.CheckProgress(t, map[string]string{
		"Group.Reset lock-free":       "a key that is reset enters the group, or leaves it",
		"GroupPermit.Cancel blocking": "what is cancelled of an absent key changes nothing, and a key that is there stays",
	}, worlds...)
}
