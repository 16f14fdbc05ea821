//go:build modelcheck

package atomicbreaker

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/latchfree/latchfree/internal/tools/mc"
)

// What comes before a protocol about keys that nobody has called for long.
var (
	failedLong  = after(failing, age(k))
	openLong    = after(opened, age(k))
	probingLong = after(probing, age(k))
)

// Checks I8, I9: all tests of this file.

// A key is forgotten at one moment, by its next call or by a sweep, and what
// comes at the same time counts before it or after.
func TestForgottenKeys(t *testing.T) {
	for name, p := range map[string]protocol{
		"two calls of an open one":             {before: openLong, threads: threads{{allow(0, k)}, {allow(1, k), reportOp(1, Failure)}}},
		"a call of an open one and a sweep":    {before: openLong, threads: threads{{allow(0, k), reportOp(0, Failure)}, {sweep}}},
		"a failure of an open one, a sweep":    {before: openLong, threads: threads{{record(k, Failure)}, {sweep}}},
		"a success of an open one, a call":     {before: openLong, threads: threads{{record(k, Success)}, {allow(0, k)}}},
		"an old result and a sweep":            {before: openLong, threads: threads{{reportOp(2, Failure)}, {sweep}}},
		"State of an open one and a sweep":     {before: openLong, threads: threads{{state(k), state(k)}, {sweep}}},
		"State of an open one and a failure":   {before: openLong, threads: threads{{state(k), state(k)}, {record(k, Failure), record(k, Failure)}}},
		"two sweeps of an open one":            {before: openLong, threads: threads{{sweep}, {sweep, allow(0, k)}}},
		"a sweep and Reset":                    {before: openLong, threads: threads{{sweep}, {reset(k)}}},
		"a sweep and ResetAll":                 {before: openLong, threads: threads{{sweep}, {resetAll}}},
		"a probe's success and a sweep":        {before: probingLong, threads: threads{{reportOp(3, Success)}, {sweep}}},
		"a probe's failure and a call":         {before: probingLong, threads: threads{{reportOp(3, Failure)}, {allow(0, k)}}},
		"State of a half-open one, a sweep":    {before: probingLong, threads: threads{{state(k)}, {sweep}}},
		"a failing one's failure, a sweep":     {before: failedLong, threads: threads{{reportOp(2, Failure)}, {sweep}}},
		"a failing one's success, a sweep":     {before: failedLong, threads: threads{{reportOp(2, Success)}, {sweep}}},
		"failing, a call and a sweep":          {before: failedLong, threads: threads{{allow(3, k), reportOp(3, Failure)}, {sweep}}},
		"failing, from before, and a sweep":    {before: failedLong, threads: threads{{reportOp(0, Failure)}, {sweep}}},
		"two sweeps of a failing one":          {before: failedLong, threads: threads{{sweep}, {sweep, record(k, Failure)}}},
		"two failures of a failing one":        {before: failedLong, threads: threads{{reportOp(2, Failure)}, {record(k, Failure)}}},
		"failures one by one of a failing one": {before: failedLong, threads: threads{{record(k, Failure)}, {record(k, Failure), record(k, Failure)}}},
		"a failing one, failure and success":   {before: failedLong, threads: threads{{reportOp(2, Failure)}, {record(k, Success), record(k, Failure)}}},
		"a failing one's history":              {settings: Config{Policy: KOfN(2, 3)}, before: failedLong, threads: threads{{reportOp(2, Success)}, {record(k, Failure)}}},
		"a failing one, ForceOpen":             {before: failedLong, threads: threads{{reportOp(2, Failure)}, {forceK}}},
		"an open one, ForceOpen and a call":    {before: openLong, threads: threads{{forceK}, {allow(0, k)}}},
		"a probe's result and ForceOpen":       {before: probingLong, threads: threads{{reportOp(3, Success)}, {forceK}}},
		"a probe's failure and a failure":      {before: probingLong, threads: threads{{reportOp(3, Failure)}, {record(k, Failure), record(k, Failure)}}},
	} {
		t.Run(name, func(t *testing.T) { p.check(t, mc.Config{}) })
	}
}

