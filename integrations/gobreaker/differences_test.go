package gobreaker

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	peer "github.com/sony/gobreaker/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The tests here are named in README.md. Each shows what gobreaker does as well.

// opened returns open breakers of both packages.
func opened(t *testing.T, st Settings) (*TwoStepCircuitBreaker[int], *peer.TwoStepCircuitBreaker[int]) {
	b, o := NewTwoStepCircuitBreaker[int](st), peer.NewTwoStepCircuitBreaker[int](peerSettings(st))
	for b.State() != StateOpen {
		done, err := b.Allow()
		require.NoError(t, err)
		done(errBad)
	}
	for o.State() != peer.StateOpen {
		done, err := o.Allow()
		require.NoError(t, err)
		done(errBad)
	}
	return b, o
}

// halfOpened returns half-open breakers of both packages.
func halfOpened(t *testing.T, st Settings) (*TwoStepCircuitBreaker[int], *peer.TwoStepCircuitBreaker[int]) {
	b, o := opened(t, st)
	time.Sleep(b.core.timeout + 1)
	require.Equal(t, StateHalfOpen, b.State())
	require.Equal(t, peer.StateHalfOpen, o.State())
	return b, o
}

func TestLostProbes(t *testing.T) {
	for _, c := range []struct{ timeout, lost time.Duration }{{time.Minute, time.Minute}, {1, 10 * time.Second}, {1000 * time.Hour, 36 * time.Hour}} {
		synctest.Test(t, func(t *testing.T) {
			changes := map[string]int{}
			b, o := halfOpened(t, Settings{MaxRequests: 3, Timeout: c.timeout, OnStateChange: func(_ string, from, to State) {
				changes[from.String()+" "+to.String()]++
			}})
			// Of each, one succeeds and two are never reported.
			for i := range 3 {
				done, err := b.Allow()
				require.NoError(t, err)
				done2, err := o.Allow()
				require.NoError(t, err)
				if i == 1 {
					done(nil)
					done2(nil)
				}
			}
			time.Sleep(c.lost - 1)
			_, err := b.Allow()
			require.Equal(t, ErrTooManyRequests, err)
			time.Sleep(time.Nanosecond)
			var dones []func(error)
			for range 2 { // what the lost ones have left
				done, err := b.Allow()
				require.NoError(t, err)
				dones = append(dones, done)
			}
			_, err = b.Allow()
			require.Equal(t, ErrTooManyRequests, err)
			require.Equal(t, Counts{Requests: 5, TotalSuccesses: 1, ConsecutiveSuccesses: 1}, b.Counts())

			// It loses some again and again, more than there are slots.
			for range 40 {
				time.Sleep(c.lost + 128*time.Millisecond)
				done, err := b.Allow()
				require.NoError(t, err)
				dones = append(dones, done)
			}
			_, err = o.Allow()
			require.Equal(t, peer.ErrTooManyRequests, err)

			// The results of lost calls count, and the breaker recovers.
			dones[0](nil)
			require.Equal(t, StateHalfOpen, b.State())
			dones[41](nil)
			require.Equal(t, StateClosed, b.State())
			require.Equal(t, peer.StateHalfOpen, o.State())
			_, err = o.Allow()
			require.Equal(t, peer.ErrTooManyRequests, err)
			require.Equal(t, map[string]int{"closed open": 2, "open half-open": 2, "half-open closed": 1}, changes) // of both
		})
	}
}

// TestGoexit calls runtime.Goexit in a call: while closed it has no result, half-open it
// has failed. In gobreaker it never has one.
func TestGoexit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := Settings{ReadyToTrip: func(c Counts) bool { return c.TotalFailures == 1 }}
		b, o := NewCircuitBreaker[int](st), peer.NewCircuitBreaker[int](peerSettings(st))
		exit := func() (int, error) { runtime.Goexit(); return 0, nil }
		both := func(f func() (int, error)) {
			var done sync.WaitGroup
			done.Go(func() { _, _ = b.Execute(f) })
			done.Go(func() { _, _ = o.Execute(f) })
			done.Wait()
		}
		both(exit)
		require.Equal(t, Counts{Requests: 1}, b.Counts())
		require.Equal(t, Counts{Requests: 1}, Counts(o.Counts()))
		both(func() (int, error) { return 0, errBad })
		time.Sleep(time.Minute + 1)
		both(exit)
		require.Equal(t, StateOpen, b.State())
		require.Equal(t, peer.StateHalfOpen, o.State())
		time.Sleep(time.Minute + 1)
		_, err := b.Execute(func() (int, error) { return 0, nil })
		require.NoError(t, err)
		_, err = o.Execute(func() (int, error) { return 0, nil })
		require.Equal(t, peer.ErrTooManyRequests, err)
	})
}

