package gobreaker

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	peer "github.com/sony/gobreaker/v2"
)

var (
	errBad   = errors.New("bad")
	errSoft  = errors.New("soft")
	errSkip  = errors.New("skip")
	errPanic = errors.New("panic")
)

// A step is what one call of a breaker did: its results, and what the functions of
// Settings were called with meanwhile.
type step []string

func (s *step) log(format string, args ...any) { *s = append(*s, fmt.Sprintf(format, args...)) }

// settings returns random settings, which log their calls.
func settings(r *rand.Rand, log *step, trip func(Counts) bool) Settings {
	st := Settings{Name: fmt.Sprint("cb", r.IntN(3))}
	if r.IntN(4) != 0 {
		st.MaxRequests = uint32([]int{1, 2, 3, 5, 31, 32, 40}[r.IntN(7)])
	}
	durations := []time.Duration{-1, 0, 1, 700 * time.Nanosecond, time.Millisecond - 1, 1500 * time.Microsecond, time.Second, 10*time.Second + 1, time.Minute, never}
	st.Interval = durations[r.IntN(len(durations))]
	if st.Interval > 0 && st.Interval < never {
		if n := r.IntN(12); n > 3 {
			st.BucketPeriod = max(1, st.Interval/time.Duration(n-3)) + time.Duration(r.IntN(2))
		}
	}
	st.Timeout = durations[r.IntN(len(durations)-1)]
	if r.IntN(8) == 0 {
		st.Timeout = 500 * 24 * time.Hour
	}
	if trip != nil {
		st.ReadyToTrip = func(c Counts) bool {
			log.log("ready %+v", c)
			return trip(c)
		}
	}
	st.OnStateChange = func(name string, from, to State) {
		log.log("%s: %v to %v", name, from, to)
	}
	if r.IntN(2) == 0 {
		st.IsExcluded = func(err error) bool {
			log.log("excluded? %v", err)
			return err == errSkip
		}
	}
	if kind := r.IntN(4); kind > 1 {
		st.IsSuccessful = func(err error) bool {
			log.log("successful? %v", err)
			if err == errPanic {
				panic("classifier")
			}
			return err == errSoft || (err == nil) == (kind == 2)
		}
	}
	if r.IntN(3) == 0 {
		listener := st.OnStateChange
		st.OnStateChange = func(name string, from, to State) {
			listener(name, from, to)
			if from == StateHalfOpen {
				panic("listener")
			}
		}
	}
	return st
}

// tripFunc returns a random function; functions of the same seed do the same.
func tripFunc(r *rand.Rand) func(Counts) bool {
	n := uint32(r.IntN(6) + 1)
	return []func(Counts) bool{
		nil,
		func(c Counts) bool { return c.ConsecutiveFailures >= n },
		func(c Counts) bool { return c.TotalFailures >= n },
		func(c Counts) bool { return c.Requests >= n && c.TotalFailures*2 >= c.Requests-c.TotalExclusions },
		func(c Counts) bool { // of all numbers, and it panics
			h := c.Requests*31 + c.TotalSuccesses*37 + c.TotalFailures*41 + c.TotalExclusions*43 + c.ConsecutiveFailures*47 + c.ConsecutiveSuccesses*53
			if h%11 == 0 {
				panic("ready")
			}
			return h%(n+4) == 0
		},
		func(Counts) bool { return true },
	}[r.IntN(6)]
}

func peerSettings(st Settings) peer.Settings {
	p := peer.Settings{
		Name: st.Name, MaxRequests: st.MaxRequests, Interval: st.Interval, BucketPeriod: st.BucketPeriod, Timeout: st.Timeout,
		IsSuccessful: st.IsSuccessful, IsExcluded: st.IsExcluded,
	}
	if st.ReadyToTrip != nil {
		p.ReadyToTrip = func(c peer.Counts) bool { return st.ReadyToTrip(Counts(c)) }
	}
	if st.OnStateChange != nil {
		p.OnStateChange = func(name string, from, to peer.State) { st.OnStateChange(name, State(from), State(to)) }
	}
	return p
}

// A pair is the same breaker of both packages, each as CircuitBreaker or as
// TwoStepCircuitBreaker.
type pair struct {
	sides [2]*side
}

type side struct {
	log     step
	execute func(func() (int, error)) (int, error)
	allow   func() (func(error), error)
	state   func() string
	counts  func() Counts
	core    *core
}

