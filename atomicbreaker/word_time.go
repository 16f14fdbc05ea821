package atomicbreaker

import (
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
)

// openPending reports whether an open word still rejects at now.
func (w word) openPending(s *settings, now time.Duration) bool {
	return w.until() == forever || pending(w.until(), ticks(now, openTick), untilMask, s.openBound)
}

// openOver reports whether the time of an open word has passed at now, after
// which the word may have been written. A quarter of the range is more than
// anybody is stopped between two steps.
func (w word) openOver(now time.Duration) bool {
	return w.until() != forever && (ticks(now, openTick)-w.until())&untilMask < (untilMask+1)/4
}

// openAgo returns how long ago the time of an open word has passed, modulo the
// range.
func (w word) openAgo(now time.Duration) time.Duration {
	return time.Duration((ticks(now, openTick)-w.until())&untilMask)*openTick + now%openTick
}

// pending reports whether deadline is still ahead of now, modulo mask+1. One
// that is more than bound ahead cannot have been set: it passed so long ago
// that the clock has gone round. Without that test it would hold for half the
// range; with it, for at most one more bound.
func pending(deadline, now, mask, bound uint64) bool {
	ahead := (deadline - now) & mask
	return 0 < ahead && ahead <= bound
}

// ticks rounds d down.
func ticks(d, tick time.Duration) uint64 { return uint64(d / tick) }

// openLeft returns how long an open word still rejects, or latched.
func (w word) openLeft(now time.Duration) time.Duration {
	if w.until() == forever {
		return latched
	}
	ahead := (w.until() - ticks(now, openTick)) & untilMask
	if ahead > untilMask/2 {
		return 0
	}
	return max(0, time.Duration(ahead)*openTick-now%openTick)
}

// leaseLeft returns how long the probes of a half-open word may keep their slots;
// zero or less if they are overdue. idle is how long ago the newest was admitted,
// or less if another caller is about to be. It is exact, and tells a lease that
// passed long ago from one ahead; the lease in the word, which is rounded up, is
// right also if Update has changed ProbeTimeout.
func (w word) leaseLeft(s *settings, now, idle time.Duration) time.Duration {
	ahead := (w.lease() - ticks(now, leaseTick)) & leaseMask
	if ahead > leaseMask/2 {
		return 0
	}
	return min(time.Duration(ahead)*leaseTick-now%leaseTick, s.leaseBound-idle)
}

// openFor returns how long the streak-th opening in a row lasts, or latched.
func (s *settings) openFor(streak int) time.Duration {
	switch d := s.openTimeout; {
	case s.backoff != nil:
		return s.backoff[streak-1]
	case d == latched:
		return latched
	case d > s.growTo>>(streak-1): // d<<(streak-1) > growTo, without overflow
		return s.growTo
	default:
		return d << (streak - 1)
	}
}

// drawOpen is openFor with Jitter.
func (s *settings) drawOpen(streak int) time.Duration {
	d := s.openFor(streak)
	if d == latched || s.jitter == 0 {
		return d
	}
	return d - time.Duration(s.jitter*s.random()*float64(d))
}

// bounded returns how long Trip(d) opens the breaker, or latched, for a d that
// is not zero.
func (s *settings) bounded(d time.Duration) time.Duration {
	if d < 0 {
		return latched
	}
	return min(d, s.maxOpen)
}

// until returns the deadline of an open time of d. It is rounded down, so that a
// call made d later is admitted.
func (s *settings) until(d, now time.Duration) uint64 {
	if d == latched {
		return forever
	}
	until := ticks(now+d, openTick) & untilMask
	if until == forever {
		until--
	}
	return until
}

// leaseFrom returns the lease of a probe that starts now. It is rounded up: until
// ProbeTimeout has passed, the slot is the probe's.
func (s *settings) leaseFrom(now time.Duration) uint64 {
	return ticks(now+s.probeTimeout+leaseTick-1, leaseTick) & leaseMask
}

// begin returns when a call that was just admitted has begun, or zero if nobody
// will ask, or untimed if its permit is marked all the same.
func (s *settings) begin() time.Duration {
	switch {
	case s.rules.slow:
		return max(s.now(), 1)
	case s.totals:
		return untimed
	}
	return 0
}

// now returns the time since the epoch, by the monotonic clock.
func (s *settings) now() time.Duration { return atomics.Since(s.epoch) }

// clock is like now and, if there may be an event, also returns the time of
// day.
func (s *settings) clock() (now time.Duration, at time.Time) {
	if !s.listens {
		return s.now(), at
	}
	at = atomics.Now()
	return at.Sub(s.epoch), at
}
