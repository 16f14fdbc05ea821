package chain

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/latchfree/latchfree/internal/folder"
)

// A Lister is a source whose files can be listed.
type Lister interface {
	Source
	Names() ([]string, error) // sorted
}

// Find returns where the segments of the journal at path are, which others may
// have open.
func Find(path string) (Lister, error) {
	d, err := folder.At(path)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	return folder.Gzip{Folder: d}, nil
}

// A View is segments of a journal that others may be writing, with the sizes that they
// had when it was made. It has the oldest ones open, which are the first to be dropped,
// so that a prune seldom disturbs readers. Its owner must close it.
type View struct {
	from  Source
	Files []Segment
	open  []folder.File // the first of them
}

// keptOpen is how many segments a view keeps open: few beside the descriptors that a
// process may have, and more than what is dropped while one is read.
const keptOpen = 16

// ErrVanished: a segment was dropped before its reader came to it.
var ErrVanished = fmt.Errorf("%w while the journal was read", ErrDropped)

// A kept file is one that its view closes.
type kept struct{ folder.File }

func (kept) Close() error { return nil }

// Open opens a segment of the view, or returns ErrVanished.
func (v *View) Open(name string) (folder.File, error) {
	for i, f := range v.open {
		if v.Files[i].Name() == name {
			return kept{f}, nil
		}
	}
	f, err := v.from.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrVanished
	}
	return f, err
}

// Close closes the files that the view has open.
func (v *View) Close() {
	for _, f := range v.open {
		f.Close()
	}
}

// OpenView returns a view of the segments with a number of since or more.
//
// It looks again if a segment vanishes before it is open, as it was dropped, and if
// a segment is missing in a list that the next one does not confirm: files that come and
// go while a directory is read may be in the list or not. So it is a writer's
// progress that makes it look again.
func OpenView(from Lister, since uint64) (*View, error) {
	var was []string
	for {
		names, err := from.Names()
		if err != nil {
			return nil, fmt.Errorf("journal: %w", err)
		}
		files, _, _ := SegmentsIn(names)
		if hasHole(files) && !slices.Equal(was, names) {
			was = names
			continue
		}
		if len(files) == 0 {
			return nil, ErrNoSegments
		}
		for len(files) > 0 && files[0].Number < since {
			files = files[1:]
		}
		v := &View{from: from, Files: files}
		if err = v.openAll(); err == nil {
			return v, nil
		}
		v.Close()
		if !errors.Is(err, fs.ErrNotExist) || slices.Equal(was, names) {
			return nil, fmt.Errorf("journal: %w", err)
		}
		was = names
	}
}

// openAll opens all segments to know their sizes, the oldest first, and keeps some.
func (v *View) openAll() error {
	for i := range v.Files {
		f, err := v.from.Open(v.Files[i].Name())
		if err != nil {
			return err
		}
		v.Files[i].Size, err = f.Size()
		if len(v.open) < keptOpen {
			v.open = append(v.open, f)
		} else {
			f.Close()
		}
		if err != nil {
			return err
		}
	}
	return nil
}
