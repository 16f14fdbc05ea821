package atomicbreaker

import (
	"math"
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
)

// A word is the whole state of one breaker. Every change is one CAS, so that
// no caller ever sees half of one. The zero word is a healthy breaker: closed,
// generation zero, no failures.
//
//	 63..61  60..41   40......................................0
//	┌──────┬────────┬──────────────────────────────────────────┐
//	│ mode │ gen 20 │ payload 41, a union by mode:             │
//	└──────┴────────┴──────────────────────────────────────────┘
//	Closed            logged 1 │ watched 1 │ spare 7 │ fails 32
//	                  if it is logged, see failure_log.go
//	Open              streak 5 │ until 36                        1 ms ticks
//	HalfOpen          streak 5 │ inflight 5 │ ok 5 │ failed 5 │ lease 21    128 ms ticks
//	ForcedOpen        zero
//	Disabled          zero
//	Leaving           nonce 41; a cell that is closed and about to be retired
//	Tombstone         zero; the cell has left its group, gen is its last
//
// gen goes up with every change of mode and every reset, and when overdue probes lose their
// slots: it names a stay. A permit carries mode and gen, and a result whose mode and gen are
// not the word's comes too late, but for that of an overdue probe; see core.overdue.
//
// until and lease are deadlines since the breaker's epoch, modulo their width.
type word uint64

// Modes.
const (
	closed     = 0
	open       = 1
	halfOpen   = 2
	forcedOpen = 3
	disabled   = 4
	leaving    = 5
	absentMode = 6 // in no word: of a permit for an absent key
	tombstone  = 7
)

const (
	modeShift     = 61
	modeMask      = 7 << modeShift
	genShift      = 41
	genMask       = 1<<20 - 1
	payloadMask   = 1<<genShift - 1
	streakShift   = 36
	streakMask    = 31 // also the longest streak: it saturates
	failsMask     = 1<<32 - 1
	untilMask     = 1<<36 - 1
	inflightShift = 31
	okShift       = 26
	failedShift   = 21
	probeMask     = 31
	leaseMask     = 1<<21 - 1

	// watched says that successes count too: always in a Breaker with windows or
	// totals, and in the windows of a cell from the first failure or slow call on. A cell
	// whose mark was replaced has it too, as nobody knows what is in its windows.
	watched word = 1 << 39

	// logged says that the failures are in a log; see failure_log.go.
	logged word = 1 << 40
)

const (
	openTick  = time.Millisecond
	leaseTick = 128 * time.Millisecond

	// forever is the deadline that never comes.
	forever = untilMask

	// latched is a time to stay open that means "until Reset".
	latched = time.Duration(-1)

	// longestOpen bounds open times, and ForgetAfter: it is less than half the range of a
	// deadline, or one ahead could not be told from one that has passed.
	longestOpen = 365 * 24 * time.Hour

	// maxProbeTimeout keeps a lease, rounded up, under half its range.
	maxProbeTimeout = 37 * time.Hour
)

func (w word) mode() uint64 { return uint64(w) >> modeShift }

// state returns the state of a mode without a clock. A dead cell's key is healthy.
func (w word) state() State {
	if w.mode() > disabled {
		return Closed
	}
	return State(w.mode())
}

// living returns the closed word of a cell that was about to be retired, which
// has no failures in a row. A CAS that puts anything in its place keeps the
// cell.
func (w word) living() word {
	if w.mode() == leaving {
		return w&(genMask<<genShift) | watched
	}
	return w
}

// stay returns mode and generation, as a permit carries them, with an empty payload.
// For a closed breaker it is also the word of a breaker without failures.
func (w word) stay() word { return w &^ payloadMask }

func (w word) gen() uint32    { return uint32(w>>genShift) & genMask }
func (w word) until() uint64  { return uint64(w & untilMask) }
func (w word) inflight() int  { return int(w>>inflightShift) & probeMask }
func (w word) ok() int        { return int(w>>okShift) & probeMask }
func (w word) failed() int    { return int(w>>failedShift) & probeMask }
func (w word) lease() uint64  { return uint64(w & leaseMask) }
func (w word) pristine() bool { return w.mode() == closed && w == w.stay() }
func (w word) watched() bool  { return w&watched != 0 }

