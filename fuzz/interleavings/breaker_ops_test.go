//go:build modelcheck

package interleavings

import (
	"context"
	"fmt"
	"runtime"

	ab "github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/atomicbreaker/throttle"
	"github.com/latchfree/latchfree/fuzz/internal/interleave"
)

// Of time: an operation reads the clock at some moment of its own. Those that
// write may do so before they take effect, and what they write is as of then.
// Those that say which state it is take effect at the time that the clock shows
// then.

type breakerMoment = interleave.Moment[*breakerModel]

// admission is the result of Allow.
func admission(err error) any {
	if err != nil {
		return err
	}
	return "admitted"
}

func breakerAllow(key int) breakerOp {
	return breakerOp{Name: fmt.Sprintf("Allow(%d)", key), Do: func(c *breakerCaller) {
		p := &breakerPermit{key: key}
		breakerOnce(c, "Allow", func() (got any) {
			var err error
			if p.permit, err = c.Real.Allow(breakerKeyNames[key]); err == nil {
				c.Real.held[c.Thread] = append(c.Real.held[c.Thread], p)
			}
			return admission(err)
		}, func(s *breakerModel, ticks int) any {
			permit, err := s.at(key, ticks).Allow()
			s.stays[p] = permit
			return admission(err)
		})
	}}
}

// breakerReport reports one of the thread's permits, if it holds any.
func breakerReport(which byte, o ab.Outcome) breakerOp {
	op := "Permit." + o.String()
	return breakerOp{Name: fmt.Sprint(op, " ", which), Do: func(c *breakerCaller) {
		p := c.Real.take(c.Thread, which)
		if p == nil {
			return
		}
		breakerOnce(c, op, func() any {
			switch {
			case which >= 128:
				return p.permit.Done([...]error{nil, errInjected, context.Canceled}[o])
			case o == ab.Success:
				return p.permit.Success()
			case o == ab.Failure:
				return p.permit.Failure()
			}
			return p.permit.Cancel()
		}, func(s *breakerModel, ticks int) any { return s.at(p.key, ticks).Done(s.stays[p], o) })
	}}
}

// breakerCall is a whole call, which may end in any way, and may do another
// operation first. It takes effect as Allow does, and as Done.
func breakerCall(key int, arg byte, inside func() (breakerOp, bool)) breakerOp {
	outcomes := [...]ab.Outcome{ab.Success, ab.Failure, ab.Ignored, ab.Failure, ab.Failure}
	results := [...]any{nil, errInjected, throttle.ErrRejected, interleave.Panics(errInjected), interleave.Exits}
	name := fmt.Sprintf("Do(%d) returning %v", key, results[arg%5])
	within := func(*breakerCaller) {}
	if arg/5%4 == 3 {
		if inner, ok := inside(); ok {
			within = inner.Do
			name += " after " + inner.Name
		}
	}
	return breakerOp{Name: name, Do: func(c *breakerCaller) {
		p, called, from := &breakerPermit{key: key}, false, c.Begin()
		outcome, want := ab.Failure, any(interleave.Exits) // if what is within does
		got := any(interleave.Exits)
		admits := func(to interleave.Mark, text string) {
			m := &breakerMoment{Op: "Do", Got: text, From: from, To: to}
			c.Add(c.Real.explains(m, func(s *breakerModel, ticks int) bool {
				permit, err := s.at(key, ticks).Allow()
				s.stays[p] = permit
				return fmt.Sprint(admission(err)) == text
			}))
		}
		defer func() {
			if p := recover(); p != nil {
				got = interleave.Panics(p)
			}
			to := c.End()
			if !called {
				admits(to, fmt.Sprint(got))
				return
			}
			m := &breakerMoment{Op: "Do", Got: fmt.Sprint(got), From: from, To: to}
			c.Add(c.Real.explains(m, func(s *breakerModel, ticks int) bool {
				s.at(key, ticks).Done(s.stays[p], outcome)
				return m.Got == fmt.Sprint(want)
			}))
		}()
		got = c.Real.Do(context.Background(), breakerKeyNames[key], func(context.Context) error {
			called = true
			admits(c.End(), fmt.Sprint(admission(nil)))
			defer func() { from = c.Begin() }()
			within(c)
			outcome, want = outcomes[arg%5], results[arg%5]
			switch arg % 5 {
			case 3:
				panic(errInjected)
			case 4:
				runtime.Goexit()
			}
			err, _ := results[arg%5].(error)
			return err
		})
	}}
}

