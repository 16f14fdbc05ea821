package repair

import (
	"fmt"
	"strings"

	"github.com/latchfree/latchfree/cowchangeset/journal"
)

// Repaired says what Repair has taken out of a journal, or would. The zero Repaired means
// that the journal is sound.
type Repaired struct {
	Damage *journal.CorruptError // the first

	// Lost are the segments that were taken out, or were missing.
	Lost []journal.Gap

	// Kept is how many lines are left. Cutting is how many would be left if everything
	// from the damage on were cut.
	Kept    int
	Cutting int

	// Bytes is how many bytes were taken out, of whole segments and of the end of the last
	// one.
	Bytes int64

	// Aside are the files of the segments that were taken out or changed, as they were.
	Aside []string
}

// String returns all of it, in some lines of text.
func (r Repaired) String() string {
	if r.Damage == nil {
		return "the journal is sound: nothing was taken out"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%v", r.Damage)
	for _, g := range r.Lost {
		fmt.Fprintf(&b, "\nsegment %d is taken out", g.Segment)
		if g.Ordinal > 0 {
			fmt.Fprintf(&b, ": changesets up to ordinal %d may be lost with it", g.Ordinal)
		}
	}
	fmt.Fprintf(&b, "\n%d lines are kept", r.Kept)
	if len(r.Lost) > 0 {
		fmt.Fprintf(&b, "; cutting at the first damage would keep %d", r.Cutting)
	}
	fmt.Fprintf(&b, "\n%d bytes are taken out", r.Bytes)
	for _, name := range r.Aside {
		fmt.Fprintf(&b, "\nas it was: %s", name)
	}
	return b.String()
}
