//go:build modelcheck

package interleavings

import (
	"fmt"
	"slices"
	"time"

	ab "github.com/latchfree/latchfree/atomicbreaker"
	"github.com/latchfree/latchfree/internal/atomics"
)

// ear is what a listener hears of one key. It is told of one event at a time,
// in order: nothing but that keeps what it writes together.
type ear struct {
	inside atomics.Int32
	events []ab.Event
	wrong  string
}

// hear is the listener. It takes steps, so that others can come between.
func (b *sharedBreakers) hear(name string, e ab.Event) {
	ear := &b.ears[slices.Index(breakerKeyNames[:], name)]
	if ear.inside.Add(1) != 1 {
		ear.wrong = "two events at a time"
	}
	if n := len(ear.events); n > 0 && ear.events[n-1].To != e.From {
		ear.wrong = "an event is missing"
	}
	ear.events = append(ear.events, e)
	ear.inside.Add(-1)
}

// breakerEvents compares what was heard with the events of the model, which are
// those of the order that explains everything else.
func breakerEvents(key int) breakerOp {
	return breakerOp{Name: "events", Do: func(c *breakerCaller) {
		ear := &c.Real.ears[key]
		c.Once("events", func() any { return ear.wrong + told(ear.events) },
			func(s *breakerModel, _ int) any { return told(s.keys[key].Events) })
	}}
}

// told prints events, without what the model does not know.
func told(events []ab.Event) string {
	type fields ab.Event // and not as String shows it
	text := ""
	for _, e := range events {
		e.Generation, e.At = 0, time.Time{}
		text += fmt.Sprintf("%+v; ", fields(e))
	}
	return text
}
