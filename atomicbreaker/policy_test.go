//go:build !modelcheck

package atomicbreaker_test

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	ab "github.com/latchfree/latchfree/atomicbreaker"
)

// A list is the naive way to decide: all calls since the breaker was closed,
// and whether they have failed.
type list []bool

// among returns how many of the last n calls have failed.
func (l list) among(n int) (failed int) {
	for _, bad := range l[max(0, len(l)-n):] {
		if bad {
			failed++
		}
	}
	return failed
}

// inARow returns how many calls have failed since the last that has not.
func (l list) inARow() (n int) {
	for n < len(l) && l[len(l)-1-n] {
		n++
	}
	return n
}

// A rule is a policy and what it means for a list that ends with a failure.
type rule struct {
	policy ab.Policy
	trips  func(list) bool
	row    int // how many failures in a row may matter
	last   int // and how many calls; 0: only those
}

// counts returns what the breaker should say are failures.
func (r rule) counts(l list) int {
	if r.last == 0 {
		return l.inARow()
	}
	return l.among(max(r.last, r.row))
}

func consecutive(n int) rule {
	return rule{ab.Consecutive(n), func(l list) bool { return l.inARow() >= n }, n, 0}
}

func kOfN(k, n int) rule {
	return rule{ab.KOfN(k, n), func(l list) bool { return l.among(n) >= k }, 0, n}
}

func anyOf(rules ...rule) rule {
	var policies []ab.Policy
	row, last := 0, 0
	for _, r := range rules {
		policies = append(policies, r.policy)
		row, last = max(row, r.row), max(last, r.last)
	}
	return rule{ab.AnyOf(policies...), func(l list) bool {
		for _, r := range rules {
			if r.trips(l) {
				return true
			}
		}
		return false
	}, row, last}
}

// T12, T13, T46, T48: Consecutive and KOfN decide as a list of all calls does,
// for every size from the smallest on, and with any mixture.
//
// Reported bug 12, rubyist/circuitbreaker: concurrent counts skip the threshold.
// Checks I17, I18.
func TestT12_PoliciesDecideLikeAList(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var rules []rule
	for n := 1; n <= 32; n++ {
		rules = append(rules, consecutive(n), kOfN(n, n), kOfN(1, n), kOfN(1+r.IntN(n), n), kOfN(1+r.IntN(n), n))
	}
	for range 40 {
		n, m := 1+r.IntN(32), 1+r.IntN(32)
		rules = append(rules,
			anyOf(consecutive(n), consecutive(m)),
			anyOf(consecutive(1+r.IntN(32)), kOfN(1+r.IntN(n), n)),
			anyOf(kOfN(1+r.IntN(m), m), anyOf(kOfN(1+r.IntN(n), n), consecutive(1+r.IntN(32)))))
	}
	for _, rule := range rules {
		like(t, r, rule, max(rounds(400), 150), r.Float64)
	}
}

// So do those that look back on more calls than the word has room for.
//
// Reported bug 12, rubyist/circuitbreaker: concurrent counts skip the threshold.
// Checks I17, I18.
func TestT12_LongHistoriesDecideLikeAList(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	of := func(n int) rule { return kOfN(1+r.IntN(n), n) }
	few := func(n int) rule { return kOfN(1+r.IntN(4), n) }
	sizes := []int{33, 34, 63, 64, 65, 100, 500, 1023, 1024}
	for range rounds(8) {
		sizes = append(sizes, 33+r.IntN(992))
	}
	for _, n := range sizes {
		m := 1 + r.IntN(n)
		for _, rule := range []rule{
			of(n), of(n), few(n), few(n), kOfN(n, n), kOfN(2, n), kOfN((n+1)/2, n), kOfN(n/10+1, n),
			anyOf(few(n), of(n)), anyOf(kOfN(min(2, m), m), kOfN(n/10+1, n)), anyOf(of(n), consecutive(m)), anyOf(consecutive(1+r.IntN(1024)), few(n), of(m)),
		} {
			// Calls that fail about as often as it takes, or so seldom that all are
			// forgotten.
			like(t, r, rule, max(rounds(6*n), 3*n), func() float64 {
				return []float64{0, 0.5 / float64(n), 3 / float64(n), 0.1 * r.Float64(), r.Float64(), 1}[r.IntN(6)]
			})
		}
	}
}

// like drives a breaker, a key by permits and a key without by the same random
// calls, and a list.
func like(t *testing.T, r *rand.Rand, rule rule, calls int, rates func() float64) {
	var notified log
	b := ab.MustNew(ab.Config{Policy: rule.policy, OnStateChange: notified.add})
	g := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: rule.policy}})
	var l list
	rate := rates()
	for i := range calls {
		if r.IntN(20+rule.last/2) == 0 {
			rate = rates() // runs of either
		}
		bad := r.Float64() < rate
		want := ab.Counted
		if l = append(l, bad); bad && rule.trips(l) {
			want = ab.Tripped
		}
		p, q := admit(t, b.Allow), admit(t, keyed(g, "permit"))
		got := [3]ab.Verdict{}
		switch {
		case r.IntN(10) == 0: // says nothing, so is not in the list
			l, want = l[:len(l)-1], ab.Counted
			got[0], got[1] = p.Cancel(), q.Cancel()
		case bad:
			got = [3]ab.Verdict{p.Failure(), q.Done(errBoom), g.RecordFailure("record")}
		default:
			got = [3]ab.Verdict{p.Success(), q.Done(nil), g.RecordSuccess("record")}
		}
		if got != [3]ab.Verdict{want, want, want} {
			t.Fatalf("%v, call %d of %v: verdicts %v, want %v", rule.policy, i, l, got, want)
		}
		if want == ab.Tripped {
			if e := notified[len(notified)-1]; e.Failures != rule.counts(l) || e.Reason != ab.ReasonThreshold {
				t.Fatalf("%v: told %+v, want %d failures of %v", rule.policy, e, rule.counts(l), l)
			}
			notified, l = nil, nil
			b.Reset()
			g.Reset("permit")
			wantVerdict(t, g.RecordSuccess("record"), ab.Recovered)
		}
		if n := rule.counts(l); b.Snapshot().Failures != n || g.Snapshot("permit").Failures != n || g.Snapshot("record").Failures != n {
			t.Fatalf("%v: %d failures, want %d of %v", rule.policy, b.Snapshot().Failures, n, l)
		}
	}
	if err := g.CheckQuiet(); err != nil {
		t.Fatal(err)
	}
}

