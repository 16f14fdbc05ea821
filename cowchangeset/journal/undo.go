package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
)

// errNothingToUndo: Repair has changed nothing, or something was written since.
var errNothingToUndo = errors.New("journal: the last lines are not those of a repair: there is nothing to undo")

// Undo takes the last Repair back, as long as nothing was written since: the files are
// then as damaged as they were. It removes the lines that Repair has written, and puts the
// end of the last segment and the segments that were taken out back, unless there are
// others in their places by now. Only a torn tail, which Open removes too, is not taken
// back. Undo returns ErrLocked if the journal is open.
//
// Undo is blocking: it waits for the disk. It takes effect when the lines of the repair
// are removed or, if there are none, when the first file has its name.
func Undo(path string) error {
	_, err := onDisk(path, func(f folder) (Repaired, error) { return Repaired{}, undo(f) })
	return err
}

// undo works from the end on: a crash leaves a journal that can be repaired again.
func undo(f folder) error {
	files, _, strange, err := list(f)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return errNoSegments
	}
	s := scan(f, files)
	defer s.close()
	var lost []uint64                 // that the last lines declare
	kept, lines := int64(0), s.number // before these
	for l, err := s.next(); err != io.EOF; l, err = s.next() {
		switch {
		case err != nil:
			return err
		case l.op == opGap:
			lost = append(lost, l.segment)
		default:
			lost, kept, lines = nil, s.size, s.number
		}
	}
	last := files[len(files)-1]
	cutName := ""
	for _, name := range strange { // sorted: of several, the last
		number, ok := strings.CutSuffix(name, ".cut")
		if ok && (number == fmt.Sprintf("line-%d", lines+1) || strings.HasPrefix(number, fmt.Sprintf("line-%d-", lines+1))) {
			cutName = name
		}
	}
	var back []string
	for _, name := range strange {
		name, _ := strings.CutSuffix(name, damaged)
		was, _, _ := segmentsOf([]string{name})
		if len(was) == 0 || slices.ContainsFunc(files, func(s segment) bool { return s.number == was[0].number }) {
			continue
		}
		if n := was[0].number; n > last.number || slices.Contains(lost, n) {
			back = append(back, name)
		}
	}
	if len(lost) == 0 && cutName == "" && len(back) == 0 {
		return errNothingToUndo
	}
	if err := putBack(f, last.name(), kept, cutName); err != nil { // LP(Undo)
		return fmt.Errorf("journal: putting back what was cut: %w", err)
	}
	for _, name := range back {
		if err := f.Rename(name+damaged, name); err != nil { // LP(Undo)
			return fmt.Errorf("journal: putting a segment back: %w", err)
		}
	}
	if cutName != "" {
		if err := f.Remove(cutName); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("journal: %w", err)
		}
	}
	return f.Sync()
}

// putBack removes the end of a segment and writes what a file has in its place.
func putBack(f folder, name string, size int64, cutName string) error {
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
	if cutName != "" {
		from, err := f.Open(cutName)
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