// Of three who find a key forgotten, none loses the failure of another.
func TestForgottenKeysOfThree(t *testing.T) {
	three := threads{{reportOp(2, Failure)}, {record(k, Failure)}, {record(k, Failure)}}
	for name, policy := range map[string]Policy{"a row": Consecutive(3), "a history": KOfN(3, 5), "both": AnyOf(Consecutive(3), KOfN(3, 4))} {
		t.Run(name, func(t *testing.T) {
			p := protocol{settings: Config{Policy: policy}, before: failedLong, threads: three}
			p.check(t, mc.Config{Mode: mc.Bounded, Preemptions: 2})
		})
	}
}

// The same with a listener, which is told in order.
func TestForgottenKeysAreNotified(t *testing.T) {
	for name, p := range map[string]protocol{
		"a call and a sweep":      {before: openLong, threads: threads{{allow(0, k)}, {sweep}}},
		"a failure and a sweep":   {before: openLong, threads: threads{{record(k, Failure)}, {sweep}}},
		"two failures":            {before: openLong, threads: threads{{record(k, Failure)}, {record(k, Failure)}}},
		"two of a failing one":    {before: failedLong, threads: threads{{record(k, Failure)}, {record(k, Failure)}}},
		"a probe's failure":       {before: probingLong, threads: threads{{reportOp(3, Failure)}, {record(k, Failure), record(k, Failure)}}},
		"a command and a call":    {before: openLong, threads: threads{{forceK}, {allow(0, k)}}},
		"a sweep and ResetAll":    {before: openLong, threads: threads{{sweep}, {resetAll}}},
		"a call and ResetAll":     {before: openLong, threads: threads{{allow(0, k)}, {resetAll}}},
		"a sweep of two and Trip": {before: after(openLong, record(another, Failure), record(another, Failure), age(another)), threads: threads{{sweep}, {record(another, Failure)}}},
	} {
		p.listens = true
		t.Run(name, func(t *testing.T) { p.check(t, mc.Config{Mode: mc.Bounded, Preemptions: 2}) })
	}
}

// Probes that have lost their slots, in every order with those who have got
// them, and with what ends the period.
func TestOverdueProbes(t *testing.T) {
	twoLost := after(overdue, allow(0, k), expire(k), allow(1, k))
	three := Config{CloseAfter: 3}
	for name, p := range map[string]protocol{
		"two voices":             {settings: three, before: twoLost, threads: threads{{reportOp(3, Success)}, {reportOp(0, Success), reportOp(1, Success)}}},
		"a failure and a voice":  {settings: three, before: twoLost, threads: threads{{reportOp(3, Failure)}, {reportOp(0, Success)}}},
		"a voice and the next":   {before: twoLost, threads: threads{{reportOp(3, Success), allow(3, k)}, {reportOp(1, Failure)}}},
		"nothing to say":         {settings: three, before: twoLost, threads: threads{{reportOp(3, Ignored), allow(3, k)}, {reportOp(1, Success)}}},
		"a voice and Reset":      {before: twoLost, threads: threads{{reportOp(3, Success)}, {reset(k), record(k, Failure)}}},
		"nothing, and Reset":     {before: twoLost, threads: threads{{reportOp(3, Ignored)}, {reset(k)}}},
		"a voice, and a period":  {before: after(twoLost, reportOp(1, Failure), expire(k)), threads: threads{{reportOp(3, Success)}, {allow(1, k), reportOp(1, Success)}}},
		"a failure, and so":      {before: after(twoLost, reportOp(1, Failure), expire(k)), threads: threads{{reportOp(0, Failure)}, {allow(1, k), reportOp(1, Success)}}},
		"nothing, and so":        {before: after(twoLost, reportOp(1, Failure), expire(k)), threads: threads{{reportOp(0, Ignored)}, {allow(1, k)}}},
		"two begin a period":     {before: after(twoLost, reportOp(1, Failure), expire(k)), threads: threads{{allow(1, k), reportOp(3, Success)}, {allow(2, k), reportOp(0, Ignored)}}},
		"a share of them":        {settings: Config{CloseAfter: 2, ProbeFailureRate: 1}, before: twoLost, threads: threads{{reportOp(3, Failure)}, {reportOp(0, Success)}}},
		"a share of them is all": {settings: Config{CloseAfter: 2, ProbeFailureRate: 1}, before: twoLost, threads: threads{{reportOp(3, Failure)}, {reportOp(0, Failure)}}},
	} {
		t.Run(name, func(t *testing.T) { p.check(t, mc.Config{}) })
	}
}

