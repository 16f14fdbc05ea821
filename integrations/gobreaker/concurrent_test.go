package gobreaker

import (
	"math/rand/v2"
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

// TestConcurrentAgainstGobreaker makes the same calls of both packages from many
// goroutines, in phases after which the order of the calls in the phase does not matter,
// and compares state and counts then.
func TestConcurrentAgainstGobreaker(t *testing.T) {
	const callers, each = 8, 50
	for _, period := range []time.Duration{0, time.Second} {
		synctest.Test(t, func(t *testing.T) {
			// While closed, the last failure of a phase opens it.
			st := Settings{
				Interval: time.Minute, BucketPeriod: period, MaxRequests: 3, Timeout: time.Second,
				IsExcluded:  func(err error) bool { return err == errSkip },
				ReadyToTrip: func(c Counts) bool { return c.TotalFailures == 2*callers*each && c.ConsecutiveFailures == callers*each },
			}
			var ours, theirs, rejected, rejected2 atomic.Int64 // calls in flight, and rejections
			b, o := NewCircuitBreaker[int](st), peer.NewCircuitBreaker[int](peerSettings(st))
			gate := make(chan struct{})
			// call makes calls of both, which end when the gate opens if they wait.
			call := func(waits bool, err error) (finish func()) {
				var done sync.WaitGroup
				for range callers {
					for i, execute := range []func(func() (int, error)) (int, error){b.Execute, o.Execute} {
						inFlight, rejections := &ours, &rejected
						if i == 1 {
							inFlight, rejections = &theirs, &rejected2
						}
						done.Go(func() {
							for range each {
								_, e := execute(func() (int, error) {
									inFlight.Add(1)
									defer inFlight.Add(-1)
									if waits {
										<-gate
									}
									return 0, err
								})
								if e == ErrTooManyRequests || e == ErrOpenState || e == peer.ErrTooManyRequests || e == peer.ErrOpenState {
									rejections.Add(1)
								}
								if waits {
									return
								}
							}
						})
					}
				}
				if !waits {
					done.Wait()
				}
				return func() { close(gate); done.Wait(); gate = make(chan struct{}) }
			}
			same := func(state State) {
				t.Helper()
				synctest.Wait()
				require.Equal(t, theirs.Load(), ours.Load())
				require.Equal(t, rejected2.Load(), rejected.Load())
				require.Equal(t, Counts(o.Counts()), b.Counts())
				require.Equal(t, state, b.State())
				require.Equal(t, state, State(o.State()))
			}
			for range 3 {
				call(false, nil)
				same(StateClosed)
				call(false, errBad)
				same(StateClosed)
				call(false, errSkip)
				same(StateClosed)
				call(false, nil)
				same(StateClosed)
				finish := call(true, errSkip)
				same(StateClosed)
				finish()
				same(StateClosed)
				time.Sleep(time.Second)
				call(false, errBad) // opens it
				same(StateOpen)
				time.Sleep(time.Second + 1)
				same(StateHalfOpen)
				finish = call(true, errSkip)
				same(StateHalfOpen) // three are in flight
				finish()
				same(StateHalfOpen)
				finish = call(true, errBad)
				same(StateHalfOpen)
				finish()
				same(StateOpen)
				time.Sleep(time.Second + 1)
				finish = call(true, nil)
				same(StateHalfOpen)
				finish()
				same(StateClosed)
			}
		})
	}
}

// TestStress changes the state as often as it can, and checks what holds in any order:
// changes of state follow each other, ReadyToTrip and the listener have no company, every
// result that counts has a request, and the breaker recovers.
func TestStress(t *testing.T) {
	for name, st := range map[string]Settings{
		"plain":    {MaxRequests: 3, Timeout: 1},
		"interval": {MaxRequests: 1, Timeout: 1, Interval: 20 * time.Microsecond},
		"rolling":  {MaxRequests: 40, Timeout: 20 * time.Microsecond, Interval: time.Millisecond, BucketPeriod: 50 * time.Microsecond},
	} {
		t.Run(name, func(t *testing.T) {
			asked, state, changes := 0, StateClosed, 0 // no atomics: -race finds concurrent calls
			st.ReadyToTrip = func(c Counts) bool {
				asked++
				assert.NotZero(t, c.TotalFailures)
				assert.GreaterOrEqual(t, c.Requests, c.TotalFailures+c.TotalExclusions+c.TotalSuccesses)
				assert.Zero(t, c.ConsecutiveSuccesses)
				assert.LessOrEqual(t, c.ConsecutiveFailures, c.TotalFailures)
				return c.ConsecutiveFailures >= 2
			}
			var cb *CircuitBreaker[int]
			st.OnStateChange = func(_ string, from, to State) {
				assert.Equal(t, state, from)
				next := map[State][]State{StateClosed: {StateOpen}, StateOpen: {StateHalfOpen}, StateHalfOpen: {StateOpen, StateClosed}}[from]
				assert.Contains(t, next, to)
				state = to
				changes++
				cb.State()
				cb.Counts()
			}
			st.IsExcluded = func(err error) bool { return err == errSkip }
			cb = NewCircuitBreaker[int](st)
			var all sync.WaitGroup
			stop := time.Now().Add(150 * time.Millisecond)
			for seed := range uint64(4) {
				all.Go(func() {
					r := rand.New(rand.NewPCG(seed, 3))
					for time.Now().Before(stop) {
						for range 100 {
							err := []error{nil, nil, nil, nil, errBad, errBad, errSkip}[r.IntN(7)]
							_, _ = cb.Execute(func() (int, error) {
								if r.IntN(50) == 0 {
									time.Sleep(time.Microsecond)
								}
								return 0, err
							})
						}
						cb.State()
					}
				})
			}
			all.Wait()
			for i := 0; cb.State() != StateClosed; i++ {
				require.Less(t, i, 10_000, "it does not recover")
				_, _ = cb.Execute(func() (int, error) { return 0, nil })
			}
			assert.Equal(t, StateClosed, state)
			assert.NotZero(t, changes)
			assert.NotZero(t, asked)
			if c := cb.Counts(); st.Interval == 0 { // or the last call may have begun a window that is over
				assert.Equal(t, c.Requests, c.TotalFailures+c.TotalExclusions+c.TotalSuccesses)
			}
		})
	}
}

// TestRunsInAnyOrder makes failures and successes at the same time. Whatever their order,
// one of the runs is zero and the other is not, and nothing is lost.
func TestRunsInAnyOrder(t *testing.T) {
	for _, period := range []time.Duration{0, time.Minute} {
		cb := NewCircuitBreaker[int](Settings{
			Interval: time.Hour, BucketPeriod: period,
			ReadyToTrip: func(c Counts) bool { assert.Zero(t, c.ConsecutiveSuccesses); return false },
		})
		var want Counts
		for range 3000 {
			var all sync.WaitGroup
			for _, err := range []error{nil, errBad} {
				all.Go(func() { _, _ = cb.Execute(func() (int, error) { return 0, err }) })
			}
			all.Wait()
			c := cb.Counts()
			want.Requests, want.TotalSuccesses, want.TotalFailures = want.Requests+2, want.TotalSuccesses+1, want.TotalFailures+1
			last := Counts{ConsecutiveSuccesses: c.ConsecutiveSuccesses, ConsecutiveFailures: c.ConsecutiveFailures}
			// The last two of the calls were of both kinds, and so the last three of one at most.
			require.Contains(t, []Counts{{ConsecutiveSuccesses: 1}, {ConsecutiveFailures: 1}, {ConsecutiveSuccesses: 2}, {ConsecutiveFailures: 2}}, last)
			c.ConsecutiveSuccesses, c.ConsecutiveFailures = 0, 0
			require.Equal(t, want, c)
		}
	}
}

// atOnce calls f(0), f(1) and so on from goroutines that begin together.
func atOnce(n int, f func(int)) {
	var all sync.WaitGroup
	var ready atomic.Int32
	for i := range n {
		all.Go(func() {
			for ready.Add(1); ready.Load() < int32(n); {
				runtime.Gosched()
			}
			f(i)
		})
	}
	all.Wait()
}

// TestProbesAtOnce admits exactly MaxRequests of the calls that come when the breaker may
// become half-open, and again each time that these are excluded.
func TestProbesAtOnce(t *testing.T) {
	const callers = 6
	for range 30 {
		b := NewTwoStepCircuitBreaker[int](Settings{
			MaxRequests: 3, Timeout: 1, ReadyToTrip: func(Counts) bool { return true },
			IsExcluded: func(err error) bool { return err == errSkip },
		})
		done, _ := b.Allow()
		done(errBad)
		time.Sleep(time.Microsecond)
		for range 40 {
			var dones [callers]func(error)
			var errs [callers]error
			atOnce(callers, func(i int) { dones[i], errs[i] = b.Allow() })
			admitted := 0
			for i, done := range dones {
				if done != nil {
					admitted++
				} else {
					require.Equal(t, ErrTooManyRequests, errs[i])
				}
			}
			require.Equal(t, 3, admitted)
			atOnce(callers, func(i int) {
				if dones[i] != nil {
					dones[i](errSkip)
				}
			})
		}
		require.Equal(t, Counts{Requests: 120, TotalExclusions: 120}, b.Counts())
	}
}

// TestClosesAtOnce has calls come while the last success of a half-open breaker is reported.
// They are rejected, or count for the closed breaker.
func TestClosesAtOnce(t *testing.T) {
	for range 2000 {
		b := NewTwoStepCircuitBreaker[int](Settings{Timeout: 1, ReadyToTrip: func(Counts) bool { return true }})
		done, _ := b.Allow()
		done(errBad)
		time.Sleep(time.Microsecond)
		last, err := b.Allow()
		require.NoError(t, err)
		var n atomic.Uint32
		atOnce(3, func(i int) {
			if i == 0 {
				last(nil)
				return
			}
			for range 3 {
				if _, err := b.Allow(); err == nil {
					n.Add(1)
				} else if err != ErrTooManyRequests {
					t.Error(err)
				}
			}
		})
		require.Equal(t, Counts{Requests: n.Load()}, b.Counts())
	}
}

// TestSuccessesAtOnce ends a run of failures by several successes.
func TestSuccessesAtOnce(t *testing.T) {
	cb := NewCircuitBreaker[int](Settings{})
	for i := range uint32(3000) {
		_, _ = cb.Execute(func() (int, error) { return 0, errBad })
		atOnce(3, func(int) { _, _ = cb.Execute(func() (int, error) { return 0, nil }) })
		require.Equal(t, Counts{Requests: 4 * (i + 1), TotalSuccesses: 3 * (i + 1), TotalFailures: i + 1, ConsecutiveSuccesses: 3}, cb.Counts())
	}
}

// TestGrowsAtOnce has calls of different ages find that buckets are too old.
func TestGrowsAtOnce(t *testing.T) {
	r := &rolling{buckets: make([]Counts, 8)}
	for age := uint64(0); age < 9000; age += 3 {
		atOnce(3, func(i int) { r.grow(age + uint64(i)) })
		require.Equal(t, age+2, r.age.Load())
		r.request()
		require.Equal(t, min(3, uint32(age/3)+1), r.n.Requests)
	}
}
