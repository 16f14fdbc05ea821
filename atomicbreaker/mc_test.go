//go:build modelcheck

package atomicbreaker

import (
	"math"
	"testing"
	"time"

	"github.com/latchfree/latchfree/atomicbreaker/internal/ring"
	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/tools/mc"
)

// after returns the actions before, and more.
func after(before []action, more ...action) []action {
	return append(before[:len(before):len(before)], more...)
}

// What comes before a protocol. Permits 0 and 1 are from when the key was
// absent, 2 is from its cell, and 3 is a probe.
var (
	held    = []action{allow(0, k), allow(1, k)}
	failing = after(held, record(k, Failure), allow(2, k))
	opened  = after(failing, record(k, Failure))
	probing = after(opened, expire(k), allow(3, k))
	overdue = after(probing, expire(k))

	// The cell has recovered from one failure or from being open, and nobody has
	// retired it yet; then it has died, and nobody has removed it.
	cleared   = after(held, record(k, Failure), lingers(k), allow(2, k))
	closed2   = after(held, record(k, Failure), record(k, Failure), lingers(k), allow(2, k))
	deadFirst = after(cleared, bury(k))
	dead      = after(closed2, bury(k))

	twinOpen = []action{record(twin, Failure), record(twin, Failure)}
)

type threads = [][]action

// Everything that two callers may do to each other, in every order.
//
// Checks I6, I10.
func TestProtocols(t *testing.T) {
	for name, p := range map[string]protocol{
		"two failures of an absent key":     {before: held, threads: threads{{reportOp(0, Failure)}, {reportOp(1, Failure)}}},
		"a failure and a success":           {before: held, threads: threads{{reportOp(0, Failure)}, {reportOp(1, Success)}}},
		"a failure, and one to clear":       {before: failing, threads: threads{{reportOp(0, Failure)}, {reportOp(2, Success)}}},
		"a failure and RecordSuccess":       {before: held, threads: threads{{reportOp(0, Failure)}, {record(k, Success)}}},
		"a cell's failure while others go":  {before: failing, threads: threads{{reportOp(2, Failure)}, {record(k, Success), record(k, Failure)}}},
		"a failure and ResetAll":            {before: held, threads: threads{{reportOp(0, Failure)}, {resetAll}}},
		"a failure, ResetAll and the next":  {before: held, threads: threads{{reportOp(0, Failure)}, {resetAll, allow(1, k), reportOp(1, Failure)}}},
		"a success and Reset":               {before: held, threads: threads{{reportOp(0, Success)}, {reset(k)}}},
		"a twin departs before a failure":   {before: after(twinOpen, held...), threads: threads{{reportOp(0, Failure)}, {record(twin, Success)}}},
		"a twin departs before a success":   {before: after(twinOpen, held...), threads: threads{{reportOp(0, Success)}, {record(twin, Success)}}},
		"a success while others fail":       {before: after(after([]action{record(another, Failure)}, held...), record(k, Failure)), threads: threads{{reportOp(0, Success)}, {reportOp(1, Failure)}}},
		"a reset of a twin":                 {before: held, threads: threads{{reset(twin)}, {reportOp(0, Failure)}}},
		"a reset of another":                {before: held, threads: threads{{reset(another)}, {reportOp(0, Failure)}}},
		"a late failure as the key departs": {before: opened, threads: threads{{reportOp(0, Failure)}, {record(k, Success)}}},
		"ResetAll, a failure and State":     {before: failing, threads: threads{{resetAll}, {record(k, Failure)}, {state(k), state(k)}}},
		"two late failures":                 {before: opened, threads: threads{{reportOp(0, Failure)}, {reportOp(2, Failure)}}},
		"State as the key departs":          {before: opened, threads: threads{{state(k), state(k)}, {record(k, Success), record(k, Failure)}}},

		"a lost probe and its heir":          {before: overdue, threads: threads{{reportOp(3, Success)}, {allow(0, k), reportOp(0, Success)}}},
		"a lost probe's failure":             {before: overdue, threads: threads{{reportOp(3, Failure)}, {allow(0, k), reportOp(0, Success)}}},
		"a lost probe given back":            {before: overdue, threads: threads{{reportOp(3, Ignored)}, {allow(0, k), reportOp(0, Failure)}}},
		"a failure for a dead first cell":    {before: deadFirst, threads: threads{{reportOp(2, Failure)}, {reportOp(0, Failure)}}},
		"a dead first cell and the next":     {before: deadFirst, threads: threads{{reportOp(2, Failure)}, {allow(0, k), reportOp(0, Failure)}}},
		"a sweep and a failure before it":    {before: cleared, threads: threads{{reportOp(0, Failure)}, {sweep}}},
		"a sweep and a failure":              {before: closed2, threads: threads{{reportOp(2, Failure)}, {sweep}}},
		"a sweep and a late failure":         {before: closed2, threads: threads{{reportOp(0, Failure)}, {sweep}}},
		"State of a dead cell, and the next": {before: dead, threads: threads{{state(k)}, {record(k, Failure), record(k, Failure)}}},

		"a call as the key departs":        {before: opened, threads: threads{{allow(0, k), reportOp(0, Failure)}, {record(k, Success)}}},
		"a timed call as the key departs":  {settings: Config{Policy: AnyOf(Consecutive(2), SlowRate(1, time.Hour, math.MaxInt32, time.Minute))}, before: opened, threads: threads{{allow(0, k), reportOp(0, Failure)}, {record(k, Success)}}},
		"the same with a twin":             {before: after(twinOpen, opened...), threads: threads{{allow(0, k), reportOp(0, Failure)}, {record(k, Success)}}},
		"a call, a trip and a departure":   {before: failing, threads: threads{{allow(0, k), reportOp(0, Failure)}, {record(k, Failure), record(k, Success)}}},
		"a dead cell's failure and a late": {before: dead, threads: threads{{reportOp(2, Failure)}, {reportOp(0, Failure)}}},
		"a call and a sweep":               {before: closed2, threads: threads{{allow(1, k), reportOp(1, Failure)}, {sweep}}},
		"totals of an absent key":          {settings: Config{RecordTotals: true}, before: held, threads: threads{{reportOp(0, Success), reportOp(1, Failure)}, {record(k, Success), record(twin, Failure)}}},
		"totals as the key departs":        {settings: Config{RecordTotals: true}, before: opened, threads: threads{{reportOp(0, Failure), allow(0, k)}, {record(k, Success)}}},
		"two probes and a result":          {settings: Config{Probes: 2, CloseAfter: 2}, before: probing, threads: threads{{reportOp(3, Success), allow(3, k)}, {allow(0, k), reportOp(0, Failure)}}},
	} {
		t.Run(name, func(t *testing.T) { p.check(t, mc.Config{}) })
	}
}

