package atomicbreaker

import (
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
)

// A core is a word with its settings and notes: all of a Breaker, and the head of
// every cell of a Group. The zero core is a healthy breaker with the defaults.
type core struct {
	// Every transition is one CAS by the call or result that causes it.
	word atomics.Uint64

	// Nil means the defaults, until someone needs a clock. Goes from nil to
	// non-nil once, by CAS, and from one to the next by Update.
	set atomics.Pointer[settings]

	// windows are those of a closed stay, or nil. Replaced by CAS of the first caller
	// that counts in a later stay.
	windows atomics.Pointer[windows]

	// log has the places of long words, or is nil. Set by CAS of the first caller that
	// needs it, once.
	log atomics.Pointer[failureLog]

	// period is the generation with which the breaker became half-open, and touched
	// the time of its newest probe or, in a cell, at which the key was last of
	// interest. Set by CAS of a caller that is about to make them matter; see
	// notePeriod and overdue. touched only goes up.
	period  atomics.Uint32
	touched atomics.Int64

	// queue brings the events to the listener; nil if there was none from the beginning.
	// Never changes.
	queue *eventQueue

	// owner is the cell of which this is the core, or nil in a Breaker. Never changes.
	owner owner
}

// owner is what a core needs of its cell, without the type of the key.
type owner interface {
	// retireStale takes the cell out of the table if its word is still was, and the settings
	// no longer need it.
	retireStale(was word, s *settings) bool
	// notify calls the listener, and notified is called when that event counts as
	// delivered.
	notify(*Event)
	notified()
}

// settings returns the core's settings and, in a zero core, installs the
// defaults, whose epoch every later caller then shares.
func (c *core) settings() *settings {
	if s := c.set.Load(); s != nil {
		return s
	}
	s, _ := new(Config).compile() // the defaults are valid
	return c.set.Install(s)
}

// A change is a transition of a word.
type change struct {
	next     word
	why      Reason    // if it begins a generation
	at       time.Time // what a deadline in next is counted from, if there is one
	full     tally     // the window that opened the breaker, if one has
	lost     int       // failures of a closed word, for the event if there is a listener
	acquired bool      // whether a place of the open quota was taken
	seen     word      // for the event, a half-open word with its last probe counted; else zero
}

// swap is the CAS of every transition, from was to x.next; w is was as the settings read
// it. If it begins a generation and there is a listener, it publishes the event, and
// returns what the caller must deliver when it has nothing else left to do.
//
// Without a time in x the clock is read here, after the word and before next is
// there: so events are in the order of their times.
func (c *core) swap(s *settings, was, w word, x *change) (owed *eventQueue, ok bool) {
	begins := w.gen() != x.next.gen()
	listens := begins && s.listens
	if listens && x.at.IsZero() {
		x.at = atomics.Now()
	}
	if listens && w.mode() == closed {
		x.lost = c.failures(w, s, x.why == ReasonThreshold) // as long as the log has them
	}
	if !c.word.CompareAndSwap(uint64(was), uint64(x.next)) {
		if x.acquired {
			s.quota.release()
		}
		return nil, false
	}
	if begins {
		s.counters.changed(x.next)
		if s.quota != nil && w.out() && !x.next.out() {
			s.quota.release()
		}
	}
	if listens {
		var e Event
		s.describe(&e, w, x)
		owed = c.queue.push(x.next.gen(), &e)
	}
	if begins && x.next.mode() == closed && c.owner == nil {
		c.watch() // Update may have come between
	}
	return owed, true
}

// A step is what an operation did with a word. It has four fields, as a struct of more does
// not stay in registers.
type step struct {
	to    word          // the word that it left behind, or that admitted a call
	at    time.Duration // when a call began, or counted in windows, if that matters
	owed  *eventQueue   // what the caller must deliver when it has nothing else left to do, or nil
	flags flags
}

// add notes one more change of the word, if there was one, and what is to be delivered for
// it: at most one queue, as only its holder owes it.
func (s *step) add(owed *eventQueue, changed bool) {
	if changed {
		s.flags |= wrote
	}
	if owed != nil {
		s.owed = owed
	}
}

