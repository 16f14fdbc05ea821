// Package ring counts the calls of a sliding window of time, for the policies of a
// Breaker and for a Throttle.
//
//   - N1: A bucket holds calls of one tick, which is not after the clock.
//   - N2: Ticks of a bucket only go up.
//   - N3: bad ≤ total.
//   - N4: A call whose Add returned at is once in the bucket of at's tick, until a call
//     of a later lap is.
//
// Add reads the clock, then the bucket. Laps wrap and cannot be compared, but by N1 a
// clock that is read after the bucket, less than a lap after Add's tick, proves that the
// bucket is earlier. If the clock is further, Add was stopped for a lap, 16 µs or more.
//
// A rotating goroutine, clearing and exponential decay were rejected.
package ring

import (
	"math"
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
)

// A bucket is the calls that ended in one tick, as one stripe of a ring has
// counted them.
//
//	 63..40    39..20    19..0
//	┌────────┬─────────┬──────────┐
//	│ lap 24 │ bad 20  │ total 20 │   bad ≤ total
//	└────────┴─────────┴──────────┘
//
// Ticks are numbered from the epoch. Number t is counted in bucket t%16 of its
// stripe, and t/16 is its lap, kept modulo 2^24. The zero bucket is that of
// the first lap, and empty.
type bucket uint64

const (
	// Buckets is how many a stripe has: one more than cover the window.
	Buckets = 16

	lapShift  = 40
	lapMask   = 1<<24 - 1
	badShift  = 20
	countMask = 1<<20 - 1

	// Exact is how many calls a bucket counts one by one for certain. A full
	// bucket goes on with half of its counts, which is this many.
	Exact = (countMask + 1) / 2
)

// emptyBucket returns the bucket of a tick before its first call.
func emptyBucket(tick uint64) bucket { return bucket(tick / Buckets & lapMask << lapShift) }

// holds reports whether b is the bucket of a tick, which has b's index. So seem
// those that are a multiple of 2^24 laps away.
func (b bucket) holds(tick uint64) bool { return b>>lapShift == emptyBucket(tick)>>lapShift }

func (b bucket) bad() uint64   { return uint64(b>>badShift) & countMask }
func (b bucket) total() uint64 { return uint64(b) & countMask }

// count returns b with one call more. A full bucket is halved first: half of
// its odd total is rounded up, and the nearest ratio then has bad rounded up
// too.
func (b bucket) count(bad bool) bucket {
	if b.total() == countMask {
		b = b>>lapShift<<lapShift | bucket((b.bad()+1)/2)<<badShift | bucket(Exact)
	}
	if bad {
		b += 1 << badShift
	}
	return b + 1
}

// A Ring counts calls, and those among them that were bad, by when they ended.
// A call is in the sum for at least the window, and for less than a fifteenth
// of it and 16 µs more.
//
// Nobody clears buckets and nothing has to be done in time: a bucket of another
// lap than expected is as good as empty. The first call of a lap replaces it
// by a bucket with one call, so that rotation and first count are one CAS. A
// ring that nobody uses for 2^24 laps reads a bucket again as new that was last
// used exactly that many laps, or a multiple of it, ago: 268 seconds in the
// shortest windows, 6 years in one of ten seconds.
//
// A bucket of a stripe counts a million calls, and then goes on with half of
// both counts. Below Exact nothing is lost; above, the ratio is kept, but
// the bucket may weigh as little as half of its true weight.
type Ring struct {
	tick    time.Duration // the length of one; the 15 before the current cover the window
	stripes []stripe      // a power of two of them
	more    *overflow     // nil if there are enough; no field ever changes
}

// An overflow is where callers count that have met in a ring with one stripe. From
// nil to a stripe for each processor, by CAS of the first caller that has met another.
type overflow struct{ stripes atomics.Pointer[[]stripe] }

// A stripe is two cache lines. The allocator puts a power of two of them at a
// multiple of their size, so no two share one.
type stripe [Buckets]atomics.Uint64

