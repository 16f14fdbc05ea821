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

// rules are a policy in the form in which results are checked against it. They
// never change.
type rules struct {
	threshold uint32        // of failures in a row; zero: they are not counted
	kOfN      []kOfN        // of the last calls; then threshold is zero
	last      int           // how many calls they look back on at most
	windows   []window      // of time
	span      time.Duration // after which nothing of a call is in any of them
	asks      bool          // whether any of them is a TripFunc's
	inARow    bool          // whether failures in a row are counted for those
	rates     bool          // whether any of the windows counts successes
	slow      bool          // whether any of the windows needs to know how long a call took
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
		r.kOfN, r.threshold = append(r.kOfN, kOfN{row, row}), 0 // which is the same
	}
	if err != nil {
		return nil, fmt.Errorf("atomicbreaker: Config.Policy: %w", err)
	}
	for _, p := range r.kOfN {
		r.last = max(r.last, p.n)
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
	r.kOfN = append(r.kOfN, p)
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
// A call counts for the window, and at most a fifteenth of it and 16 µs longer. A window
// begins when the breaker closes; for a key of a Group, with its first failure, so choose
// minCalls high enough.
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