// breakerDoes is an operation that takes effect once, with a result.
func breakerDoes(name string, do func(b breakers) any, want func(s *breakerModel, ticks int) any) breakerOp {
	return breakerOp{Name: name, Do: func(c *breakerCaller) {
		breakerOnce(c, name, func() any { return do(c.Real.breakers) }, want)
	}}
}

// done is the result of operations that have none.
const done = "done"

// notNow is no result.
const notNow = "not at this time"

func breakerState(key int) breakerOp {
	return breakerDoes("State", func(b breakers) any { return b.State(breakerKeyNames[key]) },
		func(s *breakerModel, ticks int) any {
			if ticks != s.now {
				return notNow
			}
			return s.at(key, ticks).State()
		})
}

func breakerIsOpen(key int) breakerOp {
	return breakerDoes("IsOpen", func(b breakers) any { return b.IsOpen(breakerKeyNames[key]) },
		func(s *breakerModel, ticks int) any {
			if ticks != s.now {
				return notNow
			}
			state := s.at(key, ticks).State()
			return state == ab.Open || state == ab.ForcedOpen
		})
}

func breakerReset(key int) breakerOp {
	return breakerDoes("Reset", func(b breakers) any { b.Reset(breakerKeyNames[key]); return done },
		func(s *breakerModel, ticks int) any { s.at(key, ticks).Reset(); return done })
}

func breakerRecord(key int, o ab.Outcome) breakerOp {
	return breakerDoes("Record"+o.String(), func(b breakers) any {
		if o == ab.Success {
			return b.RecordSuccess(breakerKeyNames[key])
		}
		return b.RecordFailure(breakerKeyNames[key])
	}, func(s *breakerModel, ticks int) any {
		if o == ab.Success {
			return s.at(key, ticks).RecordSuccess()
		}
		return s.at(key, ticks).RecordFailure()
	})
}

var (
	breakerSweep = breakerDoes("Sweep", func(b breakers) any { return b.Sweep() >= 0 },
		func(*breakerModel, int) any { return true })

	// breakerQuietLen compares Len with All, while nobody else is there.
	breakerQuietLen = breakerDoes("Len", func(b breakers) any {
		n := 0
		for range b.All() {
			n++
		}
		return n == b.Len()
	}, func(*breakerModel, int) any { return true })
)

// snapshotFields prints as fields, and not as String shows them.
type snapshotFields ab.Snapshot

// breakerSnapshots takes effect for each key at a moment of its own. A key that
// is not there has the zero Snapshot.
func breakerSnapshots(group bool) breakerOp {
	return breakerOp{Name: "All", Do: func(c *breakerCaller) {
		var got [len(breakerKeyNames)][]ab.Snapshot
		from := c.Begin()
		for k, snapshot := range c.Real.All() {
			for key, name := range breakerKeyNames {
				if name == k {
					got[key] = append(got[key], snapshot)
				}
			}
		}
		to := c.End()
		for key, snapshots := range got {
			if key > 0 && !group {
				continue
			}
			snapshot := ab.Snapshot{}
			if c.Real.setup.settings.Shadow {
				snapshot.State = ab.Shadow
			}
			if len(snapshots) > 0 {
				snapshot = snapshots[0]
			}
			snapshot.Generation = 0 // the model counts stays, without a limit
			m := &breakerMoment{Op: "Snapshot", Got: fmt.Sprintf("%+v", snapshotFields(snapshot)), From: from, To: to}
			c.Add(c.Real.explains(m, func(s *breakerModel, ticks int) bool {
				want := fmt.Sprintf("%+v", snapshotFields(s.at(key, ticks).Snapshot()))
				return len(snapshots) <= 1 && want == m.Got && s.at(key, s.now).Would() == snapshot.Would
			}))
		}
	}}
}
