package latchprom_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/atomicbreaker/retrybudget"
	"github.com/latchfree/latchfree/atomicbreaker/throttle"
	latchprom "github.com/latchfree/latchfree/integrations/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBreaker(t *testing.T) {
	transitions := latchprom.NewTransitions("db")
	b := atomicbreaker.MustNew(atomicbreaker.Config{Policy: atomicbreaker.Consecutive(3), OpenTimeout: -1, OnStateChange: transitions.Count})
	get := scrape(t, latchprom.Breaker("db", b), transitions)
	fail := func(context.Context) error { return errDown }
	_ = b.Do(context.Background(), fail)
	_ = b.Do(context.Background(), fail)
	_, body := get()
	assert.Contains(t, body, `latchfree_breaker_failures{breaker="db"} 2`+"\n")
	assert.Contains(t, body, `latchfree_breaker_state{breaker="db",state="Closed"} 1`+"\n")

	_ = b.Do(context.Background(), fail)
	require.ErrorIs(t, b.Do(context.Background(), fail), atomicbreaker.ErrOpen)
	_, body = get()
	for _, line := range []string{
		`latchfree_breaker_state{breaker="db",state="Closed"} 0`,
		`latchfree_breaker_state{breaker="db",state="Open"} 1`,
		`latchfree_breaker_open{breaker="db"} 1`,
		`latchfree_breaker_openings_total{breaker="db"} 1`,
		`latchfree_breaker_rejected_total{breaker="db"} 1`,
		`latchfree_breaker_streak{breaker="db"} 1`,
		`latchfree_breaker_retry_after_seconds{breaker="db"} +Inf`,
		`latchfree_breaker_transitions_total{breaker="db",from="Closed",reason="Threshold",to="Open"} 1`,
	} {
		assert.Contains(t, body, line+"\n")
	}

	// Counters never go down.
	b.Reset()
	require.NoError(t, b.Update(atomicbreaker.Config{Policy: atomicbreaker.FailureRate(0.5, 10, time.Minute), OnStateChange: transitions.Count}))
	permit, err := b.Allow()
	require.NoError(t, err)
	b.HalfOpen()
	permit.Failure()
	_, body = get()
	for _, line := range []string{
		`latchfree_breaker_probes{breaker="db"} 0`,
		`latchfree_breaker_openings_total{breaker="db"} 1`,
		`latchfree_breaker_closings_total{breaker="db"} 1`,
		`latchfree_breaker_rejected_total{breaker="db"} 1`,
		`latchfree_breaker_late_total{breaker="db"} 1`,
		`latchfree_breaker_transitions_total{breaker="db",from="Open",reason="Reset",to="Closed"} 1`,
		`latchfree_breaker_transitions_total{breaker="db",from="Closed",reason="HalfOpen",to="HalfOpen"} 1`,
	} {
		assert.Contains(t, body, line+"\n")
	}
}

func TestBreakerShadow(t *testing.T) {
	b := atomicbreaker.MustNew(atomicbreaker.Config{Shadow: true})
	b.Trip(0)
	_, body := scrape(t, latchprom.Breaker("s", b))()
	assert.Contains(t, body, `latchfree_breaker_state{breaker="s",state="Shadow"} 1`)
	assert.Contains(t, body, `latchfree_breaker_open{breaker="s"} 1`)
}

func TestThrottleAndBudget(t *testing.T) {
	th := throttle.MustNew(throttle.Config{})
	require.NoError(t, th.Allow())
	th.Success()
	require.NoError(t, th.Allow())
	budget := retrybudget.MustNew(retrybudget.Config{})
	before := budget.Available()
	require.True(t, budget.Retry())
	require.Positive(t, before)
	_, body := scrape(t, latchprom.Throttle("t", th), latchprom.RetryBudget("r", budget))()
	assert.Contains(t, body, `latchfree_throttle_requests{throttle="t"} 2`)
	assert.Contains(t, body, `latchfree_throttle_accepts{throttle="t"} 1`)
	assert.Contains(t, body, `latchfree_throttle_reject_probability{throttle="t"} 0`)
	assert.Regexp(t, `latchfree_retry_budget_available\{budget="r"\} \d+\n`, body)
}

// Each count of a breaker has its own number, so that none can stand for another.
func TestBreakerCounts(t *testing.T) {
	b := atomicbreaker.MustNew(atomicbreaker.Config{Policy: atomicbreaker.Consecutive(1), OpenTimeout: -1, Probes: 9})
	early := make([]atomicbreaker.Permit, 6)
	for i := range early {
		permit, err := b.Allow()
		require.NoError(t, err)
		early[i] = permit
	}
	fail := func() { _ = b.Do(context.Background(), func(context.Context) error { return errDown }) }
	for range 3 {
		fail() // opens
		b.Reset()
	}
	fail()
	for range 7 {
		_, err := b.Allow()
		require.ErrorIs(t, err, atomicbreaker.ErrOpen)
	}
	b.HalfOpen()
	fail() // opens again
	b.HalfOpen()
	for _, permit := range early {
		permit.Failure() // late
	}
	for range 4 {
		_, err := b.Allow()
		require.NoError(t, err)
	}
	_, body := scrape(t, latchprom.Breaker("b", b))()
	for name, n := range map[string]int{
		"openings_total": 5, "closings_total": 3, "rejected_total": 7, "late_total": 6, "streak": 2, "probes": 4,
		"failures": 0, "open": 0, "retry_after_seconds": 0,
	} {
		assert.Contains(t, body, fmt.Sprintf("latchfree_breaker_%s{breaker=\"b\"} %d\n", name, n))
	}
}

