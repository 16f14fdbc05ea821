package atomicbreaker

import (
	"log/slog"

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
	return slog.GroupValue(appendCounts(nil, []count{
		{"opened", int(s.Opened)}, {"closed", int(s.Closed)}, {"rejected", int(s.Rejected)}, {"late", int(s.Late)}, {"withheld", int(s.Withheld)},
		{"wrong_settings", int(s.WrongSettings)}, {"total_successes", int(s.TotalSuccesses)}, {"total_failures", int(s.TotalFailures)}, {"total_ignored", int(s.TotalIgnored)},
	})...)
}

type count struct {
	name string
	n    int
}

func appendCounts(attrs []slog.Attr, counts []count) []slog.Attr {
	for _, c := range counts {
		if c.n != 0 {
			attrs = append(attrs, slog.Int(c.name, c.n))
		}
	}
	return attrs
}

// counters holds the counts of a Breaker, or of all keys of a Group together.
// Nothing depends on them.
type counters struct {
	// stripes is nil before the first count. From nil to a stripe for each
	// processor, by CAS.
	stripes atomics.Pointer[[]counterStripe]

	// totals counts calls by outcome; nil without Config.RecordTotals. It is set before
	// the counters are shared, and never changes.
	totals []totalStripe
}

// A totalStripe has a line of its own too.
type totalStripe struct {
	of [3]atomics.Uint64 // by Outcome

	_ [atomics.CacheLineSize - 24]byte
}

// withTotals makes the counters count totals, if they are to.
func (c *counters) withTotals(totals bool) {
	if totals {
		c.totals = make([]totalStripe, atomics.Stripes())
	}
}

// total counts a call, before its result takes effect, so that none is missing if user
// code panics.
func (c *counters) total(o Outcome) {
	if c.totals != nil {
		c.totalSlow(o)
	}
}

// totalSlow is outlined so that total can be inlined.
//
//go:noinline
func (c *counters) totalSlow(o Outcome) {
	c.totals[atomics.Stripe(len(c.totals))].of[o].Add(1)
}

// A counterStripe has a line of its own.
type counterStripe struct {
	opened, closed, rejected, late, withheld, wrong atomics.Uint64

	_ [atomics.CacheLineSize - 48]byte
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
			s.WrongSettings += p.wrong.Load()
		}
	}
	for i := range c.totals {
		p := &c.totals[i].of
		s.TotalSuccesses += p[Success].Load()
		s.TotalFailures += p[Failure].Load()
		s.TotalIgnored += p[Ignored].Load()
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
func (g *Group[K]) Stats() Stats { return g.current().counters.stats() }
