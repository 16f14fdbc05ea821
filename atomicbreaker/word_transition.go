package atomicbreaker

import (
	"math/bits"
	"time"
)

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

// decides returns the verdict on one more result of a half-open breaker.
func (w word) decides(s *settings, failed bool) Verdict {
	bad, all := uint64(w.failed()), uint64(w.ok()+w.failed()+1)
	if failed {
		bad++
	}
	switch {
	case bad > 0 && s.probeRate == 0: // bad may count a failure from before an Update
		return Tripped
	case all < uint64(s.closeAfter):
		return Counted
	case s.probeRate != 0 && bad*million >= s.probeRate*all:
		return Tripped
	}
	return Recovered
}

// recordSuccess returns the word after a success without a permit, which shows
// that the dependency works now, whatever the mode, unless a command has set the
// mode.
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

// recordFailure returns the word, which is not closed, after a failure without a
// permit at now.
func (w word) recordFailure(s *settings, now time.Duration) (word, Verdict) {
	switch {
	case w.mode() == forcedOpen || w.mode() == open && w.openPending(s, now):
		return w, Late
	case w.mode() == disabled:
		return w, Counted
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

// trip opens the breaker for the time that the next streak stands for.
func (w word) trip(s *settings, now time.Duration) word {
	streak := min(w.streak()+1, streakMask)
	return w.openUntil(streak, s.until(s.drawOpen(streak), now))
}

// tripFor opens the breaker for d: zero means the time of trip, and negative until
// Reset.
func (w word) tripFor(s *settings, d, now time.Duration) word {
	if d == 0 {
		return w.trip(s, now)
	}
	return w.openUntil(min(w.streak()+1, streakMask), s.until(s.bounded(d), now))
}

func (w word) openUntil(streak int, until uint64) word {
	return w.enter(open).withStreak(streak) | word(until)
}

// A closed word counts failures in a row or, if the policy has a KOfN, has a history
// of the last calls; for histories of many calls see failure_log.go. After Update the
// word may still be of the other kind, and is converted: a history says how many of
// the last calls failed in a row, and a count of n says that the last n calls failed.

// inARow returns the number of failures since the last success.
func (w word) inARow() uint32 {
	if w&recent != 0 {
		return uint32(bits.TrailingZeros32(^uint32(w & failsMask)))
	}
	return uint32(w & failsMask)
}

// history returns a bit for each of the last calls.
func (w word) history() uint32 {
	if w&recent != 0 {
		return uint32(w & failsMask)
	}
	return uint32(1<<min(w&failsMask, 32) - 1)
}

// failures returns what the policy counts of a closed word that is not long: the
// failures in a row, those among the last calls, or none if only windows count. s may
// be nil if there are none.
func (w word) failures(s *settings) int {
	switch {
	case w == w.flagged():
		return 0
	case s.rules.last != 0:
		return int(min(w.inARow(), uint32(s.rules.last)))
	case s.rules.history != 0:
		return bits.OnesCount32(w.history() & s.rules.history)
	case s.rules.threshold != 0 || s.rules.inARow:
		return int(w.inARow())
	}
	return 0
}

// flagged is the word without failures.
func (w word) flagged() word { return w.stay() | w&watched }

func (w word) withHistory(h uint32) word {
	if h == 0 {
		return w.flagged() // without recent: so a word without failures is one word
	}
	return w.flagged() | recent | word(h)
}

// pass returns the closed word after one more success.
func (w word) pass(s *settings) word {
	if s.rules.history == 0 {
		return w.flagged()
	}
	return w.withHistory(w.history() << 1 & s.rules.history)
}

// miss returns the closed word after one more failure, which does not trip it.
func (w word) miss(s *settings) word {
	switch {
	case s.rules.last != 0:
		return w.flagged() | word(min(w.inARow()+1, uint32(s.rules.last)))
	case s.rules.history != 0:
		return w.withHistory((w.history()<<1 | 1) & s.rules.history)
	case s.rules.threshold != 0:
		return w.flagged() | word(w.inARow()+1) // below the threshold, so it cannot overflow
	case s.rules.inARow:
		return w.flagged() | word(min(uint64(w.inARow())+1, failsMask))
	}
	return w.flagged() // only windows count
}

// countInWord returns the closed word after one more result, if that is counted in the
// word alone and leaves it closed.
func (w word) countInWord(o Outcome, s *settings) (next word, ok bool) {
	switch {
	case len(s.rules.windows) != 0:
		return w, false
	case o == Ignored:
		return w, true
	case w.recalls(o, s):
		return w, false
	case o != Failure:
		return w.pass(s), true
	case w.trips(s):
		return w, false
	}
	return w.miss(s), true
}

// trips reports whether one more failure opens a closed breaker by what the word
// counts.
func (w word) trips(s *settings) bool {
	r := s.rules
	if r.threshold != 0 && w.inARow() >= r.threshold-1 {
		return true
	}
	if r.history != 0 {
		h := w.history()<<1 | 1
		for _, k := range r.recent {
			if bits.OnesCount32(h&k.last()) >= k.k {
				return true
			}
		}
	}
	return false
}

// inRowAlone returns the number of failures in a row below which one more is just
// counted, if a policy counts nothing else, and otherwise 0.
func (r *rules) inRowAlone() uint32 {
	if r.threshold == 0 || len(r.recent) != 0 || len(r.windows) != 0 {
		return 0
	}
	return r.threshold - 1
}

// countInRow returns the word after one more result of a closed stay, if the policy
// counts failures in a row alone, and this one opens nothing. Then countInWord returns the
// same.
func (w word) countInRow(stay word, o Outcome, s *settings) (next word, ok bool) {
	switch {
	case w&^failsMask != stay:
		return w, false
	case o == Failure:
		return w + 1, uint32(w) < s.inRow
	}
	return stay, o == Success && s.inRow != 0
}

// recalls reports whether one more result of a closed word takes more than the
// word: its log, or a block for a run.
func (w word) recalls(o Outcome, s *settings) bool {
	return w&long != 0 || s.rules.last != 0 && o != Failure && w != w.flagged()
}
