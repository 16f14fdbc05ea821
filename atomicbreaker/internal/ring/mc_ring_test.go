//go:build modelcheck

package ring

import (
	"testing"
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/tools/mc"
)

// A deed is what a thread does with a ring that has ticks of a second.
type deed string

const (
	good deed = "add"
	bad  deed = "add a bad one"
	sum  deed = "sum"
	tick deed = "advance by 1 s"
	lap  deed = "advance by 16 s" // buckets of a second
)

// ringProgram is deeds of threads, after some were done before.
type ringProgram struct {
	stripes int // 0: one, until callers meet there
	before  []deed
	threads [][]deed
}

// summed is one call, and summed is one sum: what it may count is the calls of
// its window, and what it must count those of them that were added before and
// are in the window until it returns.
type (
	added  struct{ at time.Duration }
	summed struct {
		before     uint64 // bits of the calls that had been added
		now, until time.Duration
		bad, total uint64
	}
)

func (p ringProgram) config() mc.Config {
	return mc.Config{Operations: mc.Listed(p.threads, func(d deed) string { return string(d) })}
}

// body returns the program, with add or something worse. After it, the ring
// has the calls that it should have, by the times that add has returned.
func (p ringProgram) body(add func(*Ring, time.Time, bool) time.Duration) func(*mc.M) {
	return func(m *mc.M) {
		r, epoch := New((Buckets-1)*time.Second, max(p.stripes, 1)), atomics.Now()
		if p.stripes == 0 {
			r = NewSmall((Buckets - 1) * time.Second)
		}
		var (
			ended atomics.Uint64
			calls []*added
			ofBad uint64
			sums  []*summed
		)
		deedOf := func(d deed) func() {
			switch d {
			case tick:
				return func() { m.Advance(time.Second) }
			case lap:
				return func() { m.Advance(Buckets * time.Second) }
			case sum:
				s := new(summed)
				sums = append(sums, s)
				return func() {
					s.before = ended.Load()
					s.now = atomics.Since(epoch)
					s.bad, s.total = r.Sum(s.now)
					s.until = atomics.Since(epoch)
				}
			}
			call, bit := new(added), uint64(1)<<len(calls)
			calls = append(calls, call)
			if d == bad {
				ofBad |= bit
			}
			return func() {
				call.at = add(r, epoch, d == bad)
				ended.Or(bit)
			}
		}
		for _, d := range p.before {
			deedOf(d)()
		}
		for _, thread := range p.threads {
			var todo []func()
			for _, d := range thread {
				todo = append(todo, deedOf(d))
			}
			m.Go(func() {
				for _, do := range todo {
					do()
				}
			})
		}
		// inWindows returns how many of a set of calls are in the windows that
		// end then and later.
		inWindows := func(set uint64, then, later time.Duration) (n uint64) {
			for i, c := range calls {
				if set>>i&1 != 0 && c.at <= then && then/r.tick-c.at/r.tick < Buckets && later/r.tick-c.at/r.tick < Buckets {
					n++
				}
			}
			return n
		}
		m.Final(func() {
			all, now := uint64(1)<<len(calls)-1, atomics.Since(epoch)
			if b, n := r.Sum(now); b != inWindows(ofBad, now, now) || n != inWindows(all, now, now) {
				m.Failf("%d bad of %d in the end, want %d of %d", b, n, inWindows(ofBad, now, now), inWindows(all, now, now))
			}
			for _, s := range sums {
				if s.total < inWindows(s.before, s.now, s.until) || s.total > inWindows(all, s.now, s.now) ||
					s.bad < inWindows(s.before&ofBad, s.now, s.until) || s.bad > inWindows(ofBad, s.now, s.now) {
					m.Failf("%d bad of %d at %v", s.bad, s.total, s.now)
				}
			}
		})
	}
}

