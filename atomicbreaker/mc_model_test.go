//go:build modelcheck

package atomicbreaker

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/latchfree/latchfree/internal/mc"
	"github.com/latchfree/latchfree/internal/table"
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
	expire(k string)      // an open time or a lease; beforehand only
	kill(k string)        // see kill; beforehand only
	look(k string) string // afterwards only
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

func (c *checked) expire(k string) { passDeadline(&c.current().cells.Load(k).core) }

// passDeadline moves a deadline to the beginning of time, which is now.
func passDeadline(c *core) {
	if w := &c.word; word(w.Load()).mode() == open {
		w.And(^uint64(untilMask))
	} else {
		w.And(^uint64(leaseMask))
	}
}

// kill leaves the cell of a pristine key dead in the table.
func (c *checked) kill(k string) { kill(c.t, c.Group, k) }

func (c *checked) look(k string) string {
	if err := c.CheckQuiet(); err != nil {
		return err.Error()
	}
	s := Snapshot{}
	if cell := c.current().cells.Load(k); cell != nil {
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
	permits  [slots]struct {
		of   *life
		stay int
	}
}

// life is what there is to know of a key.
type life struct {
	state                                State
	expired                              bool
	stay, failures, streak, inFlight, ok int
	events                               string
}

func (s *spec) of(k string) *life {
	if s.keys[k] == nil {
		s.keys[k] = new(life)
	}
	return s.keys[k]
}

func (l *life) enter(s State, why Reason) {
	l.tell(s, why, l.streak)
	*l = life{state: s, stay: l.stay + 1, streak: l.streak, ok: l.ok, events: l.events}
}

func (l *life) close(why Reason) {
	l.tell(Closed, why, l.streak)
	*l = life{stay: l.stay + 1, events: l.events}
}

func (l *life) tell(to State, why Reason, streak int) {
	failures, successes := l.failures, 0
	if l.state == HalfOpen {
		successes = l.ok
	}
	switch why {
	case ReasonThreshold:
		failures++
	case ReasonRecovered:
		successes++
	}
	if to == Open {
		streak++
	}
	l.events += showEvent(l.state, to, why, failures, successes, l.inFlight, streak)
}

func (s *spec) allow(slot int, k string) error {
	l := s.of(k)
	switch {
	case l.state == Open && !l.expired:
		return ErrOpen
	case l.state == Open:
		l.enter(HalfOpen, ReasonOpenTimeout)
		l.ok = 0
	case l.state == HalfOpen && l.inFlight == s.settings.Probes && !l.expired:
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
	if l == nil || l.stay != p.stay {
		return Late
	}
	if l.state == HalfOpen {
		l.inFlight--
		if o == Success && l.ok+1 < s.settings.CloseAfter {
			l.ok++
			return Counted
		}
	}
	if o == Ignored {
		return Counted
	}
	return s.outcome(l, o, ReasonRecovered, ReasonProbeFailed)
}

func (s *spec) record(k string, o Outcome) Verdict {
	l := s.of(k)
	if o == Failure && l.state == Open && !l.expired {
		return Late
	}
	return s.outcome(l, o, ReasonRecordSuccess, ReasonRecordFailure)
}

func (s *spec) outcome(l *life, o Outcome, closes, opens Reason) Verdict {
	switch {
	case o == Success && l.state == Closed:
		l.failures = 0
		return Counted
	case o == Success:
		l.close(closes)
		return Recovered
	case l.state == Closed && l.failures+1 < int(s.settings.Trip.(consecutive)):
		l.failures++
		return Counted
	}
	if l.state == Closed {
		opens = ReasonThreshold
	}
	l.enter(Open, opens)
	l.streak++
	return Tripped
}

func (s *spec) state(k string) State {
	if l := s.of(k); l.state != Open || !l.expired {
		return l.state
	}
	return HalfOpen
}

func (s *spec) reset(k string) { s.of(k).close(ReasonReset) }

func (s *spec) resetAll() {
	for _, l := range s.keys {
		if l.state == Closed && l.failures == 0 {
			l.stay++ // and nobody is told
		} else {
			l.close(ReasonReset)
		}
	}
}

func (s *spec) sweep()          {}
func (s *spec) kill(string)     {}
func (s *spec) expire(k string) { s.of(k).expired = true }

func (s *spec) look(k string) string {
	l := s.of(k)
	return show(s.state(k), l.failures, l.streak, l.inFlight)
}

func (s *spec) told(k string) string {
	if s.deaf {
		return ""
	}
	return s.of(k).events
}

// Keys. A twin shares its stripe with k, and another does not.
var k, twin, another = keysByStripe()

func keysByStripe() (k, twin, another string) {
	keys := table.NewKeys[string]()
	k = "k"
	for i := 0; twin == "" || another == ""; i++ {
		name := fmt.Sprint("k", i)
		if stripeOf(keys.Hash(name)) == stripeOf(keys.Hash(k)) {
			twin = name
		} else {
			another = name
		}
	}
	return k, twin, another
}

// An action is an operation of a protocol.
type action = mc.Call[subject]

func allow(slot int, k string) action {
	return action{Name: fmt.Sprintf("Allow(%q) %d", k, slot), Do: func(s subject) any { return s.allow(slot, k) }}
}

func report(slot int, o Outcome) action {
	return action{Name: fmt.Sprintf("%v of %d", o, slot), Do: func(s subject) any { return s.report(slot, o) }}
}

func record(k string, o Outcome) action {
	return action{Name: fmt.Sprintf("Record%v(%q)", o, k), Do: func(s subject) any { return s.record(k, o) }}
}

func state(k string) action {
	return action{Name: fmt.Sprintf("State(%q)", k), Do: func(s subject) any { return s.state(k) }}
}

func reset(k string) action {
	return action{Name: fmt.Sprintf("Reset(%q)", k), Do: func(s subject) any { s.reset(k); return nil }}
}

func expire(k string) action {
	return action{Name: fmt.Sprintf("expire(%q)", k), Do: func(s subject) any { s.expire(k); return nil }}
}

func bury(k string) action {
	return action{Name: fmt.Sprintf("bury(%q)", k), Do: func(s subject) any { s.kill(k); return nil }}
}

func look(k string) action {
	return action{Name: fmt.Sprintf("look(%q)", k), Do: func(s subject) any { return s.look(k) }}
}

func told(k string) action {
	return action{Name: fmt.Sprintf("told(%q)", k), Do: func(s subject) any { return s.told(k) }}
}

var (
	resetAll = action{Name: "ResetAll", Do: func(s subject) any { s.resetAll(); return nil }}
	sweep    = action{Name: "Sweep", Do: func(s subject) any { s.sweep(); return nil }}
)

// A protocol is what some threads do to a group, and what was done before.
type protocol struct {
	settings Config
	idle     bool // keep keys that have recovered until a Sweep
	listens  bool // and the listener's events must be those of that order
	before   []action
	threads  [][]action
}

// check explores the protocol with a Group. In every execution the results are
// those of some order of the actions on the model.
func (p protocol) check(t *testing.T, cfg mc.Config) mc.Result {
	t.Helper()
	return p.checkOf(t, cfg, func(settings Config) subject {
		c := &checked{t: t}
		config := GroupConfig[string]{Default: settings}
		if p.listens {
			c.events = map[string]*[]Event{k: {}, twin: {}, another: {}}
			config.OnStateChange = c.hear
		}
		c.Group = MustNewGroup(config)
		if p.idle {
			c.config.IdleTimeout = math.MinInt64 // every Sweep finds it over
		}
		return c
	})
}

// checkOf is check for other subjects.
func (p protocol) checkOf(t *testing.T, cfg mc.Config, fresh func(Config) subject) mc.Result {
	t.Helper()
	p.settings.OpenTimeout = time.Minute
	p.settings.Probes = max(p.settings.Probes, 1)
	if p.settings.Trip == nil {
		p.settings.Trip = Consecutive(2)
	}
	start := func(s subject) subject {
		for _, a := range p.before {
			a.Do(s)
		}
		return s
	}
	return mc.Linearizable(t, cfg, mc.Program[subject]{
		New: func() subject { return start(fresh(p.settings)) },
		Model: func() subject {
			return start(&spec{settings: p.settings, deaf: !p.listens, keys: map[string]*life{}})
		},
		Threads: p.threads,
		After:   []action{look(k), look(twin), look(another), told(k), told(twin), told(another)},
	})
}
