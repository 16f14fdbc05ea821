//go:build modelcheck

package atomicbreaker

import (
	"fmt"
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
