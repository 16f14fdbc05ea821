package peers

import (
	"time"

	"github.com/puzpuzpuz/xsync/v4"
	"github.com/sony/gobreaker/v2"
)

// openTimeout is how long every breaker here stays open, which is longer than
// any benchmark takes; then one call probes. How many failures in a row open
// it, the benchmark says.
const openTimeout = time.Hour

// gobreakerSettings configures github.com/sony/gobreaker/v2 v2.4.0 to count
// failures in a row and nothing else. There is no interval after which it
// forgets them, and no listener.
//
// It is exact: one mutex guards the counts, and a result from before a change
// of state is dropped. It reads the clock on both sides of a call, and keeps
// totals that the others do not. A probe that never returns blocks it for good.
func gobreakerSettings(failures int) gobreaker.Settings {
	return gobreaker.Settings{
		Timeout:     openTimeout,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= uint32(failures) },
	}
}

// newGobreaker returns a breaker for Execute.
func newGobreaker(failures int) *gobreaker.CircuitBreaker[int] {
	return gobreaker.NewCircuitBreaker[int](gobreakerSettings(failures))
}

// newGobreakerTwoStep returns a breaker for Allow and a later result.
func newGobreakerTwoStep(failures int) *gobreaker.TwoStepCircuitBreaker[int] {
	return gobreaker.NewTwoStepCircuitBreaker[int](gobreakerSettings(failures))
}

// gobreakerGroup is a breaker for each key. gobreaker has none, so this is the
// map that its users write, on the quickest map we know. A breaker stays once
// it was asked for.
type gobreakerGroup struct {
	failures int
	breakers *xsync.Map[string, *gobreaker.TwoStepCircuitBreaker[int]]
}

func newGobreakerGroup(failures int) *gobreakerGroup {
	return &gobreakerGroup{failures, xsync.NewMap[string, *gobreaker.TwoStepCircuitBreaker[int]]()}
}

func (g *gobreakerGroup) of(key string) *gobreaker.TwoStepCircuitBreaker[int] {
	b, ok := g.breakers.Load(key)
	if !ok {
		b, _ = g.breakers.LoadOrStore(key, newGobreakerTwoStep(g.failures))
	}
	return b
}
