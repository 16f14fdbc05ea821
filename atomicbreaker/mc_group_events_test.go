//go:build modelcheck

package atomicbreaker

import (
	"testing"

	"github.com/latchfree/latchfree/internal/mc"
)

// What a group's listener is told is what happened, in every order.
func TestProtocolsWithAListener(t *testing.T) {
	for name, p := range map[string]protocol{
		"a trip of an absent key":         {before: held, threads: threads{{reportOp(0, Failure)}, {record(k, Failure)}}},
		"a trip and a recovery":           {before: failing, threads: threads{{reportOp(0, Failure)}, {record(k, Success)}}},
		"a recovery and a failure":        {before: opened, threads: threads{{record(k, Success)}, {record(k, Failure)}}},
		"a lost probe and its heir":       {before: overdue, threads: threads{{reportOp(3, Success)}, {allow(0, k)}}},
		"a trip and ResetAll":             {before: failing, threads: threads{{reportOp(0, Failure)}, {resetAll}}},
		"a first failure and ResetAll":    {threads: threads{{record(k, Failure), record(k, Failure)}, {resetAll}}},
		"a recovery and ResetAll":         {before: opened, threads: threads{{record(k, Success)}, {resetAll}}},
		"a call, a trip and a departure":  {before: failing, threads: threads{{allow(0, k), reportOp(0, Failure)}, {record(k, Failure), record(k, Success)}}},
		"ResetAll twice":                  {before: opened, threads: threads{{resetAll}, {resetAll}}},
		"ResetAll as the key leaves":      {before: closed2, threads: threads{{reportOp(2, Failure)}, {resetAll}}},
		"a sweep and a trip":              {before: closed2, threads: threads{{sweep}, {record(k, Failure), record(k, Failure)}}},
		"a dead cell, gone, and ResetAll": {before: dead, threads: threads{{reportOp(2, Success)}, {sweep}, {resetAll}}},
	} {
		p.listens = true
		t.Run(name, func(t *testing.T) { p.check(t, mc.Config{}) })
	}
}

// The same for what is too long for all orders: two callers in those with at
// most two preemptions, and three with at most one.
func TestLongProtocolsWithAListener(t *testing.T) {
	for name, p := range map[string]protocol{
		"a recovery, a trip and another": {before: opened, threads: threads{{record(k, Success)}, {record(k, Failure), record(k, Failure)}}},
		"a probe and Reset":              {before: probing, threads: threads{{reportOp(3, Success)}, {reset(k)}}},
		"a departure and ResetAll":       {before: opened, threads: threads{{resetAll}, {record(k, Success), reset(k)}}},
		"ResetAll and new trips":         {before: opened, threads: threads{{resetAll}, {record(k, Failure), record(k, Failure)}}},
		"ResetAll with a twin":           {before: after(opened, twinOpen...), threads: threads{{resetAll}, {reset(twin)}}},
		"Reset and ResetAll":             {before: failing, threads: threads{{reset(k)}, {resetAll}}},

		"a lost probe, its heir and Reset": {before: overdue, threads: threads{{reportOp(3, Success)}, {allow(0, k)}, {reset(k)}}},
		"a departure, and the key is back": {before: opened, threads: threads{{record(k, Success)}, {reset(k)}, {record(k, Failure), record(k, Failure)}}},
		"ResetAll, an old trip and a new":  {before: failing, threads: threads{{resetAll}, {reportOp(0, Failure)}, {record(k, Failure), record(k, Failure)}}},
		"ResetAll twice, and new trips":    {before: opened, threads: threads{{resetAll}, {resetAll}, {record(k, Failure), record(k, Failure)}}},
	} {
		p.listens = true
		t.Run(name, func(t *testing.T) { p.check(t, mc.Config{Mode: mc.Bounded, Preemptions: 4 - len(p.threads)}) })
	}
}

// quick is a breaker that opens at once.
var quick = Config{Policy: Consecutive(1)}

// Who has the group state of before ResetAll in hand says nothing once another has
// said what came next.
func TestOldGroupStatesSayNothing(t *testing.T) {
	for name, p := range map[string]protocol{
		"an old trip":     {settings: quick, threads: threads{{record(k, Failure)}, {resetAll, record(k, Failure)}}},
		"an old result":   {settings: quick, before: held, threads: threads{{reportOp(0, Failure)}, {resetAll, record(k, Failure)}}},
		"an old Reset":    {settings: quick, threads: threads{{reset(k)}, {resetAll, record(k, Failure)}}},
		"an old recovery": {settings: quick, before: []action{record(k, Failure)}, threads: threads{{record(k, Success)}, {resetAll, record(k, Failure)}}},
		"an old probe":    {settings: quick, before: []action{record(k, Failure), expire(k)}, threads: threads{{allow(0, k)}, {resetAll, record(k, Failure)}}},
	} {
		p.listens = true
		t.Run(name, func(t *testing.T) { p.check(t, mc.Config{Mode: mc.Bounded, Preemptions: 1}) })
	}
}

// A failure that a key had when ResetAll sealed it is reset by an event, also if
// it is not the one that the key had a moment before.
func TestSealTellsWhatItResets(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "ResetAll seals ∥ RecordSuccess, RecordFailure of before"}, func(m *mc.M) {
		var told, failed mc.Tally
		g := MustNewGroup(GroupConfig[string]{
			Default: never, OnStateChange: func(string, Event) { told.Add(1) },
		})
		g.RecordFailure("k")
		old := g.current()
		c := old.lookup("k", old.hash("k", 0))
		g.state.Store(&newKeyedState(g).presence)
		m.Go(func() { old.seal(c).deliver() })
		m.Go(func() {
			recordIn(c, Success)
			if _, did := recordIn(c, Failure); did.flags&wrote != 0 {
				failed.Add(1)
			}
		})
		m.Final(func() {
			if failed.Value() == 1 && told.Value() != 1 {
				m.Failf("%d events", told.Value())
			}
		})
	})
}

// recordIn reports a result without a permit to a cell, and delivers nothing.
func recordIn(c *cell, o Outcome) (Verdict, step) {
	was := word(c.word.Load())
	return c.apply(was, was.stay(), result{outcome: o, how: direct}, c.settings())
}
