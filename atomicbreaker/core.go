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
	// retireStale takes the cell out of the table if the word is still that, and by these
	// settings of no more use.
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
	seen     word      // the word before with the result that ends its generation, or zero
}

// swap is the CAS of every transition, from was to x.next; w is was as the settings read
// it. If it begins a generation and there is a listener, it publishes the event, and
// returns what the caller must deliver when it has nothing else left to do.
//
// Without a time in x the clock is read here, after the word and before next is
// there: so events are in the order of their times.
func (c *core) swap(s *settings, was, w word, x *change) (owed *eventQueue, ok bool) {
	begins := w.gen() != x.next.gen()
	listens := begins && s != nil && s.listens
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
	if begins && s != nil {
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

// admit asks for admission until an answer takes effect. Timed says whether a
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
		next, refused := w.admit(s, now, idle)
		if refused != nil {
			// LP(Allow): a rejection takes effect when the word was read; the
			// deadline was still ahead later, when the clock was.
			s.counters.mine().rejected.Add(1)
			if s.shadow {
				return step{flags: shadowed}, nil
			}
			return step{}, s.refuse(w, refused, now, idle)
		}
		if a, ok := c.admitProbe(w, next, s, now, at); ok {
			return a, nil
		}
	}
}

// admitProbe takes a slot by putting next in the place of a word, or closes a
// breaker that was forgotten. It is apart so that rejections do without its frame.
//
//go:noinline
func (c *core) admitProbe(w, next word, s *settings, now time.Duration, at time.Time) (a step, ok bool) {
	x := change{next: next, why: ReasonProbeTimeout, at: at}
	if c.forgotten(w, s, now) {
		x.next, x.why = w.close(s), ReasonForgotten
		a.flags = asNew
	} else {
		c.touch(now, 0)
	}
	if w.mode() == open && a.flags&asNew == 0 {
		x.why = ReasonOpenTimeout
		c.notePeriod(w, next)
	}
	// LP(Allow): a probe, or a key that was forgotten, is admitted by this CAS.
	a.owed, ok = c.swap(s, w, w, &x)
	a.to, a.at = x.next, s.callStart()
	return a, ok
}

// report reports the result of a call of a Breaker that was admitted in a stay. It counts the
// call, and then a late result, delivers events, and asks TripFuncs.
func (c *core) report(stay word, r result, s *settings) Verdict {
	s.counters.total(r.outcome)
	v, did := c.record(stay, r, s)
	s.counters.verdict(v)
	did.owed.deliver()
	if did.flags&asks != 0 {
		v, did = c.ask(did.to)
		did.owed.deliver()
	}
	return v
}

// record makes the result of a call that was admitted in a stay take effect. By s it is
// slow, or not.
func (c *core) record(stay word, r result, s *settings) (Verdict, step) {
	if r.outcome == Failure || s.rules.tooSlow(r) {
		r.how |= bad
	}
	work := report{core: c, settings: s, result: r, stay: stay}
	return work.run()
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

// forgotten reports whether ForgetAfter has passed at now for a key whose word is not that
// of a healthy one. now must have been read after the word.
func (c *core) forgotten(w word, s *settings, now time.Duration) bool {
	switch {
	case s.forgetAfter == 0:
		return false
	case w.mode() == closed:
		return w != w.stay() && c.idle(now) >= s.forgetAfter
	case w.mode() == open:
		return !w.openPending(s, now) && w.openAgo(now) >= s.forgetAfter
	case w.mode() == halfOpen:
		idle := c.idle(now)
		return idle >= s.forgetAfter+s.probeTimeout && w.leaseLeft(s, now, idle) <= 0
	}
	return false
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

// The notes of a core, for which its word has no room. A caller makes a note before
// the CAS that makes it matter. So a caller that reads the word first and the note
// second finds the note that belongs to the word, or a newer one.
//
// A period is the time for which a breaker is half-open: one stay, and one more
// each time that overdue probes lose their slots. The result of such a probe still
// counts while the period lasts. Otherwise a breaker would never close where healthy
// calls take longer than ProbeTimeout.

// notePeriod notes the period that a caller is about to begin; the caller has read the
// word as was. If the word has changed since, there is nothing to note.
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
