package atomicbreaker

import (
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
)

// The transitions that results make, as functions of the word and the settings.

// record returns the word with a result counted, and the verdict on it. If that is Tripped
// or Recovered, the caller opens or closes the word. Where the policy has a KOfN, core.remember
// counts the results of a closed word.
func (w word) record(r result, s *settings) (next word, v Verdict) {
	switch {
	case w.mode() == disabled:
		return w, Counted
	case w.mode() == closed && !r.is(withheld) && (r.is(tripping|reached) || r.outcome == Failure && w.trips(s)):
		return w, Tripped
	case w.mode() == closed && (r.outcome == Ignored || r.outcome == Failure && w.trips(s)):
		return w, Counted // if it is withheld, the next failure may open the key
	case w.mode() == closed && r.outcome == Failure:
		return w.miss(s), Counted
	case w.mode() == closed:
		return w.pass(s), Counted
	case w.mode() == forcedOpen || w.mode() == open && !r.is(direct):
		return w, Late
	case r.is(direct) && r.outcome == Success:
		return w, Recovered
	case r.is(direct) && w.mode() == open && !r.is(expired):
		return w, Late
	case r.is(direct):
		return w, Tripped
	}
	return w.probed(r, s)
}

// probed is record for a half-open word and the result of a probe.
func (w word) probed(r result, s *settings) (next word, v Verdict) {
	slot := r.is(slotted)
	switch {
	case slot && w.inflight() == 0: // a second result of its permit, for sure
		return w, Late
	case r.outcome == Ignored:
		return w.release(slot), Counted
	}
	next = w.withProbe(r.is(bad), slot)
	failed, all := uint64(next.failed()), uint64(next.ok()+next.failed())
	switch {
	case r.is(tripping) || failed > 0 && s.probeRate == 0: // that may be one from before an Update
		return next, Tripped
	case all < uint64(s.closeAfter):
		return next, Counted
	case s.probeRate != 0 && failed*million >= s.probeRate*all:
		return next, Tripped
	}
	return next, Recovered
}

// pass returns the closed word after one more success, and miss after one more failure,
// that does not trip it.
func (w word) pass(s *settings) word {
	if s.rules.last != 0 {
		return w
	}
	return w.flagged()
}

func (w word) miss(s *settings) word {
	switch {
	case s.rules.last != 0:
		return w
	case s.rules.threshold != 0:
		return w.flagged() | word(w&failsMask+1) // below the threshold, so it cannot overflow
	case s.rules.inARow:
		return w.flagged() | min(w&failsMask+1, failsMask)
	}
	return w.flagged() // only windows count
}

// trips reports whether one more failure in a row opens a closed word.
func (w word) trips(s *settings) bool {
	return s.rules.threshold != 0 && uint32(w&failsMask) >= s.rules.threshold-1
}

// flagged clears the failures of a closed word, and keeps watched.
func (w word) flagged() word { return w.stay() | w&watched }

// under returns the word as the settings read it. A closed word that counts in the other
// way, from before Update, has no failures.
func (w word) under(s *settings) word {
	if w.mode() == closed && s != nil && (w&logged != 0) != (s.rules.last != 0) {
		return w.flagged()
	}
	return w
}

// close returns the word after the breaker was closed, whatever it was.
func (w word) close(s *settings) word {
	w = w.enter(closed)
	if s != nil && s.watchesAll() {
		w |= watched
	}
	return w
}

// trip opens the breaker for d: zero means the time that the next streak stands for, and
// negative until Reset.
func (w word) trip(s *settings, d, now time.Duration) word {
	streak := min(w.streak()+1, streakMask)
	if d == 0 {
		d = s.drawOpen(streak)
	} else if d = min(d, s.maxOpen); d < 0 {
		d = latched
	}
	return w.enter(open) | word(streak)<<streakShift | word(s.until(d, now))
}

// inRowAlone returns the number of failures in a row below which one more is just
// counted, if a policy counts nothing else, and otherwise 0.
func (r *rules) inRowAlone() uint32 {
	if r.threshold == 0 || len(r.windows) != 0 {
		return 0
	}
	return r.threshold - 1
}

// countInRow is record for a closed stay if the policy counts failures in a row alone and
// this result opens nothing.
func (w word) countInRow(stay word, o Outcome, s *settings) (next word, ok bool) {
	switch {
	case w&^failsMask != stay:
		return w, false
	case o == Failure:
		return w + 1, uint32(w) < s.inRow
	}
	return stay, o == Success && s.inRow != 0
}

// Deadlines are ticks since the epoch, modulo the width of their field.

// openPending reports whether an open word still rejects at now.
func (w word) openPending(s *settings, now time.Duration) bool {
	return w.until() == forever || pending(w.until(), ticks(now, openTick), untilMask, s.openBound)
}

// openOver reports whether the time of an open word has passed at now, after
// which the word may have been written. A quarter of the range is more than
// anybody is stopped between two steps.
func (w word) openOver(now time.Duration) bool {
	return w.until() != forever && w.openAgo(now) < (untilMask+1)/4*openTick
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

// callStart returns when a call that was just admitted has begun, or zero if nobody
// will ask, or untimed if its permit is marked all the same.
func (s *settings) callStart() time.Duration {
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
