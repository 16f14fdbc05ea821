package repair

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/cowchangeset/journal/internal/chain"
	"github.com/latchfree/latchfree/internal/folder"
)

// errNothingToUndo: Repair has changed nothing, or something was written since.
var errNothingToUndo = errors.New("journal: the last lines are not those of a repair: there is nothing to undo")

// Undo takes the last Repair back, as long as nothing was written since: the files are
// then as damaged as they were. It removes the lines that Repair has written, and puts the
// end of the last segment and the segments that were taken out back, unless there are
// others in their places by now. Only a torn tail, which Open removes too, is not taken
// back. Repairs between which nothing was written may be taken back together. Undo returns
// ErrLocked if the journal is open.
//
// Undo is blocking: it waits for the disk. It takes effect when the lines of the repair
// are removed or, if there are none, when the first file has its name.
func Undo(path string) error {
	_, err := onDisk(path, func(f folder.Folder) (Repaired, error) { return Repaired{}, undo(f) })
	return err
}

// undo works from the end on: a crash leaves a journal that can be repaired again.
func undo(f folder.Folder) error {
	files, _, strange, err := chain.List(f)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return chain.ErrNoSegments
	}
	s := chain.Scan(f, files)
	defer s.Close()
	type end struct {
		size int64 // of the last segment up to there
		journal.Anchor
	}
	var ends []end // of the last line that is no gap, and of each gap behind it
	for l, err := s.Next(); err != io.EOF; l, err = s.Next() {
		if err != nil {
			return err
		}
		if l.Op != chain.OpGap {
			ends = ends[:0]
		}
		ends = append(ends, end{s.Size, s.Last()})
	}
	from := 0 // where the last repair began
	for i, e := range ends {
		if cuts(strange, e.Anchor) > 0 || slices.ContainsFunc(strange, func(name string) bool { return strings.HasSuffix(name, asideSuffix(e.Anchor)) }) {
			from = i
		}
	}
	kept, lost := ends[from], s.State.Gaps[len(s.State.Gaps)-(len(ends)-1-from):]
	cut := ""
	if n := cuts(strange, kept.Anchor); n > 0 {
		cut = cutName(kept.Anchor, n)
	}
	back, err := outOf(f, files, strange, kept.Anchor, lost)
	if err != nil {
		return err
	}
	if len(lost) == 0 && cut == "" && len(back) == 0 {
		return errNothingToUndo
	}
	if err := putBack(f, files[len(files)-1].Name(), kept.size, cut); err != nil { // LP(Undo)
		return fmt.Errorf("journal: putting back what was cut: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(back)) {
		if err := f.Rename(back[name], name); err != nil { // LP(Undo)
			return fmt.Errorf("journal: putting a segment back: %w", err)
		}
	}
	if cut != "" {
		if err := f.Remove(cut); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("journal: %w", err)
		}
	}
	return f.Sync()
}

// outOf returns the names of segments that a repair behind a line has taken out, and that are
// not back; and what the files are called.
func outOf(f folder.Folder, files []chain.Segment, strange []string, kept journal.Anchor, lost []journal.Gap) (back map[string]string, err error) {
	back = map[string]string{}
	for _, name := range strange {
		number, _, _ := strings.Cut(name, ".")
		was, _, _ := chain.SegmentsIn([]string{number + chain.Suffix})
		if len(was) == 0 || slices.ContainsFunc(files, func(s chain.Segment) bool { return s.Number == was[0].Number }) {
			continue
		}
		is := name == asideName(was[0].Name(), kept)
		if i := slices.IndexFunc(lost, func(g journal.Gap) bool { return g.Segment == was[0].Number }); i >= 0 && !is {
			sum, err := sumOf(f, name)
			if err != nil {
				return nil, err
			}
			is = sum == lost[i].SHA256
		}
		if is {
			back[was[0].Name()] = name
		}
	}
	return back, nil
}

// putBack removes the end of a segment and writes what a file has in its place.
func putBack(f folder.Folder, name string, size int64, cut string) error {
	to, err := f.Edit(name)
	if err != nil {
		return err
	}
	defer to.Close()
	if now, err := to.Size(); err != nil || now > size {
		if err == nil {
			err = to.Truncate(size)
		}
		if err != nil {
			return err
		}
	}
	if cut != "" {
		from, err := f.Open(cut)
		if err != nil {
			return err
		}
		defer from.Close()
		length, err := from.Size()
		if err == nil {
			_, err = io.Copy(to, io.NewSectionReader(from, 0, length))
		}
		if err != nil {
			return err
		}
	}
	return to.Sync()
}
