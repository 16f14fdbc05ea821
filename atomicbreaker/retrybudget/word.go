package retrybudget

import (
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
)

// A tokenWord is the whole state of a Budget. It holds what is missing
// rather than what is there, so that the zero tokenWord is full.
//
//	 63..........32  31...........0
//	┌──────────────┬──────────────┐
//	│ since 32     │ spent 32     │
//	└──────────────┴──────────────┘
//	1 ms ticks       thousandths of a token, at most the capacity
//
// since is when the last token was taken, from the budget's epoch and modulo
// its width: what time has added up to then is no longer part of spent. In a
// full bucket, and if time adds nothing, it means nothing.
//
//   - 0 ≤ spent ≤ capacity.
//   - Tokens taken since any moment are at most capacity plus what successes and time
//     have added since.
//
// Only a retry adds to spent, after it has subtracted what time added. A success only
// subtracts, so their order does not matter. A clock that goes round after 49 days
// without a retry, rounding, and a CAS that succeeds because an earlier word has come
// back all add too little, never too much.
type tokenWord uint64

const (
	wholeToken = 1000
	sinceShift = 32
	spentMask  = 1<<32 - 1
	sinceMask  = 1<<32 - 1
	refillTick = time.Millisecond
)

func (t tokenWord) since() uint64 { return uint64(t) >> sinceShift }
func (t tokenWord) spent() uint64 { return uint64(t) & spentMask }

// earned returns the bucket after a success. What time has added is not looked
// at: it makes no difference whether that or this fills the bucket first.
func (t tokenWord) earned(s *settings) tokenWord { return t - tokenWord(min(t.spent(), s.earns)) }

// spend returns the bucket with one token less, unless there is none.
func (t tokenWord) spend(s *settings, now uint64) (next tokenWord, ok bool) {
	spent := t.spentAt(s, now)
	if s.capacity-spent < wholeToken {
		return t, false
	}
	return tokenWord(now<<sinceShift | (spent + wholeToken)), true
}

// spentAt returns what is missing at now, which must have been read after the
// word: then the time since is not negative. If the clock has gone round it is
// too short, which adds too little, and never too much.
func (t tokenWord) spentAt(s *settings, now uint64) uint64 {
	// Both factors are below 1<<32.
	added := ((now - t.since()) & sinceMask) * s.perSecond / uint64(time.Second/refillTick)
	return t.spent() - min(t.spent(), added)
}

// now returns the ticks since the epoch, and zero if time adds nothing.
func (s *settings) now() uint64 {
	if s.perSecond == 0 {
		return 0
	}
	return uint64(atomics.Since(s.epoch) / refillTick)
}
