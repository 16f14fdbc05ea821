//go:build !modelcheck

package atomicbreaker

import (
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"
)

// The fields of each mode are disjoint, and fill what the diagram says.
//
// Checks I1.
func TestWordLayout(t *testing.T) {
	full := word(0).probe(leaseMask).withStreak(31) | probeMask<<inflightShift | probeMask<<okShift | probeMask<<failedShift
	if full&payloadMask != payloadMask {
		t.Errorf("a full half-open payload is %#x, want %#x", uint64(full&payloadMask), uint64(payloadMask))
	}
	if full.streak() != 31 || full.inflight() != 31 || full.ok() != 31 || full.failed() != 31 || full.lease() != leaseMask || full.gen() != 1 || full.mode() != halfOpen {
		t.Errorf("fields of %#x do not come back", uint64(full))
	}
	if w := full.withLease(0); w.inflight() != 31 || w.lease() != 0 || w.failed() != 31 || w.ok() != 31 {
		t.Error("withLease does not replace its field alone")
	}
	opened := word(0).enter(open).withStreak(31) | forever
	if opened&payloadMask != payloadMask || opened.until() != forever || opened.streak() != 31 {
		t.Errorf("a full open payload is %#x", uint64(opened&payloadMask))
	}
}

// Checks I1.
func TestGenerationsSkipZero(t *testing.T) {
	w := word(0)
	for range genMask {
		w = w.enter(closed)
		if w.gen() == 0 {
			t.Fatal("generation zero came back")
		}
	}
	if w = w.enter(closed); w.gen() != 1 {
		t.Fatalf("generation %d after the last, want 1", w.gen())
	}
}

func TestBuriedWords(t *testing.T) {
	w := word(0).enter(open).enter(closed)
	if !w.pristine() || w.bury().pristine() || w.bury().mode() != tombstone || w.bury().gen() != 2 || w.bury() != w.bury().stay() {
		t.Errorf("%#x buried is %#x", uint64(w), uint64(w.bury()))
	}
	for _, w := range []word{1, word(0).enter(open), word(0).enter(halfOpen), word(0).withStreak(1)} {
		if w.pristine() {
			t.Errorf("%#x is pristine", uint64(w))
		}
	}
}

// A deadline is pending from when it was set until it passes, at any time of
// the clock, and not again when the clock goes round but for one bound.
//
// Checks I4.
func TestPendingGoesRound(t *testing.T) {
	const bound, lap = 20, untilMask + 1
	s, r := &settings{openBound: bound}, rand.New(rand.NewPCG(1, 2))
	for i := range uint64(1000) {
		start := i
		if i%2 != 0 {
			start = lap - i
		}
		for d := uint64(1); d <= bound; d++ {
			w := word((start + d) % lap)
			if w == forever {
				continue
			}
			for later := range uint64(4 * bound) {
				for _, later := range []uint64{later, lap - 2*bound + later, 2*lap - 2*bound + later, r.Uint64N(2 * lap)} {
					ahead := int64(d) - int64(later%lap) // of the nearest deadline
					if ahead <= 0 {
						ahead += lap
					}
					if got, want := w.openPending(s, time.Duration(start+later)*openTick), ahead <= bound; got != want {
						t.Fatalf("deadline %d after %d, %d later: pending %v, want %v", d, start, later, got, want)
					}
				}
			}
		}
	}
}

