package atomicbreaker

import "github.com/latchfree/latchfree/internal/atomics"

// A KOfN looks back on the last calls. While any of them has failed, the word has the
// number of the last call, its place, and a log beside it has the places of the
// failures.
//
//	 40       39        38     37..27    26......0
//	┌────────┬─────────┬──────┬─────────┬──────────┐
//	│ logged │ watched │ last │ many 11 │ place 27 │
//	└────────┴─────────┴──────┴─────────┴──────────┘
//
// many counts the failures of a burst, and wraps from twice the number of slots to that
// number. last says that the last call has failed: whoever counts the next call first writes
// the place of that failure into its slot. DESIGN.md has bursts and the invariants.
const (
	last word = 1 << 38

	manyShift = 27
	manyMask  = 1<<11 - 1
	placeMask = 1<<manyShift - 1

	// maxLast is how many calls a KOfN looks back on at most, how many slots there are,
	// and how many places are in a block.
	maxLast   = 1 << blockBits
	blockBits = 10
	blockMask = placeMask >> blockBits

	// slotsOfPart is how many slots are allocated at once.
	slotsOfPart = 64
)

func (w word) place() uint32 { return uint32(w & placeMask) }
func (w word) many() int     { return int(w >> manyShift & manyMask) }

// at returns the logged word of a call in the place of w.
func (w word) at(place uint32, many int, failed bool) word {
	w = w.flagged() | logged | word(many)<<manyShift | word(place&placeMask)
	if failed {
		w |= last
	}
	return w
}

// A failureLog has the places of failures. It outlasts the bursts and stays of its core.
type failureLog struct {
	// blocks is how many blocks of places have been taken. Only goes up: a caller that
	// begins a burst takes the next block, and a caller whose burst reaches a block takes
	// that if nobody has. So no two bursts have a place in common before the places wrap.
	blocks atomics.Uint32

	// slots are a ring, in parts that are nil until a failure needs them. The i-th failure
	// of a burst is in slot i-1. A slot that the core's word counts does not change until
	// it is the next to be written.
	slots [maxLast / slotsOfPart]atomics.Pointer[[slotsOfPart]atomics.Uint32]
	size  int // of the ring, a power of two; less only in tests. Never changes
}

// slot returns the slot of the i-th failure of a burst.
func (l *failureLog) slot(i int) *atomics.Uint32 {
	at := uint(i-1) & uint(l.size-1)
	part := l.slots[at/slotsOfPart].Load()
	if part == nil {
		part = l.slots[at/slotsOfPart].Install(new([slotsOfPart]atomics.Uint32))
	}
	return &part[at%slotsOfPart]
}

// failureLog returns the log of a core, which it makes if there is none.
func (c *core) failureLog() *failureLog {
	if l := c.log.Load(); l != nil {
		return l
	}
	return c.log.Install(&failureLog{size: maxLast})
}

// reserve returns the first place of a block that nobody else takes.
func (l *failureLog) reserve() uint32 { return l.blocks.Add(1) << blockBits & placeMask }

// reach follows the places of a burst into the next block, so that no other begins there.
//
// It retries only if another caller has taken a block.
func (l *failureLog) reach(place uint32) {
	if place&(maxLast-1) != 0 {
		return
	}
	for {
		taken := l.blocks.Load()
		ahead := (place>>blockBits - taken) & blockMask
		if ahead == 0 || ahead > blockMask/2 || l.blocks.CompareAndSwap(taken, taken+ahead) {
			return
		}
	}
}

// remember returns the closed word after one more call, which leaves it closed, under a
// policy with a KOfN. If ok is false, the word has changed.
func (c *core) remember(w word, failed bool, s *settings) (next word, ok bool) {
	switch {
	case w&logged == 0 && failed:
		return w.at(c.failureLog().reserve(), 1, true), true
	case w&logged == 0:
		return w, true
	case !failed:
		if ago, _ := c.ago(w, 1); ago+1 >= s.rules.last {
			return w.flagged(), true
		}
	}
	l, place, many := c.log.Load(), (w.place()+1)&placeMask, w.many()
	if w&last != 0 && !c.note(l.slot(many), w) {
		return w, false
	}
	if failed {
		if many++; many == 2*l.size {
			many = l.size
		}
	}
	l.reach(place)
	return w.at(place, many, failed), true
}

// note makes a slot hold the place of a word, whose call has failed: a value that was
// never there before. It reports whether it has; if not, the word has changed. If a CAS
// from that word then succeeds, the slot still holds it.
//
// No value returns to a slot. Let v be the place of a word W; places are not used twice,
// so only callers that have read W note v. Suppose that v is the first value that
// returns. The CAS that puts it back replaces a value e, which its caller has read while
// the word was W. If e was read before v was first there, e has returned earlier than v.
// If it was read later, another caller has replaced v while the word was W or before,
// and has read v there under another word. That word was not later than W, and not
// earlier, as v was not there before W.
//
// So a slot on which a successful CAS of the word relies is final. A caller that replaces
// it has read it under a later word whose slot it is, which comes a whole ring later.
//
// It retries only if another caller has written the slot: for the same word, or one that
// was stopped since an earlier word.
func (c *core) note(slot *atomics.Uint32, w word) bool {
	for {
		was := slot.Load()
		if was == w.place() {
			return true
		}
		// If the word is still the same, it was the same when the slot was read. So
		// nobody puts that value there again.
		if word(c.word.Load()) != w {
			return false
		}
		if slot.CompareAndSwap(was, w.place()) {
			return true
		}
	}
}

// ago returns how many calls before the last one that a logged word counts its j-th last
// failure was, from j = 1. It is right if the word is the core's when it has returned. If
// ok is false, there was none, or it is no longer in the ring.
func (c *core) ago(w word, j int) (calls int, ok bool) {
	if w&last != 0 && j == 1 {
		return 0, true
	}
	l := c.log.Load()
	if j > min(w.many(), l.size) {
		return 0, false
	}
	return int((w.place() - l.slot(w.many()-j+1).Load()) & placeMask), true
}

// enough reports whether one more failure of a closed word is enough for a KOfN.
func (c *core) enough(w word, s *settings) bool {
	for _, p := range s.rules.kOfN {
		if p.k == 1 {
			return true
		}
		if w&logged != 0 {
			if ago, ok := c.ago(w, p.k-1); ok && ago+1 < p.n {
				return true
			}
		}
	}
	return false
}

// among returns how many of the last n calls of a logged word have failed, and inARow how
// many of the last calls of any closed word. For both see ago.
func (c *core) among(w word, n int) (failed int) {
	for {
		if ago, ok := c.ago(w, failed+1); !ok || ago >= n {
			return failed
		}
		failed++
	}
}

func (c *core) inARow(w word) (n int) {
	if w&logged == 0 {
		return int(w & failsMask)
	}
	for {
		if ago, ok := c.ago(w, n+1); !ok || ago != n {
			return n
		}
		n++
	}
}

// failures returns what the policy counts of a closed word, with one more failure or
// without. See ago for when it is right.
func (c *core) failures(w word, s *settings, more bool) (n int) {
	w = w.under(s)
	if more {
		n = 1
	}
	switch {
	case w&logged != 0:
		return n + c.among(w, s.rules.last-n)
	case s.rules.last != 0 || s.rules.threshold != 0 || s.rules.inARow:
		return n + int(w&failsMask)
	}
	return 0
}
