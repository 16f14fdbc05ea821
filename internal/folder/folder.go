// Package folder has what journals and saved registries need of directories: files that
// survive crashes under the names that they were given.
package folder

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// A Folder is a directory, on a disk or simulated.
type Folder interface {
	Names() ([]string, error)               // sorted
	Open(name string) (File, error)         // to read
	Edit(name string) (File, error)         // to write it too
	Create(name, like string) (File, error) // with the mode, owner and group of another file, or the user's alone
	Rename(from, to string) error
	Remove(name string) error
	Move(name, dir string) error // to another directory, for good
	Sync() error                 // makes the names durable

	// Check returns an error unless name names the file that f is, with that size.
	Check(name string, f File, size int64) error
}

// A File is an open file.
type File interface {
	io.ReaderAt
	io.Writer // at its end
	io.Closer
	Truncate(size int64) error
	Sync() error
	Size() (int64, error)
}

// A Directory is a Folder on a disk.
type Directory struct {
	Path string // absolute, without symbolic links

	opened *os.File // the same, or nil: a sync needs no descriptor when none is left
}

// At returns the directory at path, or an error if there is none.
func At(path string) (Directory, error) {
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is no directory: name the one that the files are in", path)
	}
	if err == nil {
		path, err = Resolve(path)
	}
	return Directory{Path: path}, err
}

// Absolute returns an absolute path. It does not clean it: what ".." is depends on where
// links lead.
func Absolute(path string) (string, error) {
	if filepath.IsAbs(path) {
		return path, nil
	}
	dir, err := os.Getwd()
	return dir + string(filepath.Separator) + path, err
}

// Resolve returns the absolute path, without symbolic links, of what is at a path.
func Resolve(path string) (string, error) {
	path, err := Absolute(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(path)
}

// In returns the path of a file.
func (d Directory) In(name string) string { return d.Path + string(filepath.Separator) + name }

// Lock locks the directory by the file with a name, and makes that if there is none. The
// error is ErrLocked if another process, or another Lock of this one, has it. The Directory
// that it returns is locked until its Close.
//
// Where files cannot be locked, it is the user's duty to use the directory once at a time.
func (d Directory) Lock(name string) (*Locked, error) {
	for {
		f, err := os.OpenFile(d.In(name), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		if err = Lock(f); err == errors.ErrUnsupported {
			err = nil
		}
		same := false
		if err == nil {
			same, err = Same(f, d.In(name)) // or somebody has removed it meanwhile
		}
		if err == nil && same {
			if d.opened, err = os.Open(d.Path); err == nil {
				return &Locked{d, f}, nil
			}
		}
		f.Close()
		if err != nil {
			return nil, err
		}
	}
}

// A Locked directory is open, and nobody else can lock it.
type Locked struct {
	Directory
	lock *os.File
}

// Close lets others lock the directory.
func (l *Locked) Close() error {
	l.opened.Close() // which was not written
	return l.lock.Close()
}

// Names returns the names of all files.
func (d Directory) Names() (names []string, err error) {
	all, err := os.ReadDir(d.Path) // which sorts
	for _, e := range all {
		names = append(names, e.Name())
	}
	return names, err
}

// Open opens a regular file to read it.
func (d Directory) Open(name string) (File, error) { return openRegular(d.In(name), os.O_RDONLY) }

// Edit opens a regular file to read it and to write to its end.
func (d Directory) Edit(name string) (File, error) {
	return openRegular(d.In(name), os.O_RDWR|os.O_APPEND)
}

// Create makes a file. It has the mode and owners of another one, as far as this process may
// give them: the file is worth more than its readers.
func (d Directory) Create(name, like string) (File, error) {
	f, err := openRegular(d.In(name), os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return nil, err
	}
	if like != "" {
		if is, err := os.Stat(d.In(like)); err == nil {
			Resemble(f.File, is)
		}
	}
	return f, nil
}

// Rename gives a file another name, in the place of the file that has it, if there is one.
func (d Directory) Rename(from, to string) error { return os.Rename(d.In(from), d.In(to)) }

// Remove removes a file.
func (d Directory) Remove(name string) error { return os.Remove(d.In(name)) }

// Move moves a file to another directory, unless there is one of that name. It succeeds
// if an earlier Move has moved the file, whose sync may have failed.
func (d Directory) Move(name, dir string) error {
	to := filepath.Join(dir, name)
	_, here := os.Lstat(d.In(name))
	_, there := os.Lstat(to)
	switch {
	case here == nil && there == nil:
		return &fs.PathError{Op: "move", Path: to, Err: fs.ErrExist}
	case here != nil && there != nil:
		return here
	case here == nil:
		if err := os.Rename(d.In(name), to); err != nil {
			return err
		}
	}
	return SyncDir(dir)
}

// Sync makes the names of all files durable.
func (d Directory) Sync() error {
	if d.opened == nil {
		return SyncDir(d.Path)
	}
	return syncNames(d.opened)
}

// Check returns an error unless name names the file that f is, with that size.
func (d Directory) Check(name string, f File, size int64) error {
	of, ok := f.(osFile)
	if !ok {
		return errors.New("not a file of this folder")
	}
	is, err := os.Stat(d.In(name))
	if err != nil {
		return err
	}
	if !os.SameFile(is, of.info) {
		return fmt.Errorf("%s is another file than the one that was opened", d.In(name))
	}
	if is.Size() != size {
		return fmt.Errorf("%s has %d bytes, and not %d", d.In(name), is.Size(), size)
	}
	return nil
}

// An osFile is a File on a disk.
type osFile struct {
	*os.File
	info fs.FileInfo // as it was opened, to know it again
}

func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// openRegular opens a regular file, which has a size and keeps its contents.
func openRegular(path string, flag int) (f osFile, err error) {
	irregular := &fs.PathError{Op: "open", Path: path, Err: errors.New("not a regular file")}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return f, irregular // opening it might not return
	}
	if f.File, err = os.OpenFile(path, flag, 0o600); err != nil {
		return f, err
	}
	if f.info, err = f.Stat(); err == nil && !f.info.Mode().IsRegular() {
		err = irregular
	}
	if err != nil {
		f.Close()
	}
	return f, err
}

// Simulated is embedded in settings of a package, so that tests of others can have it work
// without a disk. The zero value changes nothing.
type Simulated struct {
	Folder      Folder // in the place of the one at the path; nobody else uses it
	NewIdentity string // in the place of random text
}
