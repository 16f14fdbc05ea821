package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// converting is what the directory is called that takes a file's place.
const converting = ".converting"

// convert makes a file of format 1 the first segment of a directory at its path.
//
// The file is moved into a directory beside it, and that to the path. A process
// that ends in between leaves nothing at the path: then finishConversion does the
// rest.
func convert(path string) error {
	path, err := resolve(path)
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	f, err := openRegular(path, os.O_RDWR)
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	defer f.Close()
	if err := lock(f.File); err != nil { // who has it open still writes it
		return err
	}
	size, err := f.Size()
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	s := scan(io.NewSectionReader(f, 0, size), nil)
	if err := s.all(nil); err != nil {
		return err
	}
	if s.read == 0 {
		return s.corrupt("the file is empty")
	}
	if s.state.journal != "" {
		return errors.New("journal: the file is a segment: open the directory that it is in")
	}
	if err := moveInto(path); err != nil {
		return fmt.Errorf("journal: making a directory of a file of format 1: %w", err)
	}
	return nil
}

func moveInto(path string) error {
	dir := path + converting
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return err
	}
	if err := os.Rename(path, filepath.Join(dir, fileName(1))); err != nil {
		return err
	}
	return finishConversion(path)
}

// finishConversion does what is left of a conversion, if there was one that has
// moved the file.
func finishConversion(path string) error {
	if to, err := os.Readlink(path); err == nil {
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		path = to
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	dir := path + converting
	if _, err := os.Lstat(filepath.Join(dir, fileName(1))); err != nil {
		return nil
	}
	if err := syncDir(dir); err != nil {
		return err
	}
	return os.Rename(dir, path)
}
