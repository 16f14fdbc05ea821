//go:build modelcheck

package atomicbreaker

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/latchfree/latchfree/internal/tools/mc"
)

// An order is an operation of a protocol on a Breaker.
type order = mc.Call[ruled]

func ask(slot int) order {
	return order{Name: fmt.Sprint("Allow ", slot), Do: func(b ruled) any { return b.allow(slot) }}
}

func ends(slot int, o Outcome) order {
	return order{Name: fmt.Sprintf("%v of %d", o, slot), Do: func(b ruled) any { return b.report(slot, o) }}
}

func endsIn(slot int, d time.Duration) order {
	return order{Name: fmt.Sprintf("Trip(%v) of %d", d, slot), Do: func(b ruled) any { return b.tripped(slot, d) }}
}

func records(o Outcome) order {
	return order{Name: "Record" + o.String(), Do: func(b ruled) any {
		if o == Success {
			return b.RecordSuccess()
		}
		return b.RecordFailure()
	}}
}

func tripsFor(d time.Duration) order {
	return order{Name: fmt.Sprintf("Trip(%v)", d), Do: func(b ruled) any { b.Trip(d); return nil }}
}

func updates(c Config) order {
	return order{Name: fmt.Sprintf("Update(%v)", c.Policy), Do: func(b ruled) any { b.update(c); return nil }}
}

var (
	resets   = order{Name: "Reset", Do: func(b ruled) any { b.Reset(); return nil }}
	forces   = order{Name: "ForceOpen", Do: func(b ruled) any { b.ForceOpen(); return nil }}
	halves   = order{Name: "HalfOpen", Do: func(b ruled) any { b.HalfOpen(); return nil }}
	disables = order{Name: "Disable", Do: func(b ruled) any { b.Disable(); return nil }}
	observes = order{Name: "Snapshot", Do: func(b ruled) any { return fmt.Sprintf("%+v", b.Snapshot()) }}
	waits    = order{Name: "expire", Do: func(b ruled) any { b.expire(); return nil }}
	listens  = order{Name: "told", Do: func(b ruled) any { return b.notified() }}
	counts   = order{Name: "Stats", Do: func(b ruled) any { return b.stats() }}
)

// A regime is what some threads do to a Breaker, and what was done before.
type regime struct {
	settings Config
	listens  bool // and the listener's events must be those of that order
	slots    int  // of a log that is smaller than a Breaker's; zero: none
	before   []order
	threads  [][]order
}

type orders = [][]order

// check explores the regime. In every execution the results are those of some
// order of the operations on the model.
func (r regime) check(t *testing.T, cfg mc.Config) {
	t.Helper()
	r.settings.OpenTimeout = time.Minute
	r.settings.Probes = max(r.settings.Probes, 1)
	r.settings.CloseAfter = max(r.settings.CloseAfter, 1)
	if r.settings.Policy == nil {
		r.settings.Policy = Consecutive(2)
	}
	start := func(b ruled) ruled {
		for _, o := range r.before {
			o.Do(b)
		}
		return b
	}
	mc.Linearizable(t, cfg, mc.Program[ruled]{
		New: func() ruled {
			b := new(actual)
			c := r.settings
			if r.listens {
				c.OnStateChange = b.hear
			}
			b.Breaker = MustNew(c)
			plainly(b.core.set.Load().counters)
			b.narrow(r.slots)
			return start(b)
		},
		Model:   func() ruled { return start(&rule{Model: NewModel(r.settings), listens: r.listens}) },
		Threads: r.threads,
		After:   []order{observes, listens, counts},
	})
}

// What comes before. Permits 0 and 1 are of a closed breaker without failures,
// and 2 is a probe.
var (
	two     = []order{ask(0), ask(1)}
	tripped = append(two[:2:2], tripsFor(0))
	trying  = append(tripped[:3:3], waits, ask(2))
	forced  = append(two[:2:2], forces)
	off     = append(two[:2:2], disables, ask(2))
	failed  = []order{ask(3), ends(3, Failure)}
)

// Checks I7: all tests of this file.

