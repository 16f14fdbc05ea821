package atomicbreaker

import "time"

// A report is the work on one result that may do more than count in the word. It
// belongs to its goroutine.
type report struct {
	core     *core
	settings *settings
	result   result
	stay     word // the one that admitted the call, unless the result is direct
	bad      bool // a failure, or a slow call where that matters
	slot     bool // whether a probe still has its slot

	counted word          // the stay in whose windows the result was counted, if in any
	in      bool          // whether it was counted in any
	at      time.Duration // when it was counted
	block   uint32        // for a run that it may begin
	began   bool          // whether block is set
	full    tally         // the window that then had enough
	gone    step          // the step that closed a key that was forgotten
	forgot  bool          // whether the key was forgotten
	now     time.Duration // of the last word that was read, or zero

	withheld bool // whether the open quota has made a Permit.Trip a failure like any other
}

// apply is decide for a report that has begun.
func (r *report) apply(was word) (v Verdict, did step) {
	c, o, unasked := r.core, r.result.outcome, r.result.how&direct != 0
	var ok bool
	for ; ; was = word(c.word.Load()) {
		w := was.living()
		if r.slot = w.stay() == r.stay; unasked {
			if w.mode() == tombstone {
				r.gone.to = w
				r.gone.flags |= r.hasAsked()
				return Late, r.gone
			}
			// The settings are read after the word: its deadline may be further ahead
			// than those of settings that Update has replaced.
			r.settings = c.set.Load()
		} else if !r.slot {
			if !c.overdue(w, r.stay) {
				// LP(Done): a late result takes effect when the word is read.
				r.gone.to = w
				r.gone.flags |= r.hasAsked()
				return Late, r.gone
			}
			if word(c.word.Load()) != was {
				continue // the period may be another's
			}
		}
		if r.forget(was, w) || r.count(w) {
			continue
		}
		s, x := r.settings, change{why: ReasonThreshold}
		switch {
		case r.result.how&tripping != 0:
			x, v = r.trip(w)
		case r.full.why != 0:
			x, v = r.open(w)
		case o == Ignored:
			x.next, v = w.neutral(r.slot)
		case w.mode() == closed && w.recalls(o, s):
			if x, v, ok = r.recall(w); !ok {
				continue
			}
		case unasked && o == Success:
			x.next, v = w.recordSuccess(s)
			x.why = ReasonRecordSuccess
		case unasked && w.mode() != closed:
			var now time.Duration
			now, x.at = s.clock()
			x.next, v = w.recordFailure(s, now)
			x.why = ReasonRecordFailure
		case w.mode() == halfOpen:
			x, v = r.probe(w)
		case o == Failure:
			var now time.Duration
			if w.mode() == closed && w.trips(s) {
				now, x.at = s.clock()
			}
			x.next, v = w.fail(s, now)
		default:
			x.next, v = w.succeed(s)
		}
		// LP(Done, RecordSuccess, RecordFailure): a result that changes nothing
		// takes effect when the word is read, or is counted in windows; the
		// deadline of a late RecordFailure was still ahead after that. All other
		// results take effect by this CAS.
		if v, did, ok := r.swap(was, w, &x, v); ok {
			if r.gone.flags != 0 {
				did.flags, did.owed = did.flags|r.gone.flags, either(r.gone.owed, did.owed)
			}
			return v, did
		}
	}
}

// forget makes a key healthy that was forgotten, so that the result finds it so. It
// reports whether the caller has to read the word again.
func (r *report) forget(was, w word) (again bool) {
	if r.now = 0; r.forgot || r.in && r.counted == w.stay() {
		return false
	}
	owed, now, did := r.core.forget(was, w, r.settings)
	r.now, r.forgot = now, did && !r.core.deliveredUpTo(w)
	if did && w.mode() != closed {
		r.gone = step{flags: wrote, owed: either(r.gone.owed, owed)}
	}
	return did
}