// streak is zero while closed, which has other things in its place.
func (w word) streak() int {
	if w.mode() == closed {
		return 0
	}
	return int(w>>streakShift) & streakMask
}

// enter starts a stay in mode with an empty payload. A generation never
// becomes zero again, so that zero says "has never changed its mode".
func (w word) enter(mode uint64) word {
	return word(mode<<modeShift | uint64(w.gen()%genMask+1)<<genShift)
}

// generation returns the number of a stay as a word holds it: 0, and then 1 to
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

func (w word) withLease(lease uint64) word { return w&^leaseMask | word(lease) }

// probe starts a half-open stay with one probe in flight.
func (w word) probe(lease uint64) word {
	return (w.enter(halfOpen).withStreak(w.streak()) + 1<<inflightShift).withLease(lease)
}

// admit returns the word after one more call has asked a breaker that rejects, or lets
// probes through, for admission at now, or why it has none. now must have been read after
// the word: a deadline further ahead than any that can have been set by then has wrapped,
// and has passed. In a half-open breaker, idle is core.idle(now), read after both.
func (w word) admit(s *settings, now, idle time.Duration) (word, error) {
	switch w.mode() {
	case open:
		if w.openPending(s, now) {
			return w, ErrOpen
		}
		return w.probe(s.leaseFrom(now)), nil
	case halfOpen:
		if w.inflight() < s.probes {
			// Admission renews the lease, so that it can only expire when
			// every probe in flight has had the whole of it.
			return (w + 1<<inflightShift).withLease(s.leaseFrom(now)), nil
		}
		if w.leaseLeft(s, now, idle) > 0 {
			return w, ErrTooManyProbes
		}
		// All probes are overdue. The new generation frees their slots; what
		// earlier ones have shown stays shown, and theirs still counts.
		const results = probeMask<<okShift | probeMask<<failedShift
		return w.probe(s.leaseFrom(now)) | w&results, nil
	}
	return w, ErrOpen // it is forced
}

// The bits of a permit are the stay that admitted the call, or of a permit for an absent
// key what absentBits returns. If a policy asks how long calls take, they have in the
// payload when the call began: 1 + the time since the epoch in units of 1.024 µs, modulo
// 26 days. Such bits are inverted. So no word is equal to them, and no report ends
// unseen; they can be told by their mode, which is odd. In a Breaker that counts all
// calls they are inverted too, with a payload of 0.
const (
	begunUnit = 10 // bits of nanoseconds
	untimed   = -1 // inverts the bits, and is packed as 0
)

// voidStay is the stay of no word: with totals, a permit for what only a shadow lets through is late, and counted.
const voidStay word = disabled << modeShift

// bitsFor returns the bits of a permit of a stay for a call that began then. Zero
// means that nobody asks.
func bitsFor(stay word, begun time.Duration) uint64 {
	if begun == 0 {
		return uint64(stay)
	}
	return ^(uint64(stay) | uint64(begun>>begunUnit+1)&payloadMask)
}

// inverted reports whether bits are inverted, and decoded returns them as they were before.
func inverted(bits uint64) bool { return bits>>modeShift&1 != 0 }

func decoded(bits uint64) word { return word(bits ^ -(bits >> modeShift & 1)) }

// took returns how long it is since the call of inverted bits began, by the clock of the
// settings that have timed it, or zero if it was not.
func took(bits uint64, s *settings) time.Duration {
	begun := uint64(decoded(bits) & payloadMask)
	if begun == 0 || !s.rules.slow {
		return 0
	}
	return time.Duration((uint64(s.now()>>begunUnit)+1-begun)&payloadMask) << begunUnit
}

// The transitions that results make, as functions of the word and the settings.

