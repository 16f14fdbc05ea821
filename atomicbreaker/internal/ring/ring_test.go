//go:build !modelcheck

package ring

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"
)

// addAt adds a call at a time since the epoch. In a bubble the clock stands
// still, so it is the epoch that moves.
func (r *Ring) addAt(now time.Duration, bad bool) {
	r.Add(time.Now().Add(-now), now, bad)
}

// wantSum fails the test if the sum is another one.
func wantSum(t *testing.T, r *Ring, now time.Duration, bad, total uint64) {
	t.Helper()
	if b, n := r.Sum(now); b != bad || n != total {
		t.Fatalf("at %v: %d bad of %d, want %d of %d", now, b, n, bad, total)
	}
}

// lap is how long it takes until a bucket's turn comes again.
func (r *Ring) lap() time.Duration { return Buckets * r.tick }

// Two stripes never share a cache line, nor one that is fetched along.
func TestStripesAreApart(t *testing.T) {
	const pair = 2 * 64
	for n := 1; n <= 64; n *= 2 {
		r := New(time.Second, n)
		if n != len(r.stripes) || unsafe.Sizeof(r.stripes[0]) != pair {
			t.Fatalf("%d stripes of %d bytes, want %d of %d", len(r.stripes), unsafe.Sizeof(r.stripes[0]), n, pair)
		}
		if at := uintptr(unsafe.Pointer(&r.stripes[0])); at%pair != 0 {
			t.Errorf("%d stripes begin %d bytes behind the start of a line", n, at%pair)
		}
	}
}

// A small ring stays small while no callers meet there.
func TestSmallRings(t *testing.T) {
	r := NewSmall(time.Second)
	for i := range 100 {
		r.addAt(time.Duration(i)*r.tick/10, false)
	}
	if more := r.added(); more != nil || len(r.stripes) != 1 {
		t.Errorf("one caller has %d stripes, and has made %d more", len(r.stripes), len(more))
	}

	r.more.Store(&[]stripe{{}, {}, {}, {}})
	before := r.stripes[0][0].Load()
	r.addAt(0, false)
	if r.stripes[0][0].Load() != before {
		t.Error("a caller writes the one stripe that all have met on")
	}
}

// The ticks of a ring cover its window, and are whole microseconds.
func TestTicks(t *testing.T) {
	for window, want := range map[time.Duration]time.Duration{
		1: time.Microsecond, 15 * time.Microsecond: time.Microsecond, 15*time.Microsecond + 1: 2 * time.Microsecond,
		15 * time.Second: time.Second, time.Minute: 4 * time.Second,
	} {
		if got := New(window, 1).Tick(); got != want {
			t.Errorf("%v has ticks of %v, want %v", window, got, want)
		}
	}
}

// A call counts for the window, and for less than a fifteenth of it and 16 µs
// more; and which calls count is what a list of all of them says.
func TestRingAgainstAList(t *testing.T) {
	type call struct {
		at  time.Duration
		bad bool
	}
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(1, 2))
		windows := []time.Duration{1, 15 * time.Microsecond, time.Millisecond, time.Second, 10 * time.Second, time.Hour, 100 * 365 * 24 * time.Hour}
		for i := range 210 {
			window := windows[i%len(windows)]
			if i%3 == 0 {
				window = 1 + time.Duration(random.Int64N(int64(window)))
			}
			r := New(window, 1<<(i%3))
			most := window + window/15 + 16*time.Microsecond
			var calls []call
			now := time.Duration(random.Int64N(int64(window)))
			for range 300 {
				// Mostly within a bucket, sometimes beyond the window.
				step := float64(r.tick) * random.Float64() * math.Exp(random.NormFloat64()*2)
				if step >= float64(math.MaxInt64-now) {
					break // a century is a third of all the time that there is
				}
				now += time.Duration(step)
				c := call{now, random.IntN(3) == 0}
				r.addAt(now, c.bad)
				calls = append(calls, c)

				var bad, total, least, mostTotal uint64
				for _, c := range calls {
					if now/r.tick-c.at/r.tick < Buckets {
						total++
						if c.bad {
							bad++
						}
					}
					if now-c.at <= window {
						least++
					}
					if now-c.at < most {
						mostTotal++
					}
				}
				if total < least || total > mostTotal {
					t.Fatalf("a window of %v counts %d calls, want %d to %d", window, total, least, mostTotal)
				}
				wantSum(t, r, now, bad, total)
			}
		}
	})
}

