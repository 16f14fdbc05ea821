//go:build modelcheck

package atomicbreaker

import (
	"fmt"
	"testing"

	"github.com/latchfree/latchfree/internal/mc"
)

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
