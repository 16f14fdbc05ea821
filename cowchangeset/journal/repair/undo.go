package repair

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/cowchangeset/journal/internal/chain"
	"github.com/latchfree/latchfree/internal/folder"
)

// errNothingToUndo: Repair has changed nothing, or something was written since.
var errNothingToUndo = errors.New("journal: the last line is not that of a repair: there is nothing to undo")

// Undo reverts the last Repair, as long as nothing was written since: it puts back all
// files that Repair has set aside, unless there are others in their places by now. The
// journal is then as damaged as it was. Repairs between which nothing was written are
// reverted one by one, the last one first; a Repair that was interrupted and called again
// counts as two. Undo returns ErrLocked if the journal is open.
//
// Undo is blocking: it waits for the disk. It takes effect when the first file has its name.
func Undo(path string) error {
	_, err := onDisk(path, func(f folder.Gzip) (Repaired, error) { return Repaired{}, undo(f) })
	return err
}

// undo puts the last segment back at the end: until then, the journal ends with the line of
// the repair.
func undo(f folder.Gzip) error {
	files, _, strange, err := chain.List(f)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return chain.ErrNoSegments
	}
	s, err := chain.Survey(context.Background(), f, files, false)
	if corrupt := new(journal.CorruptError); errors.As(err, &corrupt) {
		// An Undo may have been interrupted, or a Repair that was called again: then the last
		// segment is sound, and says of others that they are missing.
		last := files[len(files)-1:]
		if s, err = chain.Survey(context.Background(), f, last, false); errors.As(err, &corrupt) && corrupt.File != last[0].Name() {
			err = nil
		}
	}
	if err != nil {
		return err
	}
	n := repairs(strange, s.Last())
	if n == 0 {
		return errNothingToUndo
	}
	var names []string // the last segment's at the end
	last := files[len(files)-1].Name()
	for _, name := range strange {
		segment, ok := strings.CutSuffix(name, aside("", s.Last(), n))
		there := slices.ContainsFunc(files, func(s chain.Segment) bool { return s.Name() == segment })
		if ok && !there {
			names = append(names, segment)
		}
	}
	if slices.Contains(strange, aside(last, s.Last(), n)) {
		names = append(names, last)
	}
	for _, name := range names {
		if err := f.Rename(aside(name, s.Last(), n), name); err != nil { // LP(Undo)
			return fmt.Errorf("journal: putting a segment back: %w", err)
		}
	}
	return f.Sync()
}

// aside returns the name of a segment as it was before a repair, with the last line that the
// journal has had after that. There may be several such repairs: n is 1 for the first.
func aside(segment string, last journal.Anchor, n int) string {
	name := fmt.Sprintf("%s.%d-%.8s", segment, last.Line, last.Hash)
	if n > 1 {
		name += fmt.Sprintf("-%d", n)
	}
	return name + ".damaged"
}

// repairs returns how many repairs have ended with a line, of those whose files are there.
func repairs(names []string, last journal.Anchor) (n int) {
	for _, name := range names {
		_, rest, _ := strings.Cut(name, chain.Suffix)
		k := 1
		if digits, ok := strings.CutPrefix(strings.TrimSuffix(rest, ".damaged"), strings.TrimSuffix(aside("", last, 1), ".damaged")+"-"); ok {
			k, _ = strconv.Atoi(digits)
		}
		if rest == aside("", last, k) {
			n = max(n, k)
		}
	}
	return n
}
