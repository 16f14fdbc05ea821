package atomicbreaker

import (
	"fmt"
	"math"

	"github.com/latchfree/latchfree/internal/atomics"
)

// How a closed word remembers more than 32 calls: it has the number of the last
// one, its place, and the places of the last failures are in a log beside the
// word. DESIGN.md has the invariants.
//
//	 40     39..36  35        34       33..27  26......0
//	┌──────┬───────┬─────────┬────────┬───────┬──────────┐
//	│ long │ many  │ watched │ recent │ many  │ place 27 │
//	└──────┴───────┴─────────┴────────┴───────┴──────────┘
//
// The first failures, if they are in a row, are counted as without any history.
// With the first success after them the word becomes a run: many failures and
// then successes, as many as the place is beyond its block. With the next
// failure it becomes a log: many says how many slots of the log have been
// written since, and wraps from twice their number to that. When none of
// the last calls has failed, all are over, and the word is the one without
// failures.
//
// Places number calls modulo 2^27. A run takes a block of 1024 places by an Add to
// failureLog.blocks; a log that reaches the next block raises blocks, so that no run
// begins there. With m slots written, the j-th last failure is in slot (m - j) mod size,
// and beyond the m-th in the run that failureLog.first describes. Slot m mod size is
// next, and counts as empty.
//
// A failure in a run or log opens the breaker if the (k-1)-th last failure of some KOfN
// was less than n calls ago; Consecutive(t) is KOfN(t, t). Rules of another kind read a
// long word as the short one that it stands for. A short history becomes long as its
// failures in a row.
const (
	aRun = long | recent
	aLog = long

	placeMask = 1<<27 - 1

	// manyLow are the bits of many below recent and watched, and manyHigh
	// those above.
	manyLow       = 1<<7 - 1
	manyLowShift  = 27
	manyLowBits   = 7
	manyHigh      = 1<<4 - 1
	manyHighShift = 36
	manyMask      = 1<<11 - 1

	// maxLast is how many calls a KOfN looks back on at most, and a block of
	// places: a run is over when so many calls have succeeded after it, so the
	// places of its successes are in one.
	maxLast   = 1 << blockBits
	blockBits = 10
	blockMask = placeMask >> blockBits
)

func (w word) place() uint32 { return uint32(w & placeMask) }

func (w word) many() int {
	return int(w>>manyLowShift&manyLow | w>>manyHighShift&manyHigh<<manyLowBits)
}

// since returns a run or a log in the place of w.
func (w word) since(form word, many int, place uint32) word {
	m := word(many)
	return w.flagged() | form | m>>manyLowBits<<manyHighShift | m&manyLow<<manyLowShift | word(place&placeMask)
}

// remember completes the rules once all policies are applied: a KOfN decides
// how the last calls are remembered.
func (r *rules) remember() error {
	most, row := maxHistory, int(r.threshold)
	if r.long {
		most = maxLast
	}
	switch {
	case len(r.recent) == 0:
		return nil
	case row > most:
		return fmt.Errorf("%v: with a KOfN must be at most Consecutive(%d)", Consecutive(row), most)
	case !r.long:
		r.history |= lastCalls(row)
		return nil
	case row != 0:
		r.recent = append(r.recent, kOfN{row, row}) // which is the same
	}
	// So many failures in a row open the breaker, whatever was before.
	r.threshold, r.history = math.MaxInt32, 0
	for _, k := range r.recent {
		r.threshold = min(r.threshold, uint32(k.k))
		r.last = max(r.last, k.n)
	}
	return nil
}

// A failureLog has the places of the last failures of long words. It outlasts
// the stays of its core: slots that the word does not count are void.
type failureLog struct {
	// blocks is how many blocks of places have been taken, counted for ever.
	// Only goes up: a caller that begins a run takes the next block, and a caller
	// whose log reaches a block takes that if nobody has.
	blocks atomics.Uint32

	// first is the run with which a log began: its block and how many
	// failures. Set by CAS of a caller that is about to make it matter; see note.
	first atomics.Uint32

	// slots are a ring. Set by CAS of a caller that is about to count a failure. A slot
	// that the core's word counts does not change until it is the next to be written.
	slots []atomics.Uint32
}

