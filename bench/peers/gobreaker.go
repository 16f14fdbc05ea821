package peers

import (
	"time"

	"github.com/puzpuzpuz/xsync/v4"
	"github.com/sony/gobreaker/v2"
)

// What every breaker here is configured to do: open at the fifth failure in a
// row, for a minute, then let one call probe. These are latchfree's defaults.
const (
	failuresToOpen = 5
	openTimeout    = time.Minute
)

// gobreakerSettings is the only setting in which github.com/sony/gobreaker/v2
// v2.4.0 differs from the others by default: it opens at the sixth failure.
//
// It is exact: one mutex guards the counts, and a result from before a change
// of state is dropped. It reads the clock on both sides of a call, and keeps
// totals that the others do not. A probe that never returns blocks it for good.
func gobreakerSettings() gobreaker.Settings {
	return gobreaker.Settings{
		Timeout:     openTimeout,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= failuresToOpen },
	}
}

// newGobreaker returns a breaker for Execute.
func newGobreaker() *gobreaker.CircuitBreaker[int] {
	return gobreaker.NewCircuitBreaker[int](gobreakerSettings())
}

// newGobreakerTwoStep returns a breaker for Allow and a later result.
func newGobreakerTwoStep() *gobreaker.TwoStepCircuitBreaker[int] {
	return gobreaker.NewTwoStepCircuitBreaker[int](gobreakerSettings())
}

// gobreakerGroup is a breaker for each key. gobreaker has none, so this is the
// map that its users write, on the quickest map we know. A breaker stays once
// it was asked for.
type gobreakerGroup struct {
	breakers *xsync.Map[string, *gobreaker.TwoStepCircuitBreaker[int]]
}

func newGobreakerGroup() *gobreakerGroup {
	return &gobreakerGroup{xsync.NewMap[string, *gobreaker.TwoStepCircuitBreaker[int]]()}
}

func (g *gobreakerGroup) allow(key string) (done func(error), err error) {
	b, ok := g.breakers.Load(key)
	if !ok {
		b, _ = g.breakers.LoadOrStore(key, newGobreakerTwoStep())
	}
	return b.Allow()
}