// What a Snapshot and an Event call failures is what the policy counts.
func TestFailuresOfTheLastCalls(t *testing.T) {
	var l log
	b := ab.MustNew(ab.Config{Policy: ab.KOfN(3, 5), OpenTimeout: time.Second, OnStateChange: l.add})
	for i, want := range []int{1, 2, 2, 2, 2, 1, 0} {
		if i < 2 {
			fail(t, b.Allow, 1)
		} else {
			admit(t, b.Allow).Success()
		}
		if got := b.Snapshot().Failures; got != want {
			t.Fatalf("after %d calls %d failures, want %d", i+1, got, want)
		}
	}
	fail(t, b.Allow, 2)
	admit(t, b.Allow).Success()
	wantVerdict(t, fail(t, b.Allow, 1), ab.Tripped)
	l.want(t, ab.Event{To: ab.Open, Reason: ab.ReasonThreshold, Failures: 3, Streak: 1, OpenFor: time.Second})
}

// An event counts the failures among the last of the calls, and not the one
// that the last failure has taken the place of.
func TestFailuresBeforeTheLastCalls(t *testing.T) {
	for _, p := range []ab.Policy{ab.AnyOf(ab.KOfN(2, 3), ab.KOfN(9, 30)), ab.AnyOf(ab.KOfN(2, 3), ab.KOfN(9, 40)), ab.AnyOf(ab.Consecutive(2), ab.KOfN(99, 1000))} {
		for _, late := range []int{0, 1} {
			last, want := 30, 2+late
			if n := p.String(); strings.Contains(n, "40") {
				last = 40
			} else if strings.Contains(n, "1000") {
				last = 1000
			}
			var l log
			b := ab.MustNew(ab.Config{Policy: p, OpenTimeout: time.Second, OnStateChange: l.add})
			fail(t, b.Allow, 1)
			for range last - 2 - late {
				admit(t, b.Allow).Success()
			}
			wantVerdict(t, fail(t, b.Allow, 2), ab.Tripped)
			l.want(t, ab.Event{To: ab.Open, Reason: ab.ReasonThreshold, Failures: want, Streak: 1, OpenFor: time.Second})
		}
	}
}

// T14: a history does not fade, however slow the calls are.
//
// Reported bug 14, gobreaker: failures in a row fade with a window.
// Checks I2, I5.
func TestT14_HistoriesDoNotFade(t *testing.T) {
	subjects(t, ab.Config{Policy: ab.KOfN(2, 32)}, func(t *testing.T, allow allower, reset func()) {
		for range 3 {
			wantVerdict(t, fail(t, allow, 1), ab.Counted)
			for range 30 {
				time.Sleep(100 * time.Hour)
				wantVerdict(t, admit(t, allow).Success(), ab.Counted)
			}
			wantVerdict(t, fail(t, allow, 1), ab.Tripped) // the 32nd
			reset()
			wantVerdict(t, fail(t, allow, 1), ab.Counted)
			for range 31 {
				wantVerdict(t, admit(t, allow).Success(), ab.Counted)
			}
			wantVerdict(t, fail(t, allow, 1), ab.Counted) // the first again: 32 calls ago
			reset()
		}
	})
}

// A recovery and a reset begin a new history.
func TestHistoriesBeginWhenClosed(t *testing.T) {
	subjects(t, ab.Config{Policy: ab.KOfN(3, 9), OpenTimeout: time.Second}, func(t *testing.T, allow allower, reset func()) {
		for range 3 {
			wantVerdict(t, fail(t, allow, 2), ab.Counted)
			wantVerdict(t, admit(t, allow).Success(), ab.Counted)
			wantVerdict(t, fail(t, allow, 1), ab.Tripped)
			time.Sleep(time.Second)
			wantVerdict(t, admit(t, allow).Success(), ab.Recovered)
			wantVerdict(t, fail(t, allow, 2), ab.Counted)
			reset()
		}
	})
}

// Whichever policy is first opens the breaker, and says so.
func TestAnyOfOpensWithTheFirst(t *testing.T) {
	subjects(t, ab.Config{Policy: ab.AnyOf(ab.Consecutive(3), ab.AnyOf(ab.FailureCount(5, time.Minute)), ab.KOfN(4, 5))},
		func(t *testing.T, allow allower, reset func()) {
			wantVerdict(t, fail(t, allow, 2), ab.Counted)
			wantVerdict(t, fail(t, allow, 1), ab.Tripped) // three in a row
			reset()
			for _, bad := range []bool{true, true, false, true} {
				if wantVerdict(t, reportOp(admit(t, allow), bad), ab.Counted); bad {
					time.Sleep(time.Second)
				}
			}
			wantVerdict(t, fail(t, allow, 1), ab.Tripped) // four of five
			reset()
			for range 4 {
				wantVerdict(t, fail(t, allow, 1), ab.Counted)
				for range 4 {
					wantVerdict(t, admit(t, allow).Success(), ab.Counted)
				}
			}
			wantVerdict(t, fail(t, allow, 1), ab.Tripped) // five in a minute
		})
	synctest.Test(t, func(t *testing.T) {
		var l log
		b := ab.MustNew(ab.Config{Policy: ab.AnyOf(ab.Consecutive(2), ab.FailureRate(0.25, 4, time.Minute)), OpenTimeout: time.Second, OnStateChange: l.add})
		fail(t, b.Allow, 2)
		l.want(t, ab.Event{To: ab.Open, Reason: ab.ReasonThreshold, Failures: 2, Streak: 1, OpenFor: time.Second})
		b.Reset()
		for range 3 {
			admit(t, b.Allow).Success()
		}
		l = nil
		wantVerdict(t, fail(t, b.Allow, 1), ab.Tripped)
		l.want(t, ab.Event{To: ab.Open, Reason: ab.ReasonFailureRate, Failures: 1, Calls: 4, Streak: 1, OpenFor: time.Second})
	})
}

