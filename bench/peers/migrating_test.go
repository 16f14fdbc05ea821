package peers

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/sony/gobreaker/v2"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/atomicbreaker"
)

// A row is a row of docs/coming-from-breakers.md, which names it. Its test runs in
// a bubble.
type row struct {
	name string
	test func(t *testing.T)
}

func runRows(t *testing.T, rows []row) {
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) { synctest.Test(t, r.test) })
	}
}

// pass lets time pass in a row's bubble.
func pass(d time.Duration) { time.Sleep(d) }

// States, as both peers call them.
const (
	isClosed   = "closed"
	isOpen     = "open"
	isHalfOpen = "half-open"
)

// A side is a breaker that is asked for admissions and told results.
type side struct {
	t     *testing.T
	impl  string
	allow func() (done func(error), err error)
	state func() string
}

// start makes a call, which must be admitted. It is in flight until its result
// is reported.
func (s side) start() (done func(error)) {
	s.t.Helper()
	done, err := s.allow()
	require.NoError(s.t, err, s.impl)
	return done
}

// admits makes n calls, one after another, which must be admitted.
func (s side) admits(n int, result error) {
	s.t.Helper()
	for range n {
		s.start()(result)
	}
}

// rejects makes n calls, which must not be admitted.
func (s side) rejects(n int) {
	s.t.Helper()
	for range n {
		_, err := s.allow()
		require.Error(s.t, err, s.impl)
	}
}

func (s side) is(state string) {
	s.t.Helper()
	require.Equal(s.t, state, s.state(), s.impl)
}

// A pair is a peer's breaker and ours. What is called on the pair gets the same
// answers from both; where they differ, it is called on one.
type pair struct{ peer, ours side }

func (p pair) start() (done func(error)) {
	p.peer.t.Helper()
	peer, ours := p.peer.start(), p.ours.start()
	return func(err error) { peer(err); ours(err) }
}

func (p pair) admits(n int, result error) {
	p.peer.t.Helper()
	p.peer.admits(n, result)
	p.ours.admits(n, result)
}

func (p pair) rejects(n int) {
	p.peer.t.Helper()
	p.peer.rejects(n)
	p.ours.rejects(n)
}

func (p pair) is(state string) {
	p.peer.t.Helper()
	p.peer.is(state)
	p.ours.is(state)
}

// opensFor requires both to be open, and to let no call through before d has
// passed. Then the next call is a probe. The margin is what ours rounds to.
func (p pair) opensFor(d time.Duration) {
	p.peer.t.Helper()
	p.is(isOpen)
	pass(d - 2*time.Millisecond)
	p.is(isOpen)
	p.rejects(1)
	pass(4 * time.Millisecond)
	p.ours.is(isHalfOpen)
}

// probes requires n calls to be let through at the same time, and no more, by
// breakers that are half-open then, and returns them.
func (p pair) probes(n int) (done []func(error)) {
	p.peer.t.Helper()
	for range n {
		done = append(done, p.start())
	}
	p.is(isHalfOpen)
	p.rejects(1)
	return done
}

func latchfreeSide(t *testing.T, c atomicbreaker.Config) side {
	t.Helper()
	b, err := atomicbreaker.New(c)
	require.NoError(t, err)
	return breakerSide(t, b)
}

func breakerSide(t *testing.T, b *atomicbreaker.Breaker) side {
	return side{t, "latchfree",
		func() (func(error), error) {
			p, err := b.Allow()
			return func(err error) { p.Done(err) }, err
		},
		func() string { return stateName(b.State()) },
	}
}

func stateName(s atomicbreaker.State) string {
	return map[atomicbreaker.State]string{
		atomicbreaker.Closed: isClosed, atomicbreaker.Open: isOpen, atomicbreaker.HalfOpen: isHalfOpen,
	}[s]
}

func gobreakerSide(t *testing.T, b *gobreaker.TwoStepCircuitBreaker[int]) side {
	return side{t, "gobreaker", b.Allow, func() string { return b.State().String() }}
}

func failsafeSide(t *testing.T, b circuitbreaker.CircuitBreaker[int]) side {
	return side{t, "failsafe",
		func() (func(error), error) {
			if !b.TryAcquirePermit() {
				return nil, circuitbreaker.ErrOpen
			}
			return b.RecordError, nil
		},
		func() string { return b.State().String() },
	}
}
