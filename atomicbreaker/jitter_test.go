//go:build !modelcheck

package atomicbreaker

import (
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// drawing returns a breaker whose chance is what draw returns.
func drawing(t *testing.T, c Config, draw func() float64) *Breaker {
	t.Helper()
	c.Policy = Consecutive(1)
	b, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	b.core.set.Load().random = draw
	return b
}

// trip opens a closed breaker, or fails a probe, and returns for how long.
func trip(t *testing.T, b *Breaker) time.Duration {
	t.Helper()
	p, err := b.Allow()
	if err != nil {
		t.Fatal(err)
	}
	if v := p.Failure(); v != Tripped {
		t.Fatalf("verdict %v", v)
	}
	return b.Snapshot().RetryAfter
}

// The open time is all of it where chance says 0, and less by Jitter of it at
// most.
func TestJitterIsAPartOfTheOpenTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		last := math.Nextafter(1, 0)
		for _, tt := range []struct {
			jitter, chance float64
			want           time.Duration
		}{
			{0, 0, 8 * time.Second}, {0, last, 8 * time.Second},
			{0.25, 0, 8 * time.Second}, {0.25, 0.5, 7 * time.Second}, {0.25, last, 6*time.Second + time.Millisecond},
			{1, 0, 8 * time.Second}, {1, 0.5, 4 * time.Second}, {1, 0.875, time.Second}, {1, last, time.Millisecond},
		} {
			drawn := 0
			b := drawing(t, Config{OpenTimeout: 8 * time.Second, Jitter: tt.jitter}, func() float64 { drawn++; return tt.chance })
			// Rounded up to a millisecond, and to a nanosecond in between.
			if got := trip(t, b); got != tt.want && got != tt.want-time.Millisecond {
				t.Errorf("jitter %v, chance %v: open for %v, want %v", tt.jitter, tt.chance, got, tt.want)
			}
			if want := map[bool]int{true: 1}[tt.jitter > 0]; drawn != want {
				t.Errorf("jitter %v: %d numbers drawn, want %d", tt.jitter, drawn, want)
			}
		}
	})
}

// T33: breakers that open together do not probe together, and none opens for
// longer than MaxOpenTimeout, nor for less than is left of its turn.
//
// Reported bug 33, Failsafe-go, Baseplate: breakers probe together.
func TestT33_JitterSpreadsProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const breakers, second = 1000, time.Second
		var tenths [11]int
		for range breakers {
			b := MustNew(Config{Policy: Consecutive(1), OpenTimeout: second, MaxOpenTimeout: 3 * second, Jitter: 0.5})
			for i, want := range []time.Duration{second, 2 * second, 3 * second, 3 * second} {
				d := trip(t, b)
				if d < want/2 || d > want {
					t.Fatalf("opening %d for %v, want %v to %v", i+1, d, want/2, want)
				}
				if i == 0 {
					tenths[10*d/second]++
				}
				time.Sleep(d)
			}
		}
		// The last is exactly a second, which few or none draw.
		for i, n := range tenths[:10] {
			if (n > 0) != (i >= 5) || i >= 5 && (n < breakers/10 || n > breakers/3) {
				t.Fatalf("of %d open times %v in each tenth of a second", breakers, tenths)
			}
		}
	})
}

// Jitter takes from what Backoff says, and not from what Trip says or what has
// no end.
func TestJitterIsOfBackoffOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		half := func() float64 { return 0.5 }
		b := drawing(t, Config{OpenTimeout: time.Second, MaxOpenTimeout: time.Minute, Jitter: 1, Backoff: func(streak int) time.Duration { return time.Duration(streak) * 10 * time.Second }}, half)
		for _, want := range []time.Duration{5 * time.Second, 10 * time.Second, 15 * time.Second} {
			if got := trip(t, b); got != want {
				t.Errorf("open for %v, want %v", got, want)
			}
			time.Sleep(want)
		}
		for d, want := range map[time.Duration]time.Duration{3 * time.Second: 3 * time.Second, time.Hour: time.Minute, -1: math.MaxInt64, 0: 5 * time.Second} {
			b.Reset()
			b.Trip(d)
			if got := b.Snapshot().RetryAfter; got != want {
				t.Errorf("Trip(%v): open for %v, want %v", d, got, want)
			}
			b.Reset()
			p, _ := b.Allow()
			p.Trip(d)
			if got := b.Snapshot().RetryAfter; got != want {
				t.Errorf("Permit.Trip(%v): open for %v, want %v", d, got, want)
			}
		}
		if got := trip(t, drawing(t, Config{OpenTimeout: -1, Jitter: 1}, half)); got != math.MaxInt64 {
			t.Errorf("until Reset became %v", got)
		}
	})
}

// Open times of all sizes keep to their range, and deadlines to their bound.
func TestJitterRange(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 20_000 {
		c := Config{OpenTimeout: time.Duration(1 + r.Int64N(1<<(1+r.IntN(54)))), Jitter: r.Float64()}
		s, err := c.compile()
		if err != nil {
			t.Fatal(err)
		}
		s.random = r.Float64
		streak, now := 1+r.IntN(31), time.Duration(r.Int64N(1<<58))
		d, all := s.drawOpen(streak), s.openFor(streak)
		if all == latched {
			if d != latched {
				t.Fatalf("%v became %v", all, d)
			}
			continue
		}
		if least := all - time.Duration(c.Jitter*float64(all)); d < least || d > all {
			t.Fatalf("%v with jitter %v became %v", all, c.Jitter, d)
		}
		w := word(s.until(d, now)) | word(open)<<modeShift
		if d >= openTick && !w.openPending(s, now) || w.openPending(s, now+d) {
			t.Fatalf("opened at %v for %v", now, d)
		}
	}
}

// Other settings of Update draw from chance as before.
func TestJitterAfterUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := MustNew(Config{Policy: Consecutive(1), OpenTimeout: time.Second})
		if got := trip(t, b); got != time.Second {
			t.Fatalf("open for %v", got)
		}
		if err := b.Update(Config{Policy: Consecutive(1), OpenTimeout: time.Hour, Jitter: 1}); err != nil {
			t.Fatal(err)
		}
		seen := map[time.Duration]bool{}
		for range 10 {
			b.Reset()
			seen[trip(t, b)] = true
		}
		if len(seen) < 9 {
			t.Fatalf("open times %v", seen)
		}
	})
}
