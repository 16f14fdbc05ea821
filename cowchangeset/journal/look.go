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
// had when it was made. It has them open, so that a prune does not disturb readers. Its
// owner must close it.
type view struct {
	files []segment
	open  []file // the same
}

// A kept file is one that its view closes.
type kept struct{ file }

func (kept) Close() error { return nil }

func (v *view) Open(name string) (file, error) {
	for i, s := range v.files {
		if s.name() == name {
			return kept{v.open[i]}, nil
		}
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

func (v *view) close() {
	for _, f := range v.open {
		f.Close()
	}
}

// look returns a view of the segments with a number of since or more. It returns a
// CorruptError if there is a gap among all that there are.
//
// It looks again if a segment vanishes before it is open, as it was dropped, and if
// there is a gap in a list that the next one does not confirm: files that come and
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
		if err := gap(files); err != nil {
			if slices.Equal(was, names) {
				return nil, err
			}
			was = names
			continue
		}
		if len(files) == 0 {
			return nil, errNoSegments
		}
		for len(files) > 0 && files[0].number < since {
			files = files[1:]
		}
		v := &view{files: files}
		if err = v.openAll(from); err == nil {
			return v, nil
		}
		v.close()
		if !errors.Is(err, fs.ErrNotExist) || slices.Equal(was, names) {
			return nil, fmt.Errorf("journal: %w", err)
		}
		was = names
	}
}

// openAll opens the oldest first, which is the first to be dropped.
func (v *view) openAll(from source) error {
	for i := range v.files {
		f, err := from.Open(v.files[i].name())
		if err != nil {
			return err
		}
		v.open = append(v.open, f)
		if v.files[i].size, err = f.Size(); err != nil {
			return err
		}
	}
	return nil
}