func reportOp(p permit, bad bool) ab.Verdict {
	if bad {
		return p.Failure()
	}
	return p.Success()
}

// Every policy that makes no sense is an error that shows it.
func TestWrongPolicies(t *testing.T) {
	nan := math.NaN()
	var none []ab.Policy
	wrong := map[string]ab.Policy{
		"Consecutive(0): must be in 1..2147483647": ab.Consecutive(0),
		"Consecutive(-1): must be":                 ab.Consecutive(-1),
		"KOfN(0, 5): k must be in 1..n":            ab.KOfN(0, 5),
		"KOfN(-1, 5): k":                           ab.KOfN(-1, 5),
		"KOfN(6, 5): k":                            ab.KOfN(6, 5),
		"KOfN(1, 1025): n must be in 1..1024":      ab.KOfN(1, 1025),
		"KOfN(1025, 1024): k must be in 1..n":      ab.KOfN(1025, 1024),
		"KOfN(0, 0): n":                            ab.KOfN(0, 0),
		"KOfN(1, -1): n":                           ab.KOfN(1, -1),
		"FailureRate(NaN, 1, 1s): ratio must be above 0 and at most 1": ab.FailureRate(nan, 1, time.Second),
		"FailureRate(0, 1, 1s): ratio":                                 ab.FailureRate(0, 1, time.Second),
		"FailureRate(-0.5, 1, 1s): ratio":                              ab.FailureRate(-0.5, 1, time.Second),
		"FailureRate(1.0000001, 1, 1s): ratio":                         ab.FailureRate(1.0000001, 1, time.Second),
		"FailureRate(+Inf, 1, 1s): ratio":                              ab.FailureRate(math.Inf(1), 1, time.Second),
		"FailureRate(0.5, 0, 1s): minCalls must be positive":           ab.FailureRate(0.5, 0, time.Second),
		"FailureRate(0.5, -1, 1s): minCalls":                           ab.FailureRate(0.5, -1, time.Second),
		"FailureRate(0.5, 1, 0s): window must be positive":             ab.FailureRate(0.5, 1, 0),
		"FailureRate(0.5, 1, -1ns): window":                            ab.FailureRate(0.5, 1, -1),
		"FailureCount(0, 1s): n must be in 1..524288":                  ab.FailureCount(0, time.Second),
		"FailureCount(-7, 1s): n":                                      ab.FailureCount(-7, time.Second),
		"FailureCount(524289, 1s): n":                                  ab.FailureCount(524289, time.Second),
		"FailureCount(1, 0s): window":                                  ab.FailureCount(1, 0),
		"SlowRate(NaN, 1s, 1, 1s): ratio":                              ab.SlowRate(nan, time.Second, 1, time.Second),
		"SlowRate(2, 1s, 1, 1s): ratio":                                ab.SlowRate(2, time.Second, 1, time.Second),
		"SlowRate(0.5, -1ns, 1, 1s): slow must not be negative":        ab.SlowRate(0.5, -1, 1, time.Second),
		"SlowRate(0.5, 1s, 0, 1s): minCalls":                           ab.SlowRate(0.5, time.Second, 0, time.Second),
		"SlowRate(0.5, 1s, 1, -1s): window":                            ab.SlowRate(0.5, time.Second, 1, -time.Second),
		"AnyOf(): must not be empty":                                   ab.AnyOf(none...),
		"AnyOf: policy 1 is nil":                                       ab.AnyOf(ab.Consecutive(1), nil),
		"AnyOf: policy 2 is nil":                                       ab.AnyOf(ab.Consecutive(9999), ab.KOfN(1, 1), nil),
		"KOfN(9, 8): k must be":                                        ab.AnyOf(ab.Consecutive(1), ab.AnyOf(ab.KOfN(1, 1), ab.KOfN(9, 8))),
		"Consecutive(9999): with a KOfN must be":                       ab.AnyOf(ab.KOfN(1, 1), ab.AnyOf(ab.Consecutive(9999))),

		"Consecutive(1025): with a KOfN must be at most Consecutive(1024)": ab.AnyOf(ab.Consecutive(1025), ab.KOfN(1, 33)),
	}
	if n := math.MaxInt; n > math.MaxInt32 { // which has no more in 32 bits
		wrong[fmt.Sprintf("Consecutive(%d): must be in 1..2147483647", n)] = ab.Consecutive(n)
		n = math.MaxInt32
		n++
		wrong["Consecutive(2147483648): must be"] = ab.Consecutive(n)
	}
	for want, p := range wrong {
		want = "atomicbreaker: Config.Policy: " + want
		c := ab.Config{Policy: p}
		if b, err := ab.New(c); b != nil || err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("New: %v, want it to start with %q", err, want)
		}
		if g, err := ab.NewGroup(ab.GroupConfig[int]{Default: c}); g != nil || err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("NewGroup: %v, want it to start with %q", err, want)
		}
		g := ab.MustNewGroup(ab.GroupConfig[int]{PerKey: func(int) ab.Config { return c }})
		fallsBack(t, g, want)
	}
}