// count counts the result in the windows of a closed stay, once, if it counts
// there. It reports whether the caller has to read the word again: if the
// stay was over, the result is late, and was not counted.
//
// In a cell the caller always has to, because a caller that retires the cell first makes
// the word leaving, and then looks into the windows: either it sees the result there, or
// the reporter sees a word that is leaving or dead.
func (r *report) count(w word) (again bool) {
	s := r.settings
	if r.in && r.counted == w.stay() {
		return false
	}
	r.full = tally{} // a window that was full in another stay opens nothing in this one
	if len(s.rules.windows) == 0 || r.result.outcome == Ignored || r.result.how&tripping != 0 || w.mode() != closed {
		return false
	}
	if r.core.owner != nil && !w.watched() && !r.bad {
		return false
	}
	at := r.now
	if at == 0 {
		at = s.now()
	}
	full, ok := r.core.count(w.stay(), r.result, r.bad, s, at)
	r.full, r.at, r.in, r.counted = full, at, true, w.stay()
	if ok && r.bad && s.rules.asks && full.why == 0 && r.result.how&wasAsked == 0 {
		r.askAll(w)
		return true
	}
	return r.core.owner != nil || !ok
}

// open is the change of a closed word whose windows have enough failures or slow calls.
func (r *report) open(w word) (change, Verdict) {
	now, at := r.settings.clock()
	return change{next: w.trip(r.settings, now), why: r.full.why, at: at, full: r.full}, Tripped
}

// probe is the change of a half-open word for the result of a probe.
func (r *report) probe(w word) (x change, v Verdict) {
	if w.spent(r.slot) {
		return change{next: w}, Late
	}
	x.seen = w.withProbe(r.bad, r.slot)
	switch v = w.decides(r.settings, r.bad); v {
	case Tripped:
		var now time.Duration
		now, x.at = r.settings.clock()
		x.next, x.why = w.trip(r.settings, now), ReasonProbeFailed
	case Recovered:
		x.next, x.why = w.close(r.settings), ReasonRecovered
	default:
		x.next = x.seen
	}
	return x, v
}

// trip is the change of a word for a result of Permit.Trip.
func (r *report) trip(w word) (change, Verdict) {
	if w.mode() == disabled {
		return change{next: w}, Counted
	}
	if w.mode() != closed && w.mode() != halfOpen || w.spent(r.slot) {
		return change{next: w}, Late
	}
	now, at := r.settings.clock()
	x := change{next: w.tripFor(r.settings, r.result.open, now), why: ReasonTrip, at: at}
	if w.mode() == halfOpen {
		x.seen = w.withProbe(true, r.slot)
	}
	return x, Tripped
}

// swap makes the change, unless nothing would change, or too many keys are open
// already. It reports whether it has, and with which verdict.
func (r *report) swap(was, w word, x *change, v Verdict) (Verdict, step, bool) {
	s := r.settings
	did, held := step{at: r.at}, r.withheld
	if s.quota != nil && w.mode() == closed && x.next.mode() == open {
		x.acquired = s.quota.acquire(s.openLimit)
		if held = !x.acquired; held {
			if r.result.how&tripping != 0 {
				r.result.how &^= tripping // it counts as any failure does
				r.withheld = true
				return v, step{}, false
			}
			next, ok := r.withhold(w)
			if !ok {
				return v, step{}, false
			}
			*x, v = change{next: next}, Counted
		}
	}
	if r.in && r.core.owner != nil && x.next.mode() == closed && x.next.stay() == r.counted {
		x.next |= watched
	}
	changes, ok := x.next != w || was != w && r.bad, true
	if r.core.owner != nil && (changes || held) {
		r.core.touchBefore(x.next, s)
	}
	if did.to = x.next; changes {
		did.flags = wrote
		did.owed, ok = r.core.swap(s, was, w, x)
	}
	if ok && held && x.next.mode() == closed {
		s.counters.mine().withheld.Add(1)
		did.flags |= withheld
	}
	return v, did, ok
}

// goesOn returns a long word after one more success, if that is all that there is
// to do. Its result is that of remember and recall; but while calls fail, most
// results are such successes, and this takes a quarter of the time.
func (c *core) goesOn(w word, o Outcome, s *settings) (next word, ok bool) {
	if w&long == 0 || o == Failure || s.rules.last == 0 || len(s.rules.windows) != 0 {
		return w, false
	}
	return c.passLong(w, s), true
}

// after is a result that has to be counted elsewhere after a step.
func (r result) after(did step) result {
	if did.flags&asked != 0 {
		r.how |= wasAsked
	}
	return r
}

// hasAsked says whether the functions were asked, for a caller that has to count the
// result elsewhere.
func (r *report) hasAsked() stepFlags {
	if r.result.how&wasAsked != 0 {
		return asked
	}
	return 0
}
