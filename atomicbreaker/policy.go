package atomicbreaker

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker/internal/ring"
)

// Policy says when a closed breaker opens. String returns the call that makes it.
type Policy interface {
	fmt.Stringer
	addTo(*rules) error
}

// rules are a policy as results are checked against it. They never change.
type rules struct {
	threshold  uint32        // of failures in a row; zero: they are not counted
	inRowAlone uint32        // one less if nothing else is counted, else 0: up to it a failure opens nothing
	kOfN       []kOfN        // of the last calls; then threshold is zero
	last       int           // how many calls they look back on at most
	windows    []window      // of time
	span       time.Duration // after which nothing of a call is in any of them
	asks       bool          // whether any of them is a TripFunc's
	inARow     bool          // whether failures in a row are counted for those
	rates      bool          // whether any of the windows counts successes
	slow       bool          // whether any of the windows needs to know how long a call took
}

// compilePolicy returns the rules of a policy, nil being the default.
func compilePolicy(p Policy) (*rules, error) {
	if p == nil {
		p = Consecutive(defaultThreshold)
	}
	r := new(rules)
	err := p.addTo(r)
	if row := int(r.threshold); err == nil && row != 0 && len(r.kOfN) != 0 {
		if row > maxLast {
			err = fmt.Errorf("%v: with a KOfN must be at most Consecutive(%d)", Consecutive(row), maxLast)
		}
		r.kOfN, r.last, r.threshold = append(r.kOfN, kOfN{row, row}), max(r.last, row), 0 // which is the same
	}
	if err != nil {
		return nil, fmt.Errorf("atomicbreaker: Config.Policy: %w", err)
	}
	if r.threshold != 0 && len(r.windows) == 0 {
		r.inRowAlone = r.threshold - 1
	}
	return r, nil
}

// Consecutive opens the breaker on exactly the n-th failure in a row, however long ago the
// others were. n must be positive.
func Consecutive(n int) Policy { return consecutive(n) }

type consecutive int

func (n consecutive) String() string { return fmt.Sprintf("Consecutive(%d)", int(n)) }

func (n consecutive) addTo(r *rules) error {
	if n < 1 || int64(n) > math.MaxInt32 {
		return fmt.Errorf("%v: must be in 1..%d", n, math.MaxInt32)
	}
	if r.threshold == 0 || uint32(n) < r.threshold {
		r.threshold = uint32(n)
	}
	return nil
}

// KOfN opens the breaker on the failure that makes exactly k failures among the last n calls,
// Ignored calls aside. k must be in 1..n, and n at most 1024. A failure rate of ratio is
// KOfN(ceil(ratio*n), n).
//
// While any of the last n calls has failed, every result writes to the breaker's state,
// and each failure but the first to a log of 0.4 KiB, which grows to 4 KiB with the number of
// failures until n successes in a row.
func KOfN(k, n int) Policy { return kOfN{k, n} }

type kOfN struct{ k, n int }

func (p kOfN) String() string { return fmt.Sprintf("KOfN(%d, %d)", p.k, p.n) }

func (p kOfN) addTo(r *rules) error {
	if p.n < 1 || p.n > maxLast {
		return fmt.Errorf("%v: n must be in 1..%d", p, maxLast)
	}
	if p.k < 1 || p.k > p.n {
		return fmt.Errorf("%v: k must be in 1..n", p)
	}
	r.kOfN, r.last = append(r.kOfN, p), max(r.last, p.n)
	return nil
}

// AnyOf opens the breaker as soon as one of the policies does. Beside a KOfN, the n of a
// Consecutive is at most 1024.
func AnyOf(policies ...Policy) Policy { return anyOf(slices.Clone(policies)) }

type anyOf []Policy

func (p anyOf) String() string {
	texts := make([]string, len(p))
	for i, each := range p {
		texts[i] = fmt.Sprint(each)
	}
	return "AnyOf(" + strings.Join(texts, ", ") + ")"
}

func (p anyOf) addTo(r *rules) error {
	if len(p) == 0 {
		return errors.New("AnyOf(): must not be empty")
	}
	for i, each := range p {
		if each == nil {
			return fmt.Errorf("AnyOf: policy %d is nil", i)
		}
		if err := each.addTo(r); err != nil {
			return err
		}
	}
	return nil
}

