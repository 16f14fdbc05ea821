package atomicbreaker

import (
	"context"
	"time"
	"unsafe"

	"github.com/latchfree/latchfree/internal/atomics"
)

// Permit is the right to make one call, and the duty to report once how it
// ended. It belongs to the generation of the breaker that gave it: when the
// breaker has changed its state or was reset meanwhile, the report is Late and
// changes nothing. The report of a probe whose time is over still counts while the
// breaker stays half-open.
//
// A Permit is a value and costs no allocation. Reporting twice is a mistake. The
// breaker notices it only if its state has changed in between, or if no probe is in
// flight. Otherwise a second Failure counts as another failure, and so does any
// second report of a probe whose time was over. Do and Execute report once.
//
// The zero Permit belongs to no breaker: all its reports are Late.
type Permit struct {
	core  *core          // the breaker; nil if the key was absent from its group
	since *departure     // the last one when the key was absent; nil with a core
	key   unsafe.Pointer // Safety: only pack makes it and only unpack follows it; see key_packing.go
	bits  uint64         // the admitting word's stay, maybe marked; or the rest of the key
}

// Done reports how the call ended: nil is a success, and Config.Classify
// decides about other errors. Done does not know the context of the call. Where you
// do, p.Report(Classify(ctx, err)) takes it into account.
//
// Done is lock-free, and in a Group blocking on a bucket's mutex when the key
// enters or leaves the table, or a listener is called. It takes effect by one CAS, or
// when the state is read if it changes nothing.
func (p Permit) Done(err error) Verdict {
	return p.done(nil, err) //lint:ignore SA1012 done takes none
}

// done is Done for a call whose context is known, or nil.
func (p Permit) done(ctx context.Context, err error) Verdict {
	if err == nil {
		return p.Success()
	}
	// User code may run here. A key that is absent holds no slot, so nothing
	// is lost if PerKey panics.
	s := p.classifySettings()
	classified := false
	defer func() {
		if !classified {
			p.settle(Failure, s)
		}
	}()
	o := s.outcome(ctx, err)
	classified = true
	return p.settle(o, s)
}

// Success reports that the call succeeded.
//
// Success is lock-free, and in a Group blocking on a bucket's mutex when the
// key leaves the table, or a listener is called. It takes effect by one CAS, or
// when the state is read if it changes nothing.
func (p Permit) Success() Verdict {
	// LP(Success): nothing to change in a closed breaker without failures.
	if p.core != nil && p.core.word.Load() == p.bits {
		return Counted
	}
	return p.succeed()
}

// succeed is outlined so that Success can be inlined.
//
//go:noinline
func (p Permit) succeed() Verdict {
	if p.since != nil {
		// LP(Success): after ResetAll, all results are late when the group state is read;
		// otherwise an absent key stays pristine.
		a := p.since.home
		if !p.tellsTime(a.packing) && !a.replaced() {
			if a.stillAbsent(p.slot(a.packing), p.since) {
				if a.totals {
					groupStateOf(a).root.counters.total(Success)
				}
				return Counted
			}
			return p.settleResult(result{outcome: Success, how: looked}, nil)
		}
	}
	return p.settle(Success, nil)
}

// Failure reports that the call failed.
//
// Failure is lock-free, and in a Group blocking on a bucket's mutex when the
// key enters the table, or a listener is called. It takes effect by one CAS, or
// when the state is read if it comes too late.
func (p Permit) Failure() Verdict { return p.settle(Failure, nil) }

// Cancel reports that the call says nothing about the thing called, and gives its
// slot back if it was a probe.
//
// Cancel is lock-free, and in a Group blocking on a bucket's mutex when the
// key leaves the table. It takes effect by one CAS, or when the state is read
// if it changes nothing.
func (p Permit) Cancel() Verdict { return p.settle(Ignored, nil) }

// Report reports an outcome that the caller has found out: a Success as the method
// Success does, an Ignored as Cancel, and any other as Failure.
//
// Report is lock-free, and in a Group blocking on a bucket's mutex when the key
// enters or leaves the table, or a listener is called. It takes effect as the method
// does that it calls.
func (p Permit) Report(o Outcome) Verdict {
	// LP(Report): in Success, Cancel or Failure.
	switch o {
	case Success:
		return p.Success()
	case Ignored:
		return p.Cancel()
	default:
		return p.Failure()
	}
}

// Trip reports a failure that says for how long further calls are useless. It opens
// the breaker at once for d, at most Config.MaxOpenTimeout. Zero means the time for
// which another failure would have opened it, and a negative d means until Reset.
//
// Trip is lock-free, and in a Group blocking on a bucket's mutex when the key
// enters the table, or a listener is called. It takes effect by one CAS, or when
// the state is read if it comes too late.
func (p Permit) Trip(d time.Duration) Verdict {
	return p.settleResult(result{outcome: Failure, how: tripping, open: d}, nil)
}

// An owner is the state of a group. It is an interface so that a program without
// groups does without their code. See the methods of groupState.
type owner interface {
	settleAbsent(Permit, result, *settings) Verdict
	settleCell(Permit, result) Verdict
	cellSettingsWithoutPerKey(*core) *settings
	renewCellSettings(*core, *settings) *settings
	retireForgotten(*core, word, *settings)
	finishReport(*report)
	publish(*core, uint32, Event) *eventQueue
}

