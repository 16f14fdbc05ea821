package atomicbreaker

import (
	"context"
	"time"
)

// GroupPermit is a Permit for a key of a Group. If the key was absent when the call was admitted,
// the report is Late once the key has opened or was reset, and also once more than 4,000 keys have
// recovered.
type GroupPermit[K comparable] struct {
	cell *cell[K] // that admitted the call; if the key was absent, group.healthy
	key  K
	bits uint64 // as in a Permit; if the key was absent, see absentBits
}

// absentBits returns the bits of a permit for a key that was absent after n departures:
// n modulo 2^20 in place of a generation, with a mode of its own. The payload is 1 + the
// key's slot of the filter, or 0 if that is not known, unless it says when the call
// began.
func absentBits(n uint64) word { return word(absentMode<<modeShift | n&genMask<<genShift) }

func (p GroupPermit[K]) absent() bool { return decoded(p.bits).mode() == absentMode }

// since returns the number of departures at which the key was absent.
func (p GroupPermit[K]) since() uint64 {
	last := p.cell.group.departures.count.Load()
	return last - (last-uint64(decoded(p.bits).gen()))&genMask
}

// Done is Permit.Done for a key.
//
// Done is lock-free or blocking and takes effect as Group says.
func (p GroupPermit[K]) Done(err error) Verdict {
	return p.done(nil, err) //lint:ignore SA1012 done takes none
}

// done is Done with the context of the call, which may be nil.
func (p GroupPermit[K]) done(ctx context.Context, err error) Verdict {
	if err == nil {
		return p.Success()
	}
	var s *settings
	switch { // user code may run here. A key that is absent holds no slot, so nothing is lost if PerKey panics
	case p.cell == nil:
	case p.absent():
		s = p.cell.group.settingsOf(p.key)
	default:
		s = p.cell.set.Load()
	}
	o := s.outcome(ctx, err, func() { p.report(result{outcome: Failure}, s) })
	return p.report(result{outcome: o}, s)
}

// Success is Permit.Success for a key.
//
// Success is lock-free or blocking and takes effect as Group says.
func (p GroupPermit[K]) Success() Verdict {
	// LP(Success): an absent key stays pristine.
	if c := p.cell; c != nil && c.group.linked.Load() == 0 && p.bits == uint64(absentBits(c.group.departures.count.Load())) && c.group.counters.totals == nil {
		return Counted
	}
	return p.report(result{outcome: Success}, nil)
}

// Failure is Permit.Failure for a key.
//
// Failure is lock-free or blocking and takes effect as Group says.
func (p GroupPermit[K]) Failure() Verdict { return p.report(result{outcome: Failure}, nil) }

// Cancel is Permit.Cancel for a key.
//
// Cancel is lock-free or blocking and takes effect as Group says.
func (p GroupPermit[K]) Cancel() Verdict { return p.report(result{outcome: Ignored}, nil) }

// Report is Permit.Report for a key.
//
// Report is lock-free or blocking and takes effect as Group says.
func (p GroupPermit[K]) Report(o Outcome) Verdict {
	if o == Success {
		return p.Success()
	}
	return p.report(result{outcome: o.known()}, nil)
}

// Trip is Permit.Trip for a key.
//
// Trip is lock-free or blocking and takes effect as Group says.
func (p GroupPermit[K]) Trip(d time.Duration) Verdict {
	return p.report(result{outcome: Failure, how: tripping, open: d}, nil)
}

// report reports a result. Non-nil settings are those by which it was classified.
func (p GroupPermit[K]) report(r result, s *settings) Verdict {
	c := p.cell
	if c == nil {
		return Late
	}
	g := c.group
	g.counters.total(r.outcome)
	w := decoded(p.bits)
	if !p.absent() {
		if inverted(p.bits) {
			r.took = took(p.bits, c.set.Load())
		}
		return c.report(w.stay(), r, s)
	}
	if inverted(p.bits) {
		r.took = took(p.bits, g.set.Load().shared)
	} else if slot := w & payloadMask; slot != 0 && !r.mayMatter() && g.freeSlot(uint64(slot-1)) && w.stay() == absentBits(g.departures.count.Load()) {
		// LP(Done): an absent key stays pristine.
		return Counted
	}
	return g.report(p.key, p.since(), r, s)
}

// mayMatter reports whether a result can make an absent key present.
func (r result) mayMatter() bool {
	return r.outcome == Failure || r.outcome == Success && r.took > 0
}

// report makes a result take effect that no living cell has admitted: a direct one, or one
// of a call whose key was pristine after since departures.
func (g *group[K]) report(k K, since uint64, r result, s *settings) Verdict {
	hash, matters := g.hash(k, 0), r.mayMatter()
	if matters && r.outcome == Success {
		if s == nil {
			s = g.settingsOf(k)
		}
		matters = s.rules.tooSlow(r)
	}
	var c *cell[K]
	if !matters {
		c = g.find(k, hash)
	} else if c = g.obtain(k, hash, s); c == nil {
		return g.counters.verdict(Late) // not equal to itself, so nothing to remember
	}
	// The cell, or its absence, comes first: later transitions of the key are
	// transitions of this cell.
	if !r.is(direct) && g.departures.departed(since, hash) {
		// LP(Done): late when the departure was seen. If obtain made the
		// cell, there is no more reason for it.
		if c != nil && c.word.Load() == 0 {
			c.retire(0)
		}
		return g.counters.verdict(Late)
	}
	if c == nil {
		// LP(Done, RecordSuccess): an absent key stays pristine.
		return Counted
	}
	v := c.report(0, r, s) // zero: the cell's first stay
	if matters {
		c.tidy(word(c.word.Load())) // obtain may have made it for a result that leaves nothing
	}
	return v
}

// report makes a result take effect that the cell has admitted in a stay, or a direct one.
// Non-nil settings are those by which it was classified. If the cell has died without having
// changed since it admitted the call, that stays good, and its result counts in the key's
// next cell.
//
// It goes back to group.report only if a cell has died.
func (c *cell[K]) report(stay word, r result, s *settings) Verdict {
	work := report{core: &c.core, result: r, stay: stay}
	v, did := work.run()
	switch {
	case did.to.mode() != tombstone:
		c.finish(did, v)
		if did.flags&asks != 0 {
			v, did = c.ask(did.to, r)
			c.finish(did, v)
		}
		return v
	case !r.is(direct) && (stay.mode() != closed || did.to != stay.bury()):
		return c.group.counters.verdict(v)
	}
	c.await()
	return c.group.report(c.key, c.since.Load(), r, s)
}