// What is done by hand takes effect at one moment, in whatever mode, and voids
// the results of the stay that it ends.
func TestByHand(t *testing.T) {
	fourFifths := Config{Policy: KOfN(4, 5)}
	for name, r := range map[string]regime{
		"ForceOpen and a result":    {before: append(two[:2:2], failed...), threads: orders{{forces}, {ends(0, Failure)}}},
		"ForceOpen and results":     {before: two, threads: orders{{forces}, {ends(0, Failure), ends(1, Success)}}},
		"Disable and a result":      {before: append(two[:2:2], failed...), threads: orders{{disables}, {ends(0, Failure)}}},
		"Disable and a call":        {threads: orders{{disables, ask(0)}, {ask(1), ends(1, Failure)}}},
		"off and on":                {before: off, threads: orders{{resets, ask(0), ends(0, Failure)}, {ends(2, Failure)}}},
		"Trip and a trip":           {before: append(two[:2:2], failed...), threads: orders{{tripsFor(0)}, {ends(0, Failure)}}},
		"Trip and a recovery":       {before: trying, threads: orders{{tripsFor(2 * time.Minute)}, {ends(2, Success), ask(0)}}},
		"Trip and a probe":          {before: append(tripped[:3:3], waits), threads: orders{{tripsFor(0)}, {ask(2), ends(2, Failure)}}},
		"two trips, the longer":     {before: two, threads: orders{{tripsFor(time.Minute)}, {tripsFor(5 * time.Minute)}}},
		"a trip until Reset":        {before: two, threads: orders{{tripsFor(-1)}, {tripsFor(time.Minute)}}},
		"Trip and Reset":            {before: tripped, threads: orders{{tripsFor(time.Minute)}, {resets}}},
		"Trip and Update":           {before: tripped, threads: orders{{tripsFor(0)}, {updates(Config{Policy: Consecutive(1), OpenTimeout: time.Hour}), tripsFor(0)}}},
		"a share of the probes":     {before: trying, settings: Config{Probes: 2, CloseAfter: 2, ProbeFailureRate: 1}, threads: orders{{ends(2, Failure), observes}, {ask(0), ends(0, Success)}}},
		"too many of the probes":    {before: trying, settings: Config{Probes: 2, CloseAfter: 2, ProbeFailureRate: 0.5}, threads: orders{{ends(2, Failure), observes}, {ask(0), ends(0, Success)}}},
		"ForceOpen and Reset":       {before: trying, threads: orders{{forces, ask(0)}, {resets}}},
		"HalfOpen and a result":     {before: append(two[:2:2], failed...), threads: orders{{halves, ask(2)}, {ends(0, Failure)}}},
		"HalfOpen twice":            {before: tripped, threads: orders{{halves, ask(0), ends(0, Success)}, {halves, ask(2)}}},
		"HalfOpen and a probe":      {before: append(tripped[:3:3], waits), threads: orders{{halves}, {ask(2), ends(2, Failure)}}},
		"HalfOpen and an old probe": {before: two, threads: orders{{halves}, {halves, ask(2), forces, halves, ends(2, Success)}}},
		"a probe and an old one":    {before: append(tripped[:3:3], waits), threads: orders{{ask(0)}, {ask(2), forces, halves, ends(2, Success)}}},
		"HalfOpen and ForceOpen":    {before: forced, threads: orders{{halves, ask(2)}, {forces}}},
		"ForceOpen twice":           {before: two, threads: orders{{forces}, {forces, ends(0, Success)}}},
		"Disable twice":             {before: two, threads: orders{{disables}, {disables, ends(0, Success)}}},
		"ForceOpen and Disable":     {before: two, threads: orders{{forces, observes}, {disables, observes}}},
		"ForceOpen and a probe":     {before: trying, threads: orders{{forces}, {ends(2, Success)}}},
		"forced means forced":       {before: forced, threads: orders{{ask(2), ends(2, Success)}, {ends(0, Success), ends(1, Failure)}}},
		"a permit's Trip":           {before: two, threads: orders{{endsIn(0, time.Minute)}, {endsIn(1, 5*time.Minute)}}},
		"a permit's Trip and one":   {before: two, threads: orders{{endsIn(0, -1)}, {ends(1, Failure), ask(2)}}},
		"a probe's Trip":            {before: trying, settings: Config{Probes: 2}, threads: orders{{endsIn(2, 5*time.Minute)}, {ask(0), ends(0, Success)}}},
		"a permit's Trip when off":  {before: off, threads: orders{{endsIn(2, -1)}, {resets}}},
		"a permit's Trip, forced":   {before: two, threads: orders{{endsIn(0, 0)}, {forces}}},
		"two rejections":            {before: forced, threads: orders{{ask(2)}, {ask(3)}}},
		"two late results":          {before: append(two[:2:2], resets), threads: orders{{ends(0, Success)}, {ends(1, Failure)}}},
		"two resets":                {before: two, threads: orders{{resets}, {resets}}},
		"Updates keep what is open": {before: two, threads: orders{{updates(Config{OpenTimeout: time.Hour}), tripsFor(0)}, {updates(Config{OpenTimeout: time.Minute})}}},
		"recorded, and a result":    {before: append(two[:2:2], failed...), threads: orders{{records(Failure), observes}, {ends(0, Failure), records(Success)}}},
		"recorded, and a probe":     {before: trying, threads: orders{{records(Failure)}, {ends(2, Success), records(Success)}}},
		"recorded among K of N":     {settings: fourFifths, before: append(two[:2:2], failed...), threads: orders{{records(Failure), records(Failure)}, {ends(0, Failure), records(Success)}}},
		"recorded, and ForceOpen":   {before: tripped, threads: orders{{records(Success)}, {forces}}},
		"totals, and a trip":        {settings: Config{RecordTotals: true}, before: append(two[:2:2], failed...), threads: orders{{ends(0, Failure), records(Success)}, {ends(1, Success)}}},
		"totals, and disabled":      {settings: Config{RecordTotals: true}, before: off, threads: orders{{resets, ask(0), ends(0, Success)}, {ends(2, Success)}}},
		"totals of probes":          {settings: Config{RecordTotals: true, Probes: 2}, before: trying, threads: orders{{ends(2, Success)}, {ask(0), ends(0, Ignored)}}},
		"by hand among K of N":      {settings: fourFifths, before: append(two[:2:2], failed...), threads: orders{{ends(0, Failure), tripsFor(0)}, {ends(1, Success), resets}}},
	} {
		r.listens = true
		t.Run(name, func(t *testing.T) { r.check(t, mc.Config{}) })
	}
}