// admit asks for admission until an answer takes effect. timed says whether a
// closed breaker may have to know when the call began; otherwise it does not read
// the settings. A tombstone is returned as it is.
//
// A CAS fails only when another caller's transition has succeeded.
func (c *core) admit(timed bool) (step, error) {
	for {
		w := word(c.word.Load()).living()
		if w.mode() == tombstone {
			return step{to: w}, nil
		}
		if w.mode() == closed || w.mode() == disabled {
			// LP(Allow): a closed breaker admits when its word is read.
			a := step{to: w}
			if timed {
				a.at = c.settings().callStart()
			}
			return a, nil
		}
		// The settings are read after the word, as its deadline may be further ahead
		// than those of settings that Update has replaced; the caller that set the
		// deadline has stored newer settings before.
		s := c.settings()
		now, at := s.clock()
		idle := time.Duration(0)
		if w.mode() == halfOpen {
			idle = c.idle(now)
		}
		next, err := w.admit(s, now, idle)
		if err != nil {
			// LP(Allow): a rejection takes effect when the word was read; the
			// deadline was still ahead later, when the clock was.
			s.counters.mine().rejected.Add(1)
			switch {
			case s.shadow && s.counters.totals != nil:
				return step{to: voidStay, at: untimed}, nil
			case s.shadow:
				return step{flags: shadowed}, nil
			}
			return step{}, s.refuse(w, err, now, idle)
		}
		x, as := change{next: next, why: ReasonProbeTimeout, at: at}, flags(0)
		if c.forgotten(w, s, now) {
			x.next, x.why, as = w.close(s), ReasonForgotten, asNew
		} else {
			c.touch(now, 0)
			if w.mode() == open {
				x.why = ReasonOpenTimeout
				c.notePeriod(w, next)
			}
		}
		// LP(Allow): a probe, or a key that was forgotten, is admitted by this CAS.
		if owed, ok := c.swap(s, w, w, &x); ok {
			return step{to: x.next, at: s.callStart(), owed: owed, flags: as}, nil
		}
	}
}

// report reports the result of a call of a Breaker that was admitted in a stay. It counts the
// call, and then a late result, delivers the events, asks TripFuncs, and delivers theirs.
func (c *core) report(stay word, r result, s *settings) Verdict {
	s.counters.total(r.outcome)
	work := report{core: c, result: r, stay: stay}
	v, did := work.run()
	s.counters.verdict(v)
	did.owed.deliver()
	if did.flags&asks != 0 {
		v, did = c.ask(did.to, r)
		did.owed.deliver()
	}
	return v
}

// touch notes that a probe was admitted, or the key of a cell of interest, at a time
// since the epoch, if the time that is noted is more than a while earlier; see
// word.leaseLeft and group_forget.go.
//
// It retries only if another caller has noted an earlier time.
func (c *core) touch(at, while time.Duration) {
	for {
		was := c.touched.Load()
		if was != 0 && at-time.Duration(was) <= while || c.touched.CompareAndSwap(was, int64(at)) {
			return
		}
	}
}

// touchUnit is how often a key that fails is touched at most, so that callers of
// one that fails a lot do not write one word more. Hence forgotten keys may go
// that much early.
const touchUnit = time.Millisecond

// idle returns how long before now the core was last touched. It is negative if
// another caller has been faster.
func (c *core) idle(now time.Duration) time.Duration {
	return now - time.Duration(c.touched.Load())
}

// forgotten reports whether ForgetAfter has passed at now for a key that is open, half-open,
// or closed but not pristine. now must have been read after the word.
func (c *core) forgotten(w word, s *settings, now time.Duration) bool {
	switch {
	case s.forgetAfter == 0:
		return false
	case w.mode() == closed:
		return c.idle(now) >= s.forgetAfter
	case w.mode() == open:
		return !w.openPending(s, now) && w.openAgo(now) >= s.forgetAfter
	default:
		idle := c.idle(now)
		return idle >= s.forgetAfter+s.probeTimeout && (w.inflight() == 0 || w.leaseLeft(s, now, idle) <= 0)
	}
}

// forget makes a cell healthy that was forgotten: it closes or retires the cell. It
// reports whether there was anything to do; then the caller reads the word again, and asks
// again unless the cell waits for its listener: that is not retired. w is was.living(), and
// now the time that was read, or zero.
func (c *core) forget(was, w word, s *settings) (owed *eventQueue, now time.Duration, did bool) {
	if s.forgetAfter == 0 || w.mode() > halfOpen || w.mode() == closed && w == w.stay() {
		return nil, 0, false
	}
	if now = s.now(); !c.forgotten(w, s, now) {
		return nil, now, false
	}
	if w.mode() == closed {
		c.owner.retireStale(was, s) // unless it waits for its listener
		return nil, now, true
	}
	owed, _ = c.swap(s, was, w, &change{next: w.close(s), why: ReasonForgotten})
	return owed, now, true
}

