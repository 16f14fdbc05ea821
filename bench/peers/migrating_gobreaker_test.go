package peers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sony/gobreaker/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/atomicbreaker"
)

// Each row is a subtest that makes the same calls through gobreaker's breaker
// and ours.
func TestMigratingFromGobreaker(t *testing.T) {
	runRows(t, slices.Concat(gobreakerRows, gobreakerDifferences))
}

// besideGobreaker returns gobreaker's breaker with st beside ours with c.
func besideGobreaker(t *testing.T, st gobreaker.Settings, c atomicbreaker.Config) pair {
	t.Helper()
	return pair{gobreakerSide(t, gobreaker.NewTwoStepCircuitBreaker[int](st)), latchfreeSide(t, c)}
}

// likeGobreaker is besideGobreaker with what FromGobreaker makes of st.
func likeGobreaker(t *testing.T, st gobreaker.Settings) pair {
	t.Helper()
	c, err := FromGobreaker(st)
	require.NoError(t, err)
	return besideGobreaker(t, st, c)
}

// onFailure is a ReadyToTrip that opens at the first failure.
func onFailure(gobreaker.Counts) bool { return true }

func more(failures uint32) func(gobreaker.Counts) bool {
	return func(c gobreaker.Counts) bool { return c.ConsecutiveFailures > failures }
}

func total(failures uint32) func(gobreaker.Counts) bool {
	return func(c gobreaker.Counts) bool { return c.TotalFailures >= failures }
}

func share(ratio float64, requests uint32) func(gobreaker.Counts) bool {
	return func(c gobreaker.Counts) bool {
		return c.Requests >= requests && float64(c.TotalFailures)/float64(c.Requests) >= ratio
	}
}

