//go:build modelcheck

package atomicbreaker

import (
	"fmt"
	"testing"
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
	expire(k string)      // an open time or a lease; beforehand only
	age(k string)         // so that it may be forgotten; beforehand only
	kill(k string)        // see kill; beforehand only
	look(k string) string // afterwards only
	quiet() error         // whether it is as it should be; afterwards only
	stats() string        // afterwards only
	told(k string) string // the events of the key; afterwards only
}

const slots = 4

// checked is a Group as a subject.
type checked struct {
	*Group[string]
	t       testing.TB
	permits [slots]Permit
	events  map[string]*[]Event // by key, if there is a listener
}

func (c *checked) hear(k string, e Event) { *c.events[k] = append(*c.events[k], e) }

// told also requires that generations are told without a gap, from the first
// in each life of the key.
func (c *checked) told(k string) (s string) {
	if c.events == nil {
		return ""
	}
	last := Event{}
	for _, e := range *c.events[k] {
		if e.From != last.To || e.Generation != last.Generation+1 && (e.Generation != 1 || e.From != Closed) {
			s += fmt.Sprintf("[generation %d of %v after %d of %v] ", e.Generation, e.From, last.Generation, last.To)
		}
		s += showEvent(e.From, e.To, e.Reason, e.Failures, e.Successes, e.InFlight, e.Streak)
		last = e
	}
	return s
}

func showEvent(from, to State, why Reason, failures, successes, inFlight, streak int) string {
	return fmt.Sprintf("%v to %v: %v %d %d %d %d; ", from, to, why, failures, successes, inFlight, streak)
}

func (c *checked) allow(slot int, k string) (err error) {
	c.permits[slot], err = c.Allow(k)
	return err
}

func (c *checked) report(slot int, o Outcome) Verdict { return reportTo(c.permits[slot], o) }

func reportTo(p Permit, o Outcome) Verdict {
	switch o {
	case Success:
		return p.Success()
	case Failure:
		return p.Failure()
	default:
		return p.Cancel()
	}
}

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
	config := *configOf[string](c.Group.settings())
	settings.OpenTimeout = config.Default.OpenTimeout
	config.Default = settings
	if err := c.Update(config); err != nil {
		panic(err)
	}
}

func (c *checked) expire(k string) { passDeadline(&c.current().find(k).core) }

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
	cell := c.current().find(k)
	const ago = 2 * defaultForgetAfter
	now := cell.settings().now()
	cell.touched.Store(int64(now - ago))
	if w := word(cell.word.Load()); w.mode() == open {
		cell.word.Store(uint64(w&^untilMask) | (ticks(now, openTick)-ticks(ago, openTick))&untilMask)
	} else if w.mode() == halfOpen {
		cell.word.Store(uint64(w &^ leaseMask))
	}
}

// kill leaves the cell of a pristine key dead in the table.
func (c *checked) kill(k string) { kill(c.t, c.Group, k) }

func (c *checked) quiet() error  { return c.checkQuiet(k, twin, another) }
func (c *checked) stats() string { return fmt.Sprintf("%+v", c.Stats()) }

func (c *checked) look(k string) string {
	s := Snapshot{}
	if cell := c.current().find(k); cell != nil {
		s = cell.snapshot()
	}
	return show(s.State, s.Failures, s.Streak, s.InFlight)
}

func show(s State, failures, streak, inFlight int) string {
	return fmt.Sprintf("%v, %d failures, streak %d, %d in flight", s, failures, streak, inFlight)
}

// spec is what a Group should do, one operation at a time.
type spec struct {
	settings Config
	deaf     bool // without a listener
	keys     map[string]*life
	counted  Stats // of calls
	permits  [slots]struct {
		of   *life
		stay int
	}
}

// life is what there is to know of a key.
type life struct {
	state                            State
	expired, aged                    bool
	stay, failures, streak, inFlight int
	ok, bad                          int    // results of probes
	period                           int    // the stay with which it became half-open
	calls                            []bool // while closed, true for failures
	past                             past
}

// past is what a key has been through, in all its stays.
type past struct {
	events  string
	counted Stats // of transitions
}

func (s *spec) of(k string) *life {
	if s.keys[k] == nil {
		s.keys[k] = new(life)
	}
	return s.keys[k]
}

func (l *life) enter(s State, why Reason) {
	l.tell(s, why, l.streak)
	*l = life{state: s, stay: l.stay + 1, streak: l.streak, ok: l.ok, bad: l.bad, period: l.period, past: l.past}
}

func (l *life) close(why Reason) {
	l.tell(Closed, why, l.streak)
	*l = life{stay: l.stay + 1, past: l.past}
}

func (l *life) tell(to State, why Reason, streak int) {
	failures, successes := l.failures, 0
	if l.state == HalfOpen {
		failures, successes = l.bad, l.ok
	}
	if to == Open {
		streak++
	}
	l.past.counted.begins(to)
	l.past.events += showEvent(l.state, to, why, failures, successes, l.inFlight, streak)
}

