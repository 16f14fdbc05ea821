//go:build !modelcheck

package atomicbreaker

import (
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"
)

// A permit that says when its call began still says which stay admitted it, is
// never equal to a word, and tells the time up to what it can hold.
func TestTimedPermits(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	s, _ := new(Config).compile()
	for range 10_000 {
		stay := word(0).stay() | word([]uint64{closed, halfOpen, disabled}[r.IntN(3)])<<modeShift | word(r.Uint64N(genMask+1))<<genShift
		begun := time.Duration(1 + r.Int64N(int64(3*365*24*time.Hour)))
		for cell, bits := range map[uint64]func(word, time.Duration) uint64{0: bitsFor, inCell: cellBits} {
			p := Permit{bits: bits(stay, begun)}
			if p.stay() != stay || p.bits&inCell != cell || word(p.bits).mode() != marked {
				t.Fatalf("stay %#x at %v became %#x, which says stay %#x", stay, begun, p.bits, p.stay())
			}
			p = Permit{bits: bits(stay, 0)}
			if p.stay() != stay || p.took(s) != 0 || p.bits&inCell != 0 != (cell != 0) || word(p.bits).mode() != marked != (cell == 0) {
				t.Fatalf("stay %#x became %#x, which says %#x and %v", stay, p.bits, p.stay(), p.took(s))
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
				time.Sleep(time.Until(g.settings().base.epoch.Add((lap+1)*(leaseMask+1)*leaseTick - probeTimeout)))
				g.Reset(1)
				g.HalfOpen(1)
				b.HalfOpen()
				var permits []Permit
				for range probes {
					for _, allow := range []func() (Permit, error){b.Allow, func() (Permit, error) { return g.Allow(1) }} {
						p, err := allow()
						if err != nil {
							t.Fatal(err)
						}
						permits = append(permits, p)
					}
				}
				for _, c := range []*core{&b.core, &g.current().find(1).core} {
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
	for _, took := range []time.Duration{0, 2 * time.Microsecond, time.Millisecond, time.Minute, 77 * time.Hour} {
		for _, p := range []Permit{{bits: bitsFor(0, now-took)}, {bits: uint64((now-took)>>begunUnit) & begunMask}} { // of a key that was absent
			got := p.took(s)
			if word(p.bits).mode() != marked {
				got = since(p.bits, s)
			}
			if late := got - took; late < -2*time.Microsecond || late > 10*time.Second {
				t.Errorf("a call of %v took %v", took, got)
			}
		}
	}
}

// A string travels with the time and its stripe, and on its own if it is short
// enough. No bit of one touches another.
func TestTimedStrings(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{0, 1, 2, 63, maxTimedLen - 1, maxTimedLen, maxTimedLen + 1, 1 << 16} {
		for range 100 {
			key, begun, stripe := strings.Repeat("k", n), r.Uint64()&begunMask, r.Uint64N(1+filterSize)
			p := absentPermit(packTimedString, key, nil, stripe)
			if how := p.packing(packString); how != packTimedString || !p.tellsTime(packString) {
				t.Fatalf("%#x is carried as %d", p.bits, how)
			}
			p.bits |= begun
			if got := unpack[string](packTimedString, p.key, p.bits); got != key {
				t.Fatalf("%d bytes became %q", n, got)
			}
			if p.slot(packTimedString) != stripe || p.bits&begunMask != begun {
				t.Fatalf("stripe %d and time %#x became %#x", stripe, begun, p.bits)
			}
			if boxed := unsafe.Pointer(unsafe.StringData(key)) != p.key; boxed != (n > maxTimedLen) {
				t.Fatalf("%d bytes: copied %t", n, boxed)
			}
		}
	}
}