// Checks I11, I13: all tests of this file.

// However departures overlap with callers who look for one, none is missed, and none is
// seen of a key that has not departed, also when hashes are replaced meanwhile.
func TestDeparturesInEveryOrder(t *testing.T) {
	for name, before := range map[string]uint64{"the first": 0, "some have been replaced": keptDepartures - 1, "the next replaces the first": keptDepartures} {
		t.Run(name, func(t *testing.T) {
			mc.Check(t, mc.Config{Operations: "add 1 ∥ add 2 ∥ look"}, func(m *mc.M) {
				var d departures
				d.add(3)
				d.count.Store(1 + before)
				since := d.count.Load()
				for hash := range uint64(2) {
					m.Go(func() {
						if n := d.add(hash + 1); !d.departed(n-1, hash+1) || d.departed(n, hash+1) {
							m.Failf("departure %d of %d", n, hash+1)
						}
					})
				}
				m.Go(func() {
					if d.departed(since, 3) {
						m.Failf("a key has departed twice")
					}
					if !d.departed(0, 3) {
						m.Failf("the first departure is not seen")
					}
				})
				m.Final(func() {
					if d.count.Load() != since+2 || !d.departed(since, 1) || !d.departed(since, 2) {
						m.Failf("%d departures", d.count.Load())
					}
				})
			})
		})
	}
}

// Whose hash is replaced while somebody looks for it has departed.
func TestDeparturesReplacedMeanwhile(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "look ∥ as many others as are kept"}, func(m *mc.M) {
		var d departures
		d.add(3)
		m.Go(func() {
			if !d.departed(0, 3) {
				m.Failf("the departure is missed")
			}
		})
		m.Go(func() {
			d.count.Store(keptDepartures) // all but one of them
			d.add(4)
		})
	})
}

// When ResetAll returns, what was admitted before it is late, whatever else happens to
// the key.
func TestResetAllInEveryOrder(t *testing.T) {
	for name, before := range map[string][]action{"absent": held, "failing": failing, "open": opened, "dying": closed2, "dead": dead} {
		for _, other := range []action{record(k, Failure), record(k, Success), allow(3, k), sweep, reset(k)} {
			t.Run(name+" and "+other.Name, func(t *testing.T) {
				mc.Check(t, mc.Config{Mode: mc.Bounded, Preemptions: 2, Operations: fmt.Sprintf("%s ∥ ResetAll, Failure of 0, 1 and 2", other.Name)}, func(m *mc.M) {
					c := &checked{t: t, Group: MustNewGroup(GroupConfig[string]{Default: Config{Policy: Consecutive(2), OpenTimeout: -1}})}
					plainly(&c.current().counters)
					for _, a := range before {
						a.Do(c)
					}
					m.Go(func() { other.Do(c) })
					m.Go(func() {
						c.ResetAll()
						for slot := range 3 {
							if v := c.permits[slot].Failure(); v != Late {
								m.Failf("%v of call %d from before ResetAll", v, slot)
							}
						}
					})
					m.Final(func() {
						if err := c.quiet(); err != nil {
							m.Failf("%v", err)
						}
					})
				})
			})
		}
	}
}

// A call that was admitted after ResetAll is good, also if its cell was about to be inserted
// before.
func TestCallsAfterResetAllAreGood(t *testing.T) {
	cfg := mc.Config{Mode: mc.Bounded, Preemptions: 3, Operations: "RecordFailure ∥ ResetAll, Allow, Sweep, Failure"}
	mc.Check(t, cfg, func(m *mc.M) {
		g := MustNewGroup(GroupConfig[string]{Default: Config{Policy: Consecutive(2), OpenTimeout: -1}})
		plainly(&g.current().counters)
		g.RecordFailure("another") // so that there is a filter
		m.Go(func() { g.RecordFailure(k) })
		m.Go(func() {
			g.ResetAll()
			p, _ := g.Allow(k)
			g.Sweep()
			if v := p.Failure(); v == Late {
				m.Failf("%v of a call from after ResetAll", v)
			}
		})
	})
}

