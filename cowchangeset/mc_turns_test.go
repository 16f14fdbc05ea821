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
func TestTurnProtocols(t *testing.T) {
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
