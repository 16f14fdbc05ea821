package atomicbreaker

import (
	"time"

	"github.com/latchfree/latchfree/atomicbreaker/internal/ring"
	"github.com/latchfree/latchfree/internal/atomics"
)

// A window is a rule about the calls of some time. It is comparable.
type window struct {
	why     Reason // what it counts: failures, or slow calls
	ppm     uint64 // of the calls that must be bad, in millionths
	atLeast uint64 // of calls that must be there, or of failures if only these count
	slow    time.Duration
	length  time.Duration

	ask    *func(Counts) bool // of a TripFunc, which decides
	timed  bool               // whether the next window counts its slow calls
	beside bool               // whether it is such a window, which decides nothing
}

const million = 1_000_000

// millionths rounds a ratio above zero down, and not to zero: of three calls two
// are two thirds. It corrects what floating point has lost of a whole number, as of
// 0.57.
func millionths(ratio float64) uint64 { return max(1, uint64(ratio*million+1e-6)) }

// A tally has the counts of a window that opens a breaker.
type tally struct {
	why        Reason // zero: none has
	bad, calls uint64
}

// bad reports whether a window counts a result as bad.
func (w *window) bad(r result) bool {
	if w.why == ReasonSlowRate {
		return r.took > w.slow
	}
	return r.outcome == Failure
}

// exceeded reports whether a sum is enough to open the breaker. It is exact.
func (w *window) exceeded(bad, calls uint64) bool {
	return calls >= w.atLeast && bad*million >= w.ppm*calls
}

// tooSlow reports whether any window says that a result that is no failure was.
func (r *rules) tooSlow(res result) bool {
	if r.slow {
		for i := range r.windows {
			if r.windows[i].bad(res) {
				return true
			}
		}
	}
	return false
}

// windows are the rings of one closed stay, one for each window of the rules.
type windows struct {
	stay  word
	rules []window
	rings []*ring.Ring
}

// same reports whether two lists of windows are one, which Update has taken
// over, and not merely equal ones.
func same(a, b []window) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

// windowsOf returns the windows of the closed stay, which the caller has seen
// in the core's word. It returns nil if the settings or the stay are not those
// of the core any more.
//
// It retries only if another caller has replaced the windows.
func (c *core) windowsOf(stay word, s *settings) *windows {
	for {
		held := c.windows.Load()
		if held != nil && held.stay == stay && same(held.rules, s.rules.windows) {
			return held
		}
		// Others are in place: of an earlier stay or of earlier settings, if
		// mine are current after I have seen them.
		if word(c.word.Load()).living().stay() != stay || !same(c.set.Load().rules.windows, s.rules.windows) {
			return nil
		}
		fresh := &windows{stay: stay, rules: s.rules.windows}
		for _, w := range s.rules.windows {
			if c.owner != nil { // few keys that fail are called by all processors at once
				fresh.rings = append(fresh.rings, ring.NewSmall(w.length))
			} else {
				fresh.rings = append(fresh.rings, ring.New(w.length, atomics.Stripes()))
			}
		}
		if c.windows.CompareAndSwap(held, fresh) {
			return fresh
		}
	}
}

// count adds a result of the closed stay to its windows, and returns the first
// that has then had enough. A result that no window takes for bad opens none. at is the
// time, read after the word. If ok is false, the stay or the settings are over, and nothing
// was added.
//
// It touches a cell before it adds a result for which that is to be kept; see
// retireStale.
func (c *core) count(stay word, r result, s *settings, at time.Duration) (full tally, ok bool) {
	held := c.windowsOf(stay, s)
	if held == nil {
		return full, false
	}
	if c.owner != nil && (r.is(bad) || s.forgetAfter != 0 && s.forgetAfter < s.rules.span) {
		c.touch(at, touchUnit)
	}
	for i, ring := range held.rings {
		w := &held.rules[i]
		isBad := w.bad(r)
		if w.why == ReasonFailureCount && !isBad {
			continue
		}
		ring.Add(s.epoch, at, isBad)
		if !isBad || full.why != 0 || w.ask != nil || w.beside {
			continue
		}
		// As of now: others may have counted in later ticks than mine, and the last
		// caller that gets this far must see the failures of all.
		if b, n := ring.Sum(s.now()); w.exceeded(b, n) {
			full = tally{w.why, b, n}
		}
	}
	return full, true
}

// pass counts a success in the windows of a Breaker, if that is all that there
// is to do, and reports whether it has: the caller has found the breaker in the
// closed stay that a permit carries, without failures in a row. report.run
// handles all other cases.
func (c *core) pass(stay word, s *settings) bool {
	held := c.windows.Load()
	if held == nil || held.stay != stay || !same(held.rules, s.rules.windows) {
		return false
	}
	// LP(Success): counted in the windows.
	at := s.now()
	for i, ring := range held.rings {
		if held.rules[i].why != ReasonFailureCount {
			ring.Add(s.epoch, at, false)
		}
	}
	return true
}

// quiet reports whether no failure and no slow call is in the windows of the
// closed stay.
func (c *core) quiet(stay word, now time.Duration) bool {
	held := c.windows.Load()
	if held == nil || held.stay != stay {
		return true
	}
	for _, ring := range held.rings {
		if bad, _ := ring.Sum(now); bad != 0 {
			return false
		}
	}
	return true
}

// watchesAll reports whether all successes count, in windows or in totals, and not
// only those after a failure.
func (s *settings) watchesAll() bool { return s.quota == nil && (s.rules.rates || s.totals) }