// What sweeps cost: an insert looks at a word, and once the keys have doubled it
// looks at all of them.
func TestCostsOfSweeps(t *testing.T) {
	holding := func(keys int) func() func(int) {
		return func() func(int) {
			g := MustNewGroup(GroupConfig[string]{Default: never})
			for i := range keys {
				g.RecordFailure(fmt.Sprint(i))
			}
			g.Allow(k)
			return func(int) { g.RecordFailure(k) }
		}
	}
	mc.CheckCost(t, "Group: the first failure of its first key", holding(0), mc.Cost{Loads: 12, Stores: 2, RMWs: 5, TableWrites: 1, Clock: 1}, 8, 39.125, 346.58)
	mc.CheckCost(t, "Group: the first failure of a key", holding(1), mc.Cost{Loads: 13, Stores: 2, RMWs: 4, TableWrites: 1, Clock: 1}, 8, 39.125, 346.58)
	mc.CheckCost(t, "Group: the first failure of its 64th key", holding(firstSweep-1), mc.Cost{Loads: 206, Stores: 3, RMWs: 5, TableReads: 2, TableWrites: 1, Clock: 65}, 4, 30, 254)
}

// Checks I14, I15, I16: all tests of this file.

// The settings of a group change at one moment, whatever else is done to it. What
// permits look like changes with a SlowRate, and no result is lost by that.
func TestGroupUpdates(t *testing.T) {
	var (
		one   = Config{Policy: Consecutive(1)}
		three = Config{Policy: Consecutive(3)}
		timed = Config{Policy: AnyOf(Consecutive(2), SlowRate(1, time.Hour, math.MaxInt32, time.Minute))}

		// The second opening in a row is longer than any by the others.
		short  = Config{Policy: Consecutive(2), MaxOpenTimeout: time.Minute}
		short3 = Config{Policy: Consecutive(3), MaxOpenTimeout: time.Minute}
		long   = Config{Policy: Consecutive(4), MaxOpenTimeout: time.Hour}
	)
	for name, p := range map[string]protocol{
		"and a failure":            {before: held, threads: threads{{update(one)}, {reportOp(0, Failure)}}},
		"and a failing one's":      {before: failing, threads: threads{{update(three)}, {reportOp(2, Failure)}}},
		"and a call":               {threads: threads{{update(one)}, {allow(0, k), reportOp(0, Failure)}}},
		"and ResetAll":             {before: failing, threads: threads{{update(one)}, {resetAll, allow(0, k)}}},
		"and ResetAll, a failure":  {threads: threads{{update(one), record(k, Failure)}, {resetAll}}},
		"twice":                    {before: held, threads: threads{{update(one), reportOp(0, Failure)}, {update(three)}}},
		"and a probe":              {settings: Config{CloseAfter: 2}, before: probing, threads: threads{{update(Config{Policy: Consecutive(2), CloseAfter: 1})}, {reportOp(3, Success)}}},
		"and two failures":         {settings: three, threads: threads{{update(one), record(k, Failure)}, {record(k, Failure)}}},
		"to time calls, and one":   {before: held, threads: threads{{update(timed)}, {reportOp(0, Failure)}}},
		"to time calls, and a new": {threads: threads{{update(timed)}, {allow(0, k), reportOp(0, Failure)}}},
		"to time no more":          {settings: timed, before: held, threads: threads{{update(three)}, {reportOp(0, Failure), allow(0, k)}}},
		"to time, and not":         {threads: threads{{update(timed), allow(0, k)}, {update(three)}}},
		"of what is open":          {before: opened, threads: threads{{update(three)}, {allow(0, k)}, {state(k)}}},
		"of how long it is open":   {settings: short, before: probing, threads: threads{{update(short3)}, {update(long), reportOp(3, Failure), state(k)}}},
	} {
		t.Run(name, func(t *testing.T) { p.check(t, mc.Config{Mode: mc.Bounded, Preemptions: 3}) })
	}
}