// The moment when a call leaves the sum, exactly.
func TestRingForgetsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, x := range []struct{ window, tick time.Duration }{
			{1, time.Microsecond},
			{15 * time.Microsecond, time.Microsecond},
			{15*time.Microsecond + 1, 2 * time.Microsecond},
			{time.Second, 66667 * time.Microsecond},
			{15 * time.Second, time.Second},
			{math.MaxInt64, 614891469123652 * time.Microsecond}, // in less than 16 ticks there is no time left
		} {
			r := New(x.window, 1)
			if r.tick != x.tick {
				t.Errorf("a window of %v has ticks of %v, want %v", x.window, r.tick, x.tick)
			}
			r.addAt(0, true)
			r.addAt(r.tick-1, false)
			last := time.Duration(math.MaxInt64)
			if x.window != math.MaxInt64 {
				last = r.lap() - 1
				wantSum(t, r, last+1, 0, 0)
			}
			wantSum(t, r, last, 1, 2)
		}
	})
}

// However long nobody has called, what was counted before is gone when its
// time has passed, and what comes after is counted. Comparing laps by half of
// their range would drop it.
//
// Reported bug 42, cep21/circuit: buckets published before cleared.
// Checks N1, N2, N3, N4.
func TestT42_IdleRingsLoseNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const range24 = 1 << 24
		for _, laps := range []time.Duration{
			1, 2, 3, range24/2 - 1, range24 / 2, range24/2 + 1, range24 - 2, range24 + 2, 3*range24/2 + 1,
		} {
			for _, early := range []time.Duration{0, 1, 5, 15} {
				r := New(15*time.Second, 2)
				for i := range time.Duration(16) {
					r.addAt(i*r.tick, true)
				}
				wantSum(t, r, 15*r.tick, 16, 16)
				now := laps*r.lap() + early*r.tick
				if laps > 1 {
					wantSum(t, r, now, 0, 0)
				}
				// The burst after the gap.
				before, _ := r.Sum(now)
				r.addAt(now, true)
				r.addAt(now, false)
				wantSum(t, r, now, before+1, before+2)
				wantSum(t, r, now+r.lap()-1, 1, 2)
			}
		}
	})
}

// Laps go round. This is the limit that is stated at Ring.
func TestLapsGoRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(15*time.Second, 1)
		r.addAt(0, true)
		round := 1 << 24 * r.lap()
		wantSum(t, r, round-1, 0, 0)
		wantSum(t, r, round, 1, 1)
		wantSum(t, r, round+r.lap(), 0, 0)
	})
}

// A bucket whose turn comes again is replaced once, with the call that finds
// it, and by nobody else: nothing that was counted after that is cleared.
//
// Reported bug 43, Sentinel: buckets cleared twice.
// Checks N1, N2, N3, N4.
func TestT43_BucketsAreReplacedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(15*time.Second, 1)
		r.addAt(3*time.Second, true)
		for range 5 {
			r.addAt(19*time.Second, false)
		}
		wantSum(t, r, 19*time.Second, 0, 5)
		// Whoever read the clock before the turn is a caller of the old tick.
		// It cannot be told from here that it is late: see TestRingProtocols.
		r.addAt(20*time.Second, true)
		wantSum(t, r, 20*time.Second, 1, 6)
	})
}

// Calls that come all the time do not keep old ones alive.
//
// Reported bug 44, hoglet: windows never rotate; one of one trips.
func TestT44_SteadyTrafficRotates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(15*time.Second, 1)
		for i := range time.Duration(10) {
			r.addAt(i*100*time.Millisecond, true)
		}
		for now := time.Second; now < 100*time.Second; now += 100 * time.Millisecond {
			r.addAt(now, false)
			bad, total := r.Sum(now)
			if want := uint64(10); now < 16*time.Second && bad != want || now >= 16*time.Second && bad != 0 {
				t.Fatalf("%d bad calls of the first second after %v", bad, now)
			}
			if age := min(now/time.Second, 15); total != uint64(10*age+now%time.Second/(100*time.Millisecond)+1) {
				t.Fatalf("%d calls after %v", total, now)
			}
		}
	})
}

// A full bucket goes on: with the ratio that it had, to within a call in each
// half, and never with more bad calls than calls, nor in a field that is not
// its own.
//
// Reported bug 45, gobreaker, autobreaker: full counters: nonsense rates.
// Checks N1, N2, N3, N4.
func TestT45_FullBucketsGoOn(t *testing.T) {
	for _, every := range []int{1, 3, 1000, math.MaxInt} {
		b := emptyBucket(37 * Buckets)
		var bad, total float64
		for i := range 3 * countMask {
			isBad := i%every == every-1
			b = b.count(isBad)
			total++
			if isBad {
				bad++
			}
			if b.bad() > b.total() || !b.holds(37*Buckets) || b.total() == 0 {
				t.Fatalf("bucket %#x after %d calls, every %d bad", uint64(b), i+1, every)
			}
			if total <= countMask && (float64(b.bad()) != bad || float64(b.total()) != total) {
				t.Fatalf("%d bad of %d, want %v of %v", b.bad(), b.total(), bad, total)
			}
			if got := float64(b.bad()) / float64(b.total()); math.Abs(got-bad/total) > 2.0/Exact && total > countMask {
				t.Fatalf("a ratio of %v after %d calls, want %v", got, i+1, bad/total)
			}
		}
		if b.total() < Exact {
			t.Fatalf("%d calls left", b.total())
		}
	}
}

