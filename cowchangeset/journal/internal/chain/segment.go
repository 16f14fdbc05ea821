package chain

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/latchfree/latchfree/internal/folder"
)

// A Source is where segments can be read.
type Source interface {
	Open(name string) (folder.File, error)
}

// A Segment is one file of a journal.
type Segment struct {
	Number uint64
	Size   int64 // how long it was; of the last one, how long its lines are: remains of a failed write may follow
	Header int64 // how long its first line is
}

const (
	Suffix      = ".journal" // of a segment
	Unborn      = folder.Unborn
	LockName    = "lock"    // of an empty file that is locked while the journal is open
	ReserveName = "reserve" // of a file that a Prune on a full disk removes first
)

// Lock locks the directory of a journal.
func Lock(d folder.Directory) (*folder.Locked, error) {
	l, err := d.Lock(LockName)
	switch {
	case errors.Is(err, folder.ErrLocked):
		return nil, ErrLocked
	case err != nil:
		return nil, fmt.Errorf("journal: %w", err)
	}
	return l, nil
}

// FileName returns the name of a segment. Names sort as the numbers do.
func FileName(number uint64) string { return fmt.Sprintf("%010d%s", number, Suffix) }

// Name returns the name of the segment's file.
func (s Segment) Name() string { return FileName(s.Number) }

// SegmentsIn returns the segments among names, which are sorted, the names of files that
// were to become segments, and those that are not of a journal.
func SegmentsIn(names []string) (segments []Segment, litter, strange []string) {
	for _, name := range names {
		is, isUnborn := strings.CutSuffix(name, Unborn)
		digits, ok := strings.CutSuffix(is, Suffix)
		n, err := strconv.ParseUint(digits, 10, 64)
		switch {
		case name == LockName || name == ReserveName:
		case !ok || err != nil || n == 0 || FileName(n) != is:
			strange = append(strange, name)
		case isUnborn:
			litter = append(litter, name)
		default:
			segments = append(segments, Segment{Number: n})
		}
	}
	return segments, litter, strange
}