var gobreakerRows = []row{
	{"zero-settings", func(t *testing.T) {
		st := gobreaker.Settings{Name: "billing"}
		for _, p := range []pair{likeGobreaker(t, st), besideGobreaker(t, st, atomicbreaker.Config{
			Name: "billing", Policy: atomicbreaker.Consecutive(6),
		})} {
			p.admits(100, nil)
			p.admits(5, errCall)
			p.is(isClosed)
			p.admits(1, nil) // they have to be in a row
			p.admits(5, errCall)
			p.is(isClosed)
			p.admits(1, errCall)
			p.rejects(10)
			for range 12 { // more often than doubling needs to get to the bound
				p.opensFor(time.Minute)
				p.probes(1)[0](errCall)
			}
			p.opensFor(time.Minute)
			p.probes(1)[0](nil)
			p.is(isClosed)
		}
		// The zero Breaker is not the same.
		p := besideGobreaker(t, st, atomicbreaker.Config{})
		p.admits(5, errCall)
		p.peer.is(isClosed)
		p.ours.is(isOpen)
	}},
	{"execute", func(t *testing.T) {
		st := gobreaker.Settings{ReadyToTrip: onFailure}
		c, err := FromGobreaker(st)
		require.NoError(t, err)
		peer, ours := gobreaker.NewCircuitBreaker[string](st), atomicbreaker.MustNew(c)
		for _, execute := range []func(func() (string, error)) (string, error){
			peer.Execute,
			func(f func() (string, error)) (string, error) { return atomicbreaker.Execute(ours, f) },
		} {
			result, err := execute(func() (string, error) { return "paid", nil })
			assert.Equal(t, "paid", result)
			assert.NoError(t, err)
			assert.PanicsWithValue(t, "call", func() { _, _ = execute(func() (string, error) { panic("call") }) })
			result, err = execute(func() (string, error) { return "paid", nil })
			assert.Empty(t, result)
			assert.Error(t, err, "the panic was a failure")
		}
	}},
	{"two-step", func(t *testing.T) {
		p := likeGobreaker(t, gobreaker.Settings{ReadyToTrip: more(1)})
		first, second := p.start(), p.start()
		first(errCall)
		p.is(isClosed)
		second(errCall)
		p.is(isOpen)
	}},
	{"errors", func(t *testing.T) {
		p := likeGobreaker(t, gobreaker.Settings{ReadyToTrip: onFailure})
		p.admits(1, errCall)
		_, peer := p.peer.allow()
		_, ours := p.ours.allow()
		assert.ErrorIs(t, peer, gobreaker.ErrOpenState)
		assert.ErrorIs(t, ours, atomicbreaker.ErrOpen)
		assert.ErrorIs(t, ours, atomicbreaker.ErrRejected)
		p.opensFor(time.Minute)
		p.probes(1)
		_, peer = p.peer.allow()
		_, ours = p.ours.allow()
		assert.ErrorIs(t, peer, gobreaker.ErrTooManyRequests)
		assert.ErrorIs(t, ours, atomicbreaker.ErrTooManyProbes)
		assert.ErrorIs(t, ours, atomicbreaker.ErrRejected)
	}},

	{"consecutive", func(t *testing.T) {
		st := gobreaker.Settings{ReadyToTrip: more(2)}
		for _, p := range []pair{likeGobreaker(t, st), besideGobreaker(t, st, atomicbreaker.Config{
			Policy: atomicbreaker.Consecutive(3),
		})} {
			p.admits(2, errCall)
			p.admits(1, nil)
			p.admits(2, errCall)
			pass(24 * time.Hour)
			p.is(isClosed)
			p.admits(1, errCall)
			p.is(isOpen)
		}
	}},
	{"consecutive-interval", func(t *testing.T) {
		for _, st := range []gobreaker.Settings{
			{Interval: time.Minute}, // and nil, more than 5
			{Interval: time.Minute, ReadyToTrip: more(5)},
		} {
			for _, p := range []pair{likeGobreaker(t, st), besideGobreaker(t, st, atomicbreaker.Config{
				Policy: atomicbreaker.TripFunc(time.Minute, 0, func(c atomicbreaker.Counts) bool {
					return min(c.Consecutive, c.Failures) > 5
				}),
			})} {
				p.admits(5, errCall)
				pass(2 * time.Minute)
				p.admits(5, errCall)
				p.is(isClosed)
				p.admits(1, errCall)
				p.is(isOpen)
			}
		}
		// Consecutive would remember.
		p := besideGobreaker(t, gobreaker.Settings{Interval: time.Minute}, atomicbreaker.Config{Policy: atomicbreaker.Consecutive(6)})
		p.admits(5, errCall)
		pass(2 * time.Minute)
		p.admits(1, errCall)
		p.peer.is(isClosed)
		p.ours.is(isOpen)
	}},
	{"count", func(t *testing.T) {
		st := gobreaker.Settings{Interval: time.Minute, ReadyToTrip: total(3)}
		for _, p := range []pair{likeGobreaker(t, st), besideGobreaker(t, st, atomicbreaker.Config{
			Policy: atomicbreaker.FailureCount(3, time.Minute),
		})} {
			p.admits(2, errCall)
			pass(2 * time.Minute)
			p.admits(2, errCall)
			p.admits(50, nil)
			p.is(isClosed)
			p.admits(1, errCall)
			p.is(isOpen)
		}
	}},
	{"rate", func(t *testing.T) {
		st := gobreaker.Settings{Interval: time.Minute, ReadyToTrip: share(0.6, 20)}
		for _, p := range []pair{likeGobreaker(t, st), besideGobreaker(t, st, atomicbreaker.Config{
			Policy: atomicbreaker.FailureRate(0.6, 20, time.Minute),
		})} {
			p.admits(8, nil)
			p.admits(11, errCall)
			p.is(isClosed) // there are no twenty yet
			p.admits(1, errCall)
			p.is(isOpen)
		}
	}},
	{"rate-third", func(t *testing.T) {
		st := gobreaker.Settings{Interval: time.Minute, ReadyToTrip: share(2.0/3, 3)}
		p := besideGobreaker(t, st, atomicbreaker.Config{Policy: atomicbreaker.FailureRate(2.0/3, 3, time.Minute)})
		p.admits(1, nil)
		p.admits(1, errCall)
		p.is(isClosed)
		p.admits(1, errCall)
		p.is(isOpen)
	}},
	{"either", func(t *testing.T) {
		st := gobreaker.Settings{Interval: time.Minute, ReadyToTrip: func(c gobreaker.Counts) bool {
			return total(3)(c) || share(0.5, 2)(c)
		}}
		policy := atomicbreaker.AnyOf(atomicbreaker.FailureCount(3, time.Minute), atomicbreaker.FailureRate(0.5, 2, time.Minute))
		for _, p := range []pair{likeGobreaker(t, st), besideGobreaker(t, st, atomicbreaker.Config{Policy: policy})} {
			p.admits(1, nil)
			p.admits(1, errCall)
			p.is(isOpen)
		}
		for _, p := range []pair{likeGobreaker(t, st), besideGobreaker(t, st, atomicbreaker.Config{Policy: policy})} {
			p.admits(50, nil)
			p.admits(2, errCall)
			p.is(isClosed)
			p.admits(1, errCall)
			p.is(isOpen)
		}
	}},
	{"function", func(t *testing.T) {
		// Both of two conditions, which no policy is.
		st := gobreaker.Settings{Interval: time.Minute, ReadyToTrip: func(c gobreaker.Counts) bool {
			return c.ConsecutiveFailures >= 2 && c.TotalFailures >= 4 && c.TotalSuccesses >= 2
		}}
		for _, p := range []pair{likeGobreaker(t, st), besideGobreaker(t, st, atomicbreaker.Config{
			Policy: atomicbreaker.TripFunc(time.Minute, 0, func(c atomicbreaker.Counts) bool {
				return c.Consecutive >= 2 && c.Failures >= 4 && c.Calls-c.Failures >= 2
			}),
		})} {
			p.admits(3, errCall)
			p.admits(2, nil)
			p.admits(1, errCall)
			p.is(isClosed)
			p.admits(1, errCall)
			p.is(isOpen)
		}
	}},
	{"no-interval", func(t *testing.T) {
		st := gobreaker.Settings{ReadyToTrip: share(0.5, 20)}
		for _, p := range []pair{likeGobreaker(t, st), besideGobreaker(t, st, atomicbreaker.Config{
			Policy: atomicbreaker.FailureRate(0.5, 20, 365*24*time.Hour),
		})} {
			p.admits(10, nil)
			pass(300 * 24 * time.Hour)
			p.admits(9, errCall)
			p.is(isClosed)
			p.admits(1, errCall)
			p.is(isOpen)
		}
		// The year is over for ours.
		p := likeGobreaker(t, st)
		p.admits(10, nil)
		pass(400 * 24 * time.Hour)
		p.admits(10, errCall)
		p.peer.is(isOpen)
		p.ours.is(isClosed)
	}},
	{"bucket-period", func(t *testing.T) {
		// 10 s are 12 in buckets of 4, which begin with the breaker.
		st := gobreaker.Settings{Interval: 10 * time.Second, BucketPeriod: 4 * time.Second, ReadyToTrip: total(2)}
		converted, err := FromGobreaker(st)
		require.NoError(t, err)
		byHand := atomicbreaker.Config{Policy: atomicbreaker.FailureCount(2, 12*time.Second)}
		for _, c := range []atomicbreaker.Config{converted, byHand} {
			p := besideGobreaker(t, st, c)
			p.admits(1, errCall)
			pass(14 * time.Second)
			p.admits(1, errCall)
			p.is(isClosed)
			pass(9 * time.Second)
			p.admits(1, errCall)
			p.is(isOpen)

			p = besideGobreaker(t, st, c)
			p.admits(1, errCall)
			pass(11500 * time.Millisecond) // more than 10 and a fifteenth
			p.admits(1, errCall)
			p.is(isOpen)

			// Up to a BucketPeriod earlier it is forgotten there, and here up to
			// a fifteenth of the window later.
			p = besideGobreaker(t, st, c)
			pass(3 * time.Second)
			p.admits(1, errCall)
			pass(10 * time.Second)
			p.admits(1, errCall)
			p.peer.is(isClosed)
			p.ours.is(isOpen)
		}
	}},

	{"timeout", func(t *testing.T) {
		st := gobreaker.Settings{Timeout: 30 * time.Second, ReadyToTrip: onFailure}
		for _, p := range []pair{likeGobreaker(t, st), besideGobreaker(t, st, atomicbreaker.Config{
			Policy: atomicbreaker.Consecutive(1), OpenTimeout: 30 * time.Second,
		})} {
			p.admits(1, errCall)
			for range 12 {
				p.opensFor(30 * time.Second)
				p.probes(1)[0](errCall)
			}
		}
		_, err := FromGobreaker(gobreaker.Settings{Timeout: 400 * 24 * time.Hour})
		assert.ErrorContains(t, err, "Timeout 9600h")
	}},
	{"timeout-zero", func(t *testing.T) {
		for _, timeout := range []time.Duration{0, -time.Second} {
			p := likeGobreaker(t, gobreaker.Settings{Timeout: timeout, ReadyToTrip: onFailure})
			p.admits(1, errCall)
			for range 12 {
				p.opensFor(time.Minute)
				p.probes(1)[0](errCall)
			}
		}
		// A negative OpenTimeout means something else.
		p := besideGobreaker(t, gobreaker.Settings{Timeout: -1, ReadyToTrip: onFailure}, atomicbreaker.Config{
			Policy: atomicbreaker.Consecutive(1), OpenTimeout: -1,
		})
		p.admits(1, errCall)
		pass(24 * time.Hour)
		p.peer.is(isHalfOpen)
		p.ours.is(isOpen)
	}},
	{"timeout-doubles", func(t *testing.T) {
		st := gobreaker.Settings{Timeout: time.Minute, ReadyToTrip: onFailure}
		p := besideGobreaker(t, st, atomicbreaker.Config{Policy: atomicbreaker.Consecutive(1), MaxOpenTimeout: 10 * time.Minute})
		p.admits(1, errCall)
		for _, minutes := range []time.Duration{1, 2, 4, 8, 10, 10} {
			p.ours.is(isOpen)
			pass(time.Minute + time.Millisecond)
			p.peer.admits(1, errCall)
			if minutes > 1 {
				p.ours.rejects(1)
			}
			pass((minutes-1)*time.Minute + time.Millisecond)
			p.ours.admits(1, errCall)
		}
	}},

	{"max-requests-one", func(t *testing.T) {
		for _, n := range []uint32{0, 1} {
			p := likeGobreaker(t, gobreaker.Settings{MaxRequests: n, ReadyToTrip: onFailure})
			p.admits(1, errCall)
			p.opensFor(time.Minute)
			p.probes(1)[0](errCall)
			p.opensFor(time.Minute)
			p.probes(1)[0](nil)
			p.is(isClosed)
		}
	}},
	{"max-requests", func(t *testing.T) {
		for _, n := range []int{2, 3, 31} {
			p := likeGobreaker(t, gobreaker.Settings{MaxRequests: uint32(n), ReadyToTrip: onFailure})
			p.admits(1, errCall)

			p.opensFor(time.Minute) // together
			for i, done := range p.probes(n) {
				p.is(isHalfOpen)
				if i == n-1 {
					done(errCall) // any one opens it again
				} else {
					done(nil)
				}
			}
			p.opensFor(time.Minute) // and one after another
			p.admits(n-1, nil)
			p.is(isHalfOpen)
			p.admits(1, nil)
			p.is(isClosed)
		}
	}},
	{"max-requests-32", func(t *testing.T) {
		st := gobreaker.Settings{MaxRequests: 32, ReadyToTrip: onFailure}
		_, err := FromGobreaker(st)
		require.ErrorContains(t, err, "MaxRequests 32")
		p := besideGobreaker(t, st, atomicbreaker.Config{Policy: atomicbreaker.Consecutive(1), Probes: 31, CloseAfter: 31})
		p.admits(1, errCall)
		p.opensFor(time.Minute)
		p.admits(31, nil)
		p.ours.is(isClosed)
		p.peer.is(isHalfOpen)
		p.peer.admits(1, nil)
		p.peer.is(isClosed)
	}},
	{"excluded-probe", func(t *testing.T) {
		p := likeGobreaker(t, gobreaker.Settings{
			ReadyToTrip: onFailure,
			IsExcluded:  func(err error) bool { return errors.Is(err, context.Canceled) },
		})
		p.admits(1, errCall)
		p.opensFor(time.Minute)
		for range 5 { // each gives its place back
			p.probes(1)[0](context.Canceled)
			p.is(isHalfOpen)
		}
		p.probes(1)[0](nil)
		p.is(isClosed)
	}},

	{"is-successful", func(t *testing.T) {
		notFound := errors.New("not found")
		p := likeGobreaker(t, gobreaker.Settings{
			ReadyToTrip:  more(1),
			IsSuccessful: func(err error) bool { return err == nil || errors.Is(err, notFound) },
		})
		p.admits(1, errCall)
		p.admits(1, fmt.Errorf("lookup: %w", notFound)) // in between
		p.admits(1, errCall)
		p.is(isClosed)
		p.admits(1, errCall)
		p.is(isOpen)
	}},
	{"is-excluded", func(t *testing.T) {
		both := errors.New("both")
		p := likeGobreaker(t, gobreaker.Settings{
			ReadyToTrip:  more(1),
			IsSuccessful: func(err error) bool { return err == nil || errors.Is(err, both) },
			IsExcluded:   func(err error) bool { return errors.Is(err, both) },
		})
		p.admits(1, errCall)
		p.admits(1, both) // it is excluded first, so it is not in between
		p.admits(1, errCall)
		p.is(isOpen)
	}},
	{"nil-errors", func(t *testing.T) {
		never, always := func(error) bool { return false }, func(error) bool { return true }
		_, err := FromGobreaker(gobreaker.Settings{IsSuccessful: never, IsExcluded: always})
		require.ErrorContains(t, err, "IsSuccessful")
		require.ErrorContains(t, err, "IsExcluded")
		p := besideGobreaker(t, gobreaker.Settings{IsSuccessful: never, ReadyToTrip: onFailure}, atomicbreaker.Config{
			Policy:   atomicbreaker.Consecutive(1),
			Classify: func(context.Context, error) atomicbreaker.Outcome { return atomicbreaker.Failure },
		})
		p.admits(1, nil)
		p.peer.is(isOpen)
		p.ours.is(isClosed)
		ours := atomicbreaker.MustNew(atomicbreaker.Config{Policy: atomicbreaker.Consecutive(1)})
		_, err = atomicbreaker.ExecuteResult(t.Context(), ours, func(context.Context) (int, error) { return 0, nil },
			func(int, error) atomicbreaker.Outcome { return atomicbreaker.Failure })
		require.NoError(t, err)
		breakerSide(t, ours).is(isOpen)
	}},
	{"cancelled", func(t *testing.T) {
		st := gobreaker.Settings{ReadyToTrip: onFailure}
		for _, result := range []error{context.Canceled, atomicbreaker.ErrOpen} {
			p := likeGobreaker(t, st)
			p.admits(1, result)
			p.is(isOpen)
			p = besideGobreaker(t, st, atomicbreaker.Config{Policy: atomicbreaker.Consecutive(1)})
			p.admits(1, result)
			p.peer.is(isOpen)
			p.ours.is(isClosed)
		}
		// Whatever the error, if the context is known.
		peer, ours := gobreaker.NewCircuitBreaker[int](st), atomicbreaker.MustNew(atomicbreaker.Config{Policy: atomicbreaker.Consecutive(1)})
		_, cancel := context.WithCancel(t.Context())
		_, _ = peer.Execute(func() (int, error) { cancel(); return 0, errCall })
		assert.Equal(t, gobreaker.StateOpen, peer.State())
		ctx, cancel := context.WithCancel(t.Context())
		_ = ours.Do(ctx, func(context.Context) error { cancel(); return errCall })
		assert.Equal(t, atomicbreaker.Closed, ours.State())
	}},

	{"on-state-change", func(t *testing.T) {
		st := gobreaker.Settings{Name: "billing", ReadyToTrip: onFailure}
		var told []string
		st.OnStateChange = func(name string, from, to gobreaker.State) {
			told = append(told, fmt.Sprint(name, ": ", from, " to ", to))
		}
		c, err := FromGobreaker(st)
		require.NoError(t, err)
		for _, s := range []side{gobreakerSide(t, gobreaker.NewTwoStepCircuitBreaker[int](st)), latchfreeSide(t, c)} {
			told = nil
			s.admits(1, errCall)
			pass(time.Minute + 2*time.Millisecond)
			s.admits(1, errCall)
			pass(time.Minute + 2*time.Millisecond)
			s.admits(1, nil)
			assert.Equal(t, []string{
				"billing: closed to open", "billing: open to half-open", "billing: half-open to open",
				"billing: open to half-open", "billing: half-open to closed",
			}, told, s.impl)
		}
	}},
	{"counts", func(t *testing.T) {
		st := gobreaker.Settings{Name: "billing", Interval: time.Minute, ReadyToTrip: total(3)}
		c, err := FromGobreaker(st)
		require.NoError(t, err)
		peer, ours := gobreaker.NewTwoStepCircuitBreaker[int](st), atomicbreaker.MustNew(c)
		p := pair{gobreakerSide(t, peer), breakerSide(t, ours)}
		p.admits(4, nil)
		p.admits(2, errCall)
		there, here := peer.Counts(), ours.Snapshot()
		assert.Equal(t, peer.Name(), here.Name)
		assert.Equal(t, gobreaker.Counts{Requests: 6, TotalSuccesses: 4, TotalFailures: 2, ConsecutiveFailures: 2}, there)
		assert.Equal(t, atomicbreaker.Counts{Calls: 6, Failures: 2, Consecutive: 2}, here.Window)
		// Without windows nothing but failures is counted.
		ours = atomicbreaker.MustNew(atomicbreaker.Config{Policy: atomicbreaker.Consecutive(6)})
		s := breakerSide(t, ours)
		s.admits(4, nil)
		s.admits(2, errCall)
		assert.Equal(t, 2, ours.Snapshot().Failures)
		assert.Zero(t, ours.Snapshot().Window.Calls)
	}},

	{"map", func(t *testing.T) {
		st := gobreaker.Settings{}
		c, err := FromGobreaker(st)
		require.NoError(t, err)
		hosts := atomicbreaker.MustNewGroup(atomicbreaker.GroupConfig[string]{Default: c, ForgetAfter: -1})
		var mu sync.Mutex
		breakers := map[string]*gobreaker.TwoStepCircuitBreaker[int]{}
		of := func(host string) pair {
			mu.Lock()
			defer mu.Unlock()
			if breakers[host] == nil {
				breakers[host] = gobreaker.NewTwoStepCircuitBreaker[int](st)
			}
			return pair{gobreakerSide(t, breakers[host]), groupSide(t, hosts, host)}
		}
		of("db-1").admits(5, errCall)
		of("db-2").admits(5, errCall)
		of("db-2").admits(1, nil)
		pass(24 * time.Hour)
		of("db-1").admits(1, errCall)
		of("db-1").is(isOpen)
		of("db-2").is(isClosed)
		of("db-1").opensFor(time.Minute)
		of("db-1").probes(1)[0](nil)
		of("db-1").is(isClosed)
		assert.Len(t, breakers, 2)
		assert.Zero(t, hosts.Len(), "healthy keys are not stored")
	}},
	{"distributed", func(t *testing.T) {
		store := &sharedStore{data: map[string][]byte{}}
		st := gobreaker.Settings{Name: "billing", ReadyToTrip: onFailure}
		one, err := gobreaker.NewDistributedCircuitBreaker[int](store, st)
		require.NoError(t, err)
		two, err := gobreaker.NewDistributedCircuitBreaker[int](store, st)
		require.NoError(t, err)
		_, err = one.Execute(func() (int, error) { return 0, errCall })
		require.ErrorIs(t, err, errCall)
		state, err := two.State()
		require.NoError(t, err)
		assert.Equal(t, gobreaker.StateOpen, state)

		c, err := FromGobreaker(st)
		require.NoError(t, err)
		latchfreeSide(t, c).admits(1, errCall)
		latchfreeSide(t, c).is(isClosed) // the name is a name
	}},
}