// Protocols that are too long for all orders, in those with at most two
// preemptions.
func TestLongProtocols(t *testing.T) {
	for name, p := range map[string]protocol{
		"a failure and Reset":          {before: held, threads: threads{{reportOp(0, Failure)}, {reset(k)}}},
		"a failure, and a whole life":  {before: held, threads: threads{{reportOp(0, Failure)}, {record(k, Failure), record(k, Failure), record(k, Success)}}},
		"a call, and a whole life":     {threads: threads{{allow(0, k), reportOp(0, Failure)}, {record(k, Failure), record(k, Failure), record(k, Success)}}},
		"a late failure, and new ones": {before: opened, threads: threads{{reportOp(0, Failure)}, {record(k, Success), record(k, Failure)}}},
		"two resets":                   {before: held, threads: threads{{reset(k)}, {reset(k)}}},

		"a dead cell's failure and the next": {before: dead, threads: threads{{reportOp(2, Failure)}, {allow(0, k), reportOp(0, Failure)}}},
		"a dead cell's failure and Reset":    {before: dead, threads: threads{{reportOp(2, Failure)}, {reset(k)}}},
		"a dead cell's failure and a trip":   {before: dead, threads: threads{{reportOp(2, Failure)}, {record(k, Failure), record(k, Failure)}}},
	} {
		t.Run(name, func(t *testing.T) { p.check(t, mc.Config{Mode: mc.Bounded, Preemptions: 2}) })
	}
}

