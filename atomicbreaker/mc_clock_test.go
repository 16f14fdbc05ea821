//go:build modelcheck

package atomicbreaker

import (
	"testing"
	"time"

	"github.com/latchfree/latchfree/internal/tools/mc"
)

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