// Three callers by hand.
func TestByThreeHands(t *testing.T) {
	for name, r := range map[string]regime{
		"all at once":              {before: two, threads: orders{{forces}, {disables}, {resets}}},
		"a trip, and two hands":    {before: trying, threads: orders{{ends(2, Success)}, {tripsFor(0)}, {resets}}},
		"two trips and ForceOpen":  {before: two, threads: orders{{tripsFor(0)}, {endsIn(0, -1)}, {forces}}},
		"two permits and Disable":  {before: two, threads: orders{{endsIn(0, 0)}, {ends(1, Failure)}, {disables}}},
		"a probe, off and on":      {before: append(tripped[:3:3], waits), threads: orders{{ask(2), ends(2, Success)}, {disables}, {resets}}},
		"two Updates and a result": {before: append(two[:2:2], failed...), threads: orders{{updates(Config{Policy: Consecutive(3)})}, {updates(Config{Policy: KOfN(2, 3)})}, {ends(0, Failure)}}},
	} {
		t.Run(name, func(t *testing.T) { r.check(t, mc.Config{}) })
	}
}

// What is done to a zero Breaker is counted like anything else.
func TestZeroBreakerCounts(t *testing.T) {
	var reset, forced Breaker
	reset.Reset()
	forced.ForceOpen()
	if c, o := reset.Stats(), forced.Stats(); c != (Stats{Closed: 1}) || o != (Stats{Opened: 1}) {
		t.Errorf("%+v after Reset, %+v after ForceOpen", c, o)
	}
}

// Who asks a zero Breaker for its counts while others set it up is told of those
// that there are.
func TestZeroBreakerCountsInEveryOrder(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "ForceOpen, Stats ∥ Stats"}, func(m *mc.M) {
		var b Breaker
		m.Go(func() {
			b.ForceOpen()
			if s := b.Stats(); s != (Stats{Opened: 1}) {
				m.Failf("%+v", s)
			}
		})
		m.Go(func() { b.Stats() })
	})
}

// What is counted for Stats is counted, whoever is first, and on whatever stripe.
func TestCountersLoseNothing(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "opened, Stats ∥ opened ∥ late"}, func(m *mc.M) {
		var l counters
		m.Go(func() {
			l.changed(word(0).enter(open))
			if s := l.stats(); s.Opened == 0 || s.Opened > 2 || s.Late > 1 {
				m.Failf("%+v meanwhile", s)
			}
		})
		m.Go(func() { l.changed(word(0).enter(open)) })
		m.Go(func() { l.mine().late.Add(1) })
		m.Final(func() {
			if s := l.stats(); s != (Stats{Opened: 2, Late: 1}) {
				m.Failf("%+v", s)
			}
		})
	})
}

// A shadow counts, opens and recovers like any other, and lets all through.
func TestShadow(t *testing.T) {
	for name, r := range map[string]regime{
		"a trip":               {before: append(two[:2:2], failed...), threads: orders{{ends(0, Failure), ask(2)}, {ask(3), ends(3, Failure)}}},
		"an open one":          {before: tripped, threads: orders{{ask(2), ends(2, Failure)}, {resets, ask(3)}}},
		"two probes":           {before: append(tripped[:3:3], waits), threads: orders{{ask(2), ends(2, Success)}, {ask(3), ends(3, Failure)}}},
		"ForceOpen":            {before: two, threads: orders{{forces, ask(2)}, {ends(0, Failure)}}},
		"Update to what is on": {before: tripped, threads: orders{{updates(Config{Policy: Consecutive(2)}), ask(2)}, {ask(3)}}},
	} {
		r.settings.Shadow, r.listens = true, true
		t.Run(name, func(t *testing.T) { r.check(t, mc.Config{}) })
	}
}

