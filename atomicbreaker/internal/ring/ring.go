// Package ring counts the calls of a sliding window of time, for the policies of a
// Breaker and for a Throttle.
//
//   - N1: A bucket holds calls of one tick, which is not after the clock.
//   - N2: Ticks of a bucket only go up.
//   - N3: bad ≤ total.
//   - N4: A call whose Add returned at is once in the bucket of at's tick, until a call
//     of a later lap is.
package ring

import (
	"math"
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
)

// A bucket counts the calls that ended in one tick, in one stripe.
//
//	 63..40    39..20    19..0
//	┌────────┬─────────┬──────────┐
//	│ lap 24 │ bad 20  │ total 20 │   bad ≤ total
//	└────────┴─────────┴──────────┘
//
// Ticks are numbered from the epoch. Number t is counted in bucket t%16 of its
// stripe, and t/16 is its lap, modulo 2^24. The zero bucket is empty, of the first lap.
type bucket uint64

const (
	// Buckets is how many a stripe has: one more than cover the window.
	Buckets = 16

	lapShift  = 40
	badShift  = 20
	countMask = 1<<20 - 1

	// Exact is how many calls a bucket counts exactly. A full bucket goes on with
	// half of its counts, which is this many.
	Exact = (countMask + 1) / 2
)

// emptyBucket returns the bucket of a tick before its first call.
func emptyBucket(tick uint64) bucket { return bucket(tick / Buckets << lapShift) }

// holds reports whether b is the bucket of a tick, which has b's index. So seem
// those that are a multiple of 2^24 laps away.
func (b bucket) holds(tick uint64) bool { return b>>lapShift == emptyBucket(tick)>>lapShift }

func (b bucket) bad() uint64   { return uint64(b>>badShift) & countMask }
func (b bucket) total() uint64 { return uint64(b) & countMask }

// count returns b with one call more. A full bucket is halved first: half of its odd
// total is rounded up, and the nearest ratio then has bad rounded up too.
func (b bucket) count(bad bool) bucket {
	if b.total() == countMask {
		b = b>>lapShift<<lapShift | bucket((b.bad()+1)/2)<<badShift | bucket(Exact)
	}
	if bad {
		b += 1 << badShift
	}
	return b + 1
}

// A Ring counts calls, and those among them that were bad, by when they ended. A call is
// in the sum for at least the window, and for less than a fifteenth of it and 16 µs more.
//
// Nobody clears buckets: the first call of a lap replaces the bucket of an earlier one, so
// rotation and first count are one CAS. A ring that is idle for a multiple of 2^24 laps
// reads an old bucket as new: after 268 seconds in the shortest windows, 6 years in one of
// ten seconds. A bucket that was halved keeps its ratio, but may weigh as little as half.
type Ring struct {
	tick    time.Duration // the length of one; the 15 before the current cover the window
	stripes []stripe      // a power of two of them

	// Nil but in a small ring, which has one stripe. From nil to a stripe for each
	// processor, by CAS of the first caller that has met another.
	more *atomics.Pointer[[]stripe]
}

// A stripe is two cache lines. The allocator puts a power of two of them at a
// multiple of their size, so no two share one.
type stripe [Buckets]atomics.Uint64

// tickUnit is what ticks are multiples of. A caller that needs 16 of them from
// one step to the next starts over, so they must be long for a processor.
const tickUnit = time.Microsecond

// New returns a Ring for a positive window. Stripes is a power of two:
// atomics.Stripes() where callers on all processors meet.
func New(window time.Duration, stripes int) *Ring {
	return &Ring{tick: tickOf(window), stripes: make([]stripe, stripes)}
}

// NewSmall returns a Ring that has one stripe until callers meet there.
func NewSmall(window time.Duration) *Ring {
	r := New(window, 1)
	r.more = new(atomics.Pointer[[]stripe])
	return r
}

// Tick returns how long a bucket counts, a fifteenth of the window.
func (r *Ring) Tick() time.Duration { return r.tick }

// tickOf returns the tick of a ring for a window.
func tickOf(window time.Duration) time.Duration {
	return ((window-1)/((Buckets-1)*tickUnit) + 1) * tickUnit
}

// Span returns how long after its end a call has left every sum of a window.
func Span(window time.Duration) time.Duration {
	return Buckets * min(tickOf(window), math.MaxInt64/Buckets)
}

// Add counts a call that ended at a time since epoch, which is now, and returns the
// time at which it has counted it: a sum for then or for later, up to the window,
// includes the call.
//
// It starts over if another caller has counted in the same stripe, or if it was stopped for
// a lap before it could replace a bucket.
func (r *Ring) Add(epoch time.Time, at time.Duration, bad bool) time.Duration {
	for {
		stripes := r.stripes
		if more := r.added(); more != nil {
			stripes = more
		}
		tick := uint64(at / r.tick)
		word := &stripes[atomics.Stripe(len(stripes))][tick%Buckets]
		was := word.Load()
		b := bucket(was)
		if !b.holds(tick) {
			// Laps wrap and cannot be compared, but b's tick was read from the clock
			// before b was stored (N1). So if now is less than a lap after mine, b is of
			// an earlier lap. Otherwise this caller was stopped for a lap, 16 µs or more.
			if now := atomics.Since(epoch); uint64(now/r.tick)-tick >= Buckets {
				at = now
				continue
			}
			b = emptyBucket(tick)
		}
		if word.CompareAndSwap(was, uint64(b.count(bad))) {
			return at
		}
		if r.more != nil && r.more.Load() == nil {
			fresh := make([]stripe, atomics.Stripes())
			r.more.CompareAndSwap(nil, &fresh)
		}
	}
}

// added returns the stripes that a small ring has got since callers met, or nil.
func (r *Ring) added() []stripe {
	if r.more != nil {
		if more := r.more.Load(); more != nil {
			return *more
		}
	}
	return nil
}

// Sum returns how many calls are in the window that ends now, and how many of them were
// bad. It counts, once each, all calls that were added before it began and are in the
// window until it returns; those that are added or leave meanwhile may be counted or not.
func (r *Ring) Sum(now time.Duration) (bad, total uint64) {
	last := uint64(now / r.tick)
	add := func(stripes []stripe) {
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
	}
	add(r.stripes)
	add(r.added())
	return bad, total
}
