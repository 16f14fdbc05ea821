//go:build !modelcheck

package histories_test

import (
	"context"
	"iter"
	"runtime"
	"sync/atomic"
	"testing"

	ab "github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/fuzz/internal/history"
)

// oneBreaker is a Breaker as a group of one key, with what its listener heard.
type oneBreaker struct {
	*ab.Breaker
	heard *events
}

func (b oneBreaker) Allow(string) (permit, error) { return b.Breaker.Allow() }
func (b oneBreaker) State(string) ab.State        { return b.Breaker.State() }
func (b oneBreaker) IsOpen(string) bool           { return b.Breaker.State() == ab.Open }
func (b oneBreaker) Reset(string)                 { b.Breaker.Reset() }
func (b oneBreaker) Len() int                     { return 1 }

func (b oneBreaker) Do(ctx context.Context, _ string, fn func(context.Context) error) error {
	_, err := ab.ExecuteContext(ctx, b.Breaker, func(ctx context.Context) (int, error) { return 0, fn(ctx) })
	return err
}

func (b oneBreaker) All() iter.Seq2[string, ab.Snapshot] {
	return func(yield func(string, ab.Snapshot) bool) { yield(breakerKey(0), b.Snapshot()) }
}

// events is what a listener heard.
type events struct {
	inside atomic.Int64 // listeners that run
	crowd  atomic.Bool  // there were two
	list   []ab.Event   // the listener's
}

// listen is a listener that takes its time.
func (es *events) listen(e ab.Event) {
	if es.inside.Add(1) > 1 {
		es.crowd.Store(true)
	}
	runtime.Gosched()
	es.list = append(es.list, e)
	es.inside.Add(-1)
}

// check compares the events with each other, and with what became of the
// breaker, when all its calls have returned.
func (b oneBreaker) check(w *breakerClient) {
	if b.heard.crowd.Load() {
		w.Errorf("two events were delivered at once")
	}
	state := ab.Closed
	for i, e := range b.heard.list {
		if e.From != state || e.Generation != uint64(i+1) {
			w.Errorf("event %d, after one to %v, is %v", i+1, state, e)
		}
		state = e.To
	}
	s := b.Snapshot()
	// An open breaker whose time has passed is half-open without an event.
	waits := state == ab.Open && s.State == ab.HalfOpen
	if s.Generation != len(b.heard.list) || s.State != state && !waits {
		w.Errorf("after %d events, the last to %v, the breaker is %v", len(b.heard.list), state, s)
	}
}

func listenedBreaker(listen func(*events, ab.Event)) func(*breakerLimits) group {
	return func(l *breakerLimits) group {
		heard := new(events)
		c := l.config()
		c.OnStateChange = func(e ab.Event) { listen(heard, e) }
		return oneBreaker{ab.MustNew(c), heard}
	}
}

func TestBreakerHistories(t *testing.T) {
	history.Check(t, timedTrial(1, listenedBreaker((*events).listen)), halfOpenKinds...)
}

func TestBrokenEventHistories(t *testing.T) {
	t.Run("an event that is lost", func(t *testing.T) {
		history.Expose(t, "event", timedTrial(1, listenedBreaker(func(es *events, e ab.Event) {
			if e.Reason != ab.ReasonReset {
				es.listen(e)
			}
		})))
	})
	t.Run("an event that comes twice", func(t *testing.T) {
		history.Expose(t, "event", timedTrial(1, listenedBreaker(func(es *events, e ab.Event) {
			if es.listen(e); e.To == ab.Open {
				es.listen(e)
			}
		})))
	})
}