func newPair(seed uint64, twoStep bool) (p *pair, st Settings) {
	p = &pair{[2]*side{{}, {}}}
	make := func(s *side) Settings {
		r := rand.New(rand.NewPCG(seed, 2))
		trip := tripFunc(r)
		return settings(r, &s.log, trip)
	}
	ours, theirs := p.sides[0], p.sides[1]
	st = make(ours)
	if twoStep {
		b, o := NewTwoStepCircuitBreaker[int](st), peer.NewTwoStepCircuitBreaker[int](peerSettings(make(theirs)))
		ours.allow, theirs.allow = b.Allow, o.Allow
		ours.state, theirs.state = func() string { return b.State().String() }, func() string { return o.State().String() }
		ours.counts, theirs.counts = b.Counts, func() Counts { return Counts(o.Counts()) }
		ours.log.log("name %s", b.Name())
		theirs.log.log("name %s", o.Name())
		ours.core = &b.core
	} else {
		b, o := NewCircuitBreaker[int](st), peer.NewCircuitBreaker[int](peerSettings(make(theirs)))
		ours.execute, theirs.execute = b.Execute, o.Execute
		ours.state, theirs.state = func() string { return b.State().String() }, func() string { return o.State().String() }
		ours.counts, theirs.counts = b.Counts, func() Counts { return Counts(o.Counts()) }
		ours.log.log("name %s", b.Name())
		theirs.log.log("name %s", o.Name())
		ours.core = &b.core
	}
	ours.core.lostAfter = never // TestLostProbes is about that
	return p, st
}

// both runs f on both sides and fails if it did different things.
func (p *pair) both(t *testing.T, what string, f func(*side, int)) {
	t.Helper()
	for i, s := range p.sides {
		func() {
			defer func() {
				if e := recover(); e != nil {
					s.log.log("panic %v", e)
				}
			}()
			f(s, i)
		}()
		s.log.log("%+v", s.counts())
	}
	if !reflect.DeepEqual(p.sides[0].log, p.sides[1].log) {
		t.Fatalf("%s:\n%q\ngobreaker:\n%q", what, p.sides[0].log, p.sides[1].log)
	}
	p.sides[0].log, p.sides[1].log = nil, nil
}

// TestAgainstGobreaker makes the same random calls of both packages with the same
// random settings. After each it compares the results, all counts, and every call of
// a function of the settings, with its arguments. Several calls are in flight,
// and some are reported twice. Functions panic.
func TestAgainstGobreaker(t *testing.T) {
	seeds := 1500
	if testing.Short() {
		seeds = 300
	}
	states := map[string]int{}
	for seed := range uint64(seeds) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			twoStep := r.IntN(2) == 0
			p, st := newPair(seed, twoStep)
			what := func(i int, op string) string { return fmt.Sprintf("seed %d (%+v), step %d, %s", seed, st, i, op) }
			var open [][2]func(error)
			for i := range 150 {
				result := []error{nil, nil, errBad, errBad, errBad, errSoft, errSkip}[r.IntN(7)]
				half := p.sides[0].core.current.Load().state == StateHalfOpen
				if !half && r.IntN(20) == 0 {
					result = errPanic // while half-open, see TestClassifierPanics
				}
				if r.IntN(12) == 0 {
					p.both(t, what(i, "state"), func(s *side, _ int) { states[s.state()]++; s.log.log("%s", s.state()) })
				}
				switch op := r.IntN(10); {
				case op == 0:
					d := []time.Duration{1, st.Timeout, st.Timeout + 1, st.Interval, st.Interval/2 + 1, st.BucketPeriod, st.BucketPeriod + 1, time.Minute + 1}[r.IntN(8)]
					if d < 1000*24*time.Hour {
						time.Sleep(d)
					}
				case !twoStep:
					p.both(t, what(i, "execute"), func(s *side, _ int) {
						v, err := s.execute(func() (int, error) {
							if op == 1 {
								panic(result)
							}
							return i, result
						})
						s.log.log("%d, %v", v, err)
					})
				case op < 5 && len(open) < 25:
					var done [2]func(error)
					p.both(t, what(i, "allow"), func(s *side, side int) {
						var err error
						done[side], err = s.allow()
						s.log.log("%v", err)
					})
					if done[0] != nil {
						open = append(open, done)
					}
				case len(open) != 0:
					n := r.IntN(len(open))
					p.both(t, what(i, "done"), func(s *side, side int) { open[n][side](result) })
					if r.IntN(8) != 0 {
						open[n] = open[len(open)-1]
						open = open[:len(open)-1]
					}
				}
			}
		})
	}
	for _, s := range []string{"closed", "half-open", "open"} {
		if states[s] < seeds/10 {
			t.Errorf("%s only %d times", s, states[s])
		}
	}
}
