package naive

import (
	"context"
	"errors"

	"github.com/latchfree/latchfree/examples/planservice/api"
	"github.com/latchfree/latchfree/examples/planservice/internal/state"
)

// breakers is a count and a flag for each name, written in separate steps.
type breakers struct {
	gil
	failures  map[string]int
	disabled  map[string]bool
	threshold int
	step      func(string)
}

func (b *breakers) Allow(strategy string) (func(error) string, error) {
	open := false
	b.do(func() { open = b.disabled[strategy] })
	if open {
		return nil, state.ErrRejected
	}
	return func(err error) string {
		switch {
		case err == nil:
			return b.success(strategy)
		case !errors.Is(err, context.Canceled):
			return b.failure(strategy)
		}
		return "Counted"
	}, nil
}

// failure reads the count, and then stores it: of two that read together one is lost, and
// so is a success between the steps.
func (b *breakers) failure(strategy string) string {
	count := 0
	b.do(func() { count = b.failures[strategy] + 1 })
	b.step("breakers: read the count")
	b.do(func() { b.failures[strategy] = count })
	if count < b.threshold {
		return "Counted"
	}
	b.step("breakers: stored the count")
	b.do(func() { b.disabled[strategy] = true })
	return "Tripped"
}

// success clears the count and then the flag. Failures between the steps leave a breaker
// that lets calls through with a count at the threshold.
func (b *breakers) success(strategy string) string {
	b.do(func() { b.failures[strategy] = 0 })
	b.step("breakers: cleared the count")
	was := false
	b.do(func() { was, b.disabled[strategy] = b.disabled[strategy], false })
	if was {
		return "Recovered"
	}
	return "Counted"
}

func (b *breakers) Reset(strategy string) { b.success(strategy) }

func (b *breakers) ResetAll() {
	b.do(func() { clear(b.failures) })
	b.step("breakers: cleared all counts")
	b.do(func() { clear(b.disabled) })
}

func (b *breakers) Get(strategy string) api.Breaker {
	s := api.Breaker{Strategy: strategy, State: "Closed"}
	b.do(func() {
		s.Failures = b.failures[strategy]
		if b.disabled[strategy] {
			s.State, s.RetryAfter = "Open", -1
		}
	})
	return s
}
