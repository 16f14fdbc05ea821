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
	return time.Duration((ticks(now, openTick)-w.until())&untilMask) * openTick
}

// leasePending reports whether a half-open word's probes may keep their slots.
func (w word) leasePending(s *settings, now time.Duration) bool {
	return pending(w.lease(), ticks(now, leaseTick), leaseMask, s.leaseBound)
}

// pending reports whether deadline is still ahead of now, modulo mask+1. One
// that is more than bound ahead cannot have been set: it passed so long ago
// that the clock has gone round. Without that test it would hold for half the
// range; with it, for at most one more bound.
func pending(deadline, now, mask, bound uint64) bool {
	ahead := (deadline - now) & mask
	return 0 < ahead && ahead <= bound
}

// ticks rounds d down, and deadline rounds it up: nothing ends early.
func ticks(d, tick time.Duration) uint64    { return uint64(d / tick) }
func deadline(d, tick time.Duration) uint64 { return uint64((d + tick - 1) / tick) }

// openLeft returns how long an open word still rejects, or latched.
func (w word) openLeft(now time.Duration) time.Duration {
	if w.until() == forever {
		return latched
	}
	return timeLeft(w.until(), now, openTick, untilMask)
}

// leaseLeft returns how long the probes of a half-open word may keep their slots.
func (w word) leaseLeft(now time.Duration) time.Duration {
	return timeLeft(w.lease(), now, leaseTick, leaseMask)
}

// timeLeft returns how long it is until a deadline that is pending.
func timeLeft(deadline uint64, now, tick time.Duration, mask uint64) time.Duration {
	ahead := (deadline - ticks(now, tick)) & mask
	return max(0, time.Duration(ahead)*tick-now%tick)
}

// openFor returns how long the streak-th opening in a row lasts, or latched.
func (s *settings) openFor(streak int) time.Duration {
	d := s.openTimeout
	switch {
	case d == latched:
		return latched
	case s.backoff != nil:
		d = s.backoff[streak-1]
	case d > s.maxOpen>>(streak-1): // d<<(streak-1) > maxOpen, without overflow
		d = s.maxOpen
	default:
		d <<= streak - 1
	}
	if d >= latchedBeyond {
		return latched
	}
	return d
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
	if d > 0 && s.maxOpen != latched {
		d = min(d, s.maxOpen)
	}
	if d < 0 || d >= latchedBeyond {
		return latched
	}
	return d
}

// until returns the deadline of an open time of d.
func (s *settings) until(d, now time.Duration) uint64 {
	if d == latched {
		return forever
	}
	until := deadline(now+d, openTick) & untilMask
	if until == forever {
		until = notForever
	}
	return until
}

// leaseFrom returns the lease of a probe that starts now.
func (s *settings) leaseFrom(now time.Duration) uint64 {
	return deadline(now+s.probeTimeout, leaseTick) & leaseMask
}

// begin returns when a call that was just admitted has begun, or zero if nobody
// will ask.
func (s *settings) begin() time.Duration {
	if !s.rules.slow {
		return 0
	}
	return max(s.now(), 1)
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