// TestClassifierPanics has functions that panic for a probe, which then has failed. In
// gobreaker it keeps its place for ever.
func TestClassifierPanics(t *testing.T) {
	bad := func(err error) bool {
		if err == errPanic {
			panic("x")
		}
		return err == nil
	}
	for name, st := range map[string]Settings{
		"IsSuccessful": {IsSuccessful: bad},
		"IsExcluded":   {IsExcluded: func(err error) bool { return bad(err) && false }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, o := halfOpened(t, st)
				done, err := b.Allow()
				require.NoError(t, err)
				require.PanicsWithValue(t, "x", func() { done(errPanic) })
				require.Equal(t, StateOpen, b.State())
				done2, err := o.Allow()
				require.NoError(t, err)
				require.PanicsWithValue(t, "x", func() { done2(errPanic) })
				require.Equal(t, peer.StateHalfOpen, o.State())
				_, err = o.Allow()
				require.Equal(t, peer.ErrTooManyRequests, err)
			})
		})
	}
	// Execute asks again about the panic, so that it matters only if that panics too.
	synctest.Test(t, func(t *testing.T) {
		var asked []string
		st := Settings{IsSuccessful: func(err error) bool {
			if err == nil {
				return false
			}
			asked = append(asked, err.Error())
			panic("y")
		}}
		cb := NewCircuitBreaker[int](st)
		for cb.State() != StateOpen {
			_, _ = cb.Execute(func() (int, error) { return 0, nil })
		}
		time.Sleep(time.Minute + 1)
		require.PanicsWithValue(t, "y", func() { _, _ = cb.Execute(func() (int, error) { return 0, errBad }) })
		require.Equal(t, []string{"bad", "y"}, asked)
		require.Equal(t, StateOpen, cb.State())
	})
}

func TestMaxRequestsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, o := halfOpened(t, Settings{MaxRequests: 40})
		var dones []func(error)
		for range 31 {
			done, err := b.Allow()
			require.NoError(t, err)
			dones = append(dones, done)
			_, err = o.Allow()
			require.NoError(t, err)
		}
		_, err := b.Allow()
		require.Equal(t, ErrTooManyRequests, err)
		_, err = o.Allow()
		require.NoError(t, err)
		require.Equal(t, uint32(31), b.Counts().Requests)
		for _, done := range dones {
			done(nil)
		}
		for range 9 {
			require.Equal(t, StateHalfOpen, b.State())
			done, err := b.Allow()
			require.NoError(t, err)
			done(nil)
		}
		require.Equal(t, StateClosed, b.State())
	})
}

// waits reports whether f does not return while nothing else happens.
func waits(f func()) (waiting bool, returned chan struct{}) {
	returned = make(chan struct{})
	go func() { f(); close(returned) }()
	settle()
	select {
	case <-returned:
		return false, returned
	default:
		return true, returned
	}
}

// settle gives a goroutine time to get as far as it can. A mutex does not count
// as blocked in a bubble, so synctest.Wait cannot be used.
func settle() {
	for range 2000 {
		runtime.Gosched()
	}
}

func TestListenerMayUseTheBreaker(t *testing.T) {
	var b *CircuitBreaker[int]
	var states []State
	st := Settings{
		ReadyToTrip: func(Counts) bool { return true },
		OnStateChange: func(string, State, State) {
			_, err := b.Execute(func() (int, error) { return 0, nil })
			assert.Equal(t, ErrOpenState, err)
			assert.Equal(t, Counts{}, b.Counts())
			states = append(states, b.State())
		},
	}
	b = NewCircuitBreaker[int](st)
	_, _ = b.Execute(func() (int, error) { return 0, errBad })
	assert.Equal(t, []State{StateOpen}, states)

	var o *peer.CircuitBreaker[int]
	st.OnStateChange = func(string, State, State) {
		waiting, _ := waits(func() { o.State() })
		assert.True(t, waiting, "gobreaker's State does not wait for the listener any more")
	}
	o = peer.NewCircuitBreaker[int](peerSettings(st))
	_, _ = o.Execute(func() (int, error) { return 0, errBad })
}

