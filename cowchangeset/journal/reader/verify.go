package reader

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/cowchangeset/journal/internal/chain"
)

// Report is what Verify has found. It has the fields Journal (its identity), Segments,
// Lines (the headers of segments are some of them), Changesets (those that were not pruned),
// Pending (those of them that are neither applied nor aborted), Entries (also those of changesets that were pruned and whose lines are there), Bytes, Torn
// (how many bytes are at the end, after the last line: Open would remove them), Last (the
// Anchor of the last line) and Gaps (the segments that were taken out, and that are not back).
type Report = chain.Report

// Verify reads all of the journal at path, which others may have open, and checks it. Open
// and Resume read the last segment, and what is neither applied nor aborted: damage to
// other segments shows here. Verify changes nothing, and does not look into values. It
// returns a *CorruptError for the first damage, with a report of the lines before it, or
// an error of the disk.
//
// Two journals with the same Last have the same lines. Keep it elsewhere to detect
// that somebody has changed lines and made their hashes anew: the chain by itself cannot
// show that. Unless since is the zero Anchor, the journal must have its line and hash:
// then all lines up to there are as they were. It is enough if the first segment begins
// right behind that line. If the line is in a segment that was dropped, the error is
// ErrDropped.
func Verify(path string, since journal.Anchor) (Report, error) {
	from, err := chain.Find(path)
	if err != nil {
		return Report{}, err
	}
	r, err := chain.Verify(from, since)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w (journal at %s)", err, path)
	}
	return r, err
}