// tickUnit is what ticks are multiples of. A caller that needs 16 of them from
// one step to the next starts over, so they must be long for a processor.
const tickUnit = time.Microsecond

// New returns a Ring for a window, which must be positive. Stripes is a
// power of two: atomics.Stripes() where callers on all processors meet.
func New(window time.Duration, stripes int) *Ring {
	return &Ring{tick: tickOf(window), stripes: make([]stripe, stripes)}
}

// NewSmall returns a Ring that has one stripe until callers meet there.
func NewSmall(window time.Duration) *Ring {
	r := New(window, 1)
	r.more = new(overflow)
	return r
}

// Tick returns how long a bucket counts, a fifteenth of the window.
func (r *Ring) Tick() time.Duration { return r.tick }

// mine returns the stripe where the caller counts.
func (r *Ring) mine() *stripe {
	stripes := r.stripes
	if r.more != nil {
		if more := r.more.stripes.Load(); more != nil {
			stripes = *more
		}
	}
	return &stripes[atomics.Stripe(len(stripes))]
}

// spread makes callers that have met in the one stripe count in several. The counts in
// the one stay there.
func (r *Ring) spread() {
	if r.more != nil && r.more.stripes.Load() == nil {
		fresh := make([]stripe, atomics.Stripes())
		r.more.stripes.CompareAndSwap(nil, &fresh)
	}
}

// tickOf returns the tick of a ring for a window.
func tickOf(window time.Duration) time.Duration {
	return ((window-1)/((Buckets-1)*tickUnit) + 1) * tickUnit
}

// Span returns how long after it ended a call is in no sum of a window any
// more.
func Span(window time.Duration) time.Duration {
	return Buckets * min(tickOf(window), math.MaxInt64/Buckets)
}

// Add counts a call that ended at a time since epoch, which is now, and returns the
// time at which it has counted it: a sum for then or for later, up to the window,
// includes the call.
//
// A CAS fails only when another caller has counted in the same stripe. Other
// than that, it starts over if it was stopped for a lap before it could
// replace a bucket.
func (r *Ring) Add(epoch time.Time, at time.Duration, bad bool) time.Duration {
	s := r.mine()
	for {
		tick := uint64(at / r.tick)
		word := &s[tick%Buckets]
		was := word.Load()
		b := bucket(was)
		if !b.holds(tick) {
			// Is it older, or newer, or much older and seems newer? Its tick
			// was read from the clock before b was stored. If now is no whole
			// lap after mine, it was not after mine.
			if now := atomics.Since(epoch); uint64(now/r.tick)-tick >= Buckets {
				at = now
				continue
			}
			b = emptyBucket(tick)
		}
		if word.CompareAndSwap(was, uint64(b.count(bad))) {
			return at
		}
		r.spread()
		s = r.mine()
	}
}

// Sum returns how many calls are in the window that ends now, and how many of
// them were bad. It is exact when nobody adds. Otherwise it counts, once each,
// all calls that were added before it began and are in the window until it
// returns; those that are added or leave the window meanwhile may be counted
// or not.
func (r *Ring) Sum(now time.Duration) (bad, total uint64) {
	bad, total = r.sumOf(r.stripes, now)
	if r.more != nil {
		if s := r.more.stripes.Load(); s != nil {
			b, n := r.sumOf(*s, now)
			return bad + b, total + n
		}
	}
	return bad, total
}

func (r *Ring) sumOf(stripes []stripe, now time.Duration) (bad, total uint64) {
	last := uint64(now / r.tick)
	for i := range stripes {
		// Near the epoch, ticks before it seem to be of the last lap of all,
		// and no bucket is.
		for tick := last - (Buckets - 1); tick != last+1; tick++ {
			if b := bucket(stripes[i][tick%Buckets].Load()); b.holds(tick) {
				bad += b.bad()
				total += b.total()
			}
		}
	}
	return bad, total
}