// Half of a full bucket has the nearest ratio, and is not biased.
func TestHalvesAreNearest(t *testing.T) {
	for bad := range uint64(countMask + 1) {
		b := bucket(bad<<badShift | countMask).count(false)
		exact := float64(bad) * Exact / countMask
		if b.total() != Exact+1 || math.Abs(float64(b.bad())-exact) > 0.5 {
			t.Fatalf("%d bad of %d became %d of %d", bad, uint64(countMask), b.bad(), b.total()-1)
		}
	}
}

// A ring that has bad calls only is exact up to Exact in a tick and a
// stripe, and never says less than that if there were more.
func TestBadCallsAloneAreExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(time.Second, 1)
		for n := uint64(1); n <= 3*countMask; n = n*3/2 + 1 {
			r.stripes[0][0].Store(min(n, countMask) * (1<<badShift | 1))
			r.addAt(0, true)
			switch bad, total := r.Sum(0); {
			case n < Exact && (bad != n+1 || total != n+1), bad < Exact && n >= Exact, bad != total:
				t.Fatalf("%d bad of %d, want %d", bad, total, n+1)
			}
		}
	})
}

// The smallest and the largest of everything.
//
// Reported bug 48, Resilience4j: smallest settings crash.
func TestT48_DegenerateRings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, window := range []time.Duration{1, 2, time.Microsecond, math.MaxInt64 - 1, math.MaxInt64} {
			for _, stripes := range []int{1, 2, 64} {
				for _, now := range []time.Duration{0, 1, window / 2, window, math.MaxInt64 - 1, math.MaxInt64} {
					r := New(window, stripes)
					wantSum(t, r, now, 0, 0)
					r.addAt(now, true)
					r.addAt(now, false)
					wantSum(t, r, now, 1, 2)
					if later := now + r.lap(); r.lap() > 0 && later > 0 {
						wantSum(t, r, later, 0, 0)
					}
				}
			}
		}
	})
}

// With callers on all stripes, and others who sum all the time, every call is
// counted once, while the clock goes on and Buckets are replaced.
func TestStressRing(t *testing.T) {
	for _, window := range []time.Duration{time.Hour, 15 * time.Millisecond, time.Microsecond} {
		for _, stripes := range []int{0, 1, 4} { // 0: small, until callers meet
			const adders, summers = 4, 2
			each := 5_000
			if testing.Short() {
				each = 500
			}
			r, epoch := New(window, max(stripes, 1)), time.Now()
			if stripes == 0 {
				r = NewSmall(window)
			}
			var began, ended [2]atomic.Uint64 // all and bad ones
			times := make([][]time.Duration, adders)
			var adding, summing sync.WaitGroup
			var stop atomic.Bool
			for range summers {
				summing.Go(func() {
					for !stop.Load() {
						leastBad, least := ended[1].Load(), ended[0].Load()
						bad, total := r.Sum(time.Since(epoch))
						most, mostBad := began[0].Load(), began[1].Load()
						if window < time.Hour {
							leastBad, least = 0, 0 // for what has left the window
						}
						if bad > total || total < least || total > most || bad < leastBad || bad > mostBad {
							t.Errorf("%d bad of %d, want %d to %d of %d to %d", bad, total, leastBad, mostBad, least, most)
							return
						}
						runtime.Gosched()
					}
				})
			}
			for id := range adders {
				adding.Go(func() {
					for i := range each {
						bad := (i+id)%2 == 0
						began[0].Add(1)
						if bad {
							began[1].Add(1)
						}
						at := r.Add(epoch, time.Since(epoch), bad)
						if ended[0].Add(1); bad {
							ended[1].Add(1)
						}
						times[id] = append(times[id], at)
						if i%7 == 0 {
							runtime.Gosched()
						}
					}
				})
			}
			adding.Wait()
			stop.Store(true)
			summing.Wait()

			// At every moment since the last lap began, the sum is the number
			// of calls of the ticks before it. Later ones have replaced some
			// Buckets, none of which a window that ends now or later needs.
			now := time.Since(epoch)
			last := slices.MaxFunc(times, func(a, b []time.Duration) int { return int(slices.Max(a) - slices.Max(b)) })
			for _, then := range []time.Duration{slices.Max(last), now, now + window/2, now + r.lap()} {
				var want uint64
				for _, at := range slices.Concat(times...) {
					if then/r.tick-at/r.tick < Buckets {
						want++
					}
				}
				if _, total := r.Sum(then); total != want {
					t.Errorf("window %v, %d stripes: %d calls at %v, want %d", window, stripes, total, then, want)
				}
			}
		}
	}
}