// No deadline is taken for a wrapped one while it is ahead, whatever the
// fractions of ticks. An open time ends at most a tick early, and a probe's time
// exactly.
//
// Checks I4.
func TestDeadlinesStayWithinTheirBound(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		c := Config{
			OpenTimeout:  time.Duration(1 + r.Int64N(int64(10*time.Second))),
			ProbeTimeout: time.Duration(1 + r.Int64N(int64(10*time.Second))),
		}
		s, err := c.compile()
		if err != nil {
			t.Fatal(err)
		}
		now := time.Duration(r.Int64N(int64(5 * 365 * 24 * time.Hour)))
		streak := 1 + r.IntN(31)
		w := word(s.until(s.openFor(streak), now)) | word(open)<<modeShift
		if d := s.openFor(streak); d >= openTick && !w.openPending(s, now) || d > openTick && !w.openPending(s, now+d-openTick) || w.openPending(s, now+d) {
			t.Fatalf("opened at %v for %v: pending %v, %v, %v", now, d, w.openPending(s, now), w.openPending(s, now+d-openTick), w.openPending(s, now+d))
		}
		l := word(0).probe(s.leaseFrom(now))
		left := func(after time.Duration) time.Duration { return l.leaseLeft(s, now+after, after) }
		if d := s.probeTimeout; left(0) != d || left(d-1) != 1 || left(d) > 0 {
			t.Fatalf("probe at %v for %v: left %v, %v, %v", now, d, left(0), left(d-1), left(d))
		}
		s.leaseBound = maxProbeTimeout // as after an Update, where the word decides
		if d := s.probeTimeout; left(0)-d < 0 || left(0)-d >= leaseTick || left(d-1)-1 < 0 || left(d-1)-1 >= leaseTick {
			t.Fatalf("probe at %v for %v, which was more: left %v, %v", now, d, left(0), left(d-1))
		}
	}
}

// A deadline is ahead, or has passed, to the nanosecond of the clock.
//
// Checks I4.
func TestDeadlinesAreExact(t *testing.T) {
	for _, tick := range []uint64{1, 1000, untilMask - 1, untilMask + 1, 3*untilMask + 1000} {
		w, at := word(open)<<modeShift|word(tick&untilMask), time.Duration(tick)*openTick
		for _, d := range []time.Duration{0, 1, openTick - 1, openTick, openTick + 1, 3 * openTick / 2, time.Hour, longestOpen} {
			if got := w.openLeft(at + d); got != 0 {
				t.Errorf("deadline %d, %v later: %v left", tick, d, got)
			}
			if got := w.openAgo(at + d); got != d {
				t.Errorf("deadline %d, %v later: passed %v ago", tick, d, got)
			}
			if got := w.openLeft(at - d); d <= at && got != d {
				t.Errorf("deadline %d, %v earlier: %v left", tick, d, got)
			}
		}
	}
}

// Each opening in a row lasts exactly twice as long as the one before, up to the bound.
func TestOpenTimesDouble(t *testing.T) {
	for _, c := range []Config{
		{OpenTimeout: time.Second}, {OpenTimeout: time.Second, MaxOpenTimeout: 2*time.Second + 1},
		{OpenTimeout: 1, MaxOpenTimeout: time.Second}, {OpenTimeout: time.Minute, MaxOpenTimeout: longestOpen},
	} {
		s, err := c.compile()
		if err != nil {
			t.Fatal(err)
		}
		want := c.OpenTimeout
		for streak := 1; streak <= streakMask; streak++ {
			if got := s.openFor(streak); got != want {
				t.Errorf("%v up to %v: opening %d for %v, want %v", c.OpenTimeout, c.MaxOpenTimeout, streak, got, want)
			}
			want = min(2*want, max(c.OpenTimeout, c.MaxOpenTimeout))
		}
	}
}

// halfOpenWord returns a half-open word of generation 7 and streak 3.
func halfOpenWord(inflight, ok, failed, lease uint64) word {
	return word(halfOpen<<modeShift|7<<genShift|3<<streakShift|inflight<<inflightShift|ok<<okShift|failed<<failedShift) | word(lease)
}