// A TripFunc is asked after a success that was too slow, if it times calls, if only by a nanosecond.
func TestTripFuncTimesCalls(t *testing.T) {
	for slow, want := range map[time.Duration]string{
		0: "[{2 1 0 1}]",
		1: "[{1 0 1 0} {2 1 1 1}]",
	} {
		synctest.Test(t, func(t *testing.T) {
			var asked []ab.Counts
			b := ab.MustNew(ab.Config{Policy: ab.TripFunc(time.Minute, slow, func(c ab.Counts) bool {
				asked = append(asked, c)
				return false
			})})
			p := admit(t, b.Allow)
			time.Sleep(time.Second)
			p.Success()
			b.RecordFailure()
			if got := fmt.Sprint(asked); got != want {
				t.Errorf("with %v it is asked about %s, want %s", slow, got, want)
			}
		})
	}
}

// A TripFunc is not asked about a success that only another policy finds slow.
func TestTripFuncsFindForThemselvesWhatIsSlow(t *testing.T) {
	for _, other := range []ab.Policy{
		ab.SlowRate(1, time.Second, 9, time.Minute),
		ab.TripFunc(time.Minute, time.Second, func(ab.Counts) bool { return false }),
	} {
		synctest.Test(t, func(t *testing.T) {
			asked := 0
			patient := ab.TripFunc(time.Minute, time.Minute, func(ab.Counts) bool { asked++; return false })
			b := ab.MustNew(ab.Config{Policy: ab.AnyOf(other, patient)})
			for _, took := range []time.Duration{2 * time.Second, time.Hour} {
				p := admit(t, b.Allow)
				time.Sleep(took)
				p.Success()
			}
			if asked != 1 {
				t.Errorf("beside %v it is asked %d times, want only about the call that took an hour", other, asked)
			}
		})
	}
}

// What is at the edge of being wrong is right, and works.
func TestExtremePolicies(t *testing.T) {
	const century = 100 * 365 * 24 * time.Hour
	tests := map[ab.Policy]bool{ // whether three failures trip it
		ab.Consecutive(math.MaxInt32):                     false,
		ab.FailureRate(1e-300, 3, time.Nanosecond):        true, // rounded up to a millionth
		ab.FailureRate(1, 3, century):                     true,
		ab.FailureRate(1, math.MaxInt, math.MaxInt64):     false,
		ab.FailureCount(3, time.Nanosecond):               true,
		ab.FailureCount(3, century):                       true,
		ab.FailureCount(3, math.MaxInt64):                 true,
		ab.FailureCount(524288, century):                  false,
		ab.SlowRate(1, 0, 3, century):                     false,
		ab.SlowRate(1, math.MaxInt64, 1, time.Nanosecond): false,
		ab.KOfN(3, 32):                                    true,
		ab.KOfN(32, 32):                                   false,
		ab.KOfN(3, 33):                                    true,
		ab.KOfN(3, 1024):                                  true,
		ab.KOfN(1024, 1024):                               false,
	}
	for p, trips := range tests {
		for _, timeout := range []time.Duration{time.Millisecond, -1} {
			t.Run(fmt.Sprintf("%v for %v", p, timeout), func(t *testing.T) {
				subjects(t, ab.Config{Policy: p, OpenTimeout: timeout}, func(t *testing.T, allow allower, reset func()) {
					for range 3 {
						wantVerdict(t, fail(t, allow, 2), ab.Counted)
						if !trips {
							wantVerdict(t, fail(t, allow, 1), ab.Counted)
							return
						}
						wantVerdict(t, fail(t, allow, 1), ab.Tripped)
						reject(t, allow, ab.ErrOpen)
						if timeout < 0 {
							time.Sleep(300 * 24 * time.Hour)
							reject(t, allow, ab.ErrOpen)
							reset()
							continue
						}
						time.Sleep(time.Millisecond)
						wantVerdict(t, admit(t, allow).Success(), ab.Recovered)
					}
				})
			})
		}
	}
}