// FailureRate opens the breaker on a failure if at least minCalls calls ended in the window
// and at least ratio of them failed. ratio must be above 0 and at most 1, and is rounded
// down to a millionth; minCalls and window must be positive.
//
// A call that is not Ignored counts for the window, and at most a fifteenth of it and 16 µs longer.
// If one processor ends more than a million calls in a fifteenth, the older ones weigh half, so that
// a larger minCalls may never be reached. A window begins when the breaker closes; for a key of a
// Group, with its first failure, so choose minCalls high enough.
//
// Every call reads the clock and adds to a counter of its processor.
func FailureRate(ratio float64, minCalls int, window time.Duration) Policy {
	return windowPolicy{ReasonFailureRate, ratio, 0, minCalls, window}
}

// FailureCount opens the breaker on the n-th failure in the window. n must be in 1..524288.
// For the window see FailureRate; successes write nothing.
func FailureCount(n int, window time.Duration) Policy {
	return windowPolicy{ReasonFailureCount, 1, 0, n, window}
}

// SlowRate is FailureRate with slow calls in place of failures: those that take longer than
// slow from Allow to the report, whether or not they succeed. A slow probe has failed.
//
// Every call reads the clock at its beginning too. Times are kept to a microsecond, up to
// 26 days. A call that began before Update brought a SlowRate is not slow. With PerKey,
// calls of absent keys are timed only if Default has a SlowRate too.
func SlowRate(ratio float64, slow time.Duration, minCalls int, window time.Duration) Policy {
	return windowPolicy{ReasonSlowRate, ratio, slow, minCalls, window}
}

// A windowPolicy is a FailureRate, a FailureCount or a SlowRate.
type windowPolicy struct {
	why    Reason
	ratio  float64
	slow   time.Duration
	n      int // of calls, or of failures if only these count
	length time.Duration
}

func (p windowPolicy) String() string {
	switch p.why {
	case ReasonFailureCount:
		return fmt.Sprintf("FailureCount(%d, %v)", p.n, p.length)
	case ReasonSlowRate:
		return fmt.Sprintf("SlowRate(%v, %v, %d, %v)", p.ratio, p.slow, p.n, p.length)
	}
	return fmt.Sprintf("FailureRate(%v, %d, %v)", p.ratio, p.n, p.length)
}

func (p windowPolicy) addTo(r *rules) error {
	switch {
	case p.slow < 0:
		return fmt.Errorf("%v: slow must not be negative", p)
	case p.why == ReasonFailureCount && (p.n < 1 || p.n > ring.Exact):
		return fmt.Errorf("%v: n must be in 1..%d", p, ring.Exact)
	case !(p.ratio > 0 && p.ratio <= 1): // NaN too
		return fmt.Errorf("%v: ratio must be above 0 and at most 1", p)
	case p.n < 1:
		return fmt.Errorf("%v: minCalls must be positive", p)
	}
	r.slow = r.slow || p.why == ReasonSlowRate
	return r.addWindow(p, window{why: p.why, ppm: millionths(p.ratio), atLeast: uint64(p.n), slow: p.slow, length: p.length})
}

// addWindow adds a window of a policy.
func (r *rules) addWindow(p Policy, w window) error {
	if w.length <= 0 {
		return fmt.Errorf("%v: window must be positive", p)
	}
	r.windows = append(r.windows, w)
	r.asks = r.asks || w.ask != nil
	r.span = max(r.span, ring.Span(w.length))
	r.rates = r.rates || w.why != ReasonFailureCount
	return nil
}

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
func (c *core) ask(w word, r result) (Verdict, step) {
	s, held := c.set.Load(), c.windows.Load()
	if held.stay != w.stay() {
		return Counted, step{to: w} // the stay is over
	}
	for i, rule := range held.rules {
		if rule.ask == nil || r.outcome != Failure && !(rule.timed && held.rules[i+1].bad(r)) {
			continue
		}
		var n Counts
		now := s.now()
		if held.add(&n, now, i); rule.timed {
			held.add(&n, now, i+1)
		}
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
	first := func(of ...Reason) int {
		return slices.IndexFunc(held.rules, func(w window) bool { return slices.Contains(of, w.why) })
	}
	failed := first(ReasonFailureRate, ReasonTripFunc)
	if failed < 0 {
		failed = first(ReasonFailureCount)
	}
	now := s.now()
	for _, i := range []int{failed, first(ReasonSlowRate)} {
		if i >= 0 {
			held.add(&n, now, i)
		}
	}
	return n
}
