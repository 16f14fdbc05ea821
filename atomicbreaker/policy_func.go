package atomicbreaker

import (
	"fmt"
	"time"
)

// Counts has the counts of a window.
type Counts struct {
	Calls    int // calls that ended
	Failures int // that failed
	Slow     int // that were slow

	// Consecutive is how many of the last calls failed in a row, with a KOfN as far as that
	// looks back. It needs a window, and a TripFunc, Consecutive or KOfN.
	Consecutive int
}

// FailureRate returns the share of calls that failed, 0 without calls.
func (c Counts) FailureRate() float64 { return rate(c.Failures, c.Calls) }

// SlowRate returns the share of calls that were slow, 0 without calls.
func (c Counts) SlowRate() float64 { return rate(c.Slow, c.Calls) }

func rate(n, of int) float64 {
	if of == 0 {
		return 0
	}
	return float64(n) / float64(of)
}

// TripFunc asks trip after each failure, and each call slower than slow, whether to open
// the breaker. If slow is zero, calls are not timed. For the window see FailureRate.
//
// The caller that reports the call to a closed breaker runs trip, at most once, after the call has
// counted and outside any lock: trip must be safe for concurrent use. Its answer is dropped if the
// breaker has changed or was reset since, if its key has left the group, or if trip panics or calls
// runtime.Goexit.
func TripFunc(window, slow time.Duration, trip func(Counts) bool) Policy {
	return tripFunc{window, slow, &trip}
}

// A tripFunc holds a pointer, so that it can be compared: Update keeps the windows
// of a policy that is the same.
type tripFunc struct {
	window, slow time.Duration
	trip         *func(Counts) bool
}

func (p tripFunc) String() string { return fmt.Sprintf("TripFunc(%v, %v, func)", p.window, p.slow) }

func (p tripFunc) addTo(r *rules) error {
	switch {
	case *p.trip == nil:
		return fmt.Errorf("TripFunc(%v, %v, nil): trip must not be nil", p.window, p.slow)
	case p.slow < 0:
		return fmt.Errorf("%v: slow must not be negative", p)
	}
	r.inARow = true
	if err := r.addWindow(p, window{why: ReasonTripFunc, length: p.window, ask: p.trip, timed: p.slow > 0}); err != nil || p.slow == 0 {
		return err
	}
	r.slow = true
	return r.addWindow(p, window{why: ReasonSlowRate, slow: p.slow, length: p.window, beside: true})
}

// ask asks the TripFuncs of a closed stay about a result that has counted there, and left w,
// until one says that it opens the breaker. It opens the breaker unless somebody has ended the
// stay meanwhile. If a function does not return, nothing is left to do.
func (c *core) ask(w word) (Verdict, step) {
	s, held := c.set.Load(), c.windows.Load()
	if held == nil || held.stay != w.stay() {
		return Counted, step{to: w} // the stay is over
	}
	for i, rule := range held.rules {
		if rule.ask == nil {
			continue
		}
		n := held.countsOf(s.now(), i)
		if n.Calls == 0 {
			continue // Update has brought other windows since, or they have gone on
		}
		if n.Consecutive = c.inARow(w); (*rule.ask)(n) {
			work := report{core: c, result: result{outcome: Ignored, how: tripping}, stay: w.stay(), full: tally{ReasonTripFunc, uint64(n.Failures), uint64(n.Calls)}}
			if v, did := work.run(); v != Late {
				return v, did
			}
			break
		}
	}
	return Counted, step{to: w}
}

// countsOf returns what the i-th window of time holds, with the next one if that
// counts its slow calls.
func (h *windows) countsOf(now time.Duration, i int) (c Counts) {
	h.add(&c, now, i)
	if h.rules[i].timed {
		h.add(&c, now, i+1)
	}
	return c
}

// add adds what a window counts, and nothing does yet, to c.
func (h *windows) add(c *Counts, now time.Duration, i int) {
	bad, all := h.rings[i].Sum(now)
	if h.rules[i].why == ReasonSlowRate {
		c.Slow = int(bad)
	} else {
		c.Failures = int(bad)
	}
	if h.rules[i].why != ReasonFailureCount { // that counts no others
		c.Calls = max(c.Calls, int(all))
	}
}

// counts returns what a closed word and its windows count, as the policy s has
// them: of several windows the first that counts failures, among calls if there is
// one that does, and the first that counts slow calls.
func (c *core) counts(w word, s *settings) (n Counts) {
	if s == nil || w.mode() != closed {
		return n
	}
	held := c.windows.Load()
	if held == nil || held.stay != w.stay() || !same(held.rules, s.rules.windows) {
		return n
	}
	n.Consecutive = c.inARow(w.under(s))
	now, slow, failed := s.now(), false, false
	for _, counting := range []bool{true, false} { // those first that count calls
		for i := range held.rules {
			why, seen := held.rules[i].why, &failed
			if why == ReasonSlowRate {
				seen = &slow
			}
			if !*seen && counting == (why != ReasonFailureCount) {
				*seen = true
				held.add(&n, now, i)
			}
		}
	}
	return n
}
