package journal

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A source is where segments can be read.
type source interface {
	Open(name string) (file, error)
}

// A folder is a directory, as a journal needs it.
type folder interface {
	source
	Names() ([]string, error)
	Edit(name string) (file, error)         // open it to write it too
	Create(name, like string) (file, error) // with the mode and group of another file, or the owner's alone
	Rename(from, to string) error
	Remove(name string) error
	Archive(name string) error // take it away as Options.Archive says
	Sync() error               // make the names durable

	Reserve() error // keep some room of the disk, if there is none kept
	Spend() bool    // give it back, and report whether there was any

	// Check returns an error unless name names the file that f is, with that size.
	Check(name string, f file, size int64) error
}

// A file is a file, as a journal needs it.
type file interface {
	io.ReaderAt
	io.Writer // at its end
	io.Closer
	Truncate(size int64) error
	Sync() error
	Size() (int64, error)
}

// A segment is one file of a journal.
type segment struct {
	number uint64
	size   int64 // how long it was; of the last one, how long its lines are: remains of a failed write may follow
	header int64 // how long its first line is
}

const (
	suffix      = ".journal" // of a segment
	unborn      = ".new"     // of a file that is to be a segment
	lockName    = "lock"     // of an empty file that is locked while the journal is open
	reserveName = "reserve"  // of a file that a Prune on a full disk removes first
)

// fileName returns the name of a segment. Names sort as the numbers do.
func fileName(number uint64) string { return fmt.Sprintf("%010d%s", number, suffix) }

func (s segment) name() string { return fileName(s.number) }

// segmentsOf returns the segments among names, which are sorted, the names of files that
// were to become segments, and those that are not of a journal.
func segmentsOf(names []string) (segments []segment, litter, strange []string) {
	for _, name := range names {
		is, isUnborn := strings.CutSuffix(name, unborn)
		digits, ok := strings.CutSuffix(is, suffix)
		n, err := strconv.ParseUint(digits, 10, 64)
		switch {
		case name == lockName || name == reserveName:
		case !ok || err != nil || n == 0 || fileName(n) != is:
			strange = append(strange, name)
		case isUnborn:
			litter = append(litter, name)
		default:
			segments = append(segments, segment{number: n})
		}
	}
	return segments, litter, strange
}

// A directory is a folder on a disk.
type directory struct {
	path   string   // absolute, without symbolic links
	opened *os.File // the same, or nil: so that a sync needs no descriptor when none is left
	store  string   // where archive moves files; empty: it removes them
}

// in returns the path of a file.
func (d directory) in(name string) string { return d.path + string(filepath.Separator) + name }

func (d directory) Names() (names []string, err error) {
	all, err := os.ReadDir(d.path) // which sorts
	for _, e := range all {
		names = append(names, e.Name())
	}
	return names, err
}

func (d directory) Open(name string) (file, error) {
	return openRegular(d.in(name), os.O_RDONLY)
}

func (d directory) Edit(name string) (file, error) {
	return openRegular(d.in(name), os.O_RDWR|os.O_APPEND)
}

func (d directory) Create(name, like string) (file, error) {
	f, err := openRegular(d.in(name), os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_EXCL)
	if err != nil || like == "" {
		return f, err
	}
	// Whoever may read the segments so far may read the next one. If that is not to be, as
	// of a group that this process is not in, the segment is worth more than its readers.
	if is, err := os.Stat(d.in(like)); err == nil {
		keepGroup(f.File, is)
		f.Chmod(is.Mode().Perm())
	}
	return f, nil
}

func (d directory) Rename(from, to string) error { return os.Rename(d.in(from), d.in(to)) }

func (d directory) Remove(name string) error { return os.Remove(d.in(name)) }

func (d directory) Archive(name string) error {
	if d.store == "" {
		return d.Remove(name)
	}
	to := filepath.Join(d.store, name)
	_, here := os.Lstat(d.in(name))
	_, there := os.Lstat(to)
	switch {
	case here == nil && there == nil:
		return &fs.PathError{Op: "archive", Path: to, Err: fs.ErrExist}
	case here != nil && there != nil:
		return here
	case here == nil:
		if err := os.Rename(d.in(name), to); err != nil {
			return err
		}
	} // else it is there since a call whose sync has failed
	return syncDir(d.store)
}

func (d directory) Sync() error {
	if d.opened == nil {
		return syncDir(d.path)
	}
	return syncNames(d.opened)
}

// syncDir makes the names in a directory durable.
func syncDir(path string) error {
	d, err := openDir(path)
	if err != nil {
		return err
	}
	defer d.Close()
	return syncNames(d)
}

// reserved is how much room is kept: enough for the line of a prune, also where a disk
// gives room in large blocks.
const reserved = 64 << 10

func (d directory) Reserve() error {
	if info, err := os.Lstat(d.in(reserveName)); err == nil && info.Size() == reserved {
		return nil
	}
	text := make([]byte, reserved)
	rand.Read(text) // which no file system makes smaller
	err := os.WriteFile(d.in(reserveName), text, 0o600)
	if err != nil {
		os.Remove(d.in(reserveName)) // a part is none
	}
	return err
}

func (d directory) Spend() bool { return os.Remove(d.in(reserveName)) == nil && d.Sync() == nil }

func (d directory) Check(name string, f file, size int64) error {
	of, ok := f.(osFile)
	if !ok {
		return errors.New("not a file of this folder")
	}
	is, err := os.Stat(d.in(name))
	if err != nil {
		return err
	}
	if !os.SameFile(is, of.info) {
		return fmt.Errorf("%s is another file than the one that was opened", d.in(name))
	}
	if is.Size() != size {
		return fmt.Errorf("%s has %d bytes, and not %d", d.in(name), is.Size(), size)
	}
	return nil
}

// An osFile is a file on a disk.
type osFile struct {
	*os.File
	info os.FileInfo // as it was opened, to know it again
}

func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// openRegular opens a regular file, which has a size and keeps its contents.
func openRegular(path string, flag int) (osFile, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() { // opening it might not return
		return osFile{}, &fs.PathError{Op: "open", Path: path, Err: errors.New("not a regular file")}
	}
	f, err := os.OpenFile(path, flag, 0o600)
	if err != nil {
		return osFile{}, err
	}
	info, err = f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: errors.New("not a regular file")}
	}
	if err != nil {
		f.Close()
		return osFile{}, err
	}
	return osFile{f, info}, nil
}
