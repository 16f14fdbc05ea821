//go:build modelcheck

package atomicbreaker

import (
	"fmt"
	"testing"
	"time"

	"github.com/latchfree/latchfree/internal/table"
	"github.com/latchfree/latchfree/internal/tools/mc"
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

// Model is internal/tools/model's Breaker, for a Breaker or for a key of a Group. That
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

// Keys. A twin shares its slot of the filter with k, and another does not.
var k, twin, another = keysByStripe()

func keysByStripe() (k, twin, another string) {
	keys := table.NewKeys[string]()
	k = "k"
	for i := 0; twin == "" || another == ""; i++ {
		name := fmt.Sprint("k", i)
		if filterSlot(keys.Hash(name)) == filterSlot(keys.Hash(k)) {
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

func reportOp(slot int, o Outcome) action {
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

func update(c Config) action {
	return action{Name: fmt.Sprintf("Update(%v)", c.Policy), Do: func(s subject) any { s.update(c); return nil }}
}

func expire(k string) action {
	return action{Name: fmt.Sprintf("expire(%q)", k), Do: func(s subject) any { s.expire(k); return nil }}
}

func age(k string) action {
	return action{Name: fmt.Sprintf("age(%q)", k), Do: func(s subject) any { s.age(k); return nil }}
}

func lingers(k string) action {
	return action{Name: fmt.Sprintf("RecordSuccess(%q), stopped", k), Do: func(s subject) any { s.linger(k); return nil }}
}

func bury(k string) action {
	return action{Name: fmt.Sprintf("bury(%q)", k), Do: func(s subject) any { s.kill(k); return nil }}
}

func look(k string) action {
	return action{Name: fmt.Sprintf("look(%q)", k), Do: func(s subject) any { return s.look(k) }}
}

func notified(k string) action {
	return action{Name: fmt.Sprintf("told(%q)", k), Do: func(s subject) any { return s.notified(k) }}
}

var (
	resetAll = action{Name: "ResetAll", Do: func(s subject) any { s.resetAll(); return nil }}
	sweep    = action{Name: "Sweep", Do: func(s subject) any { s.sweep(); return nil }}
	quiet    = action{Name: "quiet", Do: func(s subject) any { return s.quiet() }}
	tallies  = action{Name: "Stats", Do: func(s subject) any { return s.stats() }}
)

// A protocol is what some threads do to a group, and what was done before.
type protocol struct {
	settings Config
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
		plainly(&c.current().counters)
		return c
	})
}

// checkOf is check for other subjects.
func (p protocol) checkOf(t *testing.T, cfg mc.Config, fresh func(Config) subject) mc.Result {
	t.Helper()
	p.settings.OpenTimeout = time.Minute
	p.settings.Probes = max(p.settings.Probes, 1)
	if p.settings.Policy == nil {
		p.settings.Policy = Consecutive(2)
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
			return start(&spec{settings: p.settings, deaf: !p.listens, keys: map[string]Model{}})
		},
		Threads: p.threads,
		After:   []action{quiet, look(k), look(twin), look(another), notified(k), notified(twin), notified(another), tallies},
	})
}

// lone is a Breaker as a subject. Its only key is k.
type lone struct {
	*Breaker
	permits [slots]Permit
}

func (l *lone) allow(slot int, _ string) (err error) {
	l.permits[slot], err = l.Allow()
	return err
}

func (l *lone) report(slot int, o Outcome) Verdict { return reportTo(l.permits[slot], o) }

func (l *lone) record(_ string, o Outcome) Verdict {
	if o == Success {
		return l.RecordSuccess()
	}
	return l.RecordFailure()
}

func (l *lone) state(string) State     { return l.State() }
func (l *lone) reset(string)           { l.Reset() }
func (l *lone) expire(string)          { passDeadline(&l.core) }
func (l *lone) update(Config)          { panic("see mc_update_test.go") }
func (l *lone) age(string)             { panic("only a Group forgets") }
func (l *lone) resetAll()              {}
func (l *lone) sweep()                 {}
func (l *lone) kill(string)            {}
func (l *lone) linger(string)          {}
func (l *lone) notified(string) string { return "" }
func (l *lone) quiet() error           { return nil }
func (l *lone) stats() string          { return fmt.Sprintf("%+v", l.Stats()) }

func (l *lone) look(key string) string {
	if key != k {
		return show(Closed, 0, 0, 0)
	}
	s := l.Snapshot()
	return show(s.State, s.Failures, s.Streak, s.InFlight)
}

// What two and three callers may do to the word of one breaker, in every order.
func TestBreakerProtocols(t *testing.T) {
	var (
		ready = after(opened, expire(k)) // for a probe
		two   = Config{Probes: 2, CloseAfter: 2}
		twice = after(probing, allow(0, k)) // two probes in flight
	)
	for name, p := range map[string]protocol{
		"two failures and a success":        {before: failing, threads: threads{{reportOp(0, Failure)}, {reportOp(2, Failure)}, {reportOp(1, Success)}}},
		"three failures":                    {before: held, threads: threads{{reportOp(0, Failure)}, {reportOp(1, Failure)}, {record(k, Failure)}}},
		"a failure, a success and Reset":    {before: failing, threads: threads{{reportOp(0, Failure)}, {record(k, Success)}, {reset(k)}}},
		"a call, a recovery and Reset":      {before: opened, threads: threads{{allow(0, k), reportOp(0, Failure)}, {record(k, Success)}, {reset(k)}}},
		"State, a recovery and a trip":      {before: failing, threads: threads{{state(k), state(k)}, {reportOp(0, Failure)}, {record(k, Success)}}},
		"a probe's end":                     {before: probing, threads: threads{{reportOp(3, Success)}, {record(k, Failure)}, {allow(0, k)}}},
		"a probe, and all over":             {before: probing, threads: threads{{reportOp(3, Ignored)}, {allow(0, k), reportOp(0, Success)}, {record(k, Success)}}},
		"two calls for one probe":           {before: ready, threads: threads{{allow(0, k), reportOp(0, Failure)}, {allow(1, k), reportOp(1, Success)}}},
		"two calls for one probe and Reset": {before: ready, threads: threads{{allow(0, k)}, {allow(1, k)}, {reset(k)}}},
		"a late opening and a probe":        {before: ready, threads: threads{{record(k, Failure)}, {allow(0, k), reportOp(0, Failure)}, {state(k)}}},
		"two heirs of a lost probe":         {before: overdue, threads: threads{{reportOp(3, Success)}, {allow(0, k)}, {allow(1, k)}}},
		"two probes and one more":           {settings: two, before: twice, threads: threads{{reportOp(3, Success)}, {reportOp(0, Success)}, {allow(1, k)}}},
		"two probes that disagree":          {settings: two, before: twice, threads: threads{{reportOp(3, Success)}, {reportOp(0, Failure)}, {record(k, Failure)}}},
		"Reset twice":                       {before: failing, threads: threads{{reset(k)}, {reset(k)}, {reportOp(2, Failure)}}},
	} {
		t.Run(name, func(t *testing.T) {
			p.checkOf(t, mc.Config{}, func(c Config) subject {
				l := &lone{Breaker: MustNew(c)}
				plainly(l.core.set.Load().counters)
				return l
			})
		})
	}
}

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
	stripes := make([]counterStripe, 1)
	l.stripes.Store(&stripes)
	if l.totals != nil {
		l.totals = stripes
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
