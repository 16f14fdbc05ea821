//go:build modelcheck

package cowchangeset_test

import (
	"context"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/mc"
)

// One Start at a time has the turn to tell the store, also if another one leaves
// the line between the two.
func TestTicketProtocols(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "the turn ends ∥ one leaves the line ∥ one comes"}, func(m *mc.M) {
		ctx := context.Background()
		tracker, _, _ := stepping(m, cowchangeset.Config[int]{})
		pass, _ := tracker.Turn(ctx)
		var passed mc.Tally
		m.Go(func() { passed.Add(1); pass() })
		m.Go(func() {
			ended, end := context.WithCancel(ctx)
			end()
			if pass, err := tracker.Turn(ended); err == nil {
				pass()
			}
		})
		m.Go(func() {
			pass, err := tracker.Turn(ctx)
			if err != nil || passed.Value() == 0 {
				m.Failf("it is its turn beside another: %v", err)
			}
			pass()
		})
	})
}

// A Start that its caller leaves, at whatever moment, has come into being or has
// not, for all to see, and the others have their turns.
func TestStartsThatAreLeft(t *testing.T) {
	start, leave := attempts.start, attempts.leave
	for operations, tt := range map[string]struct {
		cfg     mc.Config
		faults  []string
		threads []func(attempts)
	}{
		"Start(ctx), cancel":                 {mc.Config{Mode: mc.Bounded, Preemptions: 3}, []string{"Start"}, []func(attempts){leave}},
		"Start ∥ Start(ctx), cancel":         {mc.Config{Mode: mc.Bounded, Preemptions: 1}, []string{"Start"}, []func(attempts){start, leave}},
		"Start ∥ Start(ctx), cancel ∥ Start": {mc.Config{Mode: mc.PCT, Runs: 10_000}, nil, []func(attempts){start, leave, start}},
	} {
		t.Run(operations, func(t *testing.T) {
			tt.cfg.Operations = operations
			mc.Check(t, tt.cfg, func(m *mc.M) {
				a := attempts{m: m, started: new(mc.Tally)}
				a.tracker, a.store = kept(cowchangeset.Config[int]{StoreTimeout: -1})
				if len(tt.faults) > 0 {
					step(m, a.store, tt.faults...)
				}
				for _, do := range tt.threads {
					m.Go(func() { do(a) })
				}
				m.Final(func() {
					if n := len(a.tracker.IDs()); n != a.started.Value() {
						m.Failf("%d changesets, and %d Starts have succeeded", n, a.started.Value())
					}
					wantTold(m, a.tracker, a.store)
				})
			})
		})
	}
}

// A caller that leaves its Start when the store has answered may take the last step when
// others have gone on. It brings nothing back that was forgotten since.
func TestStartThatIsLeftTooLate(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "the end of a Start ∥ the same, Start, Prune(1)"}, func(m *mc.M) {
		tracker := cowchangeset.MustNew(cowchangeset.Config[int]{PruneUnapplied: true})
		end := tracker.Settled("1")
		m.Go(end)
		m.Go(func() {
			end()
			tracker.Start(context.Background())
			tracker.Prune(1)
		})
		m.Final(func() {
			if first := tracker.FirstOrdinal(); first != 2 {
				m.Failf("the first one is number %d", first)
			}
		})
	})
}

// A Start that panics where it waits for the store leaves nobody without a turn,
// whether the store has answered by then or not.
func TestStartPanicsInTime(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "Start(ctx that panics), Start"}, func(m *mc.M) {
		tracker, store, _ := stepping(m, cowchangeset.Config[int]{})
		m.Go(func() {
			func() {
				defer func() { recover() }()
				tracker.Start(panicContext{context.Background(), new(atomics.Uint32)})
			}()
			if _, err := tracker.Start(context.Background()); err != nil {
				m.Failf("the next Start: %v", err)
			}
		})
		m.Final(func() { wantTold(m, tracker, store) })
	})
}

// panicContext takes a step where it is waited for, and panics.
type panicContext struct {
	context.Context
	step *atomics.Uint32
}

func (c panicContext) Done() <-chan struct{} {
	c.step.Add(1)
	panic("evil")
}