// Settings with and without windows, and others with.
var (
	windowed  = Config{Policy: FailureRate(1, 2, time.Minute), OpenTimeout: time.Minute}
	counting  = Config{Policy: Consecutive(3), OpenTimeout: time.Minute}
	both      = Config{Policy: AnyOf(Consecutive(3), FailureRate(1, 9, time.Minute)), OpenTimeout: time.Minute}
	otherwise = Config{Policy: FailureRate(1, 2, time.Hour), OpenTimeout: time.Minute}
)

// patient is a Breaker, and calls that it has admitted: one when it was made,
// and, if it can be, a probe of one that has opened since.
type patient struct {
	b            *Breaker
	early, probe Permit
}

// A cure is something that a thread does to it.
type cure struct {
	name string
	do   func(*patient)
}

func updatesTo(name string, c Config) cure {
	return cure{"Update to " + name, func(p *patient) {
		if err := p.b.Update(c); err != nil {
			panic(err)
		}
	}}
}

var (
	toWindows = updatesTo("windows", windowed)
	toOthers  = updatesTo("others", otherwise)
	toCounts  = updatesTo("counts", counting)
	toBoth    = updatesTo("both", both)
	resetting = cure{"Reset", func(p *patient) { p.b.Reset() }}
	recovers  = cure{"Success of a probe", func(p *patient) { p.probe.Success() }}
	passing   = cure{"Allow, Success", func(p *patient) {
		call, _ := p.b.Allow()
		call.Success()
	}}
	calls = cure{"Allow, Failure", func(p *patient) {
		if call, err := p.b.Allow(); err == nil {
			call.Failure()
		}
	}}
)

func newPatient(c Config) *patient {
	p := &patient{b: MustNew(c)}
	plainly(p.b.core.set.Load().counters)
	p.early, _ = p.b.Allow()
	return p
}

// Checks I14, I15, I16: all tests of this file.

// Once everybody has returned, a closed breaker says that it counts successes
// if and only if its settings have windows, whoever was last.
func TestWatchedAgreesWithSettings(t *testing.T) {
	for name, p := range map[string]struct {
		from    Config
		probing bool // it is half-open before
		long    bool // too long for all orders: those with at most two preemptions
		threads [][]cure

		ends     uint64 // how many stays have ended
		failures int    // how many there are in a row then
	}{
		"Update and Reset":              {from: counting, threads: [][]cure{{toWindows}, {resetting}}, ends: 1},
		"Update back and Reset":         {from: windowed, threads: [][]cure{{toCounts}, {resetting}}, ends: 1},
		"Update and a recovery":         {from: counting, probing: true, threads: [][]cure{{toWindows}, {recovers}}, ends: 1},
		"Update back and a recovery":    {from: windowed, probing: true, threads: [][]cure{{toCounts}, {recovers}}, ends: 1},
		"two Updates":                   {from: counting, threads: [][]cure{{toWindows}, {toCounts}}},
		"two Updates, back first":       {from: windowed, threads: [][]cure{{toCounts}, {toOthers}}},
		"there and back, and Reset":     {from: counting, threads: [][]cure{{toWindows, toCounts}, {resetting}}, ends: 1},
		"there and back, and a failure": {from: both, threads: [][]cure{{toCounts, toBoth}, {calls}}, failures: 1},
		"a failure during Updates":      {from: counting, threads: [][]cure{{toBoth, toCounts}, {calls}}, failures: 1},
		"a failure and a success":       {from: counting, threads: [][]cure{{toBoth}, {calls, passing}}},
		"Updates, and a recovery":       {from: counting, probing: true, threads: [][]cure{{toWindows, toCounts}, {recovers}}, ends: 1},
		"two Updates and a recovery":    {from: windowed, probing: true, threads: [][]cure{{toCounts}, {toWindows}, {recovers}}, ends: 1},
		"two Updates and Reset":         {from: counting, long: true, threads: [][]cure{{toCounts}, {toWindows}, {resetting}}, ends: 1},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := mc.Config{}
			if p.long {
				cfg = mc.Config{Mode: mc.Bounded, Preemptions: 2}
			}
			cfg.Operations = mc.Listed(p.threads, func(c cure) string { return c.name })
			mc.Check(t, cfg, func(m *mc.M) {
				q := newPatient(p.from)
				if p.probing {
					q.b.Trip(0)
					q.b.core.word.And(^uint64(untilMask))
					q.probe, _ = q.b.Allow()
				}
				began := uint64(word(q.b.core.word.Load()).gen())
				for _, cures := range p.threads {
					m.Go(func() {
						for _, c := range cures {
							c.do(q)
						}
					})
				}
				m.Final(func() {
					s, w := q.b.core.set.Load(), word(q.b.core.word.Load())
					if ended := uint64(w.gen()) - began; ended != p.ends || q.b.core.failures(w, s, false) != p.failures {
						m.Failf("%d stays have ended, and there are %d failures", ended, q.b.core.failures(w, s, false))
					}
					if w.mode() != closed || w.watched() != s.watchesAll() {
						m.Failf("mode %d, watched: %v, and should be: %v", w.mode(), w.watched(), s.watchesAll())
					}
				})
			})
		})
	}
}

