package atomicbreaker

import "time"

// A word is the whole state of one breaker. Every change is one CAS, so that
// no caller ever sees half of one. The zero word is a healthy breaker: closed,
// generation zero, no failures.
//
//	 63..61  60..41   40......................................0
//	┌──────┬────────┬──────────────────────────────────────────┐
//	│ mode │ gen 20 │ payload 41, a union by mode:             │
//	└──────┴────────┴──────────────────────────────────────────┘
//	Closed            streak 5 │ spare 4 │ fails 32
//	Open              streak 5 │ until 36                        1 ms ticks
//	HalfOpen          streak 5 │ inflight 5 │ ok 5 │ lease 26    128 ms ticks
//	Tombstone         zero; the cell has left its group, gen is its last
//
// gen goes up with every change of mode and every reset: it names one
// unbroken stay in one mode. A permit carries mode and gen, and a result whose
// mode and gen are not the word's comes too late.
//
// until and lease are deadlines since the breaker's epoch, modulo their width.
type word uint64

// Modes. Three to six are reserved.
const (
	closed    = 0
	open      = 1
	halfOpen  = 2
	tombstone = 7
)

const (
	modeShift     = 61
	genShift      = 41
	genMask       = 1<<20 - 1
	payloadMask   = 1<<genShift - 1
	streakShift   = 36
	streakMask    = 31 // also the longest streak: it saturates
	failsMask     = 1<<32 - 1
	untilMask     = 1<<36 - 1
	inflightShift = 31
	okShift       = 26
	probeMask     = 31
	leaseMask     = 1<<26 - 1
)

const (
	openTick  = time.Millisecond
	leaseTick = 128 * time.Millisecond

	// forever is the deadline that never comes, and notForever what an equal
	// real deadline is moved to.
	forever    = untilMask
	notForever = 0

	// latched is a time to stay open that means "until Reset". So does
	// anything from half the range of a deadline, 1.09 years, as a deadline
	// further ahead could not be told from one that has passed.
	latched       = time.Duration(-1)
	latchedBeyond = (untilMask + 1) / 2 * openTick

	// maxProbeTimeout keeps a lease, rounded up, under half its range.
	maxProbeTimeout = ((leaseMask+1)/2 - 2) * leaseTick
)

func (w word) mode() uint64 { return uint64(w) >> modeShift }

// state is what the mode says without a clock. A dead cell's key is healthy.
func (w word) state() State {
	if w.mode() == tombstone {
		return Closed
	}
	return State(w.mode())
}

// stay is what a permit carries: mode and generation, with an empty payload.
// For a closed breaker it is also the word of a breaker without failures.
func (w word) stay() word { return w &^ payloadMask }

func (w word) gen() uint32    { return uint32(w>>genShift) & genMask }
func (w word) streak() int    { return int(w>>streakShift) & streakMask }
func (w word) fails() uint32  { return uint32(w & failsMask) }
func (w word) until() uint64  { return uint64(w & untilMask) }
func (w word) inflight() int  { return int(w>>inflightShift) & probeMask }
func (w word) ok() int        { return int(w>>okShift) & probeMask }
func (w word) lease() uint64  { return uint64(w & leaseMask) }
func (w word) pristine() bool { return w.mode() == closed && w == w.stay() }

// enter starts a stay in mode with an empty payload. A generation never
// becomes zero again, so that zero says "has never changed its mode".
func (w word) enter(mode uint64) word {
	return word(mode<<modeShift | uint64(generation(uint64(w.gen())+1))<<genShift)
}

// generation is what a word can hold of the number of a stay: 0, and then 1 to
// genMask over and over.
func generation(n uint64) uint32 {
	if n == 0 {
		return 0
	}
	return uint32((n-1)%genMask) + 1
}

// bury turns a pristine word into the tombstone of its generation.
func (w word) bury() word { return w | tombstone<<modeShift }

func (w word) withStreak(n int) word { return w | word(min(n, streakMask))<<streakShift }

func (w word) withProbes(inflight, ok int, lease uint64) word {
	const fields = probeMask<<inflightShift | probeMask<<okShift | leaseMask
	return w&^fields | word(inflight)<<inflightShift | word(ok)<<okShift | word(lease)
}

// admission is how a word answers a call.
type admission uint8

const (
	admitted admission = iota
	rejectedOpen
	rejectedProbes
)

