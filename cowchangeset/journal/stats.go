package journal

import (
	"cmp"
	"log/slog"
	"slices"

	"github.com/latchfree/latchfree/cowchangeset/journal/internal/chain"
)

// Stats has counts of what a journal has done since Open returned it, which never go
// down, and what it is like now.
type Stats struct {
	Entries  uint64 // entries that Append has written
	Lines    uint64 // lines: one for each call that the journal did not know already, and one for each new segment
	Bytes    uint64 // bytes of these lines
	Writes   uint64 // writes of calls' lines: one has those of all calls that waited at the same time
	Syncs    uint64 // fsyncs of segments
	Failures uint64 // failed attempts to write, to sync, to begin a segment, to remove or to compress one

	Segments    int   // segments in the directory, without archived ones
	Size        int64 // their bytes
	Quarantined int   // segments between these that Repair has taken out, and that are not back
	Waiting     int   // calls that wait for their turn

	// LastError is that of the last failure, or nil. It matches ErrBroken if the journal is
	// broken. It is not in the JSON of Stats.
	LastError error `json:"-"`
}

// LogValue returns the counts that are not zero, and the last error, as a group.
func (s Stats) LogValue() slog.Value {
	var attrs []slog.Attr
	for _, c := range []struct {
		name string
		n    uint64
	}{
		{"entries", s.Entries}, {"lines", s.Lines}, {"bytes", s.Bytes}, {"writes", s.Writes}, {"syncs", s.Syncs}, {"failures", s.Failures},
		{"segments", uint64(s.Segments)}, {"size", uint64(s.Size)}, {"quarantined", uint64(s.Quarantined)}, {"waiting", uint64(s.Waiting)},
	} {
		if c.n != 0 {
			attrs = append(attrs, slog.Uint64(c.name, c.n))
		}
	}
	if s.LastError != nil {
		attrs = append(attrs, slog.Any("last_error", s.LastError))
	}
	return slog.GroupValue(attrs...)
}

// Stats returns the counts of the journal so far, and its size, as of one moment. It
// takes a step for each segment.
//
// Stats is blocking: it waits for other calls that look at the journal's state. It takes
// effect when the state is read.
func (j *Journal[E]) Stats() Stats {
	g := &j.log
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.stats // LP(Stats)
	s.Segments, s.Waiting = len(g.segments), len(g.queue)
	for _, file := range g.segments {
		s.Size += file.Size
	}
	for _, gap := range g.state.Gaps {
		_, back := slices.BinarySearchFunc(g.segments, gap.Segment, func(s chain.Segment, n uint64) int { return cmp.Compare(s.Number, n) })
		if !back && gap.Segment > g.segments[0].Number { // else those before it were dropped, too
			s.Quarantined++
		}
	}
	return s
}

// failed counts a failure.
func (g *log) failed(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stats.Failures++
	g.stats.LastError = err
}