// Results by settings and of stays that are over are not in the windows of
// those that follow: these have exactly one failure, or two if the other came
// while they were there.
func TestWindowsAreOfOneStayAndPolicy(t *testing.T) {
	// An operation that has read the word and the settings, and then is stopped.
	stopped := func(p *patient) func() {
		work := report{core: &p.b.core, settings: p.b.core.set.Load(), result: result{outcome: Failure, how: bad}}
		w := word(p.b.core.word.Load())
		return func() { work.count(w) }
	}
	early := func(p *patient) func() { return func() { p.early.Failure() } }
	// A success when there are windows, which takes the short way to them.
	success := func(p *patient) func() {
		call, _ := p.b.Allow()
		call.Success()
		return func() { p.early.Success() }
	}
	for name, p := range map[string]struct {
		operations string
		first      func(*patient) func()
		then       []cure
	}{
		"a late failure":              {"Failure ∥ Reset, Allow, Failure", early, []cure{resetting, calls}},
		"a late failure and a reset":  {"Failure ∥ Allow, Failure, Reset, Allow, Failure", early, []cure{calls, resetting, calls}},
		"a late success":              {"Success ∥ Reset, Allow, Failure", success, []cure{resetting, calls}},
		"a late success, and again":   {"Success ∥ Reset, Allow, Failure, Reset, Allow, Failure", success, []cure{resetting, calls, resetting, calls}},
		"earlier settings":            {"Failure by earlier settings ∥ Update to others, Allow, Failure", stopped, []cure{toOthers, calls}},
		"earlier settings, and again": {"Failure by earlier settings ∥ Update to others, Update to windows, Allow, Failure", stopped, []cure{toOthers, toWindows, calls}},
		"a reset, and an update":      {"Failure by earlier settings ∥ Reset, Update to others, Allow, Failure", stopped, []cure{resetting, toOthers, calls}},
	} {
		t.Run(name, func(t *testing.T) {
			mc.Check(t, mc.Config{Operations: p.operations}, func(m *mc.M) {
				q := newPatient(windowed)
				first := p.first(q)
				m.Go(first)
				m.Go(func() {
					for _, c := range p.then {
						c.do(q)
					}
				})
				m.Final(func() {
					if s := q.b.Snapshot(); s.State != Closed {
						m.Failf("one failure made it %v", s.State)
					}
					call, _ := q.b.Allow()
					if v := call.Failure(); v != Tripped {
						m.Failf("the second failure is %v", v)
					}
				})
			})
		})
	}
}