// settle reports an outcome. Non-nil settings are those by which it was
// classified.
func (p Permit) settle(o Outcome, s *settings) Verdict {
	c, stay := p.core, word(p.bits)
	if c == nil || stay&modeMask != 0 {
		return p.settleResult(result{outcome: o}, s)
	}
	if s == nil {
		s = c.loadSettings()
	}
	was := word(c.word.Load())
	if next, ok := was.countInRow(stay, o, s); ok {
		// LP(Done): as in core.apply.
		if c.word.CompareAndSwap(uint64(was), uint64(next)) {
			return Counted
		}
		atomics.Backoff(1)
		was = word(c.word.Load())
	} else if o == Success && was == stay|watched && c.pass(stay, s) {
		return Counted
	}
	return c.conclude(was, stay, result{outcome: o}, s)
}

// settleResult reports a result. Non-nil settings are those by which it was
// classified.
func (p Permit) settleResult(r result, s *settings) Verdict {
	switch {
	case p.core == nil && p.since == nil:
		return Late
	case p.core == nil:
		groupStateOf(p.since.home).root.counters.total(r.outcome)
		return p.since.home.owner.settleAbsent(p, r, s)
	case p.bits&inCell != 0:
		held := p.core.set.Load()
		held.counters.total(r.outcome)
		return held.owner.settleCell(p, r)
	}
	if s == nil {
		s = p.core.settings()
	}
	r.took = p.took(s)
	return p.core.conclude(word(p.core.word.Load()), p.stay(), r, s)
}

// pay delivers the queue that a caller of Allow holds. If the listener does not
// return, the caller never gets p, so p's slot is given back.
func (p Permit) pay(owed *eventQueue) {
	orElse(owed.deliver, func() { p.Cancel() })
}

// classifySettings returns the settings that classify the call's error, or nil for the
// defaults.
func (p Permit) classifySettings() *settings {
	switch {
	case p.core != nil:
		s := p.core.set.Load()
		if s != nil && s.owner != nil {
			s = s.owner.cellSettingsWithoutPerKey(p.core)
		}
		return s
	case p.since != nil:
		return groupStateOf(p.since.home).keyOps.keySettingsOfPermit(p)
	}
	return nil
}

// A permit of a cell is marked, and so is one that says when its call began, because
// a policy asks how long calls take, and that of a Breaker which counts all calls, so that
// none of them ends unseen. A struct of more than four words would not stay
// in registers, so both go into the bits of a permit:
//
//	 63..61  60..41   40..35       34..33   32       31..0
//	┌──────┬────────┬────────────┬────────┬────────┬───────────┐
//	│   6  │ gen 20 │ begun high │ mode/2 │ inCell │ begun low │
//	└──────┴────────┴────────────┴────────┴────────┴───────────┘
//
// No word has mode 6, so these bits are never equal to one.
//
// begun is 1 + the time since the epoch in units of 1.024 µs, modulo 78 hours, or 0 if
// nobody asks for it. In a permit for an absent key it is the lower 38 of the bits,
// without the 1. Boxed keys do not use them, and strings only if they are very long; see
// key_packing.go.
const (
	marked    = 6
	begunUnit = 10 // bits of nanoseconds
	begunBits = 38
	begunMask = 1<<begunBits - 1

	inCell          = 1 << 32 // core belongs to a cell
	begunLow        = 1<<32 - 1
	begunHighShift  = 35
	markedModeShift = 33
)

// bitsFor returns the bits of a permit of a stay for a call that began then. Zero
// means that no policy asks for the time.
func bitsFor(stay word, begun time.Duration) uint64 {
	if begun == 0 {
		return uint64(stay)
	}
	return mark(stay) | packBegun(begun)
}

// cellBits is bitsFor for a cell.
func cellBits(stay word, begun time.Duration) uint64 {
	if begun == 0 {
		return mark(stay) | inCell
	}
	return mark(stay) | inCell | packBegun(begun)
}

func mark(stay word) uint64 {
	return marked<<modeShift | uint64(stay)&(genMask<<genShift) | stay.mode()/2<<markedModeShift
}

// untimed stands for the begin of a call whose permit is marked although nobody asks when
// that was: packBegun makes 0 of it.
const untimed = -1

func packBegun(begun time.Duration) uint64 {
	t := uint64(begun>>begunUnit+1) & begunMask
	return t>>32<<begunHighShift | t&begunLow
}

// stay returns the stay that admitted the call, unless the key was absent.
func (p Permit) stay() word {
	w := word(p.bits)
	if w.mode() != marked {
		return w.stay()
	}
	return w&(genMask<<genShift) | word(p.bits>>markedModeShift&3)*2<<modeShift
}

// took returns how long it is since the call began, by the clock of the
// settings that have timed it, or zero if it was not.
func (p Permit) took(s *settings) time.Duration {
	begun := (p.bits&begunLow | p.bits>>begunHighShift<<32) & begunMask
	if word(p.bits).mode() != marked || begun == 0 || !s.rules.slow {
		return 0
	}
	return since(begun-1, s)
}

// since is took for bits that have nothing above begun that matters.
func since(begun uint64, s *settings) time.Duration {
	return time.Duration((uint64(s.now()>>begunUnit)-begun)&begunMask) << begunUnit
}
