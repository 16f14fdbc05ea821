package snapfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/latchfree/latchfree/shardedregistry"
)

// Save writes what r holds at one instant to the file at path, whether there is one
// or not. If it returns nil, the file is on the disk, also after a crash of the
// machine. If it returns an error, or the process or the machine ends meanwhile, the
// path names what it named before, or all of the new file. Several calls may run at
// once: the last one to end stays.
//
// Save writes to a new file beside path, calls fsync, renames it, and calls fsync for
// the directory. A process that is killed may leave that file, whose name is that of
// path with a number and .tmp: no call reads or removes it. The new file has the
// permissions of the old one, or else 0600. If path is a symbolic link, the link is
// replaced. On Windows, the directory is not synced.
//
// Save panics if r is nil.
func Save[K comparable, V any](path string, r *shardedregistry.Registry[K, V], f Format[K, V]) error {
	if r == nil {
		panic("snapfile: Save called with a nil registry")
	}
	d, name := split(path)
	return save(d, name, func(w io.Writer) error { return Write(w, r, f) })
}

// Load returns a new registry with what was saved in the file at path: see [Read]. If
// there is no file, the error matches [fs.ErrNotExist].
func Load[K comparable, V any](path string, config shardedregistry.Config[K, V], f Format[K, V]) (*shardedregistry.Registry[K, V], error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("snapfile: %w", err)
	}
	defer file.Close()
	r, err := Read(file, config, f)
	if corrupt := new(CorruptError); errors.As(err, &corrupt) {
		corrupt.File = path
	}
	return r, err
}

// folder is a directory, as save needs it.
type folder interface {
	// Create makes a file of a new name, which is to become that of another name.
	Create(becomes string) (file, error)
	Rename(from, to string) error
	Remove(name string) error
	Sync() error // makes the names durable
}

// file is a new file.
type file interface {
	io.WriteCloser
	Sync() error
	Base() string // its name
}

// save makes the file name in d what write writes. Write may be a codec's, and panic.
func save(d folder, name string, write func(io.Writer) error) (err error) {
	f, err := d.Create(name)
	if err != nil {
		return fmt.Errorf("snapfile: %w", err)
	}
	open, renamed := true, false
	defer func() {
		if open {
			f.Close()
		}
		if !renamed {
			d.Remove(f.Base())
		}
	}()
	if err := write(f); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("snapfile: fsync: %w", err)
	}
	open = false
	if err := f.Close(); err != nil {
		return fmt.Errorf("snapfile: %w", err)
	}
	if err := d.Rename(f.Base(), name); err != nil {
		return fmt.Errorf("snapfile: %w", err)
	}
	renamed = true
	if err := d.Sync(); err != nil {
		return fmt.Errorf("snapfile: fsync of the directory: %w", err)
	}
	return nil
}

// directory is the path of a directory on a disk, with a separator at its end.
type directory string

// split returns the directory that a path's last element is in, and that element. It
// does not clean the path: what ".." is depends on where links lead, and what ends in a
// separator is no file.
func split(path string) (directory, string) {
	dir, name := filepath.Split(path)
	if dir == "" || !os.IsPathSeparator(dir[len(dir)-1]) {
		dir += "." + string(filepath.Separator)
	}
	return directory(dir), name
}

// osFile is a file on a disk.
type osFile struct{ *os.File }

func (f osFile) Base() string { return filepath.Base(f.Name()) }

func (d directory) in(name string) string { return string(d) + name }

func (d directory) Create(becomes string) (file, error) {
	mode := fs.FileMode(0o600)
	if info, err := os.Stat(d.in(becomes)); err == nil {
		if !info.Mode().IsRegular() {
			return nil, &fs.PathError{Op: "save", Path: d.in(becomes), Err: errors.New("not a regular file")}
		}
		mode = info.Mode().Perm()
	}
	f, err := os.CreateTemp(string(d), becomes+".*.tmp")
	if err != nil {
		return nil, err
	}
	if err := f.Chmod(mode); err != nil {
		f.Close()
		os.Remove(f.Name())
		return nil, err
	}
	return osFile{f}, nil
}

func (d directory) Rename(from, to string) error { return os.Rename(d.in(from), d.in(to)) }

func (d directory) Remove(name string) error { return os.Remove(d.in(name)) }

func (d directory) Sync() error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := os.Open(string(d))
	if err != nil {
		return err
	}
	err = f.Sync()
	return errors.Join(err, f.Close())
}