// Calls by outcome are there with RecordTotals alone.
func TestBreakerTotals(t *testing.T) {
	config := atomicbreaker.Config{RecordTotals: true}
	b, g := atomicbreaker.MustNew(config), atomicbreaker.MustNewGroup(atomicbreaker.GroupConfig[int]{Default: config})
	for i := range 6 {
		b.RecordSuccess()
		g.RecordFailure(i)
		if i%2 == 0 {
			b.RecordFailure()
			g.RecordSuccess(i)
		}
	}
	permit, err := b.Allow()
	require.NoError(t, err)
	permit.Cancel()
	_, body := scrape(t, latchprom.Breaker("b", b), latchprom.Group("g", g, latchprom.GroupOptions[int]{}))()
	for _, line := range []string{
		`breaker_calls_total{breaker="b",outcome="Success"} 6`, `breaker_calls_total{breaker="b",outcome="Failure"} 3`,
		`breaker_calls_total{breaker="b",outcome="Ignored"} 1`, `breaker_group_calls_total{group="g",outcome="Success"} 3`,
		`breaker_group_calls_total{group="g",outcome="Failure"} 6`, `breaker_group_calls_total{group="g",outcome="Ignored"} 0`,
	} {
		assert.Contains(t, body, "latchfree_"+line+"\n")
	}
	_, body = scrape(t, latchprom.Breaker("b", new(atomicbreaker.Breaker)), latchprom.Group("g", new(atomicbreaker.Group[int]), latchprom.GroupOptions[int]{}))()
	assert.NotContains(t, body, "calls_total")
}

// Of the states of a breaker one is 1, and Config.Shadow hides none that rejects.
func TestBreakerStates(t *testing.T) {
	all := []string{"Closed", "Open", "HalfOpen", "ForcedOpen", "Disabled", "Shadow"}
	for i, set := range []func(b *atomicbreaker.Breaker){
		func(*atomicbreaker.Breaker) {},
		func(b *atomicbreaker.Breaker) { b.Trip(10 * time.Minute) },
		func(b *atomicbreaker.Breaker) { b.HalfOpen() },
		func(b *atomicbreaker.Breaker) { b.ForceOpen() },
		func(b *atomicbreaker.Breaker) { b.Disable() },
		func(b *atomicbreaker.Breaker) { b.Trip(10 * time.Minute) },
	} {
		b := atomicbreaker.MustNew(atomicbreaker.Config{Shadow: all[i] == "Shadow"})
		set(b)
		_, body := scrape(t, latchprom.Breaker("b", b))()
		for k, state := range all {
			n := 0
			if k == i {
				n = 1
			}
			assert.Contains(t, body, fmt.Sprintf("latchfree_breaker_state{breaker=\"b\",state=%q} %d\n", state, n))
		}
		open := 0
		if all[i] == "Open" || all[i] == "ForcedOpen" || all[i] == "Shadow" {
			open = 1
		}
		assert.Contains(t, body, fmt.Sprintf("latchfree_breaker_open{breaker=\"b\"} %d\n", open))
		if all[i] == "Open" || all[i] == "Shadow" {
			assert.Regexp(t, `latchfree_breaker_retry_after_seconds\{breaker="b"\} (59\d|600)(\.\d+)?\n`, body)
		}
	}
}

func TestThrottleCounts(t *testing.T) {
	th := throttle.MustNew(throttle.Config{Window: time.Hour})
	budget := retrybudget.MustNew(retrybudget.Config{})
	for i := range 100 {
		_ = th.Allow()
		if i < 30 {
			th.Success()
		}
	}
	s := th.Snapshot()
	require.Greater(t, s.Requests, s.Accepts)
	require.NotContains(t, []float64{0, 0.5, 1}, s.RejectProbability)
	require.Positive(t, budget.Available())
	_, body := scrape(t, latchprom.Throttle("t", th), latchprom.RetryBudget("r", budget))()
	assert.Contains(t, body, fmt.Sprintf("latchfree_throttle_requests{throttle=\"t\"} %d\n", s.Requests))
	assert.Contains(t, body, fmt.Sprintf("latchfree_throttle_accepts{throttle=\"t\"} %d\n", s.Accepts))
	assert.Contains(t, body, fmt.Sprintf("latchfree_throttle_reject_probability{throttle=\"t\"} %v\n", s.RejectProbability))
	assert.Contains(t, body, fmt.Sprintf("latchfree_retry_budget_available{budget=\"r\"} %d\n", budget.Available()))
}