// The settings of a key are those of one Update, in all that they say, also if PerKey has
// returned wrong ones.
func TestSettingsOfAKeyAreOfOneUpdate(t *testing.T) {
	for name, first := range map[string]Config{"right": {Name: "right"}, "wrong": {Probes: -1}} {
		t.Run(name, func(t *testing.T) {
			mc.Check(t, mc.Config{Operations: "settingsOf ∥ Update"}, func(m *mc.M) {
				g := MustNewGroup(GroupConfig[string]{Default: Config{Name: "wrong"}, PerKey: func(string) Config { return first }, MaxOpen: 1, ForgetAfter: 1})
				before := g.current().set.Load().shared
				m.Go(func() {
					s := g.current().settingsOf(k)
					got := fmt.Sprint(s.madeFor == before, s.name, s.openLimit, s.forgetAfter.Nanoseconds())
					if got != fmt.Sprint(true, name, 1, 1) && got != fmt.Sprint(false, "later", 2, 2) {
						m.Failf("%s", got)
					}
				})
				m.Go(func() {
					g.Update(GroupConfig[string]{PerKey: func(string) Config { return Config{Name: "later"} }, MaxOpen: 2, ForgetAfter: 2})
				})
			})
		})
	}
}

// Each wrong answer of PerKey counts.
func TestWrongSettingsAreCounted(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "settingsOf ∥ settingsOf, both wrong"}, func(m *mc.M) {
		g := MustNewGroup(GroupConfig[string]{PerKey: func(string) Config { return Config{Probes: -1} }})
		for range 2 {
			m.Go(func() { g.current().settingsOf(k) })
		}
		m.Final(func() {
			if n := g.Stats().WrongSettings; n != 2 {
				m.Failf("%d are wrong, and not 2", n)
			}
		})
	})
}

// Of two Updates at once, the later one decides for the keys in the group too.
func TestKeysFollowTheLastUpdate(t *testing.T) {
	mc.Check(t, mc.Config{Mode: mc.Bounded, Preemptions: 2, Operations: "Update ∥ Update"}, func(m *mc.M) {
		g := MustNewGroup(GroupConfig[string]{})
		plainly(&g.current().counters)
		g.RecordFailure(k)
		ks := g.current()
		for range 2 {
			m.Go(func() {
				fresh, _ := GroupConfig[string]{}.compile()
				ks.adopt(fresh.shared)
				ks.use(fresh)
			})
		}
		m.Final(func() {
			if ks.cells.Load(k).set.Load().madeFor != ks.set.Load().shared {
				m.Failf("the key has the settings of before")
			}
		})
	})
}

// Checks I9: whoever is stopped takes nothing back that another has noted.
func TestTouchedOnlyGoesUp(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "touch ∥ touch"}, func(m *mc.M) {
		var c core
		for hours := range time.Duration(2) {
			m.Go(func() { c.touch((hours+1)*time.Hour, 0) })
		}
		m.Final(func() {
			if at := time.Duration(c.touched.Load()); at != 2*time.Hour {
				m.Failf("last touched at %v", at)
			}
		})
	})
}

// Windows start empty after an Update that changes them, also if the next one, which may have
// begun before, brings those back that were there at first.
func TestWindowsStayEmptyAfterUpdates(t *testing.T) {
	cfg := mc.Config{Mode: mc.Bounded, Preemptions: 2, Operations: "Update to an hour, Snapshot ∥ Update to a minute"}
	mc.Check(t, cfg, func(m *mc.M) {
		of := func(name string, d time.Duration) GroupConfig[string] {
			return GroupConfig[string]{Default: Config{Name: name, Policy: FailureCount(9, d)}}
		}
		g := MustNewGroup(of("at first", time.Minute))
		plainly(&g.current().counters)
		g.RecordFailure(k)
		var between Snapshot
		m.Go(func() {
			g.Update(of("an hour", time.Hour))
			between = g.Snapshot(k)
		})
		m.Go(func() { g.Update(of("a minute", time.Minute)) })
		m.Final(func() {
			if s := g.Snapshot(k); between.Name == "an hour" && s.Window.Failures != 0 {
				m.Failf("%+v after %+v", s, between)
			}
		})
	})
}