// TestListenerRunsElsewhere changes the state while the listener runs. The change is made
// at once, and the listener is called for it where it runs.
func TestListenerRunsElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log []string
		block := make(chan struct{})
		b := NewCircuitBreaker[int](Settings{
			ReadyToTrip: func(Counts) bool { return true },
			OnStateChange: func(_ string, from, to State) {
				if to == StateOpen && len(log) == 0 {
					<-block
				}
				log = append(log, from.String()+" "+to.String())
			},
		})
		go func() { _, _ = b.Execute(func() (int, error) { return 0, errBad }) }()
		synctest.Wait()
		time.Sleep(time.Minute + 1)
		require.Equal(t, StateHalfOpen, b.State())
		_, err := b.Execute(func() (int, error) { return 0, nil })
		require.NoError(t, err)
		require.Equal(t, StateClosed, b.State())
		require.Empty(t, log)
		close(block)
		synctest.Wait()
		require.Equal(t, []string{"closed open", "open half-open", "half-open closed"}, log)
	})
}

// TestReadyToTripMayAsk asks the breaker from ReadyToTrip, while a success is counted.
// In gobreaker both wait.
func TestReadyToTripMayAsk(t *testing.T) {
	var b *CircuitBreaker[int]
	var o *peer.CircuitBreaker[int]
	var late chan struct{}
	st := Settings{ReadyToTrip: func(c Counts) bool {
		assert.Equal(t, c, b.Counts())
		assert.Equal(t, StateClosed, b.State())
		_, err := b.Execute(func() (int, error) { return 0, nil })
		assert.NoError(t, err)
		return true
	}}
	b = NewCircuitBreaker[int](st)
	_, _ = b.Execute(func() (int, error) { return 0, errBad })
	assert.Equal(t, StateOpen, b.State())

	st.ReadyToTrip = func(Counts) bool {
		var waiting bool
		waiting, late = waits(func() { o.Counts() })
		assert.True(t, waiting, "gobreaker's Counts does not wait for ReadyToTrip any more")
		return true
	}
	o = peer.NewCircuitBreaker[int](peerSettings(st))
	_, _ = o.Execute(func() (int, error) { return 0, errBad })
	<-late
}

// TestReadyToTripAlone ends calls that fail at the same time. ReadyToTrip has no lock of
// its own, so the race detector sees it if it runs concurrently.
func TestReadyToTripAlone(t *testing.T) {
	var seen []uint32
	b := NewCircuitBreaker[int](Settings{ReadyToTrip: func(c Counts) bool {
		seen = append(seen, c.TotalFailures)
		return len(seen) == 100
	}})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 50 {
				_, _ = b.Execute(func() (int, error) { return 0, errBad })
			}
		})
	}
	all.Wait()
	assert.Len(t, seen, 100, "it is asked after it has opened the breaker")
	for i, n := range seen {
		assert.Equal(t, uint32(i+1), n)
	}
	assert.Equal(t, StateOpen, b.State())
}

// TestClassifiersRunTogether has two calls in IsSuccessful at the same time. gobreaker
// calls it under its mutex.
func TestClassifiersRunTogether(t *testing.T) {
	var inside atomic.Int32
	var most atomic.Int32
	both := make(chan struct{})
	st := Settings{IsSuccessful: func(error) bool {
		if n := inside.Add(1); n > most.Load() {
			most.Store(n)
			if n == 2 {
				close(both)
			}
		}
		for range 2000 {
			select {
			case <-both:
			default:
				runtime.Gosched()
			}
		}
		inside.Add(-1)
		return true
	}}
	run := func(execute func(func() (int, error)) (int, error)) int32 {
		most.Store(0)
		both = make(chan struct{})
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() { _, _ = execute(func() (int, error) { return 0, nil }) })
		}
		all.Wait()
		return most.Load()
	}
	for i := 0; run(NewCircuitBreaker[int](st).Execute) != 2; i++ {
		require.Less(t, i, 100, "they do not run at the same time")
	}
	assert.Equal(t, int32(1), run(peer.NewCircuitBreaker[int](peerSettings(st)).Execute))
}