// failureLog returns the log of a core, which it makes if there is none. It is
// large enough for all rules: Update may bring others, and operations with
// earlier ones go on.
func (c *core) failureLog() *failureLog {
	if l := c.log.Load(); l != nil {
		return l
	}
	return c.log.Install(&failureLog{slots: make([]atomics.Uint32, maxLast)})
}

// inARow is word.inARow of a closed word that may be long. See ago for when it is
// right.
func (c *core) inARow(w word) (n uint32) {
	if w&long == 0 {
		return w.inARow()
	}
	for {
		if ago, ok := c.ago(w, int(n)+1); !ok || ago != int(n) {
			return n
		}
		n++
	}
}

// reserve returns the first place of a block that nobody else takes.
func (l *failureLog) reserve() uint32 { return l.blocks.Add(1) << blockBits & placeMask }

// reach follows the places of a log into the next block, so that no run begins
// there.
//
// It retries only if another caller has taken a block.
func (c *core) reach(place uint32) {
	if place&(maxLast-1) != 0 {
		return
	}
	for l := c.log.Load(); ; {
		taken := l.blocks.Load()
		ahead := (place>>blockBits - taken) & blockMask
		if ahead == 0 || ahead > blockMask/2 || l.blocks.CompareAndSwap(taken, taken+ahead) {
			return
		}
	}
}

// note makes a slot hold the note of a failure after a word: the same for all callers
// that report one, and a value that was never there before. It reports whether it has;
// if not, the word has changed. If a CAS from that word then succeeds, the slot
// still holds it.
//
// No value returns to a slot. Let v be what failures after a word W note; places
// are not used twice, so only callers that have read W note v. Suppose that v is
// the first value that returns. The CAS that puts it back replaces a value e, which
// its caller has read while the word was W. If e was read before v was first there,
// e has returned earlier than v. If it was read later, another caller has replaced
// v while the word was W or before, and has read v there under another word. That
// word was not later than W, and not earlier, as v was not there before W.
//
// So a slot on which a successful CAS of the word relies is final. A caller that
// replaces it has read it under a later word whose next slot it is, which comes a
// whole ring later. For the run in first, the words RUN of one burst stand for W.
//
// It retries only if another caller has written the slot: for the same
// word, or one that was stopped since an earlier word.
func (c *core) note(slot *atomics.Uint32, what uint32, w word) bool {
	for {
		was := slot.Load()
		if was == what {
			return true
		}
		// If the word is still the same, it was the same when the slot was read. So
		// nobody puts that value there again.
		if word(c.word.Load()) != w {
			return false
		}
		if slot.CompareAndSwap(was, what) {
			return true
		}
	}
}

// ago returns how many calls before the last one that a long word counts its
// j-th last failure was, from j = 1. It is right if the word is the core's when
// it has returned. If ok is false, there was none, or it is forgotten.
func (c *core) ago(w word, j int) (calls int, ok bool) {
	end, many := w.place()&^(maxLast-1), w.many()
	if w&recent == 0 {
		l := c.log.Load()
		if j <= min(many, len(l.slots)-1) {
			return int((w.place() - l.slots[(many-j)%len(l.slots)].Load()) & placeMask), true
		}
		if many >= len(l.slots) {
			return 0, false
		}
		first := l.first.Load()
		end, j, many = first>>11<<blockBits, j-many, int(first&manyMask)
	}
	return int((w.place()-end)&placeMask) + j - 1, j <= many
}

// enough reports whether one more failure opens a breaker with a long word.
func (c *core) enough(w word, s *settings) bool {
	for _, k := range s.rules.recent {
		if k.k == 1 {
			return true
		}
		if ago, ok := c.ago(w, k.k-1); ok && ago+1 < k.n {
			return true
		}
	}
	return false
}

// amongLast returns how many of the last n calls have failed.
func (c *core) amongLast(w word, n int) (failed int) {
	for {
		if ago, ok := c.ago(w, failed+1); !ok || ago >= n {
			return failed
		}
		failed++
	}
}

// shorten returns the short word for which a long word stands under rules that need
// no long one. Update brings such rules.
func (c *core) shorten(w word, s *settings) word {
	if w&long == 0 {
		return w
	}
	history, row := uint32(0), 0
	for j := 1; ; j++ {
		ago, ok := c.ago(w, j)
		if ok && ago == row {
			row++
		}
		if ok && ago < maxHistory {
			history |= 1 << ago
		}
		if !ok || ago >= maxHistory && ago >= row {
			break
		}
	}
	if s.rules.history != 0 {
		return w.withHistory(history & s.rules.history)
	}
	return w.flagged() | word(row)
}

