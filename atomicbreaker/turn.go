package atomicbreaker

// A turn is the report of one result that may do more than count in the word.
// It belongs to its goroutine.
type turn struct {
	core     *core
	settings *settings
	result   result
	bad      bool // a failure, or a slow call where that matters

	counted word  // the stay in whose windows the result was counted, if in any
	in      bool  // whether it was in any
	full    tally // what the windows then had enough of
}

// count counts the result in the windows of a closed stay, once, if it counts
// there. It reports whether the caller has to read the word again: if the
// stay was over, the result is late, and was not counted.
//
// In a cell it has, because who retires the cell first makes the word leaving,
// and then looks into the windows: either they see the result there, or the
// caller sees a word that is leaving or dead.
func (t *turn) count(w word) (again bool) {
	s := t.settings
	if t.in && t.counted == w.stay() {
		return false
	}
	t.full = tally{} // what was full in another stay opens nothing in this one
	if len(s.rules.windows) == 0 || t.result.outcome == Ignored || t.result.trip || w.mode() != closed {
		return false
	}
	if s.owner != nil && !w.watched() && !t.bad {
		return false
	}
	full, ok := t.core.count(w.stay(), t.result, s)
	t.full, t.in, t.counted = full, true, w.stay()
	return s.owner != nil || !ok
}

// open is the change of a closed word whose windows have had enough.
func (t *turn) open(w word) (change, Verdict) {
	now, at := t.settings.clock()
	return change{next: w.trip(t.settings, now), why: t.full.why, at: at, full: t.full}, Tripped
}

// trip is the change of a word for a result that says so.
func (t *turn) trip(w word) (change, Verdict) {
	if w.mode() == disabled {
		return change{next: w}, Counted
	}
	if w.mode() != closed && (w.mode() != halfOpen || w.inflight() == 0) {
		return change{next: w}, Late // a second result of one permit
	}
	now, at := t.settings.clock()
	return change{next: w.tripFor(t.settings, t.result.open, now), why: ReasonTrip, at: at, own: w.mode() == halfOpen}, Tripped
}

// swap makes the change, unless nothing would change, or too many keys are open
// already. It reports whether it has, and with which verdict.
func (t *turn) swap(was, w word, x change, v Verdict) (Verdict, step, bool) {
	s := t.settings
	if s.quota != nil && w.mode() == closed && x.next.mode() == open {
		if x.took = s.quota.take(s); !x.took {
			s.ledger.mine().withheld.Add(1)
			x, v = change{next: w.withhold(s)}, Counted
		}
	}
	if t.in && s.owner != nil && x.next.mode() == closed && x.next.stay() == t.counted {
		x.next |= watched
	}
	if x.next == w && (was == w || !t.bad) {
		return v, step{to: w}, true
	}
	owed, ok := t.core.swap(s, was, w, x)
	return v, step{x.next, true, owed}, ok
}
