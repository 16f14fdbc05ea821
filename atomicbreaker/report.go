package atomicbreaker

import "time"

// A turn is the report of one result that may do more than count in the word.
// It belongs to its goroutine.
type turn struct {
	core     *core
	settings *settings
	result   result
	stay     word // that admitted the call, unless direct
	direct   bool // without a permit
	bad      bool // a failure, or a slow call where that matters
	slot     bool // whether a probe still has its slot

	counted word          // the stay in whose windows the result was counted, if in any
	in      bool          // whether it was in any
	at      time.Duration // when
	block   uint32        // for a run that it may begin
	began   bool          // whether it has one
	full    tally         // what the windows then had enough of
	gone    step          // what was done to a key that was forgotten
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
	if len(s.rules.windows) == 0 || t.result.outcome == Ignored || t.result.how&tripping != 0 || w.mode() != closed {
		return false
	}
	if s.owner != nil && !w.watched() && !t.bad {
		return false
	}
	full, at, ok := t.core.count(w.stay(), t.result, t.bad, s)
	t.full, t.at, t.in, t.counted = full, at, true, w.stay()
	if ok && t.bad && s.rules.asks && full.why == 0 && t.result.how&wasAsked == 0 {
		t.askAll(w)
		return true
	}
	return s.owner != nil || !ok
}

// rest reports what is left of the result.
func (t *turn) rest() (Verdict, step) {
	was := word(t.core.word.Load())
	if t.direct {
		return t.record(was)
	}
	return t.settle(was)
}

// open is the change of a closed word whose windows have had enough.
func (t *turn) open(w word) (change, Verdict) {
	now, at := t.settings.clock()
	return change{next: w.trip(t.settings, now), why: t.full.why, at: at, full: t.full}, Tripped
}

// probe is the change of a half-open word for the result of a probe.
func (t *turn) probe(w word) (x change, v Verdict) {
	if w.spent(t.slot) {
		return change{next: w}, Late
	}
	x.seen = w.withProbe(t.bad, t.slot)
	switch v = w.decides(t.settings, t.bad); v {
	case Tripped:
		var now time.Duration
		now, x.at = t.settings.clock()
		x.next, x.why = w.trip(t.settings, now), ReasonProbeFailed
	case Recovered:
		x.next, x.why = w.close(t.settings), ReasonRecovered
	default:
		x.next = x.seen
	}
	return x, v
}

// trip is the change of a word for a result that says so.
func (t *turn) trip(w word) (change, Verdict) {
	if w.mode() == disabled {
		return change{next: w}, Counted
	}
	if w.mode() != closed && w.mode() != halfOpen || w.spent(t.slot) {
		return change{next: w}, Late
	}
	now, at := t.settings.clock()
	x := change{next: w.tripFor(t.settings, t.result.open, now), why: ReasonTrip, at: at}
	if w.mode() == halfOpen {
		x.seen = w.withProbe(true, t.slot)
	}
	return x, Tripped
}

// swap makes the change, unless nothing would change, or too many keys are open
// already. It reports whether it has, and with which verdict.
func (t *turn) swap(was, w word, x change, v Verdict) (Verdict, step, bool) {
	s := t.settings
	did := step{at: t.at}
	if s.quota != nil && w.mode() == closed && x.next.mode() == open {
		if x.took = s.quota.take(s); !x.took {
			s.ledger.mine().withheld.Add(1)
			did.did |= withheld
			next, ok := t.withhold(w)
			if !ok {
				return v, step{}, false
			}
			x, v = change{next: next}, Counted
		}
	}
	if t.in && s.owner != nil && x.next.mode() == closed && x.next.stay() == t.counted {
		x.next |= watched
	}
	if x.next == w && (was == w || !t.bad) {
		did.to = w
		return v, did, true
	}
	if s.owner != nil {
		t.core.keeps(x.next, s)
	}
	owed, ok := t.core.swap(s, was, w, x)
	did.to, did.owed, did.did = x.next, owed, did.did|wrote
	return v, did, ok
}
