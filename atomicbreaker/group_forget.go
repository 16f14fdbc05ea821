package atomicbreaker

import "time"

// Keys that nobody calls any more are forgotten, with their places in the open quota.
// Otherwise those of hosts that are gone for good would stay open or failing for
// ever.
//
// When a cell was last of interest is known without a write by the calls that
// its breaker rejects: an open one lets the first call after its time through,
// which changes the word, and so does a half-open one after its lease. So only a
// caller that admits a probe, counts something bad, or leaves failures in the word
// touches the cell, and does that before its result can be seen.

// longestForget bounds ForgetAfter, as a deadline that passed longer ago than
// half the range of deadlines could not be told from one ahead.
const (
	longestForget      = longestOpen
	defaultForgetAfter = time.Hour
)

// forgetAfter returns how long keys are remembered, or 0 for ever.
func forgetAfter(d time.Duration) time.Duration {
	if d == 0 {
		return defaultForgetAfter
	}
	return max(d, 0)
}

// forgotten reports whether an open or half-open word at now is of a key that
// nobody has called for so long that it is as good as healthy. now must have
// been read after the word.
func (c *core) forgotten(w word, s *settings, now time.Duration) bool {
	switch {
	case s.forgetAfter == 0:
		return false
	case w.mode() == open:
		return !w.openPending(s, now) && w.openAgo(now) >= s.forgetAfter
	case w.mode() == halfOpen:
		idle := c.idle(now)
		return idle >= s.forgetAfter+s.probeTimeout && w.leaseLeft(s, now, idle) <= 0
	}
	return false
}

// stale reports whether the failures of a closed word and its windows no longer
// matter: they are forgotten, or there are only windows that are empty. It reads the
// clock after the word, so it misses nothing that was counted before.
func (c *core) stale(w word, s *settings) bool {
	now := s.now()
	if s.forgetAfter != 0 && c.idle(now) >= s.forgetAfter {
		return true
	}
	return w == w.flagged() && (len(s.rules.windows) == 0 || c.quiet(w.stay(), now))
}

// markLeaving retires a closed cell that is stale, and reports whether it has.
//
// First it marks the word, which is when its failures in a row are forgotten.
// Then it looks again. A caller that counts something bad in windows touches the
// cell and adds to the windows before it looks at the word. So either this caller
// sees that; or the other sees the mark and replaces it; or it sees the tombstone, and
// counts in the key's next cell. No two marks are equal, so a mark that is still there
// was not replaced and made again.
func (gs *groupState) markLeaving(c *cell, was word) bool {
	w, s := was.living(), gs.cellSettingsWithoutPerKey(&c.core)
	if !c.stale(w, s) {
		return false
	}
	mark := w.stay() | leaving<<modeShift | word(gs.marks.Add(1)&payloadMask)
	if !c.word.CompareAndSwap(uint64(was), uint64(mark)) || !c.stale(w, s) {
		return false // it may stay marked: all take it for closed
	}
	if gs.idleTimeout() != 0 {
		// It is healthy from now on.
		gs.touch(c)
		c.word.CompareAndSwap(uint64(mark), uint64(mark.living().stay()))
		return false
	}
	return gs.retire(c, mark)
}

// forget closes and retires a cell of a key that is forgotten, and reports
// whether it has. It delivers the event.
func (gs *groupState) forget(c *cell, w word, s *settings) bool {
	if gs.outdated() {
		return false
	}
	next := w.close(s)
	owed, ok := c.swap(s, w, w, &change{next: next, why: ReasonForgotten})
	if !ok {
		return false
	}
	owed.deliver()
	gs.retire(c, next)
	return word(c.word.Load()).mode() == tombstone // the caller that delivered may have retired it, or the listener kept it
}

// reclaim looks for places of the open quota that belong to forgotten keys, after one
// more key could not open. It does so once in a while.
func (gs *groupState) reclaim() {
	const times = 64 // while a key is being forgotten; a sweep looks at all cells
	s := gs.settings().shared
	if s.forgetAfter == 0 {
		return
	}
	now, at := s.now(), gs.reclaimAt.Load()
	next := int64(now + s.forgetAfter/times)
	if int64(now) < at && at <= next { // later than next is of an Update that has made it shorter
		return
	}
	if gs.reclaimAt.CompareAndSwap(at, next) {
		gs.sweep()
	}
}