// Of failures that together are enough, exactly one opens a Breaker, whichever
// stripe they count in, and whoever is first to count in the stay.
func TestWindowsOpenOnce(t *testing.T) {
	rate := FailureRate(0.5, 4, time.Minute)
	failure := func(b *Breaker, p Permit) Verdict { return p.Failure() }
	success := func(b *Breaker, p Permit) Verdict { return p.Success() }
	for name, p := range map[string]struct {
		operations string
		policy     Policy
		earlier    []cure // before it is of that policy
		before     int    // failures
		threads    []func(*Breaker, Permit) Verdict
		open       bool // whether it must be
	}{
		"two failures":               {"Failure ∥ Failure", FailureCount(2, time.Minute), nil, 0, []func(*Breaker, Permit) Verdict{failure, failure}, true},
		"one more than enough":       {"Failure ∥ Failure", FailureCount(2, time.Minute), nil, 1, []func(*Breaker, Permit) Verdict{failure, failure}, true},
		"a failure and a success":    {"Failure ∥ Success", FailureCount(2, time.Minute), nil, 1, []func(*Breaker, Permit) Verdict{failure, success}, true},
		"a rate, and enough calls":   {"Failure ∥ Failure", rate, nil, 2, []func(*Breaker, Permit) Verdict{failure, failure}, true},
		"a rate, and half successes": {"Success ∥ Failure", rate, nil, 3, []func(*Breaker, Permit) Verdict{success, failure}, true},
		"in a row or in a window":    {"Failure ∥ Failure", AnyOf(Consecutive(3), FailureCount(3, time.Minute)), nil, 1, []func(*Breaker, Permit) Verdict{failure, failure}, true},
		"too few":                    {"Failure ∥ Failure", FailureCount(3, time.Minute), nil, 0, []func(*Breaker, Permit) Verdict{failure, failure}, false},
		"in the next stay":           {"Failure ∥ Failure", windowed.Policy, []cure{passing, resetting}, 0, []func(*Breaker, Permit) Verdict{failure, failure}, true},
		"by later settings":          {"Failure ∥ Failure", windowed.Policy, []cure{passing, toOthers}, 0, []func(*Breaker, Permit) Verdict{failure, failure}, true},
	} {
		t.Run(name, func(t *testing.T) {
			mc.Check(t, mc.Config{Operations: p.operations}, func(m *mc.M) {
				c := Config{Policy: p.policy, OpenTimeout: -1}
				q := newPatient(c)
				for _, earlier := range p.earlier {
					earlier.do(q)
				}
				updatesTo("it", c).do(q)
				began := q.b.Snapshot().Generation
				for range p.before {
					calls.do(q)
				}
				var tripped mc.Tally
				for _, end := range p.threads {
					permit, _ := q.b.Allow()
					m.Go(func() {
						if end(q.b, permit) == Tripped {
							tripped.Add(1)
						}
					})
				}
				m.Final(func() {
					s := q.b.Snapshot()
					switch n := tripped.Value(); {
					case p.open && n == 1 && s.State == Open && s.Generation == began+1:
					case !p.open && n == 0 && s.State == Closed:
					default:
						m.Failf("%d failures opened it, and it is %v in generation %d", n, s.State, s.Generation)
					}
				})
			})
		})
	}
}

// Policies with other numbers of windows, and in another order.
var (
	rated     = Config{Policy: FailureRate(1, 9, time.Minute), OpenTimeout: -1}
	twoRated  = Config{Policy: AnyOf(FailureRate(1, 9, time.Hour), FailureRate(1, 9, time.Minute)), OpenTimeout: -1}
	slowRated = Config{Policy: AnyOf(SlowRate(1, time.Hour, 9, time.Minute), FailureRate(1, 9, time.Minute)), OpenTimeout: -1}

	toRated = updatesTo("a rate", rated)
	toTwo   = updatesTo("two rates", twoRated)
	toTimed = updatesTo("a rate of slow calls", slowRated)
)

// A Breaker's successes and failures are in the windows of their stay and settings, whoever is
// first to count there, and Snapshot shows no others.
func TestWindowsShowTheirCalls(t *testing.T) {
	for name, p := range map[string]struct {
		from    Config
		before  []cure
		updates []cure
		want    []Counts // one of these
	}{
		"the first":         {from: rated, want: []Counts{{Calls: 2, Failures: 1}}},
		"of the next stay":  {from: rated, before: []cure{calls, calls, resetting}, want: []Counts{{Calls: 2, Failures: 1}}},
		"by later settings": {from: rated, before: []cure{calls, calls, toTwo}, want: []Counts{{Calls: 2, Failures: 1}}},
		"Update to fewer":   {from: twoRated, before: []cure{calls, calls}, updates: []cure{toRated}, want: []Counts{{Calls: 1, Failures: 1}, {Calls: 2, Failures: 1}}},
		"Update to slow":    {from: rated, before: []cure{calls, calls}, updates: []cure{toTimed}, want: []Counts{{Calls: 1, Failures: 1}, {Calls: 2, Failures: 1}}},
		"Update from slow":  {from: slowRated, before: []cure{calls, calls}, updates: []cure{toRated}, want: []Counts{{Calls: 1, Failures: 1}, {Calls: 2, Failures: 1}}},
	} {
		for what, first := range map[string]cure{"Success": {"Success", func(p *patient) { p.early.Success() }}, "Snapshot": {}} {
			t.Run(name+", "+what, func(t *testing.T) {
				then := append(p.updates[:len(p.updates):len(p.updates)], cure{"RecordFailure", func(p *patient) { p.b.RecordFailure() }})
				operations := what + " ∥ " + mc.Listed([][]cure{then}, func(c cure) string { return c.name })
				mc.Check(t, mc.Config{Operations: operations}, func(m *mc.M) {
					q := newPatient(p.from)
					for _, c := range p.before {
						c.do(q)
					}
					q.early, _ = q.b.Allow()
					shown := q.b.Snapshot().Window.Failures
					m.Go(func() {
						if first.do != nil {
							first.do(q)
							return
						}
						if n := q.b.Snapshot().Window.Failures; n > 1 && n != shown {
							m.Failf("it shows %d failures", n)
						}
					})
					m.Go(func() {
						for _, c := range then {
							c.do(q)
						}
					})
					m.Final(func() {
						if s := q.b.Snapshot(); first.do != nil && !slices.Contains(p.want, s.Window) {
							m.Failf("%+v in the end", s)
						}
					})
				})
			})
		}
	}
}