// A policy prints as the call that makes it.
func TestPolicyNames(t *testing.T) {
	p := ab.AnyOf(ab.Consecutive(3), ab.KOfN(2, 9), ab.AnyOf(ab.FailureRate(0.25, 20, time.Minute)),
		ab.FailureCount(4, time.Hour), ab.SlowRate(0.5, time.Second, 10, time.Minute))
	const want = "AnyOf(Consecutive(3), KOfN(2, 9), AnyOf(FailureRate(0.25, 20, 1m0s)), FailureCount(4, 1h0m0s), SlowRate(0.5, 1s, 10, 1m0s))"
	if got := p.String(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if got := ab.AnyOf(nil, ab.Consecutive(1)).String(); got != "AnyOf(<nil>, Consecutive(1))" {
		t.Error(got)
	}
}

// What AnyOf was given may be changed afterwards.
func TestAnyOfKeepsItsPolicies(t *testing.T) {
	policies := []ab.Policy{ab.Consecutive(2)}
	p := ab.AnyOf(policies...)
	policies[0] = nil
	b := ab.MustNew(ab.Config{Policy: p})
	wantVerdict(t, fail(t, b.Allow, 2), ab.Tripped)
}

func tripping(f func(ab.Counts) bool) ab.Config {
	return ab.Config{Policy: ab.TripFunc(time.Minute, time.Second, f), OpenTimeout: time.Second}
}

// The function is asked after each failure and each slow call, and after nothing
// else, with counts that include it.
func TestTripFunc(t *testing.T) {
	var asked []ab.Counts
	c := tripping(func(c ab.Counts) bool { asked = append(asked, c); return c.Slow+c.Failures >= 5 })
	subjects(t, c, func(t *testing.T, allow allower, reset func()) {
		asked = nil
		call := func(d time.Duration, o ab.Outcome, want ab.Verdict) {
			t.Helper()
			p := admit(t, allow)
			time.Sleep(d)
			switch o {
			case ab.Success:
				wantVerdict(t, p.Success(), want)
			case ab.Failure:
				wantVerdict(t, p.Failure(), want)
			default:
				wantVerdict(t, p.Cancel(), want)
			}
		}
		call(0, ab.Failure, ab.Counted)
		call(0, ab.Failure, ab.Counted)
		call(0, ab.Success, ab.Counted)
		call(0, ab.Ignored, ab.Counted)
		call(2*time.Second, ab.Success, ab.Counted)
		call(0, ab.Failure, ab.Counted)
		call(2*time.Second, ab.Success, ab.Tripped)
		want := []ab.Counts{{1, 1, 0, 1}, {2, 2, 0, 2}, {4, 2, 1, 0}, {5, 3, 1, 1}, {6, 3, 2, 0}}
		if fmt.Sprint(asked) != fmt.Sprint(want) {
			t.Errorf("asked %+v, want %+v", asked, want)
		}
		time.Sleep(time.Second)
		call(2*time.Second, ab.Success, ab.Tripped) // a slow probe has failed; nobody is asked
		reset()
		time.Sleep(2 * time.Minute)
		call(0, ab.Failure, ab.Counted)
		if last := asked[len(asked)-1]; len(asked) != 6 || last != (ab.Counts{Calls: 1, Failures: 1, Consecutive: 1}) {
			t.Errorf("asked %+v in a later stay", asked)
		}
	})
}

// TestTripFuncsOfUsers's default, and a rate among enough calls, as users write them.
func TestTripFuncsOfUsers(t *testing.T) {
	subjects(t, ab.Config{Policy: ab.TripFunc(time.Hour, 0, func(c ab.Counts) bool { return c.Consecutive > 5 })}, func(t *testing.T, allow allower, reset func()) {
		for range 3 {
			wantVerdict(t, fail(t, allow, 5), ab.Counted)
			wantVerdict(t, admit(t, allow).Success(), ab.Counted)
		}
		wantVerdict(t, fail(t, allow, 5), ab.Counted)
		wantVerdict(t, fail(t, allow, 1), ab.Tripped)
	})
	b := ab.MustNew(ab.Config{Policy: ab.TripFunc(time.Hour, 0, func(c ab.Counts) bool { return c.Calls >= 10 && c.FailureRate() >= 0.6 })})
	for range 5 {
		admit(t, b.Allow).Success()
	}
	wantVerdict(t, fail(t, b.Allow, 7), ab.Counted)
	wantVerdict(t, fail(t, b.Allow, 1), ab.Tripped) // 8 of 13
}

// If the function does not return, its caller learns of that, the result counts
// for the other policies all the same, and events are told.
func TestTripFuncsThatDoNotReturn(t *testing.T) {
	for name, leave := range map[string]func(){"panic": func() { panic("trip") }, "exit": runtime.Goexit} {
		for _, keyed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%t", name, keyed), func(t *testing.T) {
				var notified []string
				c := ab.Config{Policy: ab.AnyOf(ab.TripFunc(time.Minute, 0, func(ab.Counts) bool { leave(); return true }), ab.Consecutive(3))}
				hear := func(e ab.Event) { notified = append(notified, fmt.Sprint(e.To, e.Reason, e.Failures)) }
				var do func(func()) // reports a failure, in several ways
				var state func() ab.State
				if keyed {
					g := ab.MustNewGroup(ab.GroupConfig[string]{Default: c, OnStateChange: func(_ string, e ab.Event) { hear(e) }})
					ways := []func(){
						func() { p, _ := g.Allow("k"); p.Failure() }, func() { g.RecordFailure("k") },
						func() { g.Do(t.Context(), "k", func(context.Context) error { return errBoom }) },
					}
					do = func(func()) { ways[0](); ways = ways[1:] }
					state = func() ab.State { return g.State("k") }
				} else {
					c.OnStateChange = hear
					b := ab.MustNew(c)
					do = func(func()) { p, _ := b.Allow(); p.Failure() }
					state = b.State
				}
				for i := range 3 {
					returned := false
					goexit(func() {
						defer func() { recover() }()
						do(nil)
						returned = true
					})
					if returned != (i == 2) { // the third opens the breaker, and nobody is asked
						t.Fatalf("failure %d: returned %t", i, returned)
					}
				}
				wantState(t, state(), ab.Open)
				if want := "[" + fmt.Sprint(ab.Open, ab.ReasonThreshold, 3) + "]"; fmt.Sprint(notified) != want {
					t.Errorf("told %v, want %v", notified, want)
				}
			})
		}
	}
}

// One that blocks holds up nobody but its caller, whose failure was counted; if the
// breaker was reset meanwhile, the function opens nothing.
func TestTripFuncsThatBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		block, first := make(chan struct{}), new(atomic.Bool)
		b := ab.MustNew(tripping(func(ab.Counts) bool {
			if first.CompareAndSwap(false, true) {
				<-block
				return true
			}
			return false
		}))
		verdict := make(chan ab.Verdict, 1)
		go func() { p, _ := b.Allow(); verdict <- p.Failure() }()
		synctest.Wait()
		wantVerdict(t, fail(t, b.Allow, 9), ab.Counted)
		wantVerdict(t, admit(t, b.Allow).Success(), ab.Counted)
		b.Reset()
		close(block)
		wantVerdict(t, <-verdict, ab.Counted)
		wantState(t, b.State(), ab.Closed)
	})
}

