//go:build modelcheck

package atomicbreaker

import (
	"testing"
	"time"

	"github.com/latchfree/latchfree/internal/mc"
)

// Windows are late by the calls in flight, so no order of the operations
// explains all verdicts. What they promise instead: of the failures that
// together are enough, exactly one opens the breaker, and what was counted is
// there.

const minute = time.Minute

// A ward is a key of a group whose breaker counts failures in a window.
type ward struct {
	m       *mc.M
	g       *Group[string]
	permits [2]GroupPermit[string]

	tripped, counted, recovered mc.Tally
}

// wardDeed is what a thread does with it.
type wardDeed struct {
	name string
	do   func(*ward)
}

func (w *ward) tell(v Verdict) {
	switch v {
	case Tripped:
		w.tripped.Add(1)
	case Counted:
		w.counted.Add(1)
	case Recovered:
		w.recovered.Add(1)
	}
}

var (
	fails    = wardDeed{"RecordFailure", func(w *ward) { w.tell(w.g.RecordFailure(k)) }}
	succeeds = wardDeed{"RecordSuccess", func(w *ward) { w.g.RecordSuccess(k) }}
	permit0  = wardDeed{"Failure of 0", func(w *ward) { w.tell(w.permits[0].Failure()) }}
	permit1  = wardDeed{"Failure of 1", func(w *ward) { w.tell(w.permits[1].Failure()) }}
	success1 = wardDeed{"Success of 1", func(w *ward) { w.permits[1].Success() }}
	sweeps   = wardDeed{"Sweep", func(w *ward) { w.g.Sweep() }}
	forgets  = wardDeed{"Reset", func(w *ward) { w.g.Reset(k) }}
	forcesK  = wardDeed{"ForceOpen", func(w *ward) { w.g.ForceOpen(k) }}
	passes   = wardDeed{"advance by 1 min", func(w *ward) { w.m.Advance(minute) }}
	ticks4   = wardDeed{"advance by 4 s", func(w *ward) { w.m.Advance(minute / 15) }} // one tick
	later    = wardDeed{"advance by 2 min", func(w *ward) { w.m.Advance(2 * minute) }}
	longer   = wardDeed{"advance by 2 h", func(w *ward) { w.m.Advance(2 * defaultForgetAfter) }}
	grants0  = wardDeed{"Allow 0", func(w *ward) { w.permits[0], _ = w.g.Allow(k) }}
	grants1  = wardDeed{"Allow 1", func(w *ward) { w.permits[1], _ = w.g.Allow(k) }}
)

// What comes before: permit 0 is of a key that was absent, and permit 1 of its
// cell. A failure is long ago.
var (
	longAgo  = []wardDeed{grants0, fails, grants1, later}
	watchful = AnyOf(Consecutive(3), FailureCount(3, minute))

	// A key of which all that could keep it is long ago.
	cleanKey = []wardDeed{fails, succeeds, later}
	inARow   = AnyOf(Consecutive(2), FailureCount(9, minute))
)

// wardship is what threads do to a ward.
type wardship struct {
	trip    Policy
	listens bool
	before  []wardDeed
	threads [][]wardDeed
	spare   int  // how many more failures must then open the breaker
	upTo    int  // and how many may be enough; zero: so many
	opens   bool // it must have opened instead
	forced  bool // or it was forced open
}

func (p wardship) check(t *testing.T, cfg mc.Config) {
	t.Helper()
	cfg.Operations = mc.Listed(p.threads, func(d wardDeed) string { return d.name })
	mc.Check(t, cfg, func(m *mc.M) {
		c := GroupConfig[string]{Default: Config{Policy: p.trip, OpenTimeout: -1}}
		if p.listens {
			c.OnStateChange = func(string, Event) {}
		}
		w := &ward{m: m, g: MustNewGroup(c)}
		plainly(&w.g.current().counters)
		for _, d := range p.before {
			d.do(w)
		}
		w.tripped, w.counted = mc.Tally{}, mc.Tally{}
		for _, deeds := range p.threads {
			m.Go(func() {
				for _, d := range deeds {
					d.do(w)
				}
			})
		}
		m.Final(func() { p.judge(w) })
	})
}

func (p wardship) judge(w *ward) {
	if err := w.g.checkQuiet(k); err != nil {
		w.m.Failf("%v", err)
	}
	s := w.g.Snapshot(k)
	if n := w.tripped.Value(); p.opens && (n != 1 || s.State != Open || s.Streak != 1) {
		w.m.Failf("%d failures opened it, and it is %v with streak %d", n, s.State, s.Streak)
	} else if p.forced && (n > 1 || s.State != ForcedOpen) {
		w.m.Failf("%d failures opened it, and it is %v", n, s.State)
	} else if p.opens || p.forced {
		return
	} else if n != 0 {
		w.m.Failf("opened by too few")
	}
	n := 1
	for w.g.RecordFailure(k) != Tripped && n < 4 {
		n++
	}
	if n < p.spare || n > max(p.spare, p.upTo) {
		w.m.Failf("%d more failures open it, and not %d", n, p.spare)
	}
}