// Three callers, in the orders with at most one preemption.
//
// Checks I6, I10.
func TestThreeCallers(t *testing.T) {
	for name, p := range map[string]protocol{
		"two failures and a success":        {before: failing, threads: threads{{reportOp(0, Failure)}, {reportOp(2, Failure)}, {reportOp(1, Success)}}},
		"a call, a departure and a failure": {before: opened, threads: threads{{allow(0, k), reportOp(0, Failure)}, {record(k, Success)}, {reportOp(1, Failure)}}},
		"two heirs of a lost probe":         {before: overdue, threads: threads{{reportOp(3, Success)}, {allow(0, k)}, {allow(1, k)}}},
		"a probe's end":                     {before: probing, threads: threads{{reportOp(3, Success)}, {record(k, Failure)}, {allow(0, k)}}},
		"three find a dead cell":            {before: dead, threads: threads{{allow(0, k), reportOp(0, Failure)}, {allow(1, k)}, {reportOp(2, Success)}}},
		"two failures and a sweep":          {before: cleared, threads: threads{{reportOp(0, Failure)}, {sweep}, {reportOp(2, Failure)}}},
		"Reset, a failure and a departure":  {before: opened, threads: threads{{reset(k)}, {reportOp(0, Failure)}, {record(k, Success)}}},
	} {
		t.Run(name, func(t *testing.T) { p.check(t, mc.Config{Mode: mc.Bounded, Preemptions: 1}) })
	}
}

// naiveCounters is the report's: see defect_report_test.go for the same without a checker.
type naiveCounters struct {
	failures atomics.Int64
	disabled atomics.Bool
}

func (c *naiveCounters) RecordFailure(string) Verdict {
	n := c.failures.Load() + 1
	c.failures.Store(n)
	if n >= 2 {
		c.disabled.Store(true)
	}
	return Counted
}

func (c *naiveCounters) RecordSuccess(string) Verdict {
	c.failures.Store(0)
	c.disabled.Store(false)
	return Counted
}

func (c *naiveCounters) IsOpen(string) bool { return c.disabled.Load() }

type recorder interface {
	RecordFailure(string) Verdict
	RecordSuccess(string) Verdict
	IsOpen(string) bool
}

// opensAfterTwo is what the report wants of failures.
func opensAfterTwo[R recorder](fresh func() R) func(*mc.M) {
	return func(m *mc.M) {
		r := fresh()
		for range 2 {
			m.Go(func() { r.RecordFailure(k) })
		}
		m.Final(func() {
			if !r.IsOpen(k) {
				m.Failf("two failures, and it is not open")
			}
		})
	}
}

// closesAfterOne is what the report wants of a success: before or after the
// second failure, it leaves the breaker closed.
func closesAfterOne[R recorder](fresh func() R) func(*mc.M) {
	return func(m *mc.M) {
		r := fresh()
		r.RecordFailure(k)
		m.Go(func() { r.RecordFailure(k) })
		m.Go(func() { r.RecordSuccess(k) })
		m.Final(func() {
			if r.IsOpen(k) {
				m.Failf("a success, and it is open")
			}
		})
	}
}

// The windows of the report.
var (
	failures = mc.Config{Operations: "RecordFailure ∥ RecordFailure"}
	success  = mc.Config{Operations: "RecordFailure ∥ RecordSuccess"}
)

// Checks I2, I5.
func TestReport_CountersLoseUpdates(t *testing.T) {
	fresh := func() *naiveCounters { return new(naiveCounters) }
	t.Run("failures", func(t *testing.T) {
		mc.Refute(t, failures, "two failures, and it is not open", opensAfterTwo(fresh))
	})
	t.Run("a success", func(t *testing.T) {
		mc.Refute(t, success, "a success, and it is open", closesAfterOne(fresh))
	})
}

// Checks I2, I5.
func TestReport_GroupLosesNothing(t *testing.T) {
	fresh := func() *Group[string] {
		g := MustNewGroup(GroupConfig[string]{Default: Config{Policy: Consecutive(2)}})
		plainly(&g.current().counters)
		return g
	}
	t.Run("failures", func(t *testing.T) { mc.Check(t, failures, opensAfterTwo(fresh)) })
	t.Run("a success", func(t *testing.T) { mc.Check(t, success, closesAfterOne(fresh)) })
}

// trippedForASecond returns a breaker that has just opened.
func trippedForASecond() *Breaker {
	b := MustNew(Config{Policy: Consecutive(1), OpenTimeout: time.Second, MaxOpenTimeout: time.Second, ProbeTimeout: time.Second})
	plainly(b.core.set.Load().counters)
	p, _ := b.Allow()
	p.Failure()
	return b
}

