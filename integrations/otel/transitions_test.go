package latchotel_test

import (
	"context"
	"testing"

	"github.com/latchfree/latchfree/atomicbreaker"
	latchotel "github.com/latchfree/latchfree/integrations/otel"
	"github.com/stretchr/testify/require"
)

// Each change counts once, under its states and reason, and goes on after an Update.
func TestTransitions(t *testing.T) {
	meter, collect := reader(t)
	onChange, err := latchotel.Transitions(meter, "db\xff")
	require.NoError(t, err)
	config := atomicbreaker.Config{Policy: atomicbreaker.Consecutive(2), OpenTimeout: -1, OnStateChange: onChange}
	b := atomicbreaker.MustNew(config)
	for range 2 {
		for range 3 { // the last one is rejected, which is no change
			_ = b.Do(context.Background(), func(context.Context) error { return errDown })
		}
		b.Reset()
	}
	require.NoError(t, b.Update(config))
	b.HalfOpen()
	all := samples(t, first(collect()))
	changes := 0.0
	for _, n := range all {
		changes += n
	}
	require.Equal(t, 5.0, changes)
	includes(t, all, map[string]float64{
		"breaker.transitions breaker.from=Closed breaker.name=db\uFFFD breaker.reason=Threshold breaker.to=Open":    2,
		"breaker.transitions breaker.from=Open breaker.name=db\uFFFD breaker.reason=Reset breaker.to=Closed":        2,
		"breaker.transitions breaker.from=Closed breaker.name=db\uFFFD breaker.reason=HalfOpen breaker.to=HalfOpen": 1,
	})
}

// The changes of all keys are counted together.
func TestKeyTransitions(t *testing.T) {
	meter, collect := reader(t)
	onChange, err := latchotel.KeyTransitions[int](meter, "g")
	require.NoError(t, err)
	g := atomicbreaker.MustNewGroup(atomicbreaker.GroupConfig[int]{OnStateChange: onChange})
	for k := range 3 {
		g.Trip(k, 0)
	}
	g.Reset(1)
	g.ResetAll()
	includes(t, samples(t, first(collect())), map[string]float64{
		"breaker_group.transitions breaker.from=Closed breaker.reason=Trip breaker.to=Open breaker_group.name=g":  3,
		"breaker_group.transitions breaker.from=Open breaker.reason=Reset breaker.to=Closed breaker_group.name=g": 3,
	})
}
