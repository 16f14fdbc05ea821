package locked_test

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	ab "github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/bench/internal/locked"
)

// listened is a breaker that tells of its changes.
type listened interface {
	call(fail bool)
	Reset()
}

type ourListened struct{ *ab.Breaker }

func (l ourListened) call(fail bool) {
	p, err := l.Allow()
	switch {
	case err != nil:
	case fail:
		p.Failure()
	default:
		p.Success()
	}
}

type theirListened struct{ *locked.ListenedBreaker }

func (l theirListened) call(fail bool) {
	stay, err := l.Allow()
	switch {
	case err != nil:
	case fail:
		l.Failure(stay)
	default:
		l.Success(stay)
	}
}

func eachListened(t *testing.T, threshold int, f func(t *testing.T, make func(listener func(from, to ab.State)) listened)) {
	t.Run("latchfree", func(t *testing.T) {
		f(t, func(listener func(from, to ab.State)) listened {
			return ourListened{ab.MustNew(ab.Config{
				Policy: ab.Consecutive(threshold), OpenTimeout: time.Hour, OnStateChange: func(e ab.Event) { listener(e.From, e.To) },
			})}
		})
	})
	t.Run("mutex", func(t *testing.T) {
		cfg := locked.BreakerConfig{Threshold: threshold, OpenTimeout: time.Hour, Probes: 1, CloseAfter: 1}
		f(t, func(listener func(from, to ab.State)) listened {
			return theirListened{locked.NewListenedBreaker(cfg, listener)}
		})
	})
}

func TestListenersAreTold(t *testing.T) {
	eachListened(t, 2, func(t *testing.T, make func(func(from, to ab.State)) listened) {
		type change struct{ from, to ab.State }
		var told []change
		b := make(func(from, to ab.State) { told = append(told, change{from, to}) })
		b.call(true)
		b.call(false)
		b.call(true)
		assert.Empty(t, told, "still closed")
		b.call(true)
		b.call(true)
		assert.Equal(t, []change{{ab.Closed, ab.Open}}, told)
		b.Reset()
		assert.Equal(t, []change{{ab.Closed, ab.Open}, {ab.Open, ab.Closed}}, told)
	})
}

// From is the To of the event before.
func TestListenersAreToldInOrder(t *testing.T) {
	eachListened(t, 1, func(t *testing.T, make func(func(from, to ab.State)) listened) {
		last, gaps, events := ab.Closed, 0, 0
		b := make(func(from, to ab.State) {
			if from != last {
				gaps++
			}
			last = to
			events++
			runtime.Gosched() // so that others queue up
		})
		var done sync.WaitGroup
		for range 4 {
			done.Go(func() {
				for range 2000 {
					b.call(true)
					b.Reset()
				}
			})
		}
		done.Wait()
		assert.Zero(t, gaps)
		assert.Greater(t, events, 8000)
	})
}
