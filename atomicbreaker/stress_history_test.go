//go:build !modelcheck

package atomicbreaker_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"

	ab "github.com/latchfree/latchfree/atomicbreaker"
)

// Of calls that all are among the last n, exactly one opens the breaker if so
// many fail, and none if one fewer does, in whatever order they end; and in a
// stay that does not end, bursts begin and end, again and again.
func TestStressLongHistories(t *testing.T) {
	const goroutines = 4
	for _, n := range []int{33, 64, 1024} {
		for _, k := range []int{2, 3, 8, n / 2, n} {
			t.Run(fmt.Sprintf("KOfN(%d, %d)", k, n), func(t *testing.T) {
				c := ab.Config{Policy: ab.KOfN(k, n), OpenTimeout: -1}
				b, g := ab.MustNew(c), ab.MustNewGroup(ab.GroupConfig[int]{Default: c})
				for round := range max(rounds(20_000)/n, 3) {
					failures := k - round%3 // k opens it
					stressCalls(t, allow(b), goroutines, n, failures, k, round)
					stressCalls(t, keyed(g, 1), goroutines, n, failures, k, round)
					s := b.Snapshot()
					if of := g.Snapshot(1); of.State != s.State || of.Failures != s.Failures {
						t.Fatalf("round %d: %+v and %+v", round, s, of)
					}
					if failures >= k {
						wantState(t, s.State, ab.Open)
						b.Reset()
						g.Reset(1)
						continue
					}
					if s.State != ab.Closed || s.Failures != max(failures, 0) {
						t.Fatalf("round %d: %+v after %d failures", round, s, failures)
					}
					together(goroutines, func(int) {
						for range (n + goroutines - 1) / goroutines {
							admit(t, b.Allow).Success()
							g.RecordSuccess(1)
						}
					})
					if s := b.Snapshot(); s.Failures != 0 || g.Len() != 0 {
						t.Fatalf("round %d: %+v, %d keys after %d successes", round, s, g.Len(), n)
					}
				}
				if err := g.CheckQuiet(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// stressCalls makes n calls at once, of which some fail, and checks that one
// opened the breaker if so many have.
func stressCalls(t *testing.T, allow allower, goroutines, n, failures, k, seed int) {
	r := rand.New(rand.NewPCG(uint64(seed), uint64(n)))
	calls := make([]bool, n)
	for i := range max(failures, 0) {
		calls[i] = true
	}
	r.Shuffle(n, func(i, j int) { calls[i], calls[j] = calls[j], calls[i] })
	permits := make([]permit, n)
	for i := range permits {
		permits[i] = admit(t, allow)
	}
	var tripped atomic.Int32
	together(goroutines, func(id int) {
		for i := id; i < n; i += goroutines {
			if reportOp(permits[i], calls[i]) == ab.Tripped {
				tripped.Add(1)
			}
			if i%64 == id {
				runtime.Gosched()
			}
		}
	})
	want := int32(0)
	if failures >= k {
		want = 1
	}
	if got := tripped.Load(); got != want {
		t.Fatalf("%d failures of %d have opened it, want %d", got, failures, want)
	}
}

// Whatever is done by hand and by Update meanwhile, each opening has one failure
// that has made it, a Snapshot never shows more failures than there can be, and
// in the end the breaker is healthy after n successes.
func TestStressLongHistoriesByHand(t *testing.T) {
	policies := []ab.Policy{ab.KOfN(5, 40), ab.KOfN(20, 1000), ab.KOfN(3, 9), ab.Consecutive(6), ab.AnyOf(ab.Consecutive(4), ab.KOfN(9, 90))}
	b := ab.MustNew(ab.Config{Policy: policies[0], OpenTimeout: -1})
	var tripped, reset atomic.Int64
	together(5, func(id int) {
		r := rand.New(rand.NewPCG(uint64(id), 7))
		for i := range rounds(30_000) {
			p, err := b.Allow()
			switch {
			case id == 0 && i%50 == 0:
				if err := b.Update(ab.Config{Policy: policies[r.IntN(len(policies))], OpenTimeout: -1}); err != nil {
					t.Error(err)
				}
			case id == 0 && i%171 == 0, err != nil:
				b.Reset()
				reset.Add(1)
			case id == 1 && i%3 == 0:
				if s := b.Snapshot(); s.Failures < 0 || s.Failures > 1024 || s.Streak > 1 {
					t.Errorf("%+v", s)
				}
			default:
				if reportOp(p, r.IntN(8) == 0) == ab.Tripped {
					tripped.Add(1)
				}
			}
		}
	})
	if s := b.Stats(); s.Opened != uint64(tripped.Load()) || s.Closed != uint64(reset.Load()) {
		t.Errorf("%+v, but %d failures have opened it, and %d resets", s, tripped.Load(), reset.Load())
	}
	b.Reset()
	update(t, b, ab.Config{Policy: ab.KOfN(900, 1000)})
	for i := range 1000 {
		reportOp(admit(t, b.Allow), i%2 == 0)
	}
	if s := b.Snapshot(); s.Failures != 500 {
		t.Errorf("%+v after 500 failures", s)
	}
	for range 1000 {
		admit(t, b.Allow).Success()
	}
	if s := b.Snapshot(); s.Failures != 0 {
		t.Errorf("%+v", s)
	}
}