// A TripFunc is asked about a window of its own, also if Update brings others meanwhile.
func TestTripFuncsAreAskedAboutTheirWindow(t *testing.T) {
	alone := func(f func(Counts) bool) Policy { return TripFunc(time.Minute, 0, f) }
	behind := func(f func(Counts) bool) Policy {
		return AnyOf(FailureCount(9, time.Minute), TripFunc(time.Minute, time.Hour, f))
	}
	for name, from := range map[string][2]func(func(Counts) bool) Policy{"to more": {alone, behind}, "to fewer": {behind, alone}} {
		t.Run(name, func(t *testing.T) {
			cfg := mc.Config{Mode: mc.Bounded, Preemptions: 1, Operations: "RecordFailure ∥ Update " + name + " windows, RecordFailure"}
			mc.Check(t, cfg, func(m *mc.M) {
				ask := func(c Counts) bool {
					if c.Calls > 2 || c.Failures > c.Calls || c.Slow != 0 {
						m.Failf("asked about %+v", c)
					}
					return false
				}
				b := MustNew(Config{Policy: from[0](ask)})
				plainly(b.core.set.Load().counters)
				m.Go(func() { b.RecordFailure() })
				m.Go(func() {
					b.Update(Config{Policy: from[1](ask)})
					b.RecordFailure()
				})
				m.Final(func() {
					if s := b.Snapshot(); s.State != Closed {
						m.Failf("%+v", s)
					}
				})
			})
		})
	}
}

// Whether a success was slow is asked of the window that has counted it, though Update leaves none that asks.
func TestSlowSuccessesBesideUpdate(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "Success, which was slow ∥ Update to a TripFunc that does not ask for that, RecordFailure"}, func(m *mc.M) {
		no := func(Counts) bool { return false }
		b := MustNew(Config{Policy: AnyOf(FailureCount(9, time.Minute), TripFunc(time.Minute, time.Second, no))})
		p, _ := b.Allow()
		m.Advance(2 * time.Second)
		m.Go(func() { p.Success() })
		m.Go(func() {
			b.Update(Config{Policy: TripFunc(time.Minute, 0, no)})
			b.RecordFailure()
		})
	})
}

// A TripFunc is asked about the stay in which the result has counted.
func TestTripFuncsAreAskedAboutTheirStay(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "Failure ∥ Reset, RecordFailure, RecordFailure"}, func(m *mc.M) {
		var first int32
		b := MustNew(Config{Policy: TripFunc(time.Minute, 0, func(c Counts) bool {
			if int32(mc.Goroutine()) == mc.Get(&first) && c.Failures != 1 {
				m.Failf("asked about %+v", c)
			}
			return false
		})})
		plainly(b.core.set.Load().counters)
		p, _ := b.Allow()
		m.Go(func() {
			mc.Set(&first, int32(mc.Goroutine()))
			p.Failure()
		})
		m.Go(func() {
			b.Reset()
			b.RecordFailure()
			b.RecordFailure()
		})
	})
}

// Whoever looks at a breaker without settings sees none of those that come.
func TestSnapshotBeforeSettings(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "Snapshot ∥ Update, RecordFailure"}, func(m *mc.M) {
		var b Breaker
		m.Go(func() {
			if s := b.Snapshot(); s.State != Closed || s.Window.Failures > 1 {
				m.Failf("%+v", s)
			}
		})
		m.Go(func() {
			b.Update(Config{Policy: FailureCount(9, time.Minute)})
			b.RecordFailure()
		})
	})
}

