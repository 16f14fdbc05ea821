package latchotel_test

import (
	"context"
	"testing"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/atomicbreaker/retrybudget"
	"github.com/latchfree/latchfree/atomicbreaker/throttle"
	latchotel "github.com/latchfree/latchfree/integrations/otel"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each count of a breaker has its own number, so that none can stand for another.
func TestBreakerCounts(t *testing.T) {
	meter, collect := reader(t)
	b := atomicbreaker.MustNew(atomicbreaker.Config{Policy: atomicbreaker.Consecutive(1), OpenTimeout: -1, Probes: 9})
	first(latchotel.Breaker(meter, "b", b))
	early := make([]atomicbreaker.Permit, 6)
	for i := range early {
		early[i] = first(b.Allow())
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
	for i := range early {
		early[i].Failure() // late
	}
	for range 4 {
		first(b.Allow())
	}
	includes(t, samples(t, first(collect())), map[string]float64{
		"breaker.openings breaker.name=b": 5, "breaker.closings breaker.name=b": 3, "breaker.rejected breaker.name=b": 7,
		"breaker.late breaker.name=b": 6, "breaker.streak breaker.name=b": 2, "breaker.probes breaker.name=b": 4,
		"breaker.failures breaker.name=b": 0, "breaker.open breaker.name=b": 0,
	})
}

// Calls by outcome are there with RecordTotals alone.
func TestBreakerTotals(t *testing.T) {
	meter, collect := reader(t)
	config := atomicbreaker.Config{RecordTotals: true}
	b, g := atomicbreaker.MustNew(config), atomicbreaker.MustNewGroup(atomicbreaker.GroupConfig[int]{Default: config})
	first(latchotel.Breaker(meter, "b", b))
	first(latchotel.Group(meter, "g", g, latchotel.GroupOptions[int]{}))
	for i := range 6 {
		b.RecordSuccess()
		g.RecordFailure(i)
		if i%2 == 0 {
			b.RecordFailure()
			g.RecordSuccess(i)
		}
	}
	first(b.Allow()).Cancel()
	includes(t, samples(t, first(collect())), map[string]float64{
		"breaker.calls breaker.name=b breaker.outcome=Success": 6, "breaker.calls breaker.name=b breaker.outcome=Failure": 3,
		"breaker.calls breaker.name=b breaker.outcome=Ignored":             1,
		"breaker_group.calls breaker.outcome=Success breaker_group.name=g": 3,
		"breaker_group.calls breaker.outcome=Failure breaker_group.name=g": 6,
	})
	meter, collect = reader(t)
	first(latchotel.Breaker(meter, "b", new(atomicbreaker.Breaker)))
	for name := range samples(t, first(collect())) {
		assert.NotContains(t, name, "calls")
	}
}

// Of the states of a breaker one is 1, and Config.Shadow hides none that rejects.
func TestBreakerStates(t *testing.T) {
	for state, set := range map[atomicbreaker.State]func(b *atomicbreaker.Breaker){
		atomicbreaker.Closed:     func(*atomicbreaker.Breaker) {},
		atomicbreaker.Open:       func(b *atomicbreaker.Breaker) { b.Trip(10 * time.Minute) },
		atomicbreaker.HalfOpen:   func(b *atomicbreaker.Breaker) { b.HalfOpen() },
		atomicbreaker.ForcedOpen: func(b *atomicbreaker.Breaker) { b.ForceOpen() },
		atomicbreaker.Disabled:   func(b *atomicbreaker.Breaker) { b.Disable() },
		atomicbreaker.Shadow:     func(b *atomicbreaker.Breaker) { b.Trip(10 * time.Minute) },
	} {
		meter, collect := reader(t)
		b := atomicbreaker.MustNew(atomicbreaker.Config{Shadow: state == atomicbreaker.Shadow})
		set(b)
		first(latchotel.Breaker(meter, "b", b))
		all := samples(t, first(collect()))
		want, open := map[string]float64{}, 0.0
		for _, s := range []string{"Closed", "Open", "HalfOpen", "ForcedOpen", "Disabled", "Shadow"} {
			want["breaker.state breaker.name=b breaker.state="+s] = 0
		}
		want["breaker.state breaker.name=b breaker.state="+state.String()] = 1
		if state == atomicbreaker.Open || state == atomicbreaker.ForcedOpen || state == atomicbreaker.Shadow {
			open = 1
		}
		want["breaker.open breaker.name=b"] = open
		includes(t, all, want)
		if retry := all["breaker.retry_after breaker.name=b"]; state == atomicbreaker.Open || state == atomicbreaker.Shadow {
			assert.InDelta(t, 600, retry, 60)
		} else {
			assert.Zero(t, retry)
		}
	}
}

func TestThrottleCounts(t *testing.T) {
	meter, collect := reader(t)
	th := throttle.MustNew(throttle.Config{Window: time.Hour})
	budget := retrybudget.MustNew(retrybudget.Config{})
	first(latchotel.Throttle(meter, "t", th))
	first(latchotel.RetryBudget(meter, "r", budget))
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
	includes(t, samples(t, first(collect())), map[string]float64{
		"throttle.requests throttle.name=t": float64(s.Requests), "throttle.accepts throttle.name=t": float64(s.Accepts),
		"throttle.reject_probability throttle.name=t": s.RejectProbability, "retry_budget.available retry_budget.name=r": float64(budget.Available()),
	})
}
