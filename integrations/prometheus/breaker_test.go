package latchprom_test

import (
	"context"
	"testing"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker"
	latchprom "github.com/latchfree/latchfree/integrations/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBreaker(t *testing.T) {
	transitions := latchprom.NewTransitions("db")
	b := atomicbreaker.MustNew(atomicbreaker.Config{Trip: atomicbreaker.Consecutive(2), OpenTimeout: -1, OnStateChange: transitions.Count})
	get := scrape(t, latchprom.Breaker("db", b), transitions)
	fail := func(context.Context) error { return errDown }
	_ = b.Do(context.Background(), fail)
	_, body := get()
	assert.Contains(t, body, `latchfree_breaker_failures{breaker="db"} 1`+"\n")
	assert.Contains(t, body, `latchfree_breaker_state{breaker="db",state="Closed"} 1`+"\n")

	_ = b.Do(context.Background(), fail)
	require.ErrorIs(t, b.Do(context.Background(), fail), atomicbreaker.ErrOpen)
	_, body = get()
	for _, line := range []string{
		`latchfree_breaker_state{breaker="db",state="Closed"} 0`,
		`latchfree_breaker_state{breaker="db",state="Open"} 1`,
		`latchfree_breaker_open{breaker="db"} 1`,
		`latchfree_breaker_opened_total{breaker="db"} 1`,
		`latchfree_breaker_rejected_total{breaker="db"} 1`,
		`latchfree_breaker_streak{breaker="db"} 1`,
		`latchfree_breaker_retry_after_seconds{breaker="db"} +Inf`,
		`latchfree_breaker_transitions_total{breaker="db",from="Closed",reason="Threshold",to="Open"} 1`,
	} {
		assert.Contains(t, body, line+"\n")
	}

	// Counters never go down.
	b.Reset()
	require.NoError(t, b.Update(atomicbreaker.Config{Trip: atomicbreaker.FailureRate(0.5, 10, time.Minute), OnStateChange: transitions.Count}))
	permit, err := b.Allow()
	require.NoError(t, err)
	b.HalfOpen()
	permit.Failure()
	_, body = get()
	for _, line := range []string{
		`latchfree_breaker_probes_in_flight{breaker="db"} 0`,
		`latchfree_breaker_opened_total{breaker="db"} 1`,
		`latchfree_breaker_closed_total{breaker="db"} 1`,
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
	throttle := atomicbreaker.MustNewThrottle(atomicbreaker.ThrottleConfig{})
	require.NoError(t, throttle.Allow())
	throttle.Success()
	require.NoError(t, throttle.Allow())
	budget := atomicbreaker.MustNewRetryBudget(atomicbreaker.RetryBudgetConfig{})
	before := budget.Available()
	require.True(t, budget.Retry())
	require.Positive(t, before)
	_, body := scrape(t, latchprom.Throttle("t", throttle), latchprom.RetryBudget("r", budget))()
	assert.Contains(t, body, `latchfree_throttle_window_requests{throttle="t"} 2`)
	assert.Contains(t, body, `latchfree_throttle_window_accepts{throttle="t"} 1`)
	assert.Contains(t, body, `latchfree_throttle_reject_ratio{throttle="t"} 0`)
	assert.Regexp(t, `latchfree_retry_budget_available_retries\{budget="r"\} \d+\n`, body)
}