// After a failure, a success counts in the windows that Update has brought, though Update has not
// made the word say yet that it does.
func TestUpdateLosesNoSuccess(t *testing.T) {
	for name, report := range map[string]func(b *Breaker) func() Verdict{
		"RecordSuccess": func(b *Breaker) func() Verdict { return b.RecordSuccess },
		"Success": func(b *Breaker) func() Verdict {
			p, _ := b.Allow()
			return p.Success
		},
	} {
		for _, before := range []bool{true, false} {
			scenario, operations := name+" after a failure of before", name
			if !before {
				scenario, operations = name, "RecordFailure, "+name
			}
			t.Run(scenario, func(t *testing.T) {
				cfg := mc.Config{Operations: operations + ", once the settings are there ∥ Update to a FailureRate"}
				mc.Check(t, cfg, func(m *mc.M) {
					b := MustNew(Config{Policy: Consecutive(9)})
					plainly(b.core.set.Load().counters)
					if before {
						b.RecordFailure()
					}
					m.Go(func() {
						success := report(b)
						if len(b.core.set.Load().rules.windows) == 0 {
							return
						}
						if !before {
							b.RecordFailure()
						}
						success()
						if c := b.Snapshot().Window; c.Calls-c.Failures != 1 {
							m.Failf("%+v", c)
						}
					})
					m.Go(func() { b.Update(Config{Policy: FailureRate(1, 9, time.Minute)}) })
				})
			})
		}
	}
}

// Each of two policies opens on the first failure, whichever counts it.
func TestUpdateLosesNoFailure(t *testing.T) {
	of := func(d time.Duration) Config { return Config{Policy: FailureCount(1, d), OpenTimeout: -1} }
	mc2 := mc.Config{Mode: mc.Bounded, Preemptions: 2}
	t.Run("Breaker", func(t *testing.T) {
		mc.Check(t, mc.Config{Operations: "Failure ∥ Update to another window"}, func(m *mc.M) {
			b, v := MustNew(of(time.Minute)), Counted
			m.Go(func() { v = b.RecordFailure() })
			m.Go(func() { b.Update(of(time.Hour)) })
			m.Final(func() {
				if v != Tripped || b.State() != Open {
					m.Failf("%v, and %v", v, b.State())
				}
			})
		})
	})
	t.Run("Group", func(t *testing.T) {
		cfg := mc2
		cfg.Operations = "RecordFailure ∥ Update to another window"
		mc.Check(t, cfg, func(m *mc.M) {
			g, v := MustNewGroup(GroupConfig[string]{Default: of(time.Minute)}), Counted
			m.Go(func() { v = g.RecordFailure(k) })
			m.Go(func() { g.Update(GroupConfig[string]{Default: of(time.Hour)}) })
			m.Final(func() {
				if v != Tripped || g.State(k) != Open {
					m.Failf("%v, and %v", v, g.State(k))
				}
			})
		})
	})
}

// A window that was full in one stay opens no later one, in which nothing is counted in
// windows.
func TestFullWindowsOpenNoLaterStay(t *testing.T) {
	cfg := mc.Config{Mode: mc.Bounded, Preemptions: 2, Operations: "RecordFailure ∥ Reset, Update to a row"}
	mc.Check(t, cfg, func(m *mc.M) {
		b := MustNew(Config{Policy: FailureCount(1, time.Minute), OpenTimeout: -1})
		m.Go(func() { b.RecordFailure() })
		m.Go(func() {
			b.Reset()
			b.Update(Config{Policy: Consecutive(5), OpenTimeout: -1})
		})
		m.Final(func() {
			held, s := b.core.windows.Load(), b.Snapshot()
			if s.State == Open && s.Generation == 2 && held.stay.gen() == 0 { // Reset began generation 1
				m.Failf("one failure of five made it %v", s.State)
			}
		})
	})
}

// The first callers of a zero Breaker agree on its settings, and with that on
// the epoch that deadlines are counted from.
func TestZeroBreakerHasOneEpoch(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "settings ∥ settings ∥ settings"}, func(m *mc.M) {
		b := new(Breaker)
		var seen [3]*settings
		for i := range seen {
			m.Go(func() { seen[i] = b.core.settings() })
		}
		m.Final(func() {
			for _, s := range seen {
				if s == nil || s != b.core.set.Load() {
					m.Failf("the breaker's settings have changed")
				}
			}
		})
	})
}

// The first callers of a zero Group agree on what it is, also one that finds nothing to reset.
func TestZeroGroupIsMadeOnce(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "current ∥ current ∥ ResetAll"}, func(m *mc.M) {
		g := new(Group[string])
		var seen [2]*group[string]
		for i := range seen {
			m.Go(func() { seen[i] = g.current() })
		}
		m.Go(g.ResetAll)
		m.Final(func() {
			for _, st := range seen {
				if st == nil || st != g.state.Load() {
					m.Failf("the group has changed")
				}
			}
		})
	})
}
