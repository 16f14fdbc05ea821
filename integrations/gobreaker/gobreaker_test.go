package gobreaker

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	peer "github.com/sony/gobreaker/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestSameErrors compares texts, since callers may match them.
func TestSameErrors(t *testing.T) {
	assert.EqualError(t, ErrOpenState, peer.ErrOpenState.Error())
	assert.EqualError(t, ErrTooManyRequests, peer.ErrTooManyRequests.Error())
	for s := State(-1); s < 4; s++ {
		assert.Equal(t, peer.State(s).String(), s.String())
	}
}

// TestPanicText checks what IsExcluded and IsSuccessful get for a panic, and that the panic
// goes on with its value.
func TestPanicText(t *testing.T) {
	for value, text := range map[any]string{"x": "x", errBad: "bad", 7: "7"} {
		var asked []string
		cb := NewCircuitBreaker[int](Settings{
			IsExcluded:   func(err error) bool { asked = append(asked, "excluded? "+err.Error()); return false },
			IsSuccessful: func(err error) bool { asked = append(asked, "successful? "+err.Error()); return false },
		})
		assert.PanicsWithValue(t, value, func() { _, _ = cb.Execute(func() (int, error) { panic(value) }) })
		assert.Equal(t, []string{"excluded? " + text, "successful? " + text}, asked)
		assert.Equal(t, Counts{Requests: 1, TotalFailures: 1, ConsecutiveFailures: 1}, cb.Counts())
	}
}

// TestTimeouts checks that a breaker rejects at exactly the end of Timeout, and not after
// that, however short or long it is.
func TestTimeouts(t *testing.T) {
	for given, d := range map[time.Duration]time.Duration{
		-1: time.Minute, 0: time.Minute, 1: 1, 700 * time.Microsecond: 700 * time.Microsecond,
		398 * 24 * time.Hour: 398 * 24 * time.Hour, 3 * 365 * 24 * time.Hour: 3 * 365 * 24 * time.Hour,
	} {
		synctest.Test(t, func(t *testing.T) {
			b, o := opened(t, Settings{Timeout: given})
			time.Sleep(d)
			_, err := b.Allow()
			require.Equal(t, ErrOpenState, err)
			_, err = o.Allow()
			require.Equal(t, peer.ErrOpenState, err)
			time.Sleep(time.Nanosecond)
			done, err := b.Allow()
			require.NoError(t, err)
			_, err = o.Allow()
			require.NoError(t, err)
			done(nil)
			require.Equal(t, StateClosed, b.State())
		})
	}
}

// TestWindowEndsWhileReadyToTripRuns has another call begin a new window meanwhile. The
// answer still opens the breaker.
func TestWindowEndsWhileReadyToTripRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var opens bool
		var changes int
		cb := NewCircuitBreaker[int](Settings{
			Interval:      time.Second,
			OnStateChange: func(_ string, from, to State) { changes++ },
			ReadyToTrip:   func(Counts) bool { time.Sleep(2 * time.Second); return opens },
		})
		var other sync.WaitGroup
		fail := func() {
			other.Go(func() {
				time.Sleep(1500 * time.Millisecond)
				_, err := cb.Execute(func() (int, error) { return 0, nil })
				assert.NoError(t, err)
			})
			_, _ = cb.Execute(func() (int, error) { return 0, errBad })
			other.Wait()
		}
		fail()
		require.Equal(t, Counts{Requests: 1, TotalSuccesses: 1, ConsecutiveSuccesses: 1}, cb.Counts())
		opens = true
		time.Sleep(time.Hour)
		fail()
		require.Equal(t, StateOpen, cb.State())
		require.Equal(t, 1, changes)
	})
}

// TestResultAfterItsWindow drops results of calls that began in another window, or before
// the breaker opened, and asks no function about them.
func TestResultAfterItsWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewTwoStepCircuitBreaker[int](Settings{
			Interval: time.Minute, ReadyToTrip: func(Counts) bool { return true },
			IsExcluded: func(err error) bool {
				if err == errPanic {
					t.Error("asked")
				}
				return false
			},
		})
		allow := func() func(error) {
			done, err := b.Allow()
			require.NoError(t, err)
			return done
		}
		first := allow()
		time.Sleep(time.Minute + 1)
		first(errPanic)
		require.Equal(t, Counts{}, b.Counts())
		second := allow()
		allow()(errBad)
		require.Equal(t, StateOpen, b.State())
		time.Sleep(time.Minute + 1)
		probe := allow()
		second(errPanic)
		require.Equal(t, StateHalfOpen, b.State())
		probe(nil)
		require.Equal(t, StateClosed, b.State())
		first(errPanic)
		second(errPanic)
		probe(errPanic)
		require.Equal(t, Counts{}, b.Counts())
	})
}

// TestResultWhileClassified ends the generation while IsSuccessful runs.
func TestResultWhileClassified(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := errors.New("slow")
		var b *CircuitBreaker[int]
		b = NewCircuitBreaker[int](Settings{
			Interval: time.Minute,
			IsSuccessful: func(err error) bool {
				if err == slow {
					time.Sleep(time.Minute)
					_, _ = b.Execute(func() (int, error) { return 0, nil })
				}
				return err == nil
			},
		})
		_, _ = b.Execute(func() (int, error) { time.Sleep(time.Nanosecond); return 0, slow })
		require.Equal(t, Counts{Requests: 1, TotalSuccesses: 1, ConsecutiveSuccesses: 1}, b.Counts()) // the call within
	})
}

func TestAllocations(t *testing.T) {
	cb := NewCircuitBreaker[int](Settings{Interval: time.Hour})
	f := func() (int, error) { return 1, nil }
	assert.Zero(t, testing.AllocsPerRun(100, func() { _, _ = cb.Execute(f) }))
	b := NewTwoStepCircuitBreaker[int](Settings{})
	assert.Equal(t, 1.0, testing.AllocsPerRun(100, func() {
		done, _ := b.Allow()
		done(nil)
	}))
	for range 6 {
		done, _ := b.Allow()
		done(errBad)
	}
	assert.Zero(t, testing.AllocsPerRun(100, func() { _, _ = b.Allow() }))
}
