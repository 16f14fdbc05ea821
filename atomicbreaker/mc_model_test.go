//go:build modelcheck

package atomicbreaker

import (
	"fmt"
	"testing"
	"time"
)

// subject is what a Group and its model can do. Time stands still, so what has
// passed has passed before. A call's permit lies in a slot until it reports.
type subject interface {
	allow(slot int, k string) error
	report(slot int, o Outcome) Verdict
	record(k string, o Outcome) Verdict
	state(k string) State
	reset(k string)
	resetAll()
	sweep()
	update(c Config)
	expire(k string)          // an open time or a lease; beforehand only
	age(k string)             // so that it may be forgotten; beforehand only
	linger(k string)          // see linger; beforehand only
	kill(k string)            // see kill; beforehand only
	look(k string) string     // afterwards only
	quiet() error             // whether it is as it should be; afterwards only
	stats() string            // afterwards only
	notified(k string) string // the events of the key; afterwards only
}

const slots = 4

// checked is a Group as a subject.
type checked struct {
	*Group[string]
	t       testing.TB
	permits [slots]GroupPermit[string]
	events  map[string]*[]Event // by key, if there is a listener
	goOn    func()              // of a caller that was stopped, or nil
}

func (c *checked) hear(k string, e Event) { *c.events[k] = append(*c.events[k], e) }

// told also requires that generations are told without a gap, from the first
// in each life of the key.
func (c *checked) notified(k string) (s string) {
	if c.events == nil {
		return ""
	}
	last := Event{}
	for _, e := range *c.events[k] {
		if e.From != last.To || e.Generation != last.Generation+1 && (e.Generation != 1 || e.From != Closed) {
			s += fmt.Sprintf("[generation %d of %v after %d of %v] ", e.Generation, e.From, last.Generation, last.To)
		}
		s += showEvent(e)
		last = e
	}
	return s
}

func showEvent(e Event) string {
	return fmt.Sprintf("%v to %v: %v %d %d %d %d; ", e.From, e.To, e.Reason, e.Failures, e.Successes, e.InFlight, e.Streak)
}

func (c *checked) allow(slot int, k string) (err error) {
	c.permits[slot], err = c.Allow(k)
	return err
}

func (c *checked) report(slot int, o Outcome) Verdict { return reportTo(c.permits[slot], o) }

func reportTo(p interface{ Report(Outcome) Verdict }, o Outcome) Verdict { return p.Report(o) }

func (c *checked) record(k string, o Outcome) Verdict {
	if o == Success {
		return c.RecordSuccess(k)
	}
	return c.RecordFailure(k)
}

func (c *checked) state(k string) State { return c.State(k) }
func (c *checked) reset(k string)       { c.Reset(k) }
func (c *checked) resetAll()            { c.ResetAll() }
func (c *checked) sweep()               { c.Sweep() }

func (c *checked) update(settings Config) {
	config := *c.current().set.Load().config
	settings.OpenTimeout = config.Default.OpenTimeout
	config.Default = settings
	if err := c.Update(config); err != nil {
		panic(err)
	}
}

func (c *checked) expire(k string) { passDeadline(&c.current().cells.Load(k).core) }

// passDeadline moves a deadline to the beginning of time, which is now.
func passDeadline(c *core) {
	if w := &c.word; word(w.Load()).mode() == open {
		w.And(^uint64(untilMask))
	} else {
		w.And(^uint64(leaseMask))
	}
}

// age makes the last call of a key, and what its deadline was, longer ago than
// ForgetAfter.
func (c *checked) age(k string) {
	cell := c.current().cells.Load(k)
	const ago = 2 * defaultForgetAfter
	now := cell.settings().now()
	cell.touched.Store(int64(now - ago))
	if w := word(cell.word.Load()); w.mode() == open {
		cell.word.Store(uint64(w&^untilMask) | (ticks(now, openTick)-ticks(ago, openTick))&untilMask)
	} else if w.mode() == halfOpen {
		cell.word.Store(uint64(w &^ leaseMask))
	}
}

// linger leaves the cell of a pristine key in the table, until the end.
func (c *checked) linger(k string) { c.goOn = linger(c.Group, k) }

// kill leaves the cell of a pristine key dead in the table.
func (c *checked) kill(k string) { kill(c.t, c.Group, k) }

func (c *checked) quiet() error {
	if c.goOn != nil {
		c.goOn()
	}
	return c.checkQuiet(k, twin, another)
}

func (c *checked) stats() string { return fmt.Sprintf("%+v", c.Stats()) }