// The function may use the breaker.
func TestTripFuncsMayUseTheirBreaker(t *testing.T) {
	var b *ab.Breaker
	b = ab.MustNew(tripping(func(c ab.Counts) bool {
		if c.Failures == 1 {
			b.Snapshot()
			p, _ := b.Allow()
			p.Failure()
		}
		return c.Failures == 2
	}))
	p := admit(t, b.Allow)
	wantVerdict(t, p.Failure(), ab.Counted) // the inner one has opened it
	wantState(t, b.State(), ab.Open)
}

// A failure that the open quota withholds is withheld once: the function is not asked too.
func TestTripFuncsOfWithheldFailures(t *testing.T) {
	asked := 0
	policy := ab.AnyOf(ab.Consecutive(1), ab.TripFunc(time.Minute, 0, func(ab.Counts) bool { asked++; return true }))
	g := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: policy}, MaxOpen: 1})
	wantVerdict(t, g.RecordFailure("open"), ab.Tripped)
	wantVerdict(t, g.RecordFailure("k"), ab.Counted)
	if n := g.Stats().Withheld; n != 1 || asked != 0 {
		t.Errorf("withheld %d times, asked %d times, want 1 and 0", n, asked)
	}
}

// A function is asked about windows that hold the failure: not about empty ones that Update
// has brought between the count and the question.
func TestTripFuncsAreNotAskedAboutNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g *ab.Group[string]
		c := func() ab.GroupConfig[string] {
			policy := ab.TripFunc(time.Minute, 0, func(c ab.Counts) bool { return c.Failures == 0 })
			return ab.GroupConfig[string]{
				Default: ab.Config{OpenTimeout: time.Second, Policy: policy}, OnStateChange: func(string, ab.Event) {},
			}
		}
		first := c()
		first.OnStateChange = func(_ string, e ab.Event) {
			if e.Reason == ab.ReasonForgotten { // it is delivered before the question
				updateGroup(t, g, c())
			}
		}
		g = ab.MustNewGroup(first)
		g.Trip("k", 0)
		time.Sleep(2 * time.Hour)
		wantVerdict(t, g.RecordFailure("k"), ab.Counted)
		wantState(t, g.State("k"), ab.Closed)
	})
}

// The listener of another key may panic in a sweep. The function is asked first.
func TestTripFuncsAreAskedBeforeSweeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		policy := ab.TripFunc(time.Minute, 0, func(ab.Counts) bool { return true })
		g := ab.MustNewGroup(ab.GroupConfig[string]{
			Default:       ab.Config{OpenTimeout: time.Second, Policy: policy},
			OnStateChange: func(string, ab.Event) { panic("listener") },
		})
		for i := range 63 {
			survives(func() { g.Trip(fmt.Sprint(i), 0) })
		}
		time.Sleep(2 * time.Hour)
		survives(func() { g.RecordFailure("k") })
		wantState(t, g.State("k"), ab.Open)
	})
}

// When a report has returned for which a function has opened the breaker, the listener has
// seen it, once.
func TestTripFuncsAreNotified(t *testing.T) {
	var seen []ab.Reason
	c := tripping(func(ab.Counts) bool { return true })
	g := ab.MustNewGroup(ab.GroupConfig[string]{Default: c, OnStateChange: func(_ string, e ab.Event) { seen = append(seen, e.Reason) }})
	c.OnStateChange = func(e ab.Event) { seen = append(seen, e.Reason) }
	b := ab.MustNew(c)
	for name, report := range map[string]func() ab.Verdict{
		"Failure":             func() ab.Verdict { return admit(t, b.Allow).Failure() },
		"RecordFailure":       b.RecordFailure,
		"Group.Failure":       func() ab.Verdict { return admit(t, keyed(g, "a")).Failure() },
		"Group.RecordFailure": func() ab.Verdict { return g.RecordFailure("b") },
	} {
		seen = nil
		wantVerdict(t, report(), ab.Tripped)
		if fmt.Sprint(seen) != "[TripFunc]" {
			t.Errorf("%s: saw %v", name, seen)
		}
		b.Reset()
	}
}