// Whatever happens while a bucket's turn comes again, every call is counted
// once, at a time when it was being made; and a sum misses none that was there
// before and counts none twice.
func TestRingProtocols(t *testing.T) {
	for name, p := range map[string]ringProgram{
		"two adders over a rotation":    {stripes: 1, before: []deed{good, lap}, threads: [][]deed{{good}, {bad}}},
		"two adders while the lap ends": {stripes: 1, threads: [][]deed{{bad, good}, {lap, good}}},
		"an adder stalled across a lap": {stripes: 1, before: []deed{bad, lap}, threads: [][]deed{{bad}, {lap, good}}},
		"stalled across two laps":       {stripes: 1, before: []deed{bad, lap}, threads: [][]deed{{bad}, {lap, good, lap, good}}},
		"two stalled across a lap":      {stripes: 1, before: []deed{good, lap}, threads: [][]deed{{bad}, {good}, {lap, good}}},
		"an adder against a sum":        {stripes: 1, before: []deed{bad}, threads: [][]deed{{bad, good}, {sum}}},
		"a rotation against a sum":      {stripes: 1, before: []deed{bad, tick, good, lap}, threads: [][]deed{{bad}, {sum}}},
		"a sum while the lap ends":      {stripes: 1, before: []deed{bad, tick, bad}, threads: [][]deed{{lap, bad}, {sum}}},
		"a sum while more come":         {stripes: 1, before: []deed{good}, threads: [][]deed{{lap, bad, bad}, {sum}}},
		"a sum while a tick ends":       {stripes: 1, before: []deed{bad}, threads: [][]deed{{good, tick, bad}, {sum}}},
		"two stripes":                   {stripes: 2, before: []deed{bad}, threads: [][]deed{{bad, tick, good}, {sum}}},
		"two meet in a small one":       {before: []deed{bad}, threads: [][]deed{{bad}, {bad}, {sum}}},
		"three meet in a small one":     {threads: [][]deed{{bad}, {good}, {good}}},
		"two meet and go on":            {threads: [][]deed{{bad, good}, {good, tick, bad}}},
		"two meet, and a lap":           {before: []deed{bad, lap}, threads: [][]deed{{bad, lap}, {good, bad}}},
		"two meet while one sums":       {before: []deed{bad}, threads: [][]deed{{bad, sum}, {bad, sum}}},
		"two stripes over a rotation":   {stripes: 2, before: []deed{good, lap}, threads: [][]deed{{good}, {bad}}},
	} {
		t.Run(name, func(t *testing.T) { mc.Check(t, p.config(), p.body(addNow)) })
	}
}

// Of callers who meet in a small ring, one gives it more stripes.
func TestMeetingsAddStripes(t *testing.T) {
	var more bool
	mc.Check(t, mc.Config{Operations: "add ∥ add"}, func(m *mc.M) {
		r, epoch := NewSmall(time.Second), atomics.Now()
		for range 2 {
			m.Go(func() { addNow(r, epoch, false) })
		}
		m.Final(func() { more = more || r.added() != nil })
	})
	if !more {
		t.Error("no two have met, or their ring is small for ever")
	}
}

// addNow counts a call that ends now.
func addNow(r *Ring, epoch time.Time, bad bool) time.Duration {
	return r.Add(epoch, atomics.Since(epoch), bad)
}

// hastyAdd does not look at the clock again before it replaces a bucket: it
// takes any other lap for an earlier one.
func hastyAdd(r *Ring, epoch time.Time, bad bool) time.Duration {
	at := atomics.Since(epoch)
	n := uint64(at / r.tick)
	word := &r.stripes[0][n%Buckets]
	for {
		was := word.Load()
		b := bucket(was)
		if !b.holds(n) {
			b = emptyBucket(n)
		}
		if word.CompareAndSwap(was, uint64(b.count(bad))) {
			return at
		}
	}
}

// Without the second look, who was stopped for a lap replaces what others have
// counted meanwhile (T43).
//
// Reported bug 43, Sentinel: buckets cleared twice.
// Checks N1, N2, N3, N4.
func TestT43_HastyRotationLosesCalls(t *testing.T) {
	p := ringProgram{stripes: 1, before: []deed{bad, lap}, threads: [][]deed{{bad}, {lap, good}}}
	mc.Refute(t, p.config(), "0 bad of 0 in the end, want 0 of 1", p.body(hastyAdd))
}

// What calls and sums cost: a call changes one word, in a cache line that is
// its processor's own where there are stripes enough.
func TestRingCosts(t *testing.T) {
	ringOf := func(stripes int, op func(*Ring, time.Time)) func() func(int) {
		return func() func(int) {
			r, epoch := New(time.Hour, stripes), atomics.Now()
			addNow(r, epoch, false)
			return func(int) { op(r, epoch) }
		}
	}
	add := func(r *Ring, epoch time.Time) { addNow(r, epoch, true) }
	rotate := func(r *Ring, epoch time.Time) { addNow(r, epoch.Add(-r.tick*Buckets), true) }
	look := func(r *Ring, epoch time.Time) { r.Sum(0) }
	mc.CheckCost(t, "ring: add, on an own stripe", ringOf(64, add), mc.Cost{Loads: 1, RMWs: 1, Clock: 1}, 0)
	mc.CheckCost(t, "ring: add, on a shared stripe", ringOf(1, add), mc.Cost{Loads: 1, RMWs: 1, Clock: 1}, 3, 15, 127)
	mc.CheckCost(t, "ring: the first add of a lap", ringOf(64, rotate), mc.Cost{Loads: 1, RMWs: 1, Clock: 2}, 0)
	mc.CheckCost(t, "ring: sum, of one stripe", ringOf(1, look), mc.Cost{Loads: 16}, 0)
	mc.CheckCost(t, "ring: sum, of four stripes", ringOf(4, look), mc.Cost{Loads: 4 * 16}, 0)
}
