package peers

import (
	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/puzpuzpuz/xsync/v4"
)

// newFailsafe returns a breaker of github.com/failsafe-go/failsafe-go v0.9.8
// for TryAcquirePermit and RecordSuccess or RecordFailure.
//
// Its threshold is n failures among the last n results, which is n in a row.
// One mutex guards a ring of results. A result carries no generation,
// so a late one counts for whatever state it arrives in. A panic in a probe,
// or a probe that never returns, keeps its permit for good.
func newFailsafe(failures int) circuitbreaker.CircuitBreaker[int] {
	return circuitbreaker.NewBuilder[int]().
		WithFailureThreshold(uint(failures)).
		WithSuccessThreshold(1).
		WithDelay(openTimeout).
		Build()
}

// newFailsafeExecutor returns an executor with such a breaker as its only
// policy, for Get. It composes the policies anew at each call.
func newFailsafeExecutor(failures int) failsafe.Executor[int] {
	return failsafe.With[int](newFailsafe(failures))
}

// failsafeGroup is a breaker for each key, as gobreakerGroup is.
type failsafeGroup struct {
	failures int
	breakers *xsync.Map[string, circuitbreaker.CircuitBreaker[int]]
}

func newFailsafeGroup(failures int) *failsafeGroup {
	return &failsafeGroup{failures, xsync.NewMap[string, circuitbreaker.CircuitBreaker[int]]()}
}

func (g *failsafeGroup) of(key string) circuitbreaker.CircuitBreaker[int] {
	b, ok := g.breakers.Load(key)
	if !ok {
		b, _ = g.breakers.LoadOrStore(key, newFailsafe(g.failures))
	}
	return b
}
