package atomicbreaker

import "time"

// The transitions that results make, as functions of the word, the settings
// and the time. now must have been read after the word.

// succeed returns the word after a success in this stay, which is not
// half-open.
func (w word) succeed(s *settings) (word, Verdict) {
	switch w.mode() {
	case closed:
		return w.pass(s), Counted
	case disabled:
		return w, Counted
	}
	return w, Late
}

// fail returns the word after a failure in this stay, which is not half-open.
// It looks at the time only if the breaker opens.
func (w word) fail(s *settings, now time.Duration) (word, Verdict) {
	switch {
	case w.mode() == disabled:
		return w, Counted
	case w.mode() != closed:
		return w, Late
	case w.trips(s):
		return w.trip(s, now), Tripped
	}
	return w.miss(s), Counted
}

// neutral returns the word after a call in this stay ended without an outcome.
// Slot says whether it had one if it was a probe.
func (w word) neutral(slot bool) (word, Verdict) {
	switch {
	case w.mode() == closed || w.mode() == disabled:
		return w, Counted
	case w.spent(slot) || w.mode() != halfOpen:
		return w, Late
	}
	return w.release(slot), Counted
}

// spent reports whether a result of a probe with a slot is a second one of its
// permit for sure.
func (w word) spent(slot bool) bool { return w.mode() == halfOpen && slot && w.inflight() == 0 }

// decides is what one more result makes of a half-open breaker.
func (w word) decides(s *settings, failed bool) Verdict {
	bad, all := uint64(w.failed()), uint64(w.ok()+w.failed()+1)
	if failed {
		bad++
	}
	switch {
	case bad > 0 && s.probeRate == 0: // also of such that Update has found
		return Tripped
	case all < uint64(s.closeAfter):
		return Counted
	case s.probeRate != 0 && bad*million >= s.probeRate*all:
		return Tripped
	}
	return Recovered
}

// recordSuccess returns the word after a success without a permit, which
// vouches for the present whatever the mode, unless somebody has set that by
// hand.
func (w word) recordSuccess(s *settings) (word, Verdict) {
	switch w.mode() {
	case closed:
		return w.pass(s), Counted
	case disabled:
		return w, Counted
	case forcedOpen:
		return w, Late
	}
	return w.close(s), Recovered
}

// recordFailure returns the word after a failure without a permit at now.
func (w word) recordFailure(s *settings, now time.Duration) (word, Verdict) {
	switch {
	case w.mode() == forcedOpen || w.mode() == open && w.openPending(s, now):
		return w, Late
	case w.mode() == disabled:
		return w, Counted
	case w.mode() == closed && !w.trips(s):
		return w.miss(s), Counted
	}
	return w.trip(s, now), Tripped
}

// close returns the word after the breaker was closed, whatever it was.
func (w word) close(s *settings) word {
	w = w.enter(closed)
	if s != nil && s.watchesAll() {
		w |= watched
	}
	return w
}

// trip opens the breaker for as long as it is its turn.
func (w word) trip(s *settings, now time.Duration) word {
	streak := min(w.streak()+1, streakMask)
	return w.openUntil(streak, s.until(s.drawOpen(streak), now))
}

// tripFor opens the breaker for d: zero is as long as it is its turn, and
// negative until Reset.
func (w word) tripFor(s *settings, d, now time.Duration) word {
	if d == 0 {
		return w.trip(s, now)
	}
	return w.openUntil(min(w.streak()+1, streakMask), s.until(s.bounded(d), now))
}

func (w word) openUntil(streak int, until uint64) word {
	return w.enter(open).withStreak(streak) | word(until)
}

// openedBy is the reason if a failure opens the breaker, which is another if it
// was closed.
func (w word) openedBy(why Reason) Reason {
	if w.mode() == closed {
		return ReasonThreshold
	}
	return why
}
