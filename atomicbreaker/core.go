package atomicbreaker

import (
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
)

// A core is a word and what interprets it: all of a Breaker, and the head of
// every cell of a Group. The zero core is a healthy breaker with the defaults.
type core struct {
	// Every transition is one CAS by whoever's result or call caused it.
	word atomics.Uint64

	// Nil means the defaults, until someone needs a clock. Goes from nil to
	// non-nil once, by CAS; a cell's is never nil.
	set atomics.Pointer[settings]

	// told is the number of generations whose events have been delivered, or
	// zero without a listener. Only who holds the feed writes it.
	told atomics.Uint64
}

// settings returns the core's settings and, in a zero core, installs the
// defaults, whose epoch every later caller then shares.
func (c *core) settings() *settings {
	if s := c.set.Load(); s != nil {
		return s
	}
	s, _ := new(Config).compile(nil) // the defaults are valid
	c.set.CompareAndSwap(nil, s)
	return c.set.Load()
}

// swap is the CAS of every transition. If it begins a generation and there is
// a listener, it publishes the event, and returns what the caller must deliver
// when it has nothing else left to do.
//
// at is when a deadline in next is counted from, if there is one. Otherwise the
// clock is read here, after w and before next is there: so events are in the
// order of their times.
func (c *core) swap(s *settings, w, next word, why Reason, at time.Time) (owed *feed, ok bool) {
	listens := s != nil && s.listens && w.gen() != next.gen()
	if listens && at.IsZero() {
		at = atomics.Now()
	}
	if !c.word.CompareAndSwap(uint64(w), uint64(next)) {
		return nil, false
	}
	if listens {
		owed = s.publish(&notice{core: c, gen: next.gen(), event: s.event(w, next, why, at)})
	}
	return owed, true
}

// admit asks for admission until an answer takes effect. It returns the word
// of the stay that admitted the call, or why none did. A tombstone is
// returned as it is.
//
// A CAS fails only when another caller's transition has succeeded.
func (c *core) admit() (word, admission, *feed) {
	for {
		w := word(c.word.Load())
		if w.mode() == closed || w.mode() == tombstone {
			// LP(Allow): a closed breaker admits when its word is read.
			return w, admitted, nil
		}
		s := c.settings()
		now, at := s.clock()
		next, a := w.admit(s, now)
		if a != admitted {
			// LP(Allow): a rejection takes effect when the word was read; the
			// deadline was still ahead later, when the clock was.
			return w, a, nil
		}
		why := ReasonOpenTimeout
		if w.mode() == halfOpen {
			why = ReasonProbeTimeout
		}
		// LP(Allow): a probe is admitted by this CAS.
		if owed, ok := c.swap(s, w, next, why, at); ok {
			return next, admitted, owed
		}
	}
}

// A step is what an operation did to a word.
type step struct {
	to    word // what it left behind
	wrote bool
	owed  *feed // what the caller must deliver, nil for nothing
}

// settle reports the outcome of a call admitted in stay.
//
// A CAS fails only when another caller's has succeeded, and within one stay
// only so many can: a failing one is followed by another stay.
func (c *core) settle(stay word, o Outcome) (v Verdict, did step) {
	s := c.settings()
	for {
		w := word(c.word.Load())
		if w.stay() != stay {
			// LP(Done): a late result takes effect when the word is read.
			return Late, step{to: w}
		}
		var next word
		var at time.Time
		why := ReasonRecovered
		switch o {
		case Success:
			next, v = w.succeed(s)
		case Ignored:
			next, v = w.neutral()
		default:
			var now time.Duration
			if w.trips(s) {
				now, at = s.clock()
			}
			next, v = w.fail(s, now)
			why = w.openedBy(ReasonProbeFailed)
		}
		if next == w {
			// LP(Done): what changes nothing takes effect when the word is
			// read.
			return v, step{to: w}
		}
		// LP(Done): all other results take effect by this CAS.
		if owed, ok := c.swap(s, w, next, why, at); ok {
			return v, step{next, true, owed}
		}
	}
}

// record reports an outcome without a permit; see settle. A tombstone is
// returned as it is.
func (c *core) record(o Outcome) (v Verdict, did step) {
	s := c.settings()
	for {
		w := word(c.word.Load())
		if w.mode() == tombstone {
			return Late, step{to: w}
		}
		var next word
		var at time.Time
		why := ReasonRecordSuccess
		if o == Success {
			next, v = w.recordSuccess()
		} else {
			var now time.Duration
			if w.mode() != closed || w.trips(s) {
				now, at = s.clock()
			}
			next, v = w.recordFailure(s, now)
			why = w.openedBy(ReasonRecordFailure)
		}
		if next == w {
			// LP(RecordSuccess, RecordFailure): nothing to change; a late
			// failure's deadline was still ahead after the word was read.
			return v, step{to: w}
		}
		// LP(RecordSuccess, RecordFailure): this CAS.
		if owed, ok := c.swap(s, w, next, why, at); ok {
			return v, step{next, true, owed}
		}
	}
}

// reset closes the breaker and starts a new stay, whatever the mode. A
// tombstone is returned as it is.
func (c *core) reset() (word, *feed) {
	s := c.set.Load()
	for {
		w := word(c.word.Load())
		if w.mode() == tombstone {
			return w, nil
		}
		next := w.enter(closed)
		// LP(Reset): this CAS.
		if owed, ok := c.swap(s, w, next, ReasonReset, time.Time{}); ok {
			return next, owed
		}
	}
}

// view is a word with what the clock adds to it.
type view struct {
	word    word
	state   State
	left    time.Duration // of the open time; latched if it never ends
	reading *settings     // nil for a zero core
}

// read observes the core without changing it. It takes at most two loads of
// the word, so it is wait-free.
func (c *core) read() view {
	w := word(c.word.Load())
	v := view{word: w, reading: c.set.Load()}
	switch w.mode() {
	case open:
		now := v.reading.now()
		if w.openPending(v.reading, now) {
			// LP(State): an open breaker is seen by the first load; its
			// deadline was still ahead later, when the clock was read.
			v.state, v.left = Open, w.openLeft(now)
			return v
		}
		// The time may have passed only after someone had closed the breaker.
		// LP(State): a second load decides. The same word has been there while
		// the clock was read. Another one was written meanwhile, so if it is
		// open its time has just begun.
		v.word = word(c.word.Load())
		switch {
		case v.word == w || v.word.mode() == halfOpen:
			v.state = HalfOpen
		case v.word.mode() == open:
			v.state, v.left = Open, v.word.openLeft(now)
		}
	case halfOpen:
		v.state = HalfOpen
	}
	// LP(State): any other word is what the first load says.
	return v
}

// openLeft returns how long an open word still rejects, or latched.
func (w word) openLeft(now time.Duration) time.Duration {
	if w.until() == forever {
		return latched
	}
	left := (w.until() - ticks(now, openTick)) & untilMask
	return max(0, time.Duration(left)*openTick-now%openTick)
}