func TestWrongTripFuncs(t *testing.T) {
	yes := func(ab.Counts) bool { return true }
	for want, p := range map[string]ab.Policy{
		"trip must not be nil":      ab.TripFunc(time.Second, 0, nil),
		"window must be positive":   ab.TripFunc(0, 0, yes),
		"slow must not be negative": ab.TripFunc(time.Second, -1, yes),
	} {
		if _, err := ab.New(ab.Config{Policy: p}); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "Config.Policy: TripFunc(") {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// Update keeps the windows of a policy that is the same, and not of one that only
// looks the same.
func TestUpdateOfTripFuncs(t *testing.T) {
	c := tripping(func(c ab.Counts) bool { return c.Failures == 3 })
	b := ab.MustNew(c)
	fail(t, b.Allow, 2)
	update(t, b, c)
	wantVerdict(t, fail(t, b.Allow, 1), ab.Tripped)
	b.Reset()
	fail(t, b.Allow, 2)
	update(t, b, tripping(func(c ab.Counts) bool { return c.Failures == 3 }))
	wantVerdict(t, fail(t, b.Allow, 2), ab.Counted)
	wantVerdict(t, fail(t, b.Allow, 1), ab.Tripped)
}

// Failures on all processors: the breaker opens once, by the last at the latest.
func TestStressTripFunc(t *testing.T) {
	const goroutines = 4
	n := rounds(1000)
	for _, short := range []int{0, 1} {
		b := ab.MustNew(tripping(func(c ab.Counts) bool { return c.Failures >= goroutines*n+short }))
		var tripped atomic.Int32
		together(goroutines, func(i int) {
			for j := range n {
				jitter(i + j)
				p, err := b.Allow()
				if err != nil {
					t.Error("open too early")
					return
				}
				if p.Failure() == ab.Tripped {
					tripped.Add(1)
				}
			}
		})
		if want := int32(1 - short); tripped.Load() != want {
			t.Errorf("tripped %d times, want %d", tripped.Load(), want)
		}
	}
}

// A Snapshot says what windows hold: of each kind, the first.
func TestSnapshotOfWindows(t *testing.T) {
	trip := ab.AnyOf(ab.FailureRate(1, 99, time.Minute), ab.SlowRate(1, time.Second, 99, time.Minute), ab.FailureCount(99, time.Second))
	synctest.Test(t, func(t *testing.T) {
		b, g := ab.MustNew(ab.Config{Policy: trip}), ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: trip}})
		for _, allow := range []allower{allow(b), keyed(g, "k")} {
			fail(t, allow, 3)
			admit(t, allow).Success()
			p := admit(t, allow)
			time.Sleep(2 * time.Second)
			p.Success()
		}
		want := ab.Counts{Calls: 5, Failures: 3, Slow: 1}
		if s := b.Snapshot(); s.Window != want || s.Window.FailureRate() != 0.6 || s.Window.SlowRate() != 0.2 {
			t.Errorf("%+v", s)
		}
		if s := g.Snapshot("k"); s.Window != want {
			t.Errorf("%+v", s)
		}
		for _, s := range g.All() {
			if s.Window != want {
				t.Errorf("%+v", s)
			}
		}
		if s := slog.AnyValue(b.Snapshot()).Resolve().String(); !strings.Contains(s, "window_calls=5 window_failures=3 window_slow=1") {
			t.Errorf("logged as %s", s)
		}
		time.Sleep(2 * time.Minute)
		if s := b.Snapshot(); s.Window != (ab.Counts{}) || s.Window.FailureRate() != 0 {
			t.Errorf("%+v when all has left", s)
		}
		b.Reset()
		b.ForceOpen()
		if s := b.Snapshot(); s.Window != (ab.Counts{}) {
			t.Errorf("%+v while it is not closed", s)
		}
	})
}

// Functions are asked about the time at which they are called: what has failed while
// an earlier one ran counts.
func TestTripFuncCountsUntilItIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b *ab.Breaker
		nested, asked := false, []int{}
		first := func(ab.Counts) bool {
			if !nested {
				nested = true
				time.Sleep(20 * time.Second)
				fail(t, b.Allow, 1)
			}
			return false
		}
		second := func(c ab.Counts) bool { asked = append(asked, c.Failures); return false }
		b = ab.MustNew(ab.Config{Policy: ab.AnyOf(ab.TripFunc(time.Minute, 0, first), ab.TripFunc(time.Minute, 0, second))})
		fail(t, b.Allow, 1)
		if len(asked) != 2 || asked[0] != 2 || asked[1] != 2 {
			t.Errorf("asked about %v failures, want 2 and 2", asked)
		}
	})
}

// T10: what has failed is a part of what was called. However many add to the
// counts while others read them, a rate that is never reached opens nothing, and
// no event tells of more failures than calls.
//
// Reported bug 10, hystrix-go: torn reads: more failures than requests.
func TestT10_StressRatesAreParts(t *testing.T) {
	n := rounds(5000)
	listen := func(e ab.Event) {
		if e.To == ab.Open && (e.Failures > e.Calls || e.Calls < 10 || e.Failures*10 < e.Calls*9) {
			t.Errorf("told %+v", e)
		}
	}
	third := ab.MustNew(ab.Config{Policy: ab.FailureRate(0.9, 10, time.Hour), OnStateChange: listen})
	all := ab.MustNew(ab.Config{Policy: ab.FailureRate(0.9, 10, time.Hour), OnStateChange: listen})
	together(4, func(i int) {
		for range n {
			admit(t, third.Allow).Success()
			admit(t, third.Allow).Success()
			if v := admit(t, third.Allow).Failure(); v != ab.Counted {
				t.Errorf("verdict %v", v)
			}
			if p, err := all.Allow(); err == nil {
				p.Failure()
			} else if i == 0 {
				all.Reset()
			}
		}
	})
	if all.Stats().Opened == 0 || third.Stats().Opened != 0 {
		t.Errorf("opened %d times, and %d times", all.Stats().Opened, third.Stats().Opened)
	}
}

// T13: failures count in a row and not in all. With a success after each, no
// number of them opens the breaker, however they are reported.
//
// Reported bug 13, Polly, go-resiliency: successes do not clear the count.
func TestT13_FailuresDoNotAddUp(t *testing.T) {
	subjects(t, ab.Config{Policy: ab.Consecutive(2)}, func(t *testing.T, allow allower, reset func()) {
		for range 1000 {
			wantVerdict(t, fail(t, allow, 1), ab.Counted)
			wantVerdict(t, admit(t, allow).Success(), ab.Counted)
			wantVerdict(t, admit(t, allow).Done(errBoom), ab.Counted)
			wantVerdict(t, admit(t, allow).Done(nil), ab.Counted)
		}
	})
	b := ab.MustNew(ab.Config{Policy: ab.Consecutive(2)})
	g := ab.MustNewGroup(ab.GroupConfig[string]{Default: ab.Config{Policy: ab.Consecutive(2)}})
	for i := range 1000 {
		err := error(nil)
		if i%2 == 0 {
			err = errBoom
		}
		run := func(context.Context) error { return err }
		if got := b.Do(t.Context(), run); got != err {
			t.Fatal(got)
		}
		if _, got := ab.Execute(b, func() (int, error) { return 0, nil }); got != nil {
			t.Fatal(got)
		}
		if got := g.Do(t.Context(), "k", run); got != err {
			t.Fatal(got)
		}
		wantVerdict(t, g.RecordSuccess("k"), ab.Counted)
		wantVerdict(t, g.RecordFailure("k"), ab.Counted)
		wantVerdict(t, g.RecordSuccess("k"), ab.Counted)
	}
}

