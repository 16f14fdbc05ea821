package sequences

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/atomicbreaker/throttle"
	model "github.com/latchfree/latchfree/internal/tools/model/throttle"
)

// FuzzThrottleOps applies operations to a Throttle and to its model, and
// compares every count and every probability. What is left to chance is
// whether a call is rejected whose probability is not zero.
//
// The first three bytes are the settings, and then every one is an operation.
// The clock goes by fifteenths of the window, so that nothing is rounded.
func FuzzThrottleOps(f *testing.F) {
	f.Fuzz(func(t *testing.T, program []byte) {
		if len(program) < 3 || len(program) > 400 {
			return
		}
		synctest.Test(t, func(t *testing.T) {
			m := newThrottleMachine(t, program[0], program[1], program[2])
			for _, op := range program[3:] {
				m.step(op%8, int(op/8))
				m.compare()
			}
		})
	})
}

type throttleMachine struct {
	t        *testing.T
	start    time.Time
	throttle *throttle.Throttle
	spec     *model.Throttle
	used     bool // or else the zero Throttle has no settings
}

func newThrottleMachine(t *testing.T, ratio, least, window byte) *throttleMachine {
	m := &throttleMachine{t: t, start: time.Now(), used: true}
	m.spec = &model.Throttle{Ratio: 1 + float64(ratio%16)/4, MinRequests: 1 + int(least%32), Window: 15 * time.Millisecond << (window % 16)}
	if window >= 240 {
		m.spec = &model.Throttle{Ratio: 2, MinRequests: 20, Window: 2 * time.Minute}
		m.throttle, m.used = new(throttle.Throttle), false
		return m
	}
	m.throttle = throttle.MustNew(throttle.Config{Ratio: m.spec.Ratio, MinRequests: m.spec.MinRequests, Window: m.spec.Window})
	return m
}

func (m *throttleMachine) step(op byte, n int) {
	switch op {
	case 0, 1: // some requests, which hang
		for range 1 + n {
			m.admitted(m.throttle.Allow())
		}
	case 2:
		m.throttle.Success()
		m.accepted()
	case 3:
		for range n {
			m.throttle.Done(nil)
			m.accepted()
		}
	case 4:
		m.throttle.Done(errDown)
		m.throttle.Done(context.Canceled)
		m.accepted()
	case 5, 6:
		m.call(n)
	case 7:
		time.Sleep(time.Duration(n) * m.spec.Window / 15)
		m.spec.Now = time.Since(m.start)
	}
}

func (m *throttleMachine) accepted() {
	m.used = true
	m.spec.Success()
}

// admitted compares the answer to a request, and reports whether it was yes.
func (m *throttleMachine) admitted(err error) bool {
	m.used = true
	odds := m.spec.Allow()
	require.True(m.t, 0 <= odds && odds < 1)
	if err != nil {
		require.Equal(m.t, throttle.ErrRejected, err)
		require.NotZero(m.t, odds, "rejected")
	}
	return err == nil
}

// call makes a whole call, which may end in any way.
func (m *throttleMachine) call(n int) {
	called := false
	errs := [...]error{nil, errDown, context.Canceled, errDown, context.DeadlineExceeded}
	var err error
	returned := apart(func() {
		err = m.throttle.Do(context.Background(), func(context.Context) error {
			called = true
			if n%len(errs) == 3 {
				panic(errDown)
			}
			return errs[n%len(errs)]
		})
	})
	if !called {
		require.False(m.t, m.admitted(err), "not called, though admitted")
		return
	}
	m.admitted(nil)
	require.Equal(m.t, n%len(errs) != 3, returned)
	if !returned {
		return
	}
	require.Equal(m.t, errs[n%len(errs)], err)
	if err == nil { // the context was not cancelled
		m.accepted()
	}
}

func (m *throttleMachine) compare() {
	got := m.throttle.Snapshot()
	if !m.used {
		require.Zero(m.t, got)
		return
	}
	requests, accepts, odds := m.spec.Counts()
	require.Equal(m.t, throttle.Snapshot{Requests: requests, Accepts: accepts, RejectProbability: odds}, got)
	require.True(m.t, 0 <= got.RejectProbability && got.RejectProbability < 1)
}
