package atomicbreaker

import (
	"log/slog"
	"slices"
	"time"

	"github.com/latchfree/latchfree/internal/atomics"
)

// Stats has counts of a Breaker or a Group since it was made.
type Stats struct {
	Opened   uint64 // times that a breaker opened
	Closed   uint64 // times that one was closed or reset
	Rejected uint64 // calls that were not admitted, or only as Shadow
	Late     uint64 // results with the verdict Late, except of zero Permits
	Withheld uint64 // failures that GroupConfig.MaxOpen kept from opening a key

	// WrongSettings counts wrong settings from GroupConfig.PerKey.
	WrongSettings uint64 `json:",omitzero"`

	// The totals count reported calls by outcome, with Config.RecordTotals.
	TotalSuccesses uint64 `json:",omitzero"`
	TotalFailures  uint64 `json:",omitzero"`
	TotalIgnored   uint64 `json:",omitzero"`
	Recorded       bool   `json:",omitzero"` // it is not logged
}

// LogValue returns the counts that are not zero as a group.
func (s Stats) LogValue() slog.Value {
	return logGroup(
		slog.Uint64("opened", s.Opened),
		slog.Uint64("closed", s.Closed),
		slog.Uint64("rejected", s.Rejected),
		slog.Uint64("late", s.Late),
		slog.Uint64("withheld", s.Withheld),
		slog.Uint64("wrong_settings", s.WrongSettings),
		slog.Uint64("total_successes", s.TotalSuccesses),
		slog.Uint64("total_failures", s.TotalFailures),
		slog.Uint64("total_ignored", s.TotalIgnored),
	)
}

// logGroup returns the attributes that are not zero as a group.
func logGroup(attrs ...slog.Attr) slog.Value {
	return slog.GroupValue(slices.DeleteFunc(attrs, func(a slog.Attr) bool {
		switch a.Value.Any() {
		case "", int64(0), uint64(0), time.Duration(0), false:
			return true
		}
		return false
	})...)
}

// counters are those of a Breaker, or of all keys of a Group. Nothing depends on them.
type counters struct {
	// stripes is nil before the first count. From nil to a stripe for each
	// processor, by CAS.
	stripes atomics.Pointer[[]counterStripe]

	// totals are the stripes with Config.RecordTotals, else nil. Set before the counters are
	// shared, and never changes.
	totals []counterStripe
}

// A counterStripe is one line.
type counterStripe struct {
	opened, closed, rejected, late, withheld atomics.Uint64

	totals [3]atomics.Uint64 // of calls, by Outcome
}

// withTotals makes the counters count totals, if they are to.
func (c *counters) withTotals(totals bool) {
	if totals {
		c.totals = make([]counterStripe, atomics.Stripes())
		c.stripes.Store(&c.totals)
	}
}

// total counts a call, before its result takes effect, so that none is missing if user
// code panics.
func (c *counters) total(o Outcome) {
	if c.totals != nil {
		c.totals[atomics.Stripe(len(c.totals))].totals[o].Add(1)
	}
}

// mine returns the stripe of the processor, more or less.
func (c *counters) mine() *counterStripe {
	stripes := c.stripes.Load()
	if stripes == nil {
		fresh := make([]counterStripe, atomics.Stripes())
		stripes = c.stripes.Install(&fresh)
	}
	return &(*stripes)[atomics.Stripe(len(*stripes))]
}

// verdict counts a result that is late, and returns its verdict.
func (c *counters) verdict(v Verdict) Verdict {
	if v == Late {
		c.mine().late.Add(1)
	}
	return v
}

// changed counts the beginning of a generation.
func (c *counters) changed(w word) {
	switch w.mode() {
	case open, forcedOpen:
		c.mine().opened.Add(1)
	case closed:
		c.mine().closed.Add(1)
	}
}

func (c *counters) stats() (s Stats) {
	if stripes := c.stripes.Load(); stripes != nil {
		for i := range *stripes {
			p := &(*stripes)[i]
			s.Opened += p.opened.Load()
			s.Closed += p.closed.Load()
			s.Rejected += p.rejected.Load()
			s.Late += p.late.Load()
			s.Withheld += p.withheld.Load()
			if c.totals != nil {
				s.TotalSuccesses += p.totals[Success].Load()
				s.TotalFailures += p.totals[Failure].Load()
				s.TotalIgnored += p.totals[Ignored].Load()
			}
		}
	}
	s.Recorded = c.totals != nil
	return s
}

// Stats returns the counts of the breaker, exact while nobody uses it.
//
// Stats is wait-free. It takes effect for each count when that is read.
func (b *Breaker) Stats() Stats {
	if s := b.core.set.Load(); s != nil {
		return s.counters.stats()
	}
	return Stats{}
}

// Stats returns the counts of all keys together.
//
// Stats is wait-free. It takes effect for each count when that is read.
func (g *Group[K]) Stats() Stats {
	st := g.current()
	s := st.counters.stats()
	s.WrongSettings = st.wrong.Load()
	return s
}
