package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
)

// A lister is a source whose files can be listed.
type lister interface {
	source
	Names() ([]string, error) // sorted
}

// find returns where the segments of the journal at path are, which others may
// have open.
func find(path string) (lister, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("journal: %w", errNoDirectory)
	}
	if path, err = resolve(path); err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	return directory{path: path}, nil
}

// A view is segments of a journal that others may be writing, with the sizes that they
// had when it was made. It has the oldest ones open, which are the first to be dropped,
// so that a prune seldom disturbs readers. Its owner must close it.
type view struct {
	from  source
	files []segment
	open  []file // the first of them
}

// keptOpen is how many segments a view keeps open: few beside the descriptors that a
// process may have, and more than what is dropped while one is read.
const keptOpen = 16

// errVanished: a segment was dropped before its reader came to it.
var errVanished = fmt.Errorf("%w while the journal was read", ErrDropped)

// A kept file is one that its view closes.
type kept struct{ file }

func (kept) Close() error { return nil }

func (v *view) Open(name string) (file, error) {
	for i, f := range v.open {
		if v.files[i].name() == name {
			return kept{f}, nil
		}
	}
	f, err := v.from.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		err = errVanished
	}
	return f, err
}

func (v *view) close() {
	for _, f := range v.open {
		f.Close()
	}
}

// look returns a view of the segments with a number of since or more.
//
// It looks again if a segment vanishes before it is open, as it was dropped, and if
// a segment is missing in a list that the next one does not confirm: files that come and
// go while a directory is read may be in the list or not. So it is a writer's
// progress that makes it look again.
func look(from lister, since uint64) (*view, error) {
	var was []string
	for {
		names, err := from.Names()
		if err != nil {
			return nil, fmt.Errorf("journal: %w", err)
		}
		files, _, _ := segmentsOf(names)
		if hasHole(files) && !slices.Equal(was, names) {
			was = names
			continue
		}
		if len(files) == 0 {
			return nil, errNoSegments
		}
		for len(files) > 0 && files[0].number < since {
			files = files[1:]
		}
		v := &view{from: from, files: files}
		if err = v.openAll(); err == nil {
			return v, nil
		}
		v.close()
		if !errors.Is(err, fs.ErrNotExist) || slices.Equal(was, names) {
			return nil, fmt.Errorf("journal: %w", err)
		}
		was = names
	}
}

// openAll opens all segments to know their sizes, the oldest first, and keeps some.
func (v *view) openAll() error {
	for i := range v.files {
		f, err := v.from.Open(v.files[i].name())
		if err != nil {
			return err
		}
		v.files[i].size, err = f.Size()
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
