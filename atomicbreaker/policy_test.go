//go:build !modelcheck

package atomicbreaker_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
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
