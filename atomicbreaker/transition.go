package atomicbreaker

import "time"

// The transitions that results make, as functions of the word, the settings
// and the time. now must have been read after the word.

// succeed returns the word after a success in this stay.
func (w word) succeed(s *settings) (word, Verdict) {
	switch w.mode() {
	case closed:
		return w.pass(s), Counted
	case halfOpen:
		if w.inflight() == 0 {
			return w, Late // a second result of one permit
		}
		if w.ok()+1 >= s.closeAfter {
			return w.close(s), Recovered
		}
		return w.withProbes(w.inflight()-1, w.ok()+1, w.lease()), Counted
	case disabled:
		return w, Counted
	}
	return w, Late
}

// opens reports whether a failure in this stay opens the breaker. Only then
// does fail look at the clock.
func (w word) opens(s *settings) bool {
	return w.mode() == halfOpen || w.mode() == closed && w.trips(s)
}

// fail returns the word after a failure in this stay.
func (w word) fail(s *settings, now time.Duration) (word, Verdict) {
	switch {
	case w.mode() == halfOpen && w.inflight() == 0:
		return w, Late // a second result of one permit
	case w.opens(s):
		return w.trip(s, now), Tripped
	case w.mode() == closed:
		return w.miss(s), Counted
	case w.mode() == disabled:
		return w, Counted
	}
	return w, Late
}

// neutral returns the word after a call in this stay ended without an outcome.
func (w word) neutral() (word, Verdict) {
	switch w.mode() {
	case closed, disabled:
		return w, Counted
	case halfOpen:
		if w.inflight() == 0 {
			return w, Late // a second result of one permit
		}
		return w.withProbes(w.inflight()-1, w.ok(), w.lease()), Counted
	}
	return w, Late
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
