//go:build !modelcheck

package atomicbreaker

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// A permit that says when its call began still says which stay admitted it, tells
// the time up to what it can hold, and is no word of a Breaker.
func TestTimedPermits(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	s, _ := (&Config{Policy: SlowRate(1, time.Second, 1, time.Minute)}).compile()
	for range 10_000 {
		stay := word([]uint64{closed, halfOpen, disabled, absentMode}[r.IntN(4)])<<modeShift | word(r.Uint64N(genMask+1))<<genShift
		for _, begun := range []time.Duration{0, untimed, time.Duration(1 + r.Int64N(int64(3*365*24*time.Hour)))} {
			bits := bitsFor(stay, begun)
			if decoded(bits).stay() != stay || inverted(bits) != (begun != 0) || begun <= 0 && took(bits, s) != 0 {
				t.Fatalf("stay %#x at %v became %#x, which says %#x and %v", stay, begun, bits, decoded(bits).stay(), took(bits, s))
			}
			if m := word(bits).mode(); begun != 0 && m != tombstone && m != leaving && m != open && (m != forcedOpen || word(bits) == word(bits).stay()) {
				t.Fatalf("stay %#x at %v became %#x, which may be a word", stay, begun, bits)
			}
		}
	}
}

// Results of probes count at any time. A permit of a cell must not look like a
// half-open word, whatever its lease is: one is zero for 128 ms of every three days.
func TestProbesCountAtTheWrapOfLeases(t *testing.T) {
	const probeTimeout = 10 * time.Second
	for probes := 1; probes <= probeMask; probes++ {
		synctest.Test(t, func(t *testing.T) {
			g := MustNewGroup(GroupConfig[int]{Default: Config{Policy: Consecutive(1), Probes: probes, CloseAfter: probes, ProbeTimeout: probeTimeout}})
			b := MustNew(Config{Policy: Consecutive(1), Probes: probes, CloseAfter: probes, ProbeTimeout: probeTimeout})
			for lap := range time.Duration(2) {
				time.Sleep(time.Until(g.current().epoch.Add((lap+1)*(leaseMask+1)*leaseTick - probeTimeout)))
				g.Reset(1)
				g.HalfOpen(1)
				b.HalfOpen()
				var permits []interface{ Success() Verdict }
				for range probes {
					p, err := b.Allow()
					q, errKeyed := g.Allow(1)
					if err != nil || errKeyed != nil {
						t.Fatal(err, errKeyed)
					}
					permits = append(permits, p, q)
				}
				for _, c := range []*core{&b.core, &g.current().cells.Load(1).core} {
					if w := word(c.word.Load()); w.lease() != 0 || w.inflight() != probes {
						t.Fatalf("lease %d, %d in flight", w.lease(), w.inflight())
					}
				}
				for _, p := range permits {
					p.Success()
				}
				if b.State() != Closed || g.State(1) != Closed {
					t.Fatalf("%d probes have succeeded: %+v, %+v", probes, b.Snapshot(), g.Snapshot(1))
				}
			}
		})
	}
}

func TestTimedPermitsTellTheTime(t *testing.T) {
	s, _ := (&Config{Policy: SlowRate(1, time.Second, 1, time.Minute)}).compile()
	now := s.now()
	for _, want := range []time.Duration{0, 2 * time.Microsecond, time.Millisecond, time.Minute, 25 * 24 * time.Hour} {
		if late := took(bitsFor(0, now-want), s) - want; late < -2*time.Microsecond || late > 10*time.Second {
			t.Errorf("a call of %v took %v", want, want+late)
		}
	}
}