func (s *spec) allow(slot int, k string) error {
	l := s.of(k)
	l.forget()
	s.permits[slot].of = nil
	switch {
	case l.state == Open && !l.expired, l.state == ForcedOpen:
		s.counted.Rejected++
		return ErrOpen
	case l.state == Open:
		l.enter(HalfOpen, ReasonOpenTimeout)
		l.ok, l.bad, l.period = 0, 0, l.stay
	case l.state == HalfOpen && l.inFlight == s.settings.Probes && !l.expired:
		s.counted.Rejected++
		return ErrTooManyProbes
	case l.state == HalfOpen && l.inFlight == s.settings.Probes:
		l.enter(HalfOpen, ReasonProbeTimeout)
	}
	if l.state == HalfOpen {
		l.inFlight++
		l.expired = false
	}
	s.permits[slot].of, s.permits[slot].stay = l, l.stay
	return nil
}

func (s *spec) report(slot int, o Outcome) Verdict {
	p := s.permits[slot]
	l := p.of
	overdue := l != nil && l.state == HalfOpen && p.stay >= l.period && p.stay < l.stay
	if l == nil || l.stay != p.stay && !overdue {
		return s.late(l)
	}
	if l.state == Disabled {
		return Counted
	}
	if l.state == HalfOpen {
		if !overdue {
			l.inFlight--
		}
		return s.probed(l, o)
	}
	if o == Ignored {
		return Counted
	}
	return s.outcome(l, o, 0, 0)
}

// probed counts the result of a probe.
func (s *spec) probed(l *life, o Outcome) Verdict {
	switch o {
	case Success:
		l.ok++
	case Failure:
		l.bad++
	default:
		return Counted
	}
	switch all, rate := l.ok+l.bad, s.settings.ProbeFailureRate; {
	case rate == 0 && l.bad > 0, rate > 0 && all >= s.settings.CloseAfter && float64(l.bad) >= rate*float64(all):
		l.enter(Open, ReasonProbeFailed)
		l.streak++
		return Tripped
	case all >= s.settings.CloseAfter:
		l.close(ReasonRecovered)
		return Recovered
	}
	return Counted
}

// late counts the report of a permit, if it is one.
func (s *spec) late(l *life) Verdict {
	if l != nil {
		s.counted.Late++
	}
	return Late
}

func (s *spec) record(k string, o Outcome) Verdict {
	l := s.of(k)
	l.forget()
	switch {
	case o == Failure && l.state == Open && !l.expired, l.state == ForcedOpen:
		return Late
	case l.state == Disabled:
		return Counted
	}
	return s.outcome(l, o, ReasonRecordSuccess, ReasonRecordFailure)
}

func (s *spec) outcome(l *life, o Outcome, closes, opens Reason) Verdict {
	switch {
	case l.state == Closed && !l.count(s.settings.Trip, o == Failure):
		return Counted
	case o == Success:
		l.close(closes)
		return Recovered
	}
	if l.state == Closed {
		opens = ReasonThreshold
	}
	l.enter(Open, opens)
	l.streak++
	return Tripped
}

// count counts a call, and reports whether that opens the breaker.
func (l *life) count(p Policy, failed bool) bool {
	l.calls = append(l.calls, failed)
	l.aged = l.aged && !failed
	if l.failures = row(l.calls); memory(p) > 0 {
		l.failures = among(l.calls, memory(p))
	}
	return enough(p, l.calls)
}

func (s *spec) state(k string) State {
	switch l := s.of(k); {
	case l.aged:
		return Closed
	case l.state == Open && l.expired:
		return HalfOpen
	default:
		return l.state
	}
}

func (s *spec) reset(k string) { s.of(k).close(ReasonReset) }

func (s *spec) resetAll() {
	for _, l := range s.keys {
		if l.state == Closed && l.failures == 0 {
			l.stay++ // and nobody is told
		} else {
			l.close(ReasonReset)
			l.past.counted.Closed-- // they are not counted one by one
		}
	}
}

func (s *spec) sweep() {
	for _, l := range s.keys {
		l.forget()
		if l.aged {
			*l = life{stay: l.stay, aged: true, past: l.past}
		}
	}
}

// forget closes a key that nobody has called for so long.
func (l *life) forget() {
	if l.aged && l.state != Closed {
		l.close(ReasonForgotten)
	}
}

func (s *spec) update(c Config) {
	c.OpenTimeout, c.Probes = s.settings.OpenTimeout, max(c.Probes, 1)
	s.settings = c
}

func (s *spec) kill(string)     {}
func (s *spec) age(k string)    { s.of(k).aged = true }
func (s *spec) expire(k string) { s.of(k).expired = true }

func (s *spec) look(k string) string {
	l := s.of(k)
	if l.aged && l.state != Closed {
		return show(Closed, 0, 0, 0)
	}
	failures := l.failures
	if l.state == HalfOpen {
		failures = l.bad
	}
	return show(s.state(k), failures, l.streak, l.inFlight)
}

func (s *spec) quiet() error { return nil }

func (s *spec) stats() string {
	sum := s.counted
	for _, l := range s.keys {
		sum.Opened += l.past.counted.Opened
		sum.Closed += l.past.counted.Closed
	}
	return fmt.Sprintf("%+v", sum)
}

func (s *spec) told(k string) string {
	if s.deaf {
		return ""
	}
	return s.of(k).past.events
}