// record returns the word with a result counted, and the verdict on it. If that is Tripped
// or Recovered, the caller opens or closes the word, and next is for the event: a half-open
// word has the last probe counted.
func (w word) record(r result, s *settings) (next word, v Verdict) {
	switch {
	case w.mode() == disabled:
		return w, Counted
	case w.mode() == closed:
		return w.recordClosed(r, s)
	case w.mode() == forcedOpen:
		return w, Late
	case r.is(direct) && r.outcome == Success:
		return w, Recovered
	case w.mode() == open && !r.is(expired): // a direct result, as no permit is of an open stay
		return w, Late
	case r.is(direct):
		return w, Tripped
	}
	return w.recordProbe(r, s)
}

// recordClosed is record for a closed word. Where the policy has a KOfN, core.remember
// counts, and makes the next word.
func (w word) recordClosed(r result, s *settings) (next word, v Verdict) {
	row := w & failsMask
	enough := r.outcome == Failure && s.rules.threshold != 0 && uint32(row) >= s.rules.threshold-1
	switch {
	case !r.is(withheld) && (enough || r.is(tripping|reached)):
		return w, Tripped
	case enough: // the next failure may open the key
		return w, Counted
	case r.outcome == Ignored:
		return w, Counted
	case r.outcome == Failure && (s.rules.threshold != 0 || s.rules.inARow):
		return w.flagged() | min(row+1, failsMask), Counted
	}
	return w.flagged(), Counted
}

// recordProbe is record for a half-open word and the result of a probe.
func (w word) recordProbe(r result, s *settings) (next word, v Verdict) {
	next = w
	if r.is(slotted) {
		if w.inflight() == 0 { // a second result of its permit, for sure
			return w, Late
		}
		next -= 1 << inflightShift
	}
	switch { // ok and failed are below CloseAfter together, so neither can overflow
	case r.outcome == Ignored:
		return next, Counted
	case r.is(bad):
		next += 1 << failedShift
	default:
		next += 1 << okShift
	}
	failed, all := uint64(next.failed()), uint64(next.ok()+next.failed())
	switch {
	case r.is(tripping) || failed > 0 && s.probeRate == 0: // that may be one from before an Update
		return next, Tripped
	case all < uint64(s.closeAfter):
		return next, Counted
	case s.probeRate != 0 && failed*million >= s.probeRate*all:
		return next, Tripped
	}
	return next, Recovered
}

// flagged clears the failures of a closed word, and keeps watched.
func (w word) flagged() word { return w.stay() | w&watched }

// under returns the word as the settings read it. A closed word that counts in the other
// way, from before Update, has no failures.
func (w word) under(s *settings) word {
	if w.mode() == closed && (w&logged != 0) != (s.rules.last != 0) {
		return w.flagged()
	}
	return w
}

// close returns the word after the breaker was closed, whatever it was.
func (w word) close(s *settings) word {
	w = w.enter(closed)
	if s.watchesAll() {
		w |= watched
	}
	return w
}

// trip opens the breaker for d: zero means the time that the next streak stands for, and
// negative until Reset.
func (w word) trip(s *settings, d, now time.Duration) word {
	streak := min(w.streak()+1, streakMask)
	if d == 0 {
		d = s.drawOpen(streak)
	} else if d = min(d, s.maxOpen); d < 0 {
		d = latched
	}
	return w.enter(open) | word(streak)<<streakShift | word(s.until(d, now))
}

// countInRow is record for a closed stay if the policy counts failures in a row alone and
// this result opens nothing.
func (w word) countInRow(stay word, o Outcome, s *settings) (next word, ok bool) {
	switch {
	case w&^failsMask != stay:
		return w, false
	case o == Failure:
		return w + 1, uint32(w) < s.rules.inRowAlone
	}
	return stay, o == Success && s.rules.inRowAlone != 0
}

// Deadlines are ticks since the epoch, modulo the width of their field.