// failures returns the count of a closed word by the settings, with one more failure
// or without. See ago for when it is right.
func (c *core) failures(w word, s *settings, more bool) int {
	switch {
	case w&long != 0 && s.rules.last == 0:
		w = c.shorten(w, s)
	case w&long != 0 && more:
		return 1 + c.amongLast(w, s.rules.last-1)
	case w&long != 0:
		return c.amongLast(w, s.rules.last)
	}
	if more {
		w = w.miss(s)
	}
	return w.failures(s)
}

// recall is the change of a closed word by a result for which the word is not
// enough. If ok is false, the word has changed.
func (r *report) recall(w word) (x change, v Verdict, ok bool) {
	s, failed := r.settings, r.result.outcome == Failure
	if s.rules.last == 0 {
		w = r.core.shorten(w, s)
	}
	if failed && (w&long != 0 && r.core.enough(w, s) || w&long == 0 && w.trips(s)) {
		now, at := s.clock()
		return change{next: w.trip(s, now), why: ReasonThreshold, at: at}, Tripped, true
	}
	x.next, ok = r.remember(w, failed)
	return x, Counted, ok
}

// remember returns the closed word after one more result, which leaves it
// closed, and makes the note in the log that belongs to it. If ok is false, the
// word has changed.
func (r *report) remember(w word, failed bool) (next word, ok bool) {
	s := r.settings
	switch {
	case failed && w&long == 0:
		return w.miss(s), true
	case failed:
		return r.core.noteFailure(w)
	case w&long == 0 && s.rules.last == 0:
		return w.pass(s), true
	case w&long == 0:
		return r.run(w), true
	}
	return r.core.passLong(w, s), true
}

// passLong returns a long word after one more success.
func (c *core) passLong(w word, s *settings) word {
	if ago, _ := c.ago(w, 1); ago+1 >= s.rules.last {
		return w.flagged()
	}
	place := (w.place() + 1) & placeMask
	c.reach(place)
	return w&^placeMask | word(place)
}

// run returns the word after the first success after failures in a row.
func (r *report) run(w word) word {
	row := min(w.inARow(), maxLast)
	if row == 0 || r.settings.rules.last == 1 {
		return w.flagged()
	}
	if !r.began {
		r.began, r.block = true, r.core.failureLog().reserve()
	}
	return w.since(aRun, int(row), r.block+1)
}

// noteFailure writes into the log that a call has failed after a long word, and
// returns the word that says so.
func (c *core) noteFailure(w word) (next word, ok bool) {
	l, place, many := c.log.Load(), (w.place()+1)&placeMask, w.many()
	if w&recent != 0 {
		if !c.note(&l.first, w.place()>>blockBits<<11|uint32(many), w) {
			return w, false
		}
		many = 0
	}
	if !c.note(&l.slots[many%len(l.slots)], place, w) {
		return w, false
	}
	if many++; many == 2*len(l.slots) {
		many = len(l.slots)
	}
	c.reach(place)
	return w.since(aLog, many, place), true
}

// withhold returns the closed word after a result that should have opened the
// breaker, which may be a slow call that succeeded. If ok is false, the word has
// changed.
func (r *report) withhold(w word) (next word, ok bool) {
	s, failed := r.settings, r.result.outcome == Failure
	switch {
	case s.rules.last != 0:
		return r.remember(w, failed)
	case !failed:
		return w.pass(s), true
	case s.rules.history != 0 || !w.trips(s):
		return w.miss(s), true
	}
	return w, true // the next failure may open it
}

// failures returns the count of a word, if that is closed. If the log is of another word by then, it reads the core again.
func (v *view) failures() int {
	for v.word.mode() == closed && v.word&long != 0 {
		failed := v.core.failures(v.word, v.settings, false)
		// LP(Snapshot): this load. While the word is the same, so is what the
		// log says of it.
		if word(v.core.word.Load()) == v.word {
			return failed
		}
		*v = v.core.read()
	}
	if v.word.mode() != closed {
		return 0
	}
	return v.word.failures(v.settings)
}