func (c *checked) look(k string) string {
	s := Snapshot{}
	if cell := c.current().cells.Load(k); cell != nil {
		v := cell.read()
		s = cell.snapshotOf(&v)
	}
	return show(s.State, s.Failures, s.Streak, s.InFlight)
}

func show(s State, failures, streak, inFlight int) string {
	return fmt.Sprintf("%v, %d failures, streak %d, %d in flight", s, failures, streak, inFlight)
}

// Model is internal/model's Breaker, for a Breaker or for a key of a Group. That
// package imports this one, so a test of package atomicbreaker_test sets NewModel.
type Model interface {
	Allow() (permit any, err error)
	Done(permit any, o Outcome) Verdict
	DoneTrip(permit any, d time.Duration) Verdict
	RecordSuccess() Verdict
	RecordFailure() Verdict
	Trip(d time.Duration)
	HalfOpen()
	ForceOpen()
	Disable()
	Reset()
	ResetAll()
	Sweep()
	State() State
	Snapshot() Snapshot
	Counted() Stats
	Notified() []Event
	Set(Config)
	Pass(d time.Duration)
}

// NewModel returns a model with settings of which only some policies are allowed.
var NewModel func(settings Config) Model

// ModelRule is Consecutive(K) or, if N is not zero, KOfN(K, N).
type ModelRule struct{ K, N int }

// ModelRules returns what a policy consists of.
func ModelRules(p Policy) (all []ModelRule) {
	switch p := p.(type) {
	case nil:
		return ModelRules(Consecutive(defaultThreshold))
	case consecutive:
		all = []ModelRule{{K: int(p)}}
	case kOfN:
		all = []ModelRule{{K: p.k, N: p.n}}
	case anyOf:
		for _, each := range p {
			all = append(all, ModelRules(each)...)
		}
	}
	return all
}

// spec is the model of a Group.
type spec struct {
	settings Config
	deaf     bool // without a listener
	keys     map[string]Model
	permits  [slots]struct {
		of     Model
		permit any
	}
}

func (s *spec) of(k string) Model {
	if s.keys[k] == nil {
		s.keys[k] = NewModel(s.settings)
	}
	return s.keys[k]
}

func (s *spec) allow(slot int, k string) (err error) {
	p := &s.permits[slot]
	p.of = s.of(k)
	p.permit, err = p.of.Allow()
	return err
}

func (s *spec) report(slot int, o Outcome) Verdict {
	p := s.permits[slot]
	if p.of == nil {
		return Late
	}
	return p.of.Done(p.permit, o)
}

func (s *spec) record(k string, o Outcome) Verdict {
	if o == Success {
		return s.of(k).RecordSuccess()
	}
	return s.of(k).RecordFailure()
}

func (s *spec) state(k string) State { return s.of(k).State() }
func (s *spec) reset(k string)       { s.of(k).Reset() }

func (s *spec) resetAll() {
	for _, m := range s.keys {
		m.ResetAll()
	}
}

func (s *spec) sweep() {
	for _, m := range s.keys {
		m.Sweep()
	}
}

func (s *spec) update(c Config) {
	c.OpenTimeout = s.settings.OpenTimeout
	s.settings = c
	for _, m := range s.keys {
		m.Set(c)
	}
}

func (s *spec) kill(string)     {}
func (s *spec) linger(k string) { s.record(k, Success) }
func (s *spec) age(k string)    { s.of(k).Pass(2 * defaultForgetAfter) }

func (s *spec) expire(k string) {
	s.of(k).Pass(max(s.of(k).Snapshot().RetryAfter, defaultProbeTimeout))
}

func (s *spec) look(k string) string {
	l := s.of(k).Snapshot()
	return show(l.State, l.Failures, l.Streak, l.InFlight)
}

func (s *spec) quiet() error { return nil }

func (s *spec) stats() string {
	sum := Stats{Recorded: s.settings.RecordTotals}
	for _, m := range s.keys {
		c := m.Counted()
		sum.Opened += c.Opened
		sum.Closed += c.Closed
		sum.Rejected += c.Rejected
		sum.Late += c.Late
		sum.TotalSuccesses += c.TotalSuccesses
		sum.TotalFailures += c.TotalFailures
		sum.TotalIgnored += c.TotalIgnored
	}
	return fmt.Sprintf("%+v", sum)
}

func (s *spec) notified(k string) (text string) {
	for _, e := range s.of(k).Notified() {
		if !s.deaf {
			text += showEvent(e)
		}
	}
	return text
}