// A breaker that was closed before its time was over has never been half-open.
//
// Checks I4.
func TestStateReadsTheClockOfItsWord(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "State ∥ Reset, advance by 2 s"}, func(m *mc.M) {
		b := trippedForASecond()
		var s State
		m.Go(func() { s = b.State() })
		m.Go(func() {
			b.Reset()
			m.Advance(2 * time.Second)
		})
		m.Final(func() {
			if s == HalfOpen {
				m.Failf("%v", s)
			}
		})
	})
}

// The same of one that opened again meanwhile. While it is open, there is time left.
//
// Checks I4.
func TestSnapshotReadsTheClockOfNoLaterWord(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "Snapshot ∥ Reset, advance by 2 s, RecordFailure, Reset, advance by 2 s"}, func(m *mc.M) {
		b := trippedForASecond()
		var s Snapshot
		m.Go(func() { s = b.Snapshot() })
		m.Go(func() {
			b.Reset()
			m.Advance(2 * time.Second)
			b.RecordFailure()
			b.Reset()
			m.Advance(2 * time.Second)
		})
		m.Final(func() {
			if s.State == HalfOpen || s.State == Open && s.RetryAfter == 0 {
				m.Failf("%+v", s)
			}
		})
	})
}

// Of callers who ask at about the time that a breaker lets one through, one
// gets through, also if its failure moves the deadline ahead under the eyes of
// another.
//
// Checks I4.
func TestOneProbeForEachOpening(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "Allow, Failure ∥ Allow, Failure ∥ advance by 1 s, Allow, Failure"}, func(m *mc.M) {
		b := trippedForASecond()
		var admitted mc.Tally
		ask := func() {
			if p, err := b.Allow(); err == nil {
				admitted.Add(1)
				p.Failure()
			}
		}
		m.Go(ask)
		m.Go(ask)
		m.Go(func() {
			m.Advance(time.Second)
			ask()
		})
		m.Final(func() {
			if n := admitted.Value(); n != 1 || b.State() != Open {
				m.Failf("%d probes, then %v", n, b.State())
			}
		})
	})
}

// The slot of a probe that is overdue goes to one caller, and either that one
// or the probe closes the breaker, not both.
func TestOneHeirForALostProbe(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "Success ∥ Allow, Success ∥ advance by 2 s, Allow, Success"}, func(m *mc.M) {
		b := trippedForASecond()
		b.core.word.And(^uint64(untilMask))
		probe, _ := b.Allow()
		var inFlight, recovered mc.Tally
		report := func(p Permit, err error) {
			if _, isProbe := p.ProbeGeneration(); err == nil && isProbe {
				inFlight.Add(1)
			}
			if err == nil && p.Success() == Recovered {
				recovered.Add(1)
			}
		}
		m.Go(func() { report(probe, nil) })
		m.Go(func() { report(b.Allow()) })
		m.Go(func() {
			m.Advance(2 * time.Second)
			report(b.Allow())
		})
		m.Final(func() {
			if n := recovered.Value(); n != 1 || inFlight.Value() > 2 || b.State() != Closed {
				m.Failf("%d recovered it, of %d probes, and it is %v", n, inFlight.Value(), b.State())
			}
		})
	})
}

// never is a policy that is never met while costs are measured.
var never = Config{Policy: Consecutive(math.MaxInt32)}

// once is a policy that the first failure meets, for long.
var once = Config{Policy: Consecutive(1), OpenTimeout: 24 * time.Hour}

// plain is what the user of a Breaker does, after some of it was done before.
func plain(c Config, before, op func(*Breaker)) func() func(int) {
	return func() func(int) {
		b := MustNew(c)
		before(b)
		return func(int) { op(b) }
	}
}

// ofKey is what the user of a key of a Group does. The first call makes the
// group state.
func ofKey(c Config, before, op func(*Group[string])) func() func(int) {
	return func() func(int) {
		g := MustNewGroup(GroupConfig[string]{Default: c})
		g.Allow(k)
		before(g)
		return func(int) { op(g) }
	}
}

