package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// A file of format 1 becomes the first segment of a directory at its path: it is moved
// into a directory beside it, and that to the path. A process that ends in between leaves
// nothing at the path; then the next Open does the rest. Each of these steps runs with
// the file locked.

// converting is the suffix of the directory that takes a file's place.
const converting = ".converting"

// moved returns the path of a file that is on its way from path.
func moved(path string) string { return filepath.Join(path+converting, fileName(1)) }

// isConverting reports whether a file of format 1 is on its way from path. It looks at
// the file, as another journal may have such a name.
func isConverting(path string) bool {
	info, err := os.Lstat(moved(path))
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	f, err := os.Open(moved(path))
	if err != nil {
		return false
	}
	defer f.Close()
	first := []byte(lineKey + `1` + opKey + string(opJournal) + `","format":1,`)
	text := make([]byte, len(first))
	_, err = io.ReadFull(f, text)
	return err == nil && bytes.Equal(text, first)
}

// target returns an absolute path without symbolic links, also of a file that does not
// exist.
func target(path string) (string, error) {
	for range 100 {
		for len(path) > 1 && os.IsPathSeparator(path[len(path)-1]) {
			path = path[:len(path)-1]
		}
		dir, name := filepath.Split(path)
		if name == "" || name == "." || name == ".." {
			return resolve(path)
		}
		if dir == "" {
			dir = "."
		}
		dir, err := resolve(dir)
		if err != nil {
			return "", err
		}
		path = filepath.Join(dir, name)
		to, err := os.Readlink(path)
		if err != nil {
			return path, nil
		}
		if path = to; !filepath.IsAbs(to) {
			path = dir + string(filepath.Separator) + to // whose ".." are those of where links lead
		}
	}
	return "", &fs.PathError{Op: "open", Path: path, Err: errors.New("too many symbolic links")}
}

// convert makes a file of format 1 the first segment of a directory at its path. It
// reports that the caller should look again if somebody else has moved it away.
func convert(path string) (again bool, err error) {
	f, err := openRegular(path, os.O_RDWR)
	if err != nil {
		info, e := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) || e == nil && info.IsDir() {
			return true, nil
		}
		return false, fmt.Errorf("journal: %w", err)
	}
	defer f.Close()
	if same, err := lockAt(f.File, path); err != nil || !same {
		return err == nil, err
	}
	size, err := f.Size()
	if err != nil {
		return false, fmt.Errorf("journal: %w", err)
	}
	s := scan(io.NewSectionReader(f, 0, size), nil)
	if err := s.all(nil); err != nil {
		return false, err
	}
	switch {
	case s.read == 0:
		return false, s.corrupt("the file is empty")
	case s.state.journal != "":
		return false, errSegment
	}
	if !canLock {
		f.Close() // or it could not be moved
	}
	if err := moveInto(path); err != nil {
		return false, fmt.Errorf("journal: making a directory of a file of format 1: %w", err)
	}
	return false, nil
}

func moveInto(path string) error {
	if err := os.Mkdir(path+converting, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if isConverting(path) {
		return &fs.PathError{Op: "convert", Path: moved(path), Err: fs.ErrExist}
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return err
	}
	if err := os.Rename(path, moved(path)); err != nil {
		return err
	}
	return moveBack(path)
}

// moveBack puts the directory with the file at its path, where there is nothing, or a
// directory that is empty.
func moveBack(path string) error {
	if err := syncDir(path + converting); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Rename(path+converting, path)
}

// finishConversion finishes a conversion that has moved the file, if there was one.
func finishConversion(path string) error {
	if !isConverting(path) {
		return nil
	}
	f, err := os.Open(moved(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // any more
	}
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	defer f.Close()
	if same, err := lockAt(f, moved(path)); err != nil || !same {
		return err // it is done
	}
	if info, err := os.Lstat(path); err == nil && !info.IsDir() {
		return fmt.Errorf("journal: a conversion was interrupted: %s goes to %s, where a file is", moved(path), path)
	}
	if !canLock {
		f.Close()
	}
	if err := moveBack(path); err != nil {
		return fmt.Errorf("journal: finishing a conversion: %w", err)
	}
	return nil
}
