package main

import (
	"context"
	"fmt"
	"io"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/cowchangeset/journal/reader"
)

// stat says what there is. If the journal is damaged, it says what comes before.
func stat(ctx context.Context, args []string, stdout io.Writer) error {
	path, err := parse(newFlags("stat"), args)
	if err != nil {
		return err
	}
	report, damage := reader.Verify(path, journal.Anchor{})
	if codeOf(damage) == exitFailed {
		return damage
	}
	// What is written meanwhile may be in the second part only.
	states, entries := map[string]int{}, 0
	if damage == nil {
		r, err := open(path)
		if err != nil {
			return err
		}
		for s, err := range r.Changesets(ctx) {
			if err != nil {
				return err
			}
			states[stateOf(s.Sealed, s.Aborted, s.Applied)]++
			entries += len(s.Entries)
		}
	}
	print := func(name string, value any) {
		if err == nil {
			_, err = fmt.Fprintf(stdout, "%-12s%v\n", name, value)
		}
	}
	if report.Journal != "" {
		print("identity", report.Journal)
	}
	print("segments", report.Segments)
	print("lines", report.Lines)
	print("bytes", report.Bytes)
	if report.Torn > 0 {
		print("torn", report.Torn)
	}
	print("changesets", report.Changesets)
	if damage == nil {
		for _, state := range []string{"open", "sealed", "begun", "applied", "aborted"} {
			print("  "+state, states[state])
		}
		print("entries", entries)
	}
	print("last", report.Last)
	if err != nil {
		return err
	}
	return damage
}

// stateOf says what a changeset is: sealed if nobody has applied any of it, begun if
// somebody has applied a part.
func stateOf(sealed, aborted bool, applied uint64) string {
	switch {
	case !sealed:
		return "open"
	case aborted:
		return "aborted"
	case applied == cowchangeset.AllApplied:
		return "applied"
	case applied > 0:
		return "begun"
	}
	return "sealed"
}
