package atomicbreaker

import (
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
)

// A result is the end of a call: its outcome, how long it took if that matters, and
// whether the breaker is to open for that, and for how long. It has four
// fields, as a struct of more does not stay in registers.
type result struct {
	outcome Outcome
	how     flags
	took    time.Duration
	open    time.Duration
}

// flags say more about a result, or a step.
type flags uint16

const (
	// Of a result.
	tripping flags = 1 << iota // the breaker is to open
	direct                     // no permit was asked for
	timed                      // it is known how long the call took
	bad                        // it has failed, or was too slow
	reached                    // enough for a KOfN, or a window
	slotted                    // of a probe that still has its slot
	expired                    // the time of the open word has passed

	// Of both.
	asks     // TripFuncs are to be asked about it, or have said that the breaker is to open
	withheld // the open quota keeps it from opening the breaker, or has kept it

	// Of a step.
	wrote    // it has changed the word
	shadowed // it has let through a call that it should have rejected
	asNew    // the key had been forgotten, and is pristine now
)

func (r result) is(how flags) bool { return r.how&how != 0 }

// A report is the work on one result. It belongs to its goroutine.
type report struct {
	core     *core
	settings *settings
	result   result
	stay     word // the one that admitted the call, unless the result is direct

	in      bool  // whether the result was counted in windows
	counted word  // then: of which stay
	full    tally // the window that then had enough

	refused bool // whether the open quota has made a Permit.Trip a failure like any other

	skipForget bool          // whether the key was forgotten, and waits for its listener
	now        time.Duration // of the last word that was read, or zero

	step step // what it has done
}

// run makes the result take effect. The result of a call that was admitted in an
// earlier stay is late. A tombstone is returned as it is. In each round was is the word to
// CAS from, and w that word as the settings read it.
//
// A CAS fails only when another caller's has succeeded.
func (r *report) run() (Verdict, step) {
	c := r.core
	for failed := 1; ; failed++ {
		was := word(c.word.Load())
		w := was.living()
		switch {
		case r.result.is(direct) && w.mode() != tombstone:
		case w.stay() == r.stay:
		case !c.overdue(w, r.stay):
			r.step.to = w
			return Late, r.step // LP(Done): when the word is read
		}
		// The settings are read after the word: its deadline may be further ahead than those
		// of settings that Update has replaced, and its failures may be in another form.
		s := c.set.Load()
		r.settings = s
		if r.result.outcome != Ignored {
			w = w.under(s)
		}
		if r.forget(was, w) {
			continue
		}
		if !r.result.is(direct) && w.stay() != r.stay && word(c.word.Load()) != was {
			continue // the period, or when the core was touched, may be of a later word
		}
		if r.count(w) {
			continue
		}
		res, acquired := r.of(w), false
		next, v := w.record(res, s)
		if v == Tripped && w.mode() == closed && s.quota != nil {
			if acquired = s.quota.acquire(s.openLimit); !acquired {
				if res.outcome != Ignored && res.is(tripping) { // it counts as any failure does
					r.result.how &^= tripping
					r.result.open, r.refused = 0, true
					continue
				}
				res.how |= withheld
				next, v = w.record(res, s)
			}
		}
		ok := true
		if v == Counted && w.mode() == closed && s.rules.last != 0 && res.outcome != Ignored {
			if next, ok = c.remember(w, res.outcome == Failure, s); !ok {
				continue
			}
		}
		// LP(Done, RecordSuccess, RecordFailure): a result that changes nothing takes
		// effect when the word is read, or is counted in windows; the deadline of a late
		// RecordFailure was still ahead after that. All others take effect by a CAS.
		if v == Tripped || v == Recovered {
			next, ok = r.changeStay(was, w, &change{seen: next, acquired: acquired}, res, v)
		} else {
			next, ok = r.changeCount(was, next, res)
		}
		if ok {
			if r.step.to = next; v == Counted && r.in && res.is(bad) && s.rules.asks {
				r.step.flags |= asks
			}
			return v, r.step
		}
		atomics.Backoff(failed)
	}
}