// admit returns the word after one more call has asked for admission at now,
// which must have been read after the word: a deadline further ahead than any
// that can have been set by then has wrapped, and has passed.
func (w word) admit(s *settings, now time.Duration) (word, admission) {
	switch w.mode() {
	case open:
		if w.openPending(s, now) {
			return w, rejectedOpen
		}
		return w.enter(halfOpen).withStreak(w.streak()).withProbes(1, 0, s.leaseFrom(now)), admitted
	case halfOpen:
		if n := w.inflight(); n < s.probes {
			// Admission renews the lease, so that it can only expire when
			// every probe in flight has had the whole of it.
			return w.withProbes(n+1, w.ok(), s.leaseFrom(now)), admitted
		}
		if w.leasePending(s, now) {
			return w, rejectedProbes
		}
		// All probes are overdue. The new generation frees their slots and
		// makes their results late; what earlier ones proved stays proven.
		return w.enter(halfOpen).withStreak(w.streak()).withProbes(1, w.ok(), s.leaseFrom(now)), admitted
	}
	return w, admitted
}

// succeed returns the word after a success in this stay.
func (w word) succeed(s *settings) (word, Verdict) {
	switch w.mode() {
	case closed:
		return w.stay(), Counted
	case halfOpen:
		if w.inflight() == 0 {
			return w, Late // a second result of one permit
		}
		if w.ok()+1 >= s.closeAfter {
			return w.enter(closed), Recovered
		}
		return w.withProbes(w.inflight()-1, w.ok()+1, w.lease()), Counted
	}
	return w, Late
}

// trips reports whether a failure in this stay opens the breaker. Only then
// does fail look at the clock.
func (w word) trips(s *settings) bool {
	return w.mode() == halfOpen || w.mode() == closed && w.fails()+1 >= s.threshold
}

// openedBy is the reason if a failure opens the breaker, which is another if it
// was closed.
func (w word) openedBy(why Reason) Reason {
	if w.mode() == closed {
		return ReasonThreshold
	}
	return why
}

// fail returns the word after a failure in this stay.
func (w word) fail(s *settings, now time.Duration) (word, Verdict) {
	switch {
	case w.mode() == halfOpen && w.inflight() == 0:
		return w, Late // a second result of one permit
	case w.trips(s):
		return w.trip(s, now), Tripped
	case w.mode() == closed:
		return w + 1, Counted // below the threshold, so fails cannot overflow
	}
	return w, Late
}

// trip opens the breaker.
func (w word) trip(s *settings, now time.Duration) word {
	streak := min(w.streak()+1, streakMask)
	return w.enter(open).withStreak(streak) | word(s.openUntil(streak, now))
}

// neutral returns the word after a call in this stay ended without an outcome.
func (w word) neutral() (word, Verdict) {
	switch w.mode() {
	case closed:
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
// vouches for the present whatever the mode.
func (w word) recordSuccess() (word, Verdict) {
	if w.mode() == closed {
		return w.stay(), Counted
	}
	return w.enter(closed), Recovered
}

// recordFailure returns the word after a failure without a permit at now,
// which must have been read after the word.
func (w word) recordFailure(s *settings, now time.Duration) (word, Verdict) {
	switch {
	case w.mode() == open && w.openPending(s, now):
		return w, Late
	case w.mode() == closed && !w.trips(s):
		return w + 1, Counted
	}
	return w.trip(s, now), Tripped
}

// openPending reports whether an open word still rejects at now.
func (w word) openPending(s *settings, now time.Duration) bool {
	return w.until() == forever || pending(w.until(), ticks(now, openTick), untilMask, s.openBound)
}

// leasePending reports whether a half-open word's probes may still report.
func (w word) leasePending(s *settings, now time.Duration) bool {
	return pending(w.lease(), ticks(now, leaseTick), leaseMask, s.leaseBound)
}

// pending reports whether deadline is still ahead of now, modulo mask+1. One
// that is more than bound ahead cannot have been set: it passed so long ago
// that the clock has gone round. Without that test it would hold for half the
// range; with it, for at most one more bound.
func pending(deadline, now, mask, bound uint64) bool {
	ahead := (deadline - now) & mask
	return 0 < ahead && ahead <= bound
}

// ticks rounds d down, and deadline rounds it up: nothing ends early.
func ticks(d, tick time.Duration) uint64    { return uint64(d / tick) }
func deadline(d, tick time.Duration) uint64 { return uint64((d + tick - 1) / tick) }
