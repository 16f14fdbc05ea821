//go:build modelcheck

package atomicbreaker

import (
	"fmt"
	"time"
)

// ruled is what a Breaker and its model can do. Time stands still, so what has
// passed has passed before. A call's permit lies in a slot until it reports.
type ruled interface {
	allow(slot int) error
	report(slot int, o Outcome) Verdict
	tripped(slot int, d time.Duration) Verdict
	RecordSuccess() Verdict
	RecordFailure() Verdict
	Trip(d time.Duration)
	HalfOpen()
	ForceOpen()
	Disable()
	Reset()
	update(Config)
	expire() // an open time; beforehand only
	Snapshot() Snapshot
	notified() string // the events; afterwards only
	stats() string    // afterwards only
}

// plainly makes counters count in one stripe, so that which stripe it is takes no
// more executions. Nothing depends on it.
func plainly(l *counters) {
	l.stripes.Store(&[]counterStripe{{}})
	if l.totals != nil {
		l.totals = make([]totalStripe, 1)
	}
}

// actual is a Breaker as ruled.
type actual struct {
	*Breaker
	permits [slots]Permit
	events  string
	last    Event
}

func (b *actual) allow(slot int) (err error) {
	b.permits[slot], err = b.Allow()
	return err
}

func (b *actual) report(slot int, o Outcome) Verdict {
	switch p := b.permits[slot]; o {
	case Success:
		return p.Success()
	case Failure:
		return p.Failure()
	default:
		return p.Cancel()
	}
}

func (b *actual) tripped(slot int, d time.Duration) Verdict { return b.permits[slot].Trip(d) }
func (b *actual) expire()                                   { b.core.word.And(^uint64(untilMask)) }
func (b *actual) notified() string                          { return b.events }
func (b *actual) stats() string                             { return fmt.Sprintf("%+v", b.Stats()) }

func (b *actual) update(c Config) {
	if b.core.set.Load().listens {
		c.OnStateChange = b.hear
	}
	if err := b.Update(c); err != nil {
		panic(err)
	}
}

// hear also notes what is wrong between one event and the next: there is one for
// each generation.
func (b *actual) hear(e Event) {
	if e.From != b.last.To || e.Generation != b.last.Generation+1 {
		b.events += fmt.Sprintf("[generation %d of %v after %d of %v] ", e.Generation, e.From, b.last.Generation, b.last.To)
	}
	b.events += showEvent(e) + fmt.Sprint(e.OpenFor, " ")
	b.last = e
}

// rule is the model of a Breaker.
type rule struct {
	Model
	listens bool
	permits [slots]any
}

func (r *rule) allow(slot int) (err error) {
	r.permits[slot], err = r.Allow()
	return err
}

func (r *rule) report(slot int, o Outcome) Verdict { return r.Done(r.permits[slot], o) }

func (r *rule) tripped(slot int, d time.Duration) Verdict { return r.DoneTrip(r.permits[slot], d) }

func (r *rule) update(c Config) { r.Set(c) }

func (r *rule) expire() { r.Pass(r.Snapshot().RetryAfter) }

func (r *rule) stats() string { return fmt.Sprintf("%+v", r.Counted()) }

func (r *rule) notified() (text string) {
	for _, e := range r.Notified() {
		if r.listens {
			text += showEvent(e) + fmt.Sprint(e.OpenFor, " ")
		}
	}
	return text
}
