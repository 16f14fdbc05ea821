package atomicbreaker

import "time"

// Where a policy asks how long calls take, a permit says when its call began. A
// struct of more than four words would not stay in registers, so that goes into
// the bits of a permit:
//
//	 63..61  60..41   40..35       34..33   32       31..0
//	┌──────┬────────┬────────────┬────────┬────────┬───────────┐
//	│   6  │ gen 20 │ begun high │ mode/2 │ inCell │ begun low │
//	└──────┴────────┴────────────┴────────┴────────┴───────────┘
//
// No word has mode 6, so these bits are never equal to one. In a permit for an
// absent key they are the lower 38 of the bits, which boxed keys do not use, and
// strings only if they are very long; see key_packing.go.
//
// begun is in units of 1.024 µs since the epoch, modulo 78 hours.
const (
	timed     = 6
	begunUnit = 10 // bits of nanoseconds
	begunBits = 38
	begunMask = 1<<begunBits - 1

	begunLow       = 1<<32 - 1
	begunHighShift = 35
	timedModeShift = 33
)

// bitsFor returns the bits of a permit of a stay for a call that began then;
// zero means that nobody asks.
func bitsFor(stay word, begun time.Duration) uint64 {
	if begun == 0 {
		return uint64(stay)
	}
	t := uint64(begun>>begunUnit) & begunMask
	return timed<<modeShift | uint64(stay)&(genMask<<genShift) | stay.mode()/2<<timedModeShift |
		t>>32<<begunHighShift | t&begunLow
}

// stay returns the stay that admitted the call, unless the key was absent.
func (p Permit) stay() word {
	w := word(p.bits)
	if w.mode() != timed {
		return w.stay()
	}
	return w&(genMask<<genShift) | word(p.bits>>timedModeShift&3)*2<<modeShift
}

// took returns how long it is since the call began, by the clock of the
// settings that have timed it, or zero if it was not.
func (p Permit) took(s *settings) time.Duration {
	if word(p.bits).mode() != timed {
		return 0
	}
	return since(p.bits&begunLow|p.bits>>begunHighShift<<32, s)
}

// absentTook is took for a key that was absent.
func (p Permit) absentTook(s *settings) time.Duration { return since(p.bits, s) }

func since(begun uint64, s *settings) time.Duration {
	return time.Duration((uint64(s.now()>>begunUnit)-begun)&begunMask) << begunUnit
}
