package atomicbreaker

import (
	"context"
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
)

// Permit is the right to make one call, and the duty to report once how it ended. If the
// breaker has changed its state or was reset meanwhile, the report is Late and changes
// nothing; but that of a probe past its ProbeTimeout counts while the breaker stays
// half-open. Reports of the zero Permit are Late. A second report may count again.
type Permit struct {
	core *core
	bits uint64 // the admitting word's stay and, in its payload, when the call began
}

// Done reports how the call ended: nil is a success, and Config.Classify decides about
// other errors, without a context. p.Report(Classify(ctx, err)) has one.
//
// Done is lock-free. It takes effect by one CAS or load.
func (p Permit) Done(err error) Verdict {
	return p.done(nil, err) //lint:ignore SA1012 done takes none
}

// done is Done for a call whose context is known, or nil.
func (p Permit) done(ctx context.Context, err error) Verdict {
	if err == nil {
		return p.Success()
	}
	var s *settings
	if p.core != nil {
		s = p.core.set.Load()
	}
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

// Success reports a success.
//
// Success is lock-free. It takes effect by one CAS or load.
func (p Permit) Success() Verdict {
	// LP(Success): nothing to change in a closed breaker without failures.
	if p.core != nil && p.core.word.Load() == p.bits {
		return Counted
	}
	return p.settle(Success, nil)
}

// Failure reports a failure.
//
// Failure is lock-free. It takes effect by one CAS or load.
func (p Permit) Failure() Verdict { return p.settle(Failure, nil) }

// Cancel reports that the call says nothing. A probe gives its slot back.
//
// Cancel is lock-free. It takes effect by one CAS or load.
func (p Permit) Cancel() Verdict { return p.settle(Ignored, nil) }

// Report reports a Success, an Ignored as Cancel does, and all else as Failure does.
//
// Report is lock-free. It takes effect by one CAS or load.
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

// Trip reports a failure, and opens the breaker for d: see Breaker.Trip.
//
// Trip is lock-free. It takes effect by one CAS or load.
func (p Permit) Trip(d time.Duration) Verdict {
	return p.settleResult(result{outcome: Failure, how: tripping, open: d}, nil)
}

// settle reports an outcome. Non-nil settings are those by which it was
// classified.
func (p Permit) settle(o Outcome, s *settings) Verdict {
	c, stay := p.core, word(p.bits)
	if c == nil || stay&modeMask != closed {
		return p.settleResult(result{outcome: o}, s)
	}
	if s == nil {
		s = c.settings()
	}
	was := word(c.word.Load())
	if next, ok := was.countInRow(stay, o, s); ok {
		// LP(Done): as in report.record.
		if c.word.CompareAndSwap(uint64(was), uint64(next)) {
			return Counted
		}
		atomics.Backoff(1)
	} else if o == Success && was == stay|watched && c.pass(stay, s) {
		return Counted
	}
	return c.conclude(stay, result{outcome: o}, s)
}

// settleResult reports a result. Non-nil settings are those by which it was
// classified.
func (p Permit) settleResult(r result, s *settings) Verdict {
	if p.core == nil {
		return Late
	}
	if s == nil {
		s = p.core.settings()
	}
	r.took = took(p.bits, s)
	return p.core.conclude(decoded(p.bits).stay(), r, s)
}