// Checks I19, I20, I21, I22: all tests of this file.

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
		"ResetAll and a trip, as it does": {settings: Config{Policy: Consecutive(1)}, before: closed2, threads: threads{{reportOp(2, Failure)}, {resetAll}}},
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
		"ResetAll twice, and new trips":    {before: opened, threads: threads{{resetAll}, {resetAll}, {record(k, Failure), record(k, Failure)}}},
	} {
		p.listens = true
		t.Run(name, func(t *testing.T) { p.check(t, mc.Config{Mode: mc.Bounded, Preemptions: 4 - len(p.threads)}) })
	}
}

// byHand is what a Group and its model can do by hand to a key.
type byHand interface {
	tripKey(k string)
	forceKey(k string)
	disableKey(k string)
	tripped(slot int) Verdict
}

func (c *checked) tripKey(k string)         { c.Trip(k, 0) }
func (c *checked) forceKey(k string)        { c.ForceOpen(k) }
func (c *checked) disableKey(k string)      { c.Disable(k) }
func (c *checked) tripped(slot int) Verdict { return c.permits[slot].Trip(0) }

func (s *spec) tripKey(k string)    { s.of(k).Trip(0) }
func (s *spec) forceKey(k string)   { s.of(k).ForceOpen() }
func (s *spec) disableKey(k string) { s.of(k).Disable() }

func (s *spec) tripped(slot int) Verdict {
	return s.permits[slot].of.DoneTrip(s.permits[slot].permit, 0)
}

func hand(name, k string, do func(byHand, string)) action {
	return action{Name: fmt.Sprintf("%s(%q)", name, k), Do: func(s subject) any { do(s.(byHand), k); return nil }}
}

func tripOf(slot int) action {
	return action{Name: fmt.Sprintf("Trip of %d", slot), Do: func(s subject) any { return s.(byHand).tripped(slot) }}
}

var (
	tripK    = hand("Trip", k, byHand.tripKey)
	forceK   = hand("ForceOpen", k, byHand.forceKey)
	disableK = hand("Disable", k, byHand.disableKey)
	forcedK  = after(held, forceK)
	offK     = after(held, disableK, allow(2, k))
)

// What is done by hand to a key of a group, which may be absent or about to be,
// is done to whatever cell is the key's.
func TestKeysByHand(t *testing.T) {
	for name, p := range map[string]protocol{
		"a failure of an absent key":            {before: held, threads: threads{{tripK}, {reportOp(0, Failure)}}},
		"a failure as it is forced":             {before: failing, threads: threads{{forceK}, {reportOp(2, Failure)}}},
		"RecordFailure as it is off":            {before: failing, threads: threads{{disableK}, {record(k, Failure)}}},
		"RecordSuccess and ForceOpen":           {before: opened, threads: threads{{forceK}, {record(k, Success)}}},
		"RecordSuccess does not end":            {before: forcedK, threads: threads{{record(k, Success), allow(2, k)}, {record(k, Failure)}}},
		"off and on again":                      {before: offK, threads: threads{{reset(k)}, {record(k, Failure), reportOp(2, Failure)}}},
		"a permit's Trip of an absent":          {before: held, threads: threads{{tripOf(0)}, {reportOp(1, Failure)}}},
		"a permit's Trip and a probe":           {before: probing, settings: Config{Probes: 2}, threads: threads{{tripOf(3)}, {allow(0, k), reportOp(0, Success)}}},
		"a permit's Trip of a dead":             {before: dead, threads: threads{{tripOf(2)}, {allow(0, k)}}},
		"ForceOpen and Sweep":                   {before: closed2, threads: threads{{forceK}, {sweep}}},
		"Trip as the key departs":               {before: opened, threads: threads{{tripK}, {record(k, Success)}}},
		"ForceOpen and ResetAll":                {before: failing, threads: threads{{forceK, allow(0, k)}, {resetAll}}},
		"Disable and Reset":                     {before: failing, threads: threads{{disableK, reportOp(2, Failure)}, {reset(k)}}},
		"a permit's Trip and Reset":             {before: failing, threads: threads{{tripOf(2)}, {reset(k)}}},
		"ForceOpen twice and Reset":             {before: failing, threads: threads{{forceK, forceK}, {reset(k)}}},
		"a permit's Trip and ResetAll":          {listens: true, before: held, threads: threads{{tripOf(0)}, {resetAll, allow(1, k)}}},
		"ForceOpen is heard, or late":           {listens: true, before: held, threads: threads{{forceK}, {resetAll}}},
		"a key that is forced, with a listener": {listens: true, before: failing, threads: threads{{forceK}, {reportOp(2, Failure)}}},
		"a late failure when off":               {before: failing, threads: threads{{disableK}, {reportOp(0, Failure), reportOp(2, Success)}}},
	} {
		t.Run(name, func(t *testing.T) { p.check(t, mc.Config{}) })
	}
}

