//go:build modelcheck

package retrybudget

import (
	"testing"
	"time"

	"github.com/latchfree/latchfree/internal/tools/mc"
	model "github.com/latchfree/latchfree/internal/tools/model/retrybudget"
)

// retrier is what both a Budget and its model can do.
type retrier interface {
	Success()
	Retry() bool
	Available() int
}

var (
	earnHalf  = mc.Call[retrier]{Name: "Success()", Do: func(r retrier) any { r.Success(); return nil }}
	retryOnce = mc.Call[retrier]{Name: "Retry()", Do: func(r retrier) any { return r.Retry() }}
	left      = mc.Call[retrier]{Name: "Available()", Do: func(r retrier) any { return r.Available() }}
)

// In every order of their steps, tokens are earned and taken as if by one
// caller after the other.
func TestIsLinearizable(t *testing.T) {
	type calls = []mc.Call[retrier]
	for name, p := range map[string]struct {
		spent   int
		threads []calls
	}{
		"two retries with one token":       {1, []calls{{retryOnce}, {retryOnce}}},
		"three retries with two tokens":    {0, []calls{{retryOnce}, {retryOnce}, {retryOnce}}},
		"a success and a retry, full":      {0, []calls{{earnHalf, left}, {retryOnce}}},
		"successes and a retry, empty":     {2, []calls{{earnHalf, earnHalf}, {retryOnce, retryOnce}}},
		"two successes and the last token": {1, []calls{{earnHalf}, {earnHalf}, {retryOnce, retryOnce}}},
		"successes fill it":                {1, []calls{{earnHalf, earnHalf}, {earnHalf, retryOnce}}},
		"what is seen":                     {1, []calls{{left, left}, {retryOnce, earnHalf}, {earnHalf}}},
	} {
		t.Run(name, func(t *testing.T) {
			prepared := func(r retrier) retrier {
				for range p.spent {
					r.Retry()
				}
				return r
			}
			mc.Linearizable(t, mc.Config{}, mc.Program[retrier]{
				New: func() retrier {
					return prepared(MustNew(Config{Capacity: 2, Ratio: 0.5}))
				},
				Model:   func() retrier { return prepared(&model.Budget{Capacity: 2000, Earns: 500}) },
				Threads: p.threads,
				After:   []mc.Call[retrier]{left},
			})
		})
	}
}

// However callers and the clock overtake each other, a second adds one token,
// and one caller takes it.
func TestIsRefilledOnce(t *testing.T) {
	refilled := func(m *mc.M, callers int, before func(*Budget)) {
		b := MustNew(Config{Capacity: 2, Ratio: 0.001})
		before(b)
		var made mc.Tally
		retry := func() {
			if b.Retry() {
				made.Add(1)
			}
		}
		for range callers - 1 {
			m.Go(retry)
		}
		m.Go(func() {
			m.Advance(time.Second)
			retry()
		})
		m.Final(func() {
			if n := made.Value(); n != 1 || b.Available() != 0 {
				m.Failf("%d retries after a second, and %d more", n, b.Available())
			}
		})
	}
	empty := func(b *Budget) { b.Retry(); b.Retry() }
	t.Run("two callers", func(t *testing.T) {
		mc.Check(t, mc.Config{Operations: "Retry ∥ advance by 1 s, Retry"}, func(m *mc.M) { refilled(m, 2, empty) })
	})
	t.Run("three callers", func(t *testing.T) {
		mc.Check(t, mc.Config{Operations: "Retry ∥ Retry ∥ advance by 1 s, Retry"}, func(m *mc.M) { refilled(m, 3, empty) })
	})
	// What is left of a token is not lost when time adds the rest.
	t.Run("a success", func(t *testing.T) {
		mc.Check(t, mc.Config{Operations: "Success ∥ Retry ∥ advance by 999 ms, Retry"}, func(m *mc.M) {
			b := MustNew(Config{Capacity: 2, Ratio: 0.001})
			empty(b)
			var made mc.Tally
			retry := func() {
				if b.Retry() {
					made.Add(1)
				}
			}
			m.Go(b.Success)
			m.Go(retry)
			m.Go(func() {
				m.Advance(999 * time.Millisecond)
				retry()
			})
			m.Final(func() {
				retry()
				if n := made.Value(); n != 1 {
					m.Failf("%d retries", n)
				}
			})
		})
	})
}

// All callers count time from the same epoch. One who did not would seem to come
// from the future, and the others would find the bucket full.
func TestZeroBudgetHasOneEpoch(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "the settings ∥ the settings"}, func(m *mc.M) {
		b := new(Budget)
		var seen [2]*settings
		for i := range seen {
			m.Go(func() { seen[i] = b.settings() })
		}
		m.Final(func() {
			if seen[0] != seen[1] || seen[0] == nil {
				m.Failf("two callers have different settings")
			}
		})
	})
}

// The zero budget is set up once, whoever comes first.
func TestZeroBudgetIsSetUpOnce(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "Retry ∥ Retry ∥ Success, Available"}, func(m *mc.M) {
		b := new(Budget)
		var made mc.Tally
		var seen [2]*settings
		for i := range seen {
			m.Go(func() {
				if b.Retry() {
					made.Add(1)
				}
				seen[i] = b.set.Load()
			})
		}
		m.Go(func() {
			b.Success()
			if n := b.Available(); n < defaultCapacity-2 {
				m.Failf("%d of %d left", n, defaultCapacity)
			}
		})
		m.Final(func() {
			spent := tokenWord(b.word.Load()).spent()
			if seen[0] != seen[1] {
				m.Failf("two callers have different settings")
			}
			if made.Value() != 2 || spent != 2*wholeToken && spent != 2*wholeToken-100 && spent != 2*wholeToken-200 {
				m.Failf("%d retries cost %d thousandths", made.Value(), spent)
			}
		})
	})
}

// A success of a healthy service reads one word, and a retry writes it once.
func TestCosts(t *testing.T) {
	with := func(c Config, before, op func(*Budget)) func() func(int) {
		return func() func(int) {
			b := MustNew(c)
			before(b)
			return func(int) { op(b) }
		}
	}
	var (
		ample   = Config{Capacity: maxTokens, Ratio: 0.001}
		untimed = Config{Capacity: maxTokens, Ratio: 0.001, MinPerSecond: -1}
		one     = Config{Capacity: 1}
		full    = func(*Budget) {}
		retry   = func(b *Budget) { b.Retry() }
		success = func(b *Budget) { b.Success() }
		spend   = func(b *Budget) { b.Spend(1000) }
	)
	mc.CheckCost(t, "Budget: Success, full", with(ample, full, success), mc.Cost{Loads: 1}, 0)
	mc.CheckCost(t, "Budget: Success, not full", with(ample, spend, success), mc.Cost{Loads: 3, RMWs: 1}, 2, 8.38, 64.48)
	mc.CheckCost(t, "Budget: Retry", with(ample, full, retry), mc.Cost{Loads: 2, RMWs: 1, Clock: 1}, 3, 15, 127)
	mc.CheckCost(t, "Budget: Retry, without time", with(untimed, full, retry), mc.Cost{Loads: 2, RMWs: 1}, 3, 15, 127)
	mc.CheckCost(t, "Budget: Retry, none left", with(one, retry, retry), mc.Cost{Loads: 2, Clock: 1}, 0)
	mc.CheckCost(t, "Budget: Available", with(ample, spend, func(b *Budget) { b.Available() }), mc.Cost{Loads: 2, Clock: 1}, 0)
}