// An admitted probe has its lease, rounded up, and disturbs nothing else, wherever in a
// tick it begins.
//
// Checks I3, I4.
func TestAdmittedProbes(t *testing.T) {
	s, _ := (&Config{ProbeTimeout: 10 * time.Second, CloseAfter: 9, ProbeFailureRate: 1}).compile()
	for _, lease := range []uint64{0, 1, leaseMask} {
		for _, early := range []time.Duration{0, 1, leaseTick / 2, leaseTick - 1} {
			now := time.Duration(lease+leaseMask+1)*leaseTick - s.probeTimeout - early
			for _, tt := range []struct {
				name    string
				w, want word
			}{
				{"first", word(open<<modeShift|6<<genShift|3<<streakShift) | word(ticks(now, openTick)), halfOpenWord(1, 0, 0, lease)},
				{"next", halfOpenWord(0, 2, 1, leaseMask/3), halfOpenWord(1, 2, 1, lease)},
				{"after an overdue one", halfOpenWord(1, 2, 1, leaseMask/3) - 1<<genShift, halfOpenWord(1, 2, 1, lease)},
			} {
				if got, err := tt.w.admit(s, now, s.probeTimeout); got != tt.want || err != nil {
					t.Errorf("%s at %v: %#x, %v, want %#x", tt.name, now, uint64(got), err, uint64(tt.want))
				}
			}
		}
	}
}

// A result changes nothing in a word but what it is about.
//
// Checks I2, I3, I7.
func TestRecordedWords(t *testing.T) {
	const opened, many = word(open<<modeShift | 7<<genShift | 3<<streakShift | forever), word(failsMask)
	half := func(inflight, ok, failed uint64) word { return halfOpenWord(inflight, ok, failed, leaseMask) }
	for _, tt := range []struct {
		name    string
		w       word
		outcome Outcome
		how     flags
		rate    uint64 // of probes
		want    word
		verdict Verdict
	}{
		{"Disabled", word(0).enter(disabled), Failure, bad, 0, word(0).enter(disabled), Counted},
		{"ForcedOpen", word(0).enter(forcedOpen), Failure, bad | direct, 0, word(0).enter(forcedOpen), Late},
		{"RecordFailure while open", opened, Failure, bad | direct, 0, opened, Late},
		{"RecordSuccess while open", opened, Success, direct, 0, opened, Recovered},
		{"RecordFailure", half(1, 1, 1), Failure, bad | direct, 0, half(1, 1, 1), Tripped},
		{"RecordSuccess", half(1, 1, 1), Success, direct, 0, half(1, 1, 1), Recovered},
		{"second report", half(0, 1, 0), Success, slotted, 0, half(0, 1, 0), Late},
		{"Cancel", half(2, 1, 0), Ignored, slotted, 0, half(1, 1, 0), Counted},
		{"success", half(2, 0, 0), Success, slotted, 0, half(1, 1, 0), Counted},
		{"success of an overdue probe", half(2, 0, 0), Success, 0, 0, half(2, 1, 0), Counted},
		{"last success", half(2, 1, 0), Success, slotted, 0, half(1, 2, 0), Recovered},
		{"failure", half(2, 0, 0), Failure, bad | slotted, 0, half(1, 0, 1), Tripped},
		{"failure, with a rate", half(2, 0, 0), Failure, bad | slotted, million, half(1, 0, 1), Counted},
		{"last failure, with a rate", half(2, 0, 1), Failure, bad | slotted, million, half(1, 0, 2), Tripped},
		{"TripFunc, with the most failures in a row that are counted", many, Failure, bad, 0, many, Counted},
	} {
		s := &settings{closeAfter: 2, probeRate: tt.rate, rules: &rules{inARow: true}}
		if got, v := tt.w.record(result{outcome: tt.outcome, how: tt.how}, s); got != tt.want || v != tt.verdict {
			t.Errorf("%s: %#x, %v, want %#x, %v", tt.name, uint64(got), v, uint64(tt.want), tt.verdict)
		}
	}
}

// An open word whose deadline falls on the reserved one is not latched: it ends up
// to two ticks early, wherever in a tick it began.
//
// Checks I4.
func TestDeadlineBesidesForever(t *testing.T) {
	s, _ := (&Config{OpenTimeout: time.Second, MaxOpenTimeout: time.Second}).compile()
	for _, early := range []time.Duration{0, 1, openTick / 2, openTick - 1} {
		now := (forever+1)*openTick - time.Second - 1 - early
		w := word(open)<<modeShift | word(s.until(s.openFor(1), now))
		if w.until() == forever || !w.openPending(s, now) || !w.openPending(s, now+time.Second-2*openTick) || w.openPending(s, now+time.Second) {
			t.Errorf("%v early: until %#x, pending %v, %v, then %v", early, w.until(), w.openPending(s, now),
				w.openPending(s, now+time.Second-2*openTick), w.openPending(s, now+time.Second))
		}
	}
}

