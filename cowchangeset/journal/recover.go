package journal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// A file is what the journal needs of an *os.File.
type file interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Truncate(size int64) error
	Sync() error
}

// openFile opens and locks a file, and returns its size.
func openFile(path string) (*os.File, int64, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, 0, fmt.Errorf("journal: %w", err)
	}
	size, err := claim(f)
	if err != nil {
		f.Close()
		return nil, 0, fmt.Errorf("%w (file %s)", err, path)
	}
	return f, size, nil
}

// claim locks a file that was opened, and returns its size.
func claim(f *os.File) (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, fmt.Errorf("journal: %w", err)
	}
	if !info.Mode().IsRegular() {
		return 0, errors.New("journal: not a regular file")
	}
	if err := lock(f); err != nil {
		return 0, err
	}
	if info, err = f.Stat(); err != nil { // it may have grown until now
		return 0, fmt.Errorf("journal: %w", err)
	}
	return info.Size(), nil
}

// recover reads a file of the given size, removes a torn tail, writes the header
// if there is none, and makes everything durable. It changes nothing in a file
// that is corrupt.
//
// What was read may be in the kernel's memory only: the process that wrote it may
// have been killed before its fsync. Calls that tell it again get nil without a
// write, so there has to be an fsync here, whatever the policy.
func (g *log) recover(size int64) error {
	s := newScanner(io.NewSectionReader(g.file, 0, size))
	if err := s.all(); err != nil {
		return err
	}
	if s.torn > 0 {
		if err := g.file.Truncate(s.size); err != nil {
			return fmt.Errorf("journal: removing the torn tail: %w", err)
		}
	}
	if s.lines == 0 {
		text, hash := (&line{op: opJournal}).encode(nil, 1, s.hash)
		if err := writeAt(g.file, text, 0); err != nil {
			return fmt.Errorf("journal: writing the header: %w", err)
		}
		s.lines, s.size, s.hash = 1, int64(len(text)), hash
	}
	if err := g.file.Sync(); err != nil {
		return fmt.Errorf("journal: fsync: %w", err)
	}
	g.state, g.lines, g.size, g.hash, g.torn = s.state, s.lines, s.size, s.hash, s.torn
	return nil
}

// syncParent makes the name of a file durable.
func syncParent(path string) error {
	if err := syncDir(filepath.Dir(path)); err != nil {
		return fmt.Errorf("journal: fsync of the folder: %w", err)
	}
	return nil
}
