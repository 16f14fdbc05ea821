//go:build modelcheck

package atomicbreaker

import (
	"testing"
	"time"

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