// An allotment is what some threads do to a group of which one key may be open
// at once, or all, and what was done before.
type allotment struct {
	trip    Policy // nil: two failures in a row
	all     bool
	before  []action
	threads [][]action
	opens   [2]int // how many keys are open or half-open in the end: at least, and at most

	withheld [2]uint64 // and how many failures did not open one

	preemptions int // at most, if not zero
}

func (p allotment) check(t *testing.T) {
	t.Helper()
	cfg := mc.Config{Operations: mc.Listed(p.threads, func(a action) string { return a.Name })}
	if p.preemptions != 0 {
		cfg.Mode, cfg.Preemptions = mc.Bounded, p.preemptions
	}
	mc.Check(t, cfg, func(m *mc.M) {
		config := GroupConfig[string]{Default: Config{Policy: Consecutive(2), OpenTimeout: time.Minute, Probes: 1}, MaxOpen: 1}
		if p.trip != nil {
			config.Default.Policy = p.trip
		}
		if p.all {
			config.MaxOpen = 0
		}
		c := &checked{t: t, Group: MustNewGroup(config)}
		plainly(&c.current().counters)
		for _, a := range p.before {
			a.Do(c)
		}
		for _, thread := range p.threads {
			m.Go(func() {
				for _, a := range thread {
					a.Do(c)
				}
			})
		}
		m.Final(func() {
			if err := c.quiet(); err != nil {
				m.Failf("%v", err)
			}
			out := int(c.current().quota.held.Load()) // and so say the cells, as it is quiet
			if out < p.opens[0] || out > p.opens[1] {
				m.Failf("%d are open", out)
			}
			if s := c.Snapshot(k); s.State == HalfOpen && s.InFlight == 0 {
				m.Failf("its open time is over: %+v", s)
			}
			if s := c.Stats(); s.Withheld < p.withheld[0] || s.Withheld > p.withheld[1] {
				m.Failf("%+v", s)
			}
		})
	})
}

// What comes before: each key is one failure from being open.
var bothFailing = after(failing, record(another, Failure))