// The generation is compared with the mode, so even when it has gone round
// during one call, that call's result cannot count in another mode. In the
// same mode it can: this is the limit that DESIGN.md states.
//
// Checks I1.
func TestGenerationsGoRound(t *testing.T) {
	b := MustNew(Config{Policy: Consecutive(2)})
	b.Reset()
	p, _ := b.Allow()
	for range genMask - 1 {
		b.Reset()
	}
	if v := p.Failure(); v != Late {
		t.Fatalf("verdict %v one generation before", v)
	}
	b.Reset()
	if v := p.Failure(); v != Counted {
		t.Fatalf("verdict %v after a whole round of generations; is the documented limit gone?", v)
	}
}

// A Breaker's word shares no cache line with its neighbours, wherever the
// Breaker begins, and 64-bit words are aligned on all machines.
//
// Checks I1.
func TestLayout(t *testing.T) {
	const line = 64
	var b Breaker
	at := unsafe.Offsetof(b.core) + unsafe.Offsetof(b.core.word)
	if at < line-8 || unsafe.Sizeof(b)-at < line || at%8 != 0 {
		t.Errorf("word at %d of %d", at, unsafe.Sizeof(b))
	}
	if n := unsafe.Sizeof(cell[string]{}); n > 112 {
		t.Errorf("a cell takes %d bytes, want at most 112, which the allocator has", n)
	}
	if n := unsafe.Sizeof(counterStripe{}); n != line {
		t.Errorf("a counterStripe has %d bytes, and shares a line", n)
	}
	if n := unsafe.Sizeof(GroupPermit[string]{}); n > 4*8 {
		t.Errorf("a GroupPermit takes %d bytes", n)
	}
}

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

// A reader who was stopped finds another open word than before, which may be
// newer than the clock that he has read, or over by it.
func TestOpenOver(t *testing.T) {
	const lap = (untilMask + 1) * openTick // after which ticks come again
	for _, now := range []time.Duration{0, time.Second, lap - time.Second, lap, 3*lap + time.Minute} {
		s := MustNew(Config{MaxOpenTimeout: 365 * 24 * time.Hour}).core.settings()
		for _, d := range []time.Duration{openTick, time.Second, s.maxOpen} {
			for _, written := range []time.Duration{now, now + time.Second} {
				w := word(0).enter(open).withStreak(1) | word(s.until(d, written))
				if w.openOver(now) || w.openOver(written) || !w.openOver(written+d) || !w.openOver(written+d+24*time.Hour) {
					t.Errorf("opened at %v for %v", written, d)
				}
			}
		}
		if (word(0).enter(open).withStreak(1) | word(s.until(latched, now))).openOver(now + 24*time.Hour) {
			t.Errorf("over, though it never ends")
		}
	}
}

// Ratios are rounded down to a millionth, but not to zero, whatever floating point makes of them.
func TestMillionths(t *testing.T) {
	for ratio, want := range map[float64]uint64{1: 1e6, 0.57: 570_000, 2. / 3: 666_666, 1e-6: 1, 1.9e-6: 1, 1e-9: 1} {
		if got := millionths(ratio); got != want {
			t.Errorf("%v has %d millionths, want %d", ratio, got, want)
		}
	}
}

// Hashes that differ in their first bits have different slots of the filter.
func TestFilterSlots(t *testing.T) {
	seen := map[uint64]bool{}
	for first := range uint64(filterSize) {
		seen[filterSlot(first<<(64-filterBits)|1)] = true
	}
	if len(seen) != filterSize {
		t.Errorf("%d slots, want %d", len(seen), filterSize)
	}
}