// What a healthy call does to shared words: it reads.
func TestCosts(t *testing.T) {
	var (
		nothing = func(*Breaker) {}
		ok      = func(b *Breaker) { p, _ := b.Allow(); p.Success() }
		fails   = func(b *Breaker) { p, _ := b.Allow(); p.Failure() }
	)
	mc.CheckCost(t, "Breaker: a call that succeeds", plain(Config{}, nothing, ok), mc.Cost{Loads: 2}, 0)
	mc.CheckCost(t, "Breaker: a call that fails, below the threshold", plain(never, nothing, fails), mc.Cost{Loads: 3, RMWs: 1}, 3, 15, 127)
	mc.CheckCost(t, "Breaker: the first success after failures", plain(never, fails, ok), mc.Cost{Loads: 4, RMWs: 1}, 0)
	mc.CheckCost(t, "Breaker: a failure, and then a success", plain(never, nothing, func(b *Breaker) { fails(b); ok(b) }), mc.Cost{Loads: 7, RMWs: 2}, 3.5, 14.38, 112.48)
	mc.CheckCost(t, "Breaker: a call that is rejected", plain(once, func(b *Breaker) { fails(b); b.Allow() }, func(b *Breaker) { b.Allow() }), mc.Cost{Loads: 4, RMWs: 1, Clock: 1}, 0)
	mc.CheckCost(t, "Breaker: RecordSuccess while healthy", plain(Config{}, nothing, func(b *Breaker) { b.RecordSuccess() }), mc.Cost{Loads: 1}, 0)
	mc.CheckCost(t, "Breaker: RecordFailure, below the threshold", plain(never, nothing, func(b *Breaker) { b.RecordFailure() }), mc.Cost{Loads: 3, RMWs: 1}, 3, 15, 127)
	mc.CheckCost(t, "Breaker: IsOpen", plain(never, nothing, func(b *Breaker) { b.IsOpen() }), mc.Cost{Loads: 2}, 0)
	mc.CheckCost(t, "Breaker: State", plain(never, nothing, func(b *Breaker) { b.State() }), mc.Cost{Loads: 2}, 0)

	totals := Config{RecordTotals: true}
	mc.CheckCost(t, "Breaker: a call that succeeds, with totals", plain(totals, nothing, ok), mc.Cost{Loads: 7, RMWs: 1}, 0)

	var (
		unused = func(*Group[string]) {}
		okK    = func(g *Group[string]) { p, _ := g.Allow(k); p.Success() }
		failsK = func(g *Group[string]) { p, _ := g.Allow(k); p.Failure() }
	)
	mc.CheckCost(t, "Group: a call that succeeds", ofKey(never, unused, okK), mc.Cost{Loads: 7}, 0)
	mc.CheckCost(t, "Group: the same with totals", ofKey(totals, unused, okK), mc.Cost{Loads: 11, RMWs: 1}, 0)
	dynamic := MustNewGroup(GroupConfig[any]{Default: totals}) // which must hash healthy keys, but once a call
	dynamic.RecordSuccess(k)
	cost := mc.Measure(func() { p, _ := dynamic.Allow(k); p.Success() })
	if want := (mc.Cost{Loads: 11, RMWs: 1}); cost != want {
		t.Errorf("Group of interfaces: the same with totals costs %v, want %v", cost, want)
	}
	mc.CheckCost(t, "Group: the same while another key fails", ofKey(never, func(g *Group[string]) { g.RecordFailure(another) }, okK), mc.Cost{Loads: 11}, 0)
	mc.CheckCost(t, "Group: the same while a key of the same stripe fails", ofKey(never, func(g *Group[string]) { g.RecordFailure(twin) }, okK), mc.Cost{Loads: 19, TableReads: 2}, 0)
	mc.CheckCost(t, "Group: the first failure of a key", ofKey(never, unused, failsK), mc.Cost{Loads: 19, Stores: 2, RMWs: 5, TableWrites: 1, Clock: 1}, 2, 33, 367.25)
	mc.CheckCost(t, "Group: a call that fails, below the threshold", ofKey(never, failsK, failsK), mc.Cost{Loads: 17, RMWs: 1, TableReads: 1, Clock: 1}, 3, 27.38, 278.61)
	mc.CheckCost(t, "Group: the first success after failures", ofKey(never, failsK, okK), mc.Cost{Loads: 20, Stores: 1, RMWs: 4, TableReads: 1, TableWrites: 1}, 0)
	mc.CheckCost(t, "Group: a call that is rejected", ofKey(once, func(g *Group[string]) { failsK(g); g.Allow(k) }, func(g *Group[string]) { g.Allow(k) }), mc.Cost{Loads: 13, RMWs: 1, TableReads: 1, Clock: 1}, 0)
	mc.CheckCost(t, "Group: RecordSuccess of a healthy key", ofKey(never, unused, func(g *Group[string]) { g.RecordSuccess(k) }), mc.Cost{Loads: 2}, 0)
	mc.CheckCost(t, "Group: RecordFailure, below the threshold", ofKey(never, failsK, func(g *Group[string]) { g.RecordFailure(k) }), mc.Cost{Loads: 10, RMWs: 1, TableReads: 1, Clock: 1}, 5.5, 30, 254)
	mc.CheckCost(t, "Group: IsOpen of a healthy key", ofKey(never, unused, func(g *Group[string]) { g.IsOpen(k) }), mc.Cost{Loads: 3}, 0)
	mc.CheckCost(t, "Group: IsOpen of an open key", ofKey(once, failsK, func(g *Group[string]) { g.IsOpen(k) }), mc.Cost{Loads: 6, TableReads: 1, Clock: 1}, 0)
}

