//go:build modelcheck

package atomicbreaker

import (
	"testing"
	"time"

	"github.com/latchfree/latchfree/internal/mc"
)

// Retrier is what both a RetryBudget and its model can do.
type Retrier interface {
	Success()
	Retry() bool
	Available() int
}

// NewBudgetModel returns the model of a RetryBudget, for one goroutine, while time
// stands still; see NewModel. Tokens are in thousandths.
var NewBudgetModel func(capacity, earns int) Retrier

var (
	earnHalf  = mc.Call[Retrier]{Name: "Success()", Do: func(r Retrier) any { r.Success(); return nil }}
	retryOnce = mc.Call[Retrier]{Name: "Retry()", Do: func(r Retrier) any { return r.Retry() }}
	left      = mc.Call[Retrier]{Name: "Available()", Do: func(r Retrier) any { return r.Available() }}
)

// In every order of their steps, tokens are earned and taken as if by one
// caller after the other.
func TestRetryBudgetIsLinearizable(t *testing.T) {
	type calls = []mc.Call[Retrier]
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
			prepared := func(r Retrier) Retrier {
				for range p.spent {
					r.Retry()
				}
				return r
			}
			mc.Linearizable(t, mc.Config{}, mc.Program[Retrier]{
				New: func() Retrier {
					return prepared(MustNewRetryBudget(RetryBudgetConfig{Capacity: 2, Ratio: 0.5}))
				},
				Model:   func() Retrier { return prepared(NewBudgetModel(2000, 500)) },
				Threads: p.threads,
				After:   []mc.Call[Retrier]{left},
			})
		})
	}
}

// However callers and the clock overtake each other, a second adds one token,
// and one caller takes it.
func TestRetryBudgetIsRefilledOnce(t *testing.T) {
	refilled := func(m *mc.M, callers int, before func(*RetryBudget)) {
		b := MustNewRetryBudget(RetryBudgetConfig{Capacity: 2, Ratio: 0.001})
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
	empty := func(b *RetryBudget) { b.Retry(); b.Retry() }
	t.Run("two callers", func(t *testing.T) {
		mc.Check(t, mc.Config{Operations: "Retry ∥ advance by 1 s, Retry"}, func(m *mc.M) { refilled(m, 2, empty) })
	})
	t.Run("three callers", func(t *testing.T) {
		mc.Check(t, mc.Config{Operations: "Retry ∥ Retry ∥ advance by 1 s, Retry"}, func(m *mc.M) { refilled(m, 3, empty) })
	})
	// What is left of a token is not lost when time adds the rest.
	t.Run("a success", func(t *testing.T) {
		mc.Check(t, mc.Config{Operations: "Success ∥ Retry ∥ advance by 999 ms, Retry"}, func(m *mc.M) {
			b := MustNewRetryBudget(RetryBudgetConfig{Capacity: 2, Ratio: 0.001})
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
func TestZeroRetryBudgetHasOneEpoch(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "the settings ∥ the settings"}, func(m *mc.M) {
		b := new(RetryBudget)
		var seen [2]*budget
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
func TestZeroRetryBudgetIsSetUpOnce(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "Retry ∥ Retry ∥ Success, Available"}, func(m *mc.M) {
		b := new(RetryBudget)
		var made mc.Tally
		var seen [2]*budget
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
func TestRetryBudgetCosts(t *testing.T) {
	with := func(c RetryBudgetConfig, before, op func(*RetryBudget)) func() func(int) {
		return func() func(int) {
			b := MustNewRetryBudget(c)
			before(b)
			return func(int) { op(b) }
		}
	}
	var (
		ample   = RetryBudgetConfig{Capacity: maxTokens, Ratio: 0.001}
		untimed = RetryBudgetConfig{Capacity: maxTokens, Ratio: 0.001, MinPerSecond: -1}
		one     = RetryBudgetConfig{Capacity: 1}
		full    = func(*RetryBudget) {}
		retry   = func(b *RetryBudget) { b.Retry() }
		success = func(b *RetryBudget) { b.Success() }
		spend   = func(b *RetryBudget) { b.Spend(1000) }
	)
	mc.CheckCost(t, "RetryBudget: Success, full", with(ample, full, success), mc.Cost{Loads: 1}, 0)
	mc.CheckCost(t, "RetryBudget: Success, not full", with(ample, spend, success), mc.Cost{Loads: 3, RMWs: 1}, 2, 8.38, 64.48)
	mc.CheckCost(t, "RetryBudget: Retry", with(ample, full, retry), mc.Cost{Loads: 2, RMWs: 1, Clock: 1}, 3, 15, 127)
	mc.CheckCost(t, "RetryBudget: Retry, without time", with(untimed, full, retry), mc.Cost{Loads: 2, RMWs: 1}, 3, 15, 127)
	mc.CheckCost(t, "RetryBudget: Retry, none left", with(one, retry, retry), mc.Cost{Loads: 2, Clock: 1}, 0)
	mc.CheckCost(t, "RetryBudget: Available", with(ample, spend, func(b *RetryBudget) { b.Available() }), mc.Cost{Loads: 2, Clock: 1}, 0)
}