// T16: where failures that are days apart should not add up, a FailureCount
// forgets them. Consecutive remembers, and says so.
//
// Reported bug 16, Couchbase, Splice: failures add up over days.
func TestT16_FailuresExpireIfTheyShould(t *testing.T) {
	for policy, want := range map[ab.Policy]ab.Verdict{
		ab.FailureCount(3, time.Hour):   ab.Counted,
		ab.FailureRate(1, 3, time.Hour): ab.Counted,
		ab.Consecutive(3):               ab.Tripped,
	} {
		subjects(t, ab.Config{Policy: policy}, func(t *testing.T, allow allower, reset func()) {
			for range 10 {
				wantVerdict(t, fail(t, allow, 1), ab.Counted)
				time.Sleep(25 * time.Hour)
				wantVerdict(t, fail(t, allow, 1), ab.Counted)
				time.Sleep(25 * time.Hour)
				wantVerdict(t, fail(t, allow, 1), want)
				time.Sleep(25 * time.Hour)
				if want == ab.Tripped {
					reset()
				}
			}
		})
	}
}

// T29: minCalls is for closed breakers. A half-open one decides by its probes,
// of which there may be fewer than minCalls.
//
// Reported bug 29, Resilience4j: it needs more probes than it admits.
func TestT29_FewProbesDecide(t *testing.T) {
	for _, policy := range []ab.Policy{
		ab.FailureRate(0.5, 100, time.Hour), ab.FailureCount(100, time.Hour), ab.SlowRate(0.5, time.Second, 100, time.Hour), ab.KOfN(30, 32), ab.Consecutive(100),
	} {
		subjects(t, ab.Config{Policy: policy, OpenTimeout: time.Second, Probes: 1, CloseAfter: 2}, func(t *testing.T, allow allower, reset func()) {
			wantVerdict(t, admit(t, allow).Trip(0), ab.Tripped)
			for range 3 {
				time.Sleep(time.Second)
				wantVerdict(t, admit(t, allow).Success(), ab.Counted)
				wantVerdict(t, admit(t, allow).Failure(), ab.Tripped)
				reject(t, allow, ab.ErrOpen)
			}
			time.Sleep(time.Second)
			wantVerdict(t, admit(t, allow).Success(), ab.Counted)
			wantVerdict(t, admit(t, allow).Success(), ab.Recovered)
		})
	}
}

// T52: nothing is counted later. The call after the failure that is one too
// many is rejected, and the one after the last success is not, whoever makes
// it.
//
// Reported bug 52, hystrix-go: results are counted later.
func TestT52_NextCallKnows(t *testing.T) {
	for _, policy := range []ab.Policy{
		ab.Consecutive(3), ab.KOfN(3, 5), ab.KOfN(3, 500), ab.FailureRate(0.5, 3, time.Minute), ab.FailureCount(3, time.Minute), ab.SlowRate(0.5, 0, 3, time.Minute),
	} {
		t.Run(policy.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := ab.Config{Policy: policy, OpenTimeout: time.Second}
				b, g := ab.MustNew(c), ab.MustNewGroup(ab.GroupConfig[string]{Default: c})
				elsewhere := func(f func()) {
					t.Helper()
					done := make(chan struct{})
					go func() { defer close(done); f() }()
					<-done
				}
				slow := func() error { time.Sleep(tick); return errBoom }
				for i := range 4 {
					want := errBoom
					if i == 3 {
						want = ab.ErrOpen
					}
					elsewhere(func() {
						if _, err := ab.Execute(b, func() (int, error) { return i, slow() }); err != want {
							t.Errorf("call %d of the breaker: %v, want %v", i, err, want)
						}
						if err := g.Do(t.Context(), "k", func(context.Context) error { return slow() }); err != want {
							t.Errorf("call %d of the key: %v, want %v", i, err, want)
						}
					})
				}
				time.Sleep(time.Second + time.Millisecond)
				for i := range 3 {
					elsewhere(func() {
						if err := b.Do(t.Context(), func(context.Context) error { return nil }); err != nil {
							t.Errorf("call %d after the open time: %v", i, err)
						}
						if err := g.Do(t.Context(), "k", func(context.Context) error { return nil }); err != nil {
							t.Errorf("call %d of the key after the open time: %v", i, err)
						}
					})
				}
				if got := fmt.Sprint(b.State(), g.State("k")); got != "Closed Closed" {
					t.Error(got)
				}
			})
		})
	}
}

// A TripFunc is asked about its own failures and slow calls, and not about what is slow for another window.
func TestTripFuncBesideASlowRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []ab.Counts
		b := ab.MustNew(ab.Config{Policy: ab.AnyOf(ab.SlowRate(1, time.Second, 100, time.Hour),
			ab.TripFunc(time.Hour, 0, func(c ab.Counts) bool { asked = append(asked, c); return true }))})
		p, _ := b.Allow()
		time.Sleep(2 * time.Second)
		if v := p.Success(); v != ab.Counted || len(asked) != 0 {
			t.Errorf("a success is %v; TripFunc without slow was asked with %+v; now %v", v, asked, b.State())
		}
	})
}