// Places of the open quota are taken before keys open and given back after they
// closed, each once, whoever else wanted to do the same.
func TestQuotaInEveryOrder(t *testing.T) {
	for name, p := range map[string]allotment{
		"two keys, and one place":     {before: bothFailing, threads: threads{{record(k, Failure)}, {record(another, Failure)}}, opens: [2]int{1, 1}, withheld: [2]uint64{1, 1}},
		"two keys, and two places":    {all: true, before: bothFailing, threads: threads{{record(k, Failure)}, {record(another, Failure)}}, opens: [2]int{2, 2}},
		"two failures of a key":       {all: true, before: bothFailing, threads: threads{{record(k, Failure)}, {reportOp(2, Failure)}}, opens: [2]int{1, 1}},
		"a failure too many":          {all: true, before: bothFailing, threads: threads{{record(k, Failure), record(k, Success)}, {reportOp(2, Failure)}}},
		"two keys, and no place":      {before: after(bothFailing, record(twin, Failure), record(twin, Failure)), threads: threads{{record(k, Failure)}, {record(another, Failure)}}, opens: [2]int{1, 1}, withheld: [2]uint64{2, 2}},
		"two of a key, and one place": {before: failing, threads: threads{{reportOp(0, Failure)}, {reportOp(2, Failure)}}, opens: [2]int{1, 1}, withheld: [2]uint64{0, 1}},
		"two of a key, and no place":  {trip: KOfN(2, 3), before: after(bothFailing, record(another, Failure)), threads: threads{{record(k, Failure)}, {reportOp(2, Failure)}}, opens: [2]int{1, 1}, withheld: [2]uint64{2, 2}},
		"a place that becomes free":   {before: after(bothFailing, record(another, Failure)), threads: threads{{reset(another), record(k, Failure)}, {reportOp(2, Ignored)}}, opens: [2]int{1, 1}},
		"a trip, and a free place":    {before: after(held, record(another, Failure), record(another, Failure)), threads: threads{{tripOf(0)}, {reset(another), record(k, Failure)}}, opens: [2]int{1, 1}, withheld: [2]uint64{0, 1}},
		"two recoveries":              {before: opened, threads: threads{{record(k, Success)}, {record(k, Success)}}},
		"a recovery, and it is off":   {before: probing, threads: threads{{reportOp(3, Success)}, {disableK}}},
		"a probe fails as it is off":  {before: probing, threads: threads{{reportOp(3, Failure)}, {disableK}}},
		"a failure and a reset":       {before: failing, threads: threads{{reportOp(2, Failure)}, {reset(k)}}, opens: [2]int{0, 1}},
		"a failure, and it is forced": {before: failing, threads: threads{{reportOp(2, Failure)}, {forceK}}},
		"a failure, and a trip":       {all: true, before: failing, threads: threads{{reportOp(2, Failure)}, {tripK}}, opens: [2]int{1, 1}, withheld: [2]uint64{0, 1}},
		"two trips":                   {before: failing, threads: threads{{tripK}, {tripOf(2)}}, opens: [2]int{1, 1}, withheld: [2]uint64{0, 1}},
		"a trip without a place":      {before: after(bothFailing, record(another, Failure)), threads: threads{{tripK}, {record(k, Failure)}}, opens: [2]int{2, 2}, withheld: [2]uint64{0, 1}},
		"a probe and a trip":          {before: after(opened, expire(k)), threads: threads{{allow(0, k)}, {tripK}}, opens: [2]int{1, 1}},
		"a trip as a probe ends":      {before: after(probing, record(another, Failure)), threads: threads{{reportOp(3, Success)}, {tripK, record(another, Failure)}}, opens: [2]int{1, 1}, withheld: [2]uint64{1, 1}, preemptions: 1},
		"ResetAll":                    {before: failing, threads: threads{{reportOp(2, Failure)}, {resetAll, record(k, Failure), record(k, Failure)}}, opens: [2]int{0, 1}, withheld: [2]uint64{0, 1}},
	} {
		t.Run(name, func(t *testing.T) { p.check(t) })
	}
}

// A failure that was withheld by one of two settings does not count by the other.
func TestWithheldBySettingsOfBefore(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "RecordFailure ∥ Update(Consecutive(3))"}, func(m *mc.M) {
		c := &checked{t: t, Group: MustNewGroup(GroupConfig[string]{Default: Config{Policy: Consecutive(2)}, MaxOpen: 1})}
		plainly(&c.current().counters)
		c.Trip(another, 0)
		c.RecordFailure(k)
		m.Go(func() { c.RecordFailure(k) })
		m.Go(func() { c.update(Config{Policy: Consecutive(3)}) })
		m.Final(func() {
			if failures, withheld := c.Snapshot(k).Failures, c.Stats().Withheld; failures+int(withheld) != 2 {
				m.Failf("%d failures, and %d withheld", failures, withheld)
			}
		})
	})
}

// A key whose word changes while its time passes was never closed.
func TestStateOfAKeyThatIsNotForgotten(t *testing.T) {
	mc.Check(t, mc.Config{Operations: "State ∥ ForceOpen, advance by 2 h, of a half-open key"}, func(m *mc.M) {
		g := MustNewGroup(GroupConfig[string]{})
		plainly(&g.current().counters)
		g.HalfOpen(k)
		m.Go(func() {
			if s := g.State(k); s == Closed {
				m.Failf("%v", s)
			}
		})
		m.Go(func() {
			g.ForceOpen(k)
			m.Advance(2 * defaultForgetAfter)
		})
	})
}