// openPending reports whether an open word still rejects at now. A deadline that is more
// than openBound ahead cannot have been set: it passed so long ago that the clock has wrapped.
func (w word) openPending(s *settings, now time.Duration) bool {
	ahead := (w.until() - ticks(now, openTick)) & untilMask
	return w.until() == forever || 0 < ahead && ahead <= s.openBound
}

// openOver reports whether the time of an open word has passed at now, after
// which the word may have been written. A quarter of the range is more than
// anybody is stopped between two steps.
func (w word) openOver(now time.Duration) bool {
	return w.until() != forever && w.openAgo(now) < (untilMask+1)/4*openTick
}

// openAgo returns how long ago the time of an open word has passed, modulo the
// range.
func (w word) openAgo(now time.Duration) time.Duration {
	return time.Duration((ticks(now, openTick)-w.until())&untilMask)*openTick + now%openTick
}

// ticks rounds d down.
func ticks(d, tick time.Duration) uint64 { return uint64(d / tick) }

// openLeft returns how long an open word still rejects, as users see it: math.MaxInt64 if
// that never ends.
func (w word) openLeft(now time.Duration) time.Duration {
	if w.until() == forever {
		return math.MaxInt64
	}
	ahead := (w.until() - ticks(now, openTick)) & untilMask
	if ahead > untilMask/2 {
		return 0
	}
	return max(0, time.Duration(ahead)*openTick-now%openTick)
}

// leaseLeft returns how long the probes of a half-open word may keep their slots;
// zero or less if they are overdue. idle is how long ago the newest was admitted,
// or less if another caller is about to be. It is exact, and does not wrap; the lease in the
// word, which is rounded up, is right also if Update has changed ProbeTimeout.
func (w word) leaseLeft(s *settings, now, idle time.Duration) time.Duration {
	ahead := (w.lease() - ticks(now, leaseTick)) & leaseMask
	if ahead > leaseMask/2 {
		return 0
	}
	return min(time.Duration(ahead)*leaseTick-now%leaseTick, s.leaseBound-idle)
}

// openFor returns how long the streak-th opening in a row lasts, or latched.
func (s *settings) openFor(streak int) time.Duration {
	switch d := s.openTimeout; {
	case s.backoff != nil:
		return s.backoff[streak-1]
	case d == latched:
		return latched
	case d > s.growTo>>(streak-1): // d<<(streak-1) > growTo, without overflow
		return s.growTo
	default:
		return d << (streak - 1)
	}
}

// drawOpen is openFor with Jitter.
func (s *settings) drawOpen(streak int) time.Duration {
	d := s.openFor(streak)
	if d == latched || s.jitter == 0 {
		return d
	}
	return d - time.Duration(s.jitter*s.random()*float64(d))
}

// until returns the deadline of an open time of d. It is rounded down, so that a
// call made d later is admitted.
func (s *settings) until(d, now time.Duration) uint64 {
	if d == latched {
		return forever
	}
	until := ticks(now+d, openTick) & untilMask
	if until == forever {
		until--
	}
	return until
}

// leaseFrom returns the lease of a probe that starts now. It is rounded up: until
// ProbeTimeout has passed, the slot is the probe's.
func (s *settings) leaseFrom(now time.Duration) uint64 {
	return ticks(now+s.probeTimeout+leaseTick-1, leaseTick) & leaseMask
}

// callStart returns when a call that was just admitted has begun, or zero if nobody
// will ask, or untimed if its permit is marked all the same.
func (s *settings) callStart() time.Duration {
	switch {
	case s.rules.slow:
		return max(s.now(), 1)
	case s.totals:
		return untimed
	}
	return 0
}

// now returns the time since the epoch, by the monotonic clock.
func (s *settings) now() time.Duration { return atomics.Since(s.epoch) }

// clock is like now and, if there may be an event, also returns the time of
// day.
func (s *settings) clock() (now time.Duration, at time.Time) {
	if !s.listens {
		return s.now(), at
	}
	at = atomics.Now()
	return at.Sub(s.epoch), at
}