type deeds = [][]wardDeed

// Checks I14, I15, I16: all tests of this file.

// A failure is counted in the living cell of its key or in its next one,
// whatever makes cells come and go.
func TestWindowsLoseNothing(t *testing.T) {
	twice := FailureCount(2, minute)
	for name, p := range map[string]wardship{
		"a failure and a sweep":                  {trip: twice, before: longAgo, threads: deeds{{fails}, {sweeps}}, spare: 1},
		"a cell's failure and a sweep":           {trip: twice, before: longAgo, threads: deeds{{permit1}, {sweeps}}, spare: 1},
		"an earlier failure and a sweep":         {trip: twice, before: longAgo, threads: deeds{{permit0}, {sweeps}}, spare: 1},
		"a failure in time and a sweep":          {trip: twice, before: []wardDeed{fails}, threads: deeds{{sweeps}, {passes}}, spare: 1, upTo: 2},
		"a failure, and no time for a sweep":     {trip: twice, before: []wardDeed{fails}, threads: deeds{{succeeds}, {sweeps}}, spare: 1},
		"a failure, cleared, and two sweeps":     {trip: watchful, before: longAgo[:4:4], threads: deeds{{succeeds, fails, succeeds, sweeps}, {sweeps}}, spare: 2},
		"a failure in a row and a sweep":         {trip: inARow, before: cleanKey, threads: deeds{{fails}, {sweeps}}, spare: 1},
		"another in its place, and a sweep":      {trip: inARow, before: []wardDeed{fails}, threads: deeds{{succeeds, fails}, {sweeps}}, spare: 1},
		"a sweep and a success":                  {trip: twice, before: longAgo, threads: deeds{{success1}, {sweeps}}, spare: 2},
		"a failure and Reset":                    {trip: twice, before: longAgo, threads: deeds{{permit1}, {forgets, fails}}, spare: 1},
		"a sweep and Reset":                      {trip: twice, before: longAgo, threads: deeds{{sweeps}, {forgets, fails}}, spare: 1},
		"two failures of a key":                  {trip: twice, before: longAgo, threads: deeds{{fails}, {permit1}}, opens: true},
		"one more than enough":                   {trip: twice, before: []wardDeed{grants0, fails}, threads: deeds{{fails}, {fails}}, opens: true},
		"enough as time goes on":                 {trip: twice, before: longAgo, threads: deeds{{fails}, {ticks4, fails}}, opens: true},
		"too late to be enough":                  {trip: twice, before: longAgo[:3:3], threads: deeds{{later, fails}, {sweeps}}, spare: 1},
		"a failure and a sweep, with a listener": {trip: twice, listens: true, before: longAgo, threads: deeds{{permit1}, {sweeps}}, spare: 1},
		"a failure, cleared, and sweepers":       {trip: watchful, before: longAgo, threads: deeds{{fails, succeeds}, {sweeps}, {sweeps}}, spare: 2},
		"two failures, and it is forced":         {trip: twice, before: []wardDeed{grants0, fails}, threads: deeds{{forcesK}, {fails}, {fails}}, forced: true},
	} {
		t.Run(name, func(t *testing.T) { p.check(t, mc.Config{}) })
	}
}

// The same where there are more steps, in the orders with at most two
// preemptions.
func TestWindowsLoseNothingOfThree(t *testing.T) {
	twice := FailureCount(2, minute)
	for name, p := range map[string]wardship{
		"a failure and two sweepers":      {trip: twice, before: longAgo, threads: deeds{{fails}, {sweeps}, {sweeps}}, spare: 1},
		"two failures and a sweeper":      {trip: twice, before: longAgo, threads: deeds{{fails}, {permit1}, {sweeps}}, opens: true},
		"more than twice, of three":       {trip: twice, before: longAgo, threads: deeds{{fails}, {permit0}, {permit1}}, opens: true},
		"a failure, a sweeper and Reset":  {trip: twice, before: longAgo, threads: deeds{{permit1}, {sweeps}, {forgets, fails}}, spare: 1},
		"two failures of a forgotten key": {trip: FailureCount(3, 100*time.Hour), before: []wardDeed{fails, longer}, threads: deeds{{fails}, {fails}}, spare: 1},
		"two failures of an absent key":   {trip: twice, threads: deeds{{fails}, {fails}}, opens: true},
	} {
		t.Run(name, func(t *testing.T) { p.check(t, mc.Config{Mode: mc.Bounded, Preemptions: 2}) })
	}
}
