package atomicbreaker

import "time"

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