// notePeriod notes the period that a caller is about to begin, for probes that will lose
// their slots; the caller has read the word as was. If the word has changed since, there is
// nothing to note.
//
// A later period is noted only after the word has changed. So if the word is
// unchanged when it is read here, a later period is noted after that, and makes the
// CAS fail.
//
// It retries only if another caller has noted a period.
func (c *core) notePeriod(was, next word) {
	for {
		noted := c.period.Load()
		if noted == next.gen() || word(c.word.Load()) != was || c.period.CompareAndSwap(noted, next.gen()) {
			return
		}
	}
}

// overdue reports whether the probes of a stay have lost their slots in the period
// of a word. If the note is of a later period, the word is no longer the core's.
func (c *core) overdue(w, stay word) bool {
	if w.mode() != halfOpen || stay.mode() != halfOpen {
		return false
	}
	age := func(gen uint32) uint32 { return (w.gen() + genMask - gen) % genMask }
	return age(stay.gen()) <= age(c.period.Load())
}

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
	bad                        // it has failed, or was too slow
	reached                    // enough for a KOfN, or a window
	slotted                    // of a probe that still has its slot
	expired                    // the time of the open word has passed
	refused                    // its Trip, or a TripFunc, found no place in the open quota, so it counts as if it did not trip

	// Of both.
	withheld // the open quota keeps it from opening the breaker, or has kept it

	// Of a step.
	wrote    // it has changed the word
	shadowed // it has let through a call that it should have rejected
	asNew    // the key had been forgotten, and is pristine now
	asks     // TripFuncs are to be asked whether it opens the breaker
)

func (r result) is(how flags) bool { return r.how&how != 0 }

// A report is the work on one result. It belongs to its goroutine.
type report struct {
	core     *core
	settings *settings // of the current round of run
	result   result    // if Ignored and tripping, a TripFunc's answer
	stay     word      // the one that admitted the call, unless the result is direct

	in      bool  // whether the result was counted in windows
	counted word  // then: of which stay
	full    tally // the window that then had enough

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
		if c.owner == nil && w.mode() == closed && w.watched() != s.watchesAll() {
			c.watch() // for Update: a failure must not count in windows before successes do
			continue
		}
		if r.result.outcome != Ignored {
			w = w.under(s)
		}
		if r.result.how &^= bad; r.result.outcome == Failure || s.rules.tooSlow(r.result) {
			r.result.how |= bad
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
				if res.is(tripping) {
					r.result.how, r.result.open = r.result.how&^tripping|refused, 0
					continue
				}
				res.how |= withheld
				next, v = w.record(res, s)
			}
		}
		var ok bool
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
			if r.step.to = next; r.countedIn(next) && res.is(bad) && s.rules.asks && r.step.flags&withheld == 0 {
				r.step.flags |= asks
			}
			return v, r.step
		}
		atomics.Backoff(failed)
	}
}

// countedIn reports whether the result has counted in the windows of a word's stay.
func (r *report) countedIn(w word) bool { return r.in && r.counted == w.stay() }

// of returns the result with the flags that depend on the word.
func (r *report) of(w word) result {
	res := r.result
	switch w.mode() {
	case closed:
		if r.full.why != 0 || res.outcome == Failure && r.settings.rules.last != 0 && r.core.enough(w, r.settings) {
			res.how |= reached
		}
	case open:
		if !w.openPending(r.settings, r.settings.now()) {
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
	if c.owner != nil && r.countedIn(next) {
		next |= watched
	}
	held := res.is(withheld | refused)
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
	if held {
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
	case full.why != 0:
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
	if r.now = 0; r.skipForget || r.countedIn(w) {
		return false
	}
	if w.mode() == closed && r.result.outcome == Success && r.settings.rules.last == 0 && len(r.settings.rules.windows) == 0 {
		return false // it clears the failures anyway
	}
	owed, now, did := r.core.forget(was, w, r.settings)
	r.now, r.skipForget = now, did && !r.core.deliveredUpTo(w)
	r.step.add(owed, did)
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
	if r.countedIn(w) || r.result.is(tripping) {
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