// notifiedTo is what the user of a key of a Group with a listener does.
func notifiedTo(c Config, before, op func(*Group[string])) func() func(int) {
	return func() func(int) {
		g := MustNewGroup(GroupConfig[string]{Default: c, OnStateChange: func(string, Event) {}})
		g.Allow(k)
		before(g)
		return func(int) { op(g) }
	}
}

// With a listener, a healthy call and one that is counted cost what they cost
// without. A change of state has to be told.
func TestCostsWithAListener(t *testing.T) {
	listening := func(c Config) Config {
		c.OnStateChange = func(Event) {}
		return c
	}
	var (
		nothing = func(*Breaker) {}
		ok      = func(b *Breaker) { p, _ := b.Allow(); p.Success() }
		fails   = func(b *Breaker) { p, _ := b.Allow(); p.Failure() }
		trips   = func(b *Breaker) { fails(b); b.Reset() }
	)
	mc.CheckCost(t, "Breaker with a listener: a call that succeeds", plain(listening(never), nothing, ok), mc.Cost{Loads: 2}, 0)
	mc.CheckCost(t, "Breaker with a listener: a call that fails, below the threshold", plain(listening(never), nothing, fails), mc.Cost{Loads: 3, RMWs: 1}, 3, 15, 127)
	mc.CheckCost(t, "Breaker with a listener: a call that is rejected", plain(listening(once), func(b *Breaker) { fails(b); b.Allow() }, func(b *Breaker) { b.Allow() }), mc.Cost{Loads: 4, RMWs: 1, Clock: 1}, 0)
	mc.CheckCost(t, "Breaker: a call that trips, and Reset", plain(once, trips, trips), mc.Cost{Loads: 11, RMWs: 4, Clock: 1}, 4, 12, 124)
	mc.CheckCost(t, "Breaker with a listener: a call that trips, and Reset", plain(listening(once), trips, trips), mc.Cost{Loads: 19, Stores: 2, RMWs: 8, Clock: 2}, 8.75, 12.88, 93.6)

	var (
		unused = func(*Group[string]) {}
		okK    = func(g *Group[string]) { p, _ := g.Allow(k); p.Success() }
		failsK = func(g *Group[string]) { p, _ := g.Allow(k); p.Failure() }
		tripsK = func(g *Group[string]) { g.RecordFailure(k); g.RecordSuccess(k) }
	)
	mc.CheckCost(t, "Group with a listener: a call that succeeds", notifiedTo(never, unused, okK), mc.Cost{Loads: 7}, 0)
	mc.CheckCost(t, "Group with a listener: the same while another key fails", notifiedTo(never, func(g *Group[string]) { g.RecordFailure(another) }, okK), mc.Cost{Loads: 11}, 0)
	mc.CheckCost(t, "Group with a listener: the same while a key of the same stripe fails", notifiedTo(never, func(g *Group[string]) { g.RecordFailure(twin) }, okK), mc.Cost{Loads: 19, TableReads: 2}, 0)
	mc.CheckCost(t, "Group with a listener: a call that fails, below the threshold", notifiedTo(never, failsK, failsK), mc.Cost{Loads: 17, RMWs: 1, TableReads: 1, Clock: 1}, 3, 27.38, 278.61)
	mc.CheckCost(t, "Group: a failure that trips, and RecordSuccess", ofKey(once, tripsK, tripsK), mc.Cost{Loads: 27, Stores: 5, RMWs: 11, Blocking: 2, TableReads: 1, TableWrites: 2, Clock: 3}, 15, 20, 20.88)
	mc.CheckCost(t, "Group with a listener: a failure that trips, and RecordSuccess", notifiedTo(once, tripsK, tripsK), mc.Cost{Loads: 39, Stores: 7, RMWs: 15, Blocking: 2, TableReads: 1, TableWrites: 2, Clock: 4}, 21.06, 24.39, 24.92)
}