// of returns the result with the flags that depend on the word.
func (r *report) of(w word) result {
	res := r.result
	switch w.mode() {
	case closed:
		if r.full.why != 0 || res.outcome == Failure && r.settings.rules.last != 0 && r.core.enough(w, r.settings) {
			res.how |= reached
		}
	case open:
		if res.is(direct) && !w.openPending(r.settings, r.settings.now()) {
			res.how |= expired
		}
	case halfOpen:
		if w.stay() == r.stay {
			res.how |= slotted
		}
	}
	return res
}

// changeCount makes a change within a stay, if there is one to make. It reports whether it has,
// or there is none, and the word that it left behind.
func (r *report) changeCount(was, next word, res result) (to word, ok bool) {
	c, s := r.core, r.settings
	if r.in && c.owner != nil && next.mode() == closed && next.stay() == r.counted {
		next |= watched
	}
	held := res.is(withheld) || r.refused
	changes := next != was.living() || was != was.living() && res.is(bad) // a mark must go
	if c.owner != nil && (changes || held) && next.mode() == closed && next != next.flagged() {
		if r.now == 0 {
			r.now = s.now()
		}
		c.touch(r.now, touchUnit) // before the word has failures to keep
	}
	if changes {
		if !c.word.CompareAndSwap(uint64(was), uint64(next)) {
			return next, false
		}
		r.step.flags |= wrote
	}
	if held && next.mode() == closed {
		s.counters.mine().withheld.Add(1)
		r.step.flags |= withheld
	}
	return next, true
}

// changeStay makes a change that begins a stay, for a verdict of Tripped or Recovered.
func (r *report) changeStay(was, w word, x *change, res result, v Verdict) (to word, ok bool) {
	s := r.settings
	x.why, x.full = res.reason(w, v, r.full), r.full
	if v == Recovered {
		x.next = w.close(s)
	} else {
		var now time.Duration
		now, x.at = s.clock()
		x.next = w.trip(s, res.open, now)
	}
	owed, ok := r.core.swap(s, was, w, x)
	r.step.add(owed, ok)
	return x.next, ok
}

// reason returns why a result begins a stay after a word.
func (r result) reason(w word, v Verdict, full tally) Reason {
	switch {
	case v == Recovered && r.is(direct):
		return ReasonRecordSuccess
	case v == Recovered:
		return ReasonRecovered
	case w.mode() == closed && full.why != 0:
		return full.why
	case r.is(tripping):
		return ReasonTrip
	case w.mode() == closed:
		return ReasonThreshold
	case r.is(direct):
		return ReasonRecordFailure
	}
	return ReasonProbeFailed
}

// forget makes a key healthy that was forgotten, so that the result finds it so. It
// reports whether the caller has to read the word again.
func (r *report) forget(was, w word) (again bool) {
	if r.now = 0; r.settings.forgetAfter == 0 || r.skipForget || r.in && r.counted == w.stay() {
		return false
	}
	if w.mode() == closed && r.result.outcome == Success && r.settings.rules.last == 0 && len(r.settings.rules.windows) == 0 {
		return false // it clears the failures anyway
	}
	owed, now, did := r.core.forget(was, w, r.settings)
	r.now, r.skipForget = now, did && !r.core.deliveredUpTo(w)
	r.step.add(owed, did && w.mode() != closed)
	return did
}

// count counts the result in the windows of a closed stay, once, if it counts
// there. It reports whether the caller has to read the word again: if the
// stay or the settings were over, the result was not counted.
//
// In a cell the caller always has to, because a caller that retires the cell first makes
// the word leaving, and then looks into the windows: either it sees the result there, or
// the reporter sees a word that is leaving or dead.
func (r *report) count(w word) (again bool) {
	s := r.settings
	if r.in && r.counted == w.stay() || r.result.is(tripping) {
		return false
	}
	r.full = tally{} // a window that was full in another stay opens nothing in this one
	if len(s.rules.windows) == 0 || w.mode() != closed || r.result.outcome == Ignored {
		return false
	}
	isBad := r.result.is(bad)
	if r.core.owner != nil && !w.watched() && !isBad {
		return false
	}
	at := r.now
	if at == 0 {
		at = s.now()
	}
	full, ok := r.core.count(w.stay(), r.result, s, at)
	r.full, r.step.at, r.in, r.counted = full, at, ok, w.stay()
	return r.core.owner != nil || !ok
}
