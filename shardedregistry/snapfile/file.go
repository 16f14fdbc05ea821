package snapfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/latchfree/latchfree/internal/folder"
	"github.com/latchfree/latchfree/shardedregistry"
)

// Save writes what r holds at one instant to the file at path, whether there is one
// or not. If it returns nil, the file is on the disk, also after a crash of the
// machine. If it returns an error, or the process or the machine ends meanwhile, the
// path names what it named before, or all of the new file. Several calls may run at
// once, also in several processes: the last one to end stays.
//
// Save writes to a new file beside path, calls fsync, renames it, and calls fsync for
// the directory. If that last step fails, the error matches [ErrNotSynced]: the path
// names the new file, and perhaps the old one again after a crash of the machine. Where
// directories cannot be synced at all, as on Windows and some network file systems, that
// is no error, and the same may happen.
//
// The new file has the permissions of the old one, and its owner and group as far as the
// process may set them; a group that it has instead may do no more than others. Access
// control lists and other attributes are not kept. If there is no old file, the new one has 0600. If
// path is a symbolic link, the link is replaced, wherever it leads.
//
// A process that is killed may leave its new file, whose name is that of path, cut off
// after 100 bytes, with .snapfile-, a number and .tmp. The next Save to path removes it.
// It can tell it from one that is being written by a lock (flock); where there are none,
// such as on Windows, it removes nothing.
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

// saver is a directory, as save needs it.
type saver interface {
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
	Release()     // lets others remove it, if it has that name still
}

// save makes the file name in d what write writes. Write may be a codec's, and panic.
func save(d saver, name string, write func(io.Writer) error) (err error) {
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
		f.Release()
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
		return fmt.Errorf("%w: %w", ErrNotSynced, err)
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
type osFile struct {
	*os.File
	held *os.File // by which the file is locked, also when it was closed; or nil
}

func (f osFile) Base() string { return filepath.Base(f.Name()) }

func (f osFile) Release() {
	if f.held != nil {
		f.held.Close()
	}
}

func (d directory) in(name string) string { return string(d) + name }

// Create makes a file that is locked where files can be, and removes those that were to
// become becomes, too, and that nobody has locked any more.
func (d directory) Create(becomes string) (file, error) {
	old, err := d.replaced(becomes)
	if err != nil {
		return nil, err
	}
	start := stem(becomes) + mark
	d.sweep(start)
	f, err := d.create(start)
	if err != nil {
		return nil, err
	}
	if old == nil {
		return f, nil
	}
	if err := folder.Resemble(f.File, old); err != nil {
		f.Close()
		os.Remove(f.Name())
		f.Release()
		return nil, err
	}
	return f, nil
}

// replaced returns the file that a new one of this name replaces, or that a link of this name
// leads to, or nil if there is none.
func (d directory) replaced(name string) (fs.FileInfo, error) {
	info, err := os.Lstat(d.in(name))
	if err != nil {
		return nil, nil // what is wrong with the path shows when a file is made beside it
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		if info, err = os.Stat(d.in(name)); err != nil || !info.Mode().IsRegular() {
			return nil, nil
		}
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "save", Path: d.in(name), Err: errors.New("not a regular file")}
	}
	return info, nil
}

// The name of a new file is the stem of that which it will have, mark, a number, and suffix.
const (
	mark        = ".snapfile-"
	suffix      = ".tmp"
	longestStem = 100 // of a stem. Names of more than 255 bytes are too long, and on some disks of more than 143.
)

// stem returns what the name of a new file begins with. It does not cut characters.
func stem(name string) string {
	if len(name) <= longestStem {
		return name
	}
	n := longestStem
	for n > 0 && !utf8.RuneStart(name[n]) {
		n--
	}
	return name[:n]
}

// create makes a file whose name begins with start. Another Save may take it for that of one
// that was killed, as long as it is not locked: then another file takes its place.
func (d directory) create(start string) (f osFile, err error) {
	for range 100 {
		f.File, err = os.CreateTemp(string(d), start+"*"+suffix)
		if err != nil {
			return f, err
		}
		if f.held, err = os.OpenFile(f.Name(), os.O_RDWR, 0); err == nil {
			same := false
			if err = folder.Lock(f.held); err == nil {
				same, _ = folder.Same(f.held, f.Name())
			}
			switch {
			case same:
				return f, nil
			case err != nil && !errors.Is(err, folder.ErrLocked): // files cannot be locked here, nor perhaps renamed while they are open
				f.held.Close()
				f.held = nil
				return f, nil
			}
			f.held.Close()
		}
		f.Close()
		os.Remove(f.Name())
	}
	return f, &fs.PathError{Op: "create", Path: f.Name(), Err: errors.Join(errors.New("each new file is taken away"), err)}
}

// sweep removes what was left behind of the files whose names begin with start. It is no
// error if that fails.
func (d directory) sweep(start string) {
	f, err := os.Open(string(d))
	if err != nil {
		return
	}
	names, _ := f.Readdirnames(-1)
	f.Close()
	for _, name := range names {
		number, ok := strings.CutPrefix(name, start)
		if !ok {
			continue
		}
		if number, ok = strings.CutSuffix(number, suffix); ok && number != "" && strings.Trim(number, "0123456789") == "" {
			removeLeft(d.in(name))
		}
	}
}

// removeLeft removes a new file that nobody has locked.
func removeLeft(path string) {
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		return
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0) // as some network file systems ask for, to lock it
	if err != nil {
		if f, err = os.Open(path); err != nil {
			return
		}
	}
	defer f.Close()
	if folder.Lock(f) != nil {
		return
	}
	if same, _ := folder.Same(f, path); same {
		os.Remove(path)
	}
}

func (d directory) Rename(from, to string) error { return os.Rename(d.in(from), d.in(to)) }

func (d directory) Remove(name string) error { return os.Remove(d.in(name)) }

func (d directory) Sync() error { return folder.SyncDir(string(d)) }