func groupSide(t *testing.T, g *atomicbreaker.Group[string], key string) side {
	return side{t, "latchfree",
		func() (func(error), error) {
			p, err := g.Allow(key)
			return func(err error) { p.Done(err) }, err
		},
		func() string { return stateName(g.State(key)) },
	}
}

// A sharedStore is what distributed breakers of one process share.
type sharedStore struct {
	mutex sync.Mutex
	data  map[string][]byte
}

func (s *sharedStore) Lock(string) error {
	s.mutex.Lock()
	return nil
}

func (s *sharedStore) Unlock(string) error {
	s.mutex.Unlock()
	return nil
}

func (s *sharedStore) GetData(name string) ([]byte, error) { return s.data[name], nil }

func (s *sharedStore) SetData(name string, data []byte) error {
	s.data[name] = data
	return nil
}

// The test that go-kit has for its breakers: endpoints that have succeeded a
// hundred times fail, gobreaker's lets six of these calls through, and then
// none, until the timeout. So does ours with the settings converted.
func TestGoKitScenario(t *testing.T) {
	type endpoint func(context.Context, any) (any, error)
	peer := func(next endpoint) endpoint {
		b := gobreaker.NewCircuitBreaker[any](gobreaker.Settings{})
		return func(ctx context.Context, request any) (any, error) {
			return b.Execute(func() (any, error) { return next(ctx, request) })
		}
	}
	ours := func(next endpoint) endpoint {
		c, err := FromGobreaker(gobreaker.Settings{})
		require.NoError(t, err)
		b := atomicbreaker.MustNew(c)
		return func(ctx context.Context, request any) (any, error) {
			return atomicbreaker.Execute(b, func() (any, error) { return next(ctx, request) })
		}
	}
	for impl, middleware := range map[string]func(endpoint) endpoint{"gobreaker": peer, "latchfree": ours} {
		t.Run(impl, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				through, failing := 0, false
				e := middleware(func(context.Context, any) (any, error) {
					through++
					if failing {
						return nil, errCall
					}
					return struct{}{}, nil
				})
				for range 100 {
					_, err := e(t.Context(), struct{}{})
					require.NoError(t, err)
				}
				failing, through = true, 0
				for range 6 {
					_, err := e(t.Context(), struct{}{})
					require.Equal(t, errCall, err)
				}
				for range 10 {
					_, err := e(t.Context(), struct{}{})
					require.Error(t, err)
					require.NotErrorIs(t, err, errCall)
				}
				require.Equal(t, 6, through)
				pass(time.Minute + 1)
				failing = false
				_, err := e(t.Context(), struct{}{})
				require.NoError(t, err)
				require.Equal(t, 7, through)
			})
		})
	}
}
