package atomicbreaker

import (
	"context"
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
)

// Permit is the right to make one call, and the duty to report how it ended, once: a second report
// may count again. If the breaker has changed its state or was reset meanwhile, the report is Late
// and changes nothing. A probe past its ProbeTimeout still counts while the breaker stays
// half-open. Reports of the zero Permit are Late.
type Permit struct {
	core *core
	bits uint64 // the admitting word's stay and, in its payload, when the call began
}

// Done reports how the call ended: nil is a success, and Config.Classify decides about
// other errors, without a context. To classify with one, call p.Report(Classify(ctx, err)).
//
// Done is lock-free. It takes effect by one CAS or load.
func (p Permit) Done(err error) Verdict {
	return p.done(nil, err) //lint:ignore SA1012 done takes none
}

// done is Done with the context of the call, which may be nil.
func (p Permit) done(ctx context.Context, err error) Verdict {
	if err == nil {
		return p.Success()
	}
	var s *settings
	if p.core != nil {
		s = p.core.set.Load()
	}
	o := s.outcome(ctx, err, func() { p.report(result{outcome: Failure}, s) })
	return p.report(result{outcome: o}, s)
}

// Success reports a success.
//
// Success is lock-free. It takes effect by one CAS or load.
func (p Permit) Success() Verdict {
	// LP(Success): nothing to change in a closed breaker without failures.
	if p.core != nil && p.core.word.Load() == p.bits {
		return Counted
	}
	return p.report(result{outcome: Success}, nil)
}

// Failure reports a failure.
//
// Failure is lock-free. It takes effect by one CAS or load.
func (p Permit) Failure() Verdict { return p.report(result{outcome: Failure}, nil) }

// Cancel reports that the call says nothing about the dependency. A probe gives its slot
// back.
//
// Cancel is lock-free. It takes effect by one CAS or load.
func (p Permit) Cancel() Verdict { return p.report(result{outcome: Ignored}, nil) }

// Report reports a Success, an Ignored as Cancel does, and all else as Failure does.
//
// Report is lock-free. It takes effect by one CAS or load.
func (p Permit) Report(o Outcome) Verdict {
	if o == Success {
		return p.Success()
	}
	return p.report(result{outcome: o.known()}, nil)
}

// Trip reports a failure, and opens the breaker for d: see Breaker.Trip.
//
// Trip is lock-free. It takes effect by one CAS or load.
func (p Permit) Trip(d time.Duration) Verdict {
	return p.report(result{outcome: Failure, how: tripping, open: d}, nil)
}

// report reports a result. Non-nil settings are those by which it was classified.
//
// Two kinds of results take a shortcut past core.report: those that only change the count of
// failures in a row, and those that only count in windows.
func (p Permit) report(r result, s *settings) Verdict {
	c, stay := p.core, word(p.bits)
	if c == nil {
		return Late
	}
	if s == nil {
		s = c.settings()
	}
	if stay&modeMask == closed && !r.is(tripping) {
		was := word(c.word.Load())
		if next, ok := was.countInRow(stay, r.outcome, s); ok {
			// LP(Done): as in report.run.
			if c.word.CompareAndSwap(uint64(was), uint64(next)) {
				return Counted
			}
			atomics.Backoff(1)
		} else if r.outcome == Success && was == stay|watched && c.pass(stay, s) {
			return Counted
		}
	} else if inverted(p.bits) {
		r.took, stay = took(p.bits, s), decoded(p.bits)
	}
	return c.report(stay.stay(), r, s)
}