// Policies that are never met while costs are measured.
var (
	neverKOfN  = Config{Policy: KOfN(32, 32)}
	neverRate  = Config{Policy: FailureRate(1, math.MaxInt32, time.Minute)}
	neverCount = Config{Policy: FailureCount(ring.Exact, time.Minute)}
	neverSlow  = Config{Policy: SlowRate(1, time.Hour, math.MaxInt32, time.Minute)}
	neverAsks  = Config{Policy: TripFunc(time.Minute, 0, func(Counts) bool { panic("asked about a success") })}
	neverAny   = Config{Policy: AnyOf(Consecutive(math.MaxInt32), FailureRate(1, math.MaxInt32, time.Minute))}
)

// What each policy costs, and what is done by hand. Windows make a call that
// succeeds write to a line of its own processor; in a Group those of a key that
// fails share one. A failure sums up all.
func TestCostsOfPolicies(t *testing.T) {
	var (
		nothing = func(*Breaker) {}
		ok      = func(b *Breaker) { p, _ := b.Allow(); p.Success() }
		fails   = func(b *Breaker) { p, _ := b.Allow(); p.Failure() }
		trips   = func(b *Breaker) { p, _ := b.Allow(); p.Trip(0); b.Reset() }
		forces  = func(b *Breaker) { b.ForceOpen() }
		asks    = func(b *Breaker) { b.Allow() }
		latch   = Config{Policy: Consecutive(1), OpenTimeout: -1}
		shadow  = Config{Policy: Consecutive(1), OpenTimeout: 24 * time.Hour, Shadow: true}
	)
	check := func(name string, c Config, before, op func(*Breaker), cost mc.Cost, moves ...float64) {
		t.Helper()
		mc.CheckCost(t, "Breaker, "+name, plain(c, before, op), cost, moves...)
	}
	check("KOfN: a call that succeeds", neverKOfN, nothing, ok, mc.Cost{Loads: 2}, 0)
	check("KOfN: one after a failure", Config{Policy: KOfN(2, 2)}, fails, ok, mc.Cost{Loads: 10, RMWs: 3}, 0)
	check("KOfN: a failure, and then a success", neverKOfN, nothing, func(b *Breaker) { fails(b); ok(b) }, mc.Cost{Loads: 16, RMWs: 6}, 8.25, 58.38, 516.59)
	check("FailureRate: a call that succeeds", neverRate, ok, ok, mc.Cost{Loads: 8, RMWs: 1, Clock: 1}, 0)
	check("FailureRate: a call that fails", neverRate, ok, fails, mc.Cost{Loads: 1033, RMWs: 1, Clock: 2}, 2, 8, 64)
	check("FailureCount: a call that succeeds", neverCount, fails, ok, mc.Cost{Loads: 2}, 0)
	check("SlowRate: a call that succeeds", neverSlow, ok, ok, mc.Cost{Loads: 9, RMWs: 1, Clock: 3}, 0)
	check("Consecutive or FailureRate: a call that succeeds", neverAny, ok, ok, mc.Cost{Loads: 8, RMWs: 1, Clock: 1}, 0)
	check("TripFunc: RecordSuccess", neverAsks, ok, func(b *Breaker) { b.RecordSuccess() }, mc.Cost{Loads: 6, RMWs: 1, Clock: 1}, 0)
	check("Trip by a call, and Reset", once, trips, trips, mc.Cost{Loads: 10, RMWs: 4, Clock: 1}, 4, 8.25, 64.47)
	check("Trip, and Reset", once, trips, func(b *Breaker) { b.Trip(0); b.Reset() }, mc.Cost{Loads: 8, RMWs: 4, Clock: 1}, 4, 20.43, 126.46)
	check("ForceOpen of what is", once, forces, forces, mc.Cost{Loads: 2}, 0)
	check("a call that is rejected by force", once, func(b *Breaker) { forces(b); asks(b) }, asks, mc.Cost{Loads: 4, RMWs: 1, Clock: 1}, 0)
	check("a call while Disabled", once, func(b *Breaker) { b.Disable() }, fails, mc.Cost{Loads: 6}, 0)
	check("a call that succeeds while Disabled", once, func(b *Breaker) { b.Disable() }, ok, mc.Cost{Loads: 4}, 0)
	check("a call that a shadow lets through", shadow, func(b *Breaker) { fails(b); asks(b) }, ok, mc.Cost{Loads: 4, RMWs: 1, Clock: 1}, 0)

	counted := plain(once, trips, func(b *Breaker) { b.Stats() })()
	if cost, want := mc.Measure(func() { counted(0) }), (mc.Cost{Loads: 2 + 5*atomics.Stripes()}); cost != want {
		t.Errorf("Stats cost %v, want %v", cost, want)
	}

	var (
		unused = func(*Group[string]) {}
		okK    = func(g *Group[string]) { p, _ := g.Allow(k); p.Success() }
		failsK = func(g *Group[string]) { p, _ := g.Allow(k); p.Failure() }
	)
	checkKey := func(name string, c Config, before, op func(*Group[string]), cost mc.Cost, moves ...float64) {
		t.Helper()
		mc.CheckCost(t, "Group, "+name, ofKey(c, before, op), cost, moves...)
	}
	checkKey("KOfN: a call that succeeds", neverKOfN, unused, okK, mc.Cost{Loads: 7}, 0)
	checkKey("FailureRate: a call of a healthy key", neverRate, unused, okK, mc.Cost{Loads: 7}, 0)
	checkKey("FailureRate: the first failure of a key", neverRate, unused, failsK, mc.Cost{Loads: 45, Stores: 2, RMWs: 7, TableWrites: 1, Clock: 2}, 4, 10.75, 66.97)
	checkKey("FailureRate: a call of a failing key that succeeds", neverRate, failsK, okK, mc.Cost{Loads: 24, RMWs: 1, TableReads: 1, Clock: 1}, 0)
	checkKey("FailureRate: a call that fails", neverRate, failsK, failsK, mc.Cost{Loads: 41, RMWs: 1, TableReads: 1, Clock: 2}, 4, 10.75, 66.97)
	checkKey("FailureCount: a call of a failing key that succeeds", neverCount, failsK, okK, mc.Cost{Loads: 22, TableReads: 1, Clock: 1}, 0)
	checkKey("FailureCount: Sweep of a failing key", neverCount, failsK, func(g *Group[string]) { g.Sweep() }, mc.Cost{Loads: 22, TableReads: 2, Clock: 1}, 0)
	checkKey("SlowRate: a call of a healthy key", neverSlow, unused, okK, mc.Cost{Loads: 15, Clock: 2}, 0)
	checkKey("FailureCount: a call that fails", neverCount, failsK, failsK, mc.Cost{Loads: 41, RMWs: 1, TableReads: 1, Clock: 2}, 4, 10.75, 66.97)
	checkKey("Consecutive or FailureRate: a call that fails", neverAny, failsK, failsK, mc.Cost{Loads: 40, RMWs: 2, TableReads: 1, Clock: 3}, 6, 14.75, 72.72)
	checkKey("Trip of a key that is open", latch, failsK, func(g *Group[string]) { g.Trip(k, 0) }, mc.Cost{Loads: 7, TableReads: 1, Clock: 2}, 0)
	checkKey("a call that is rejected by force", once, func(g *Group[string]) { g.ForceOpen(k); g.Allow(k) }, func(g *Group[string]) { g.Allow(k) }, mc.Cost{Loads: 13, RMWs: 1, TableReads: 1, Clock: 1}, 0)
}
