package locked

import (
	"context"
	"errors"
	"sync"

	"github.com/latchfree/latchfree/examples/planservice/api"
	"github.com/latchfree/latchfree/examples/planservice/internal/state"
)

// breakers counts exactly. It does not know which calls a result belongs to, so a late
// success closes a breaker; and an open one lets no probe through.
type breakers struct {
	mu        sync.Mutex
	failures  map[string]int
	disabled  map[string]bool
	threshold int
}

func (b *breakers) Allow(strategy string) (func(error) string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.disabled[strategy] {
		return nil, state.ErrRejected
	}
	return func(err error) string { return b.report(strategy, err) }, nil
}

func (b *breakers) report(strategy string, err error) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	was := b.disabled[strategy]
	switch {
	case errors.Is(err, context.Canceled):
	case err != nil:
		b.failures[strategy]++
		if b.failures[strategy] >= b.threshold {
			b.disabled[strategy] = true
			if !was {
				return "Tripped"
			}
		}
	default:
		delete(b.failures, strategy)
		delete(b.disabled, strategy)
		if was {
			return "Recovered"
		}
	}
	return "Counted"
}

func (b *breakers) Reset(strategy string) { b.report(strategy, nil) }

func (b *breakers) ResetAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.failures)
	clear(b.disabled)
}

func (b *breakers) Get(strategy string) api.Breaker {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := api.Breaker{Strategy: strategy, State: "Closed", Failures: b.failures[strategy]}
	if b.disabled[strategy] {
		s.State, s.RetryAfter = "Open", -1
	}
	return s
}
