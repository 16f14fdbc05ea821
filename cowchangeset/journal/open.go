package journal

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Open opens the journal at path, a directory, and makes one if there is none; the
// parent directory must exist. Open reads and checks the last segment and the headers of
// all others, which say what these have, and how they end; see Verify. It removes bytes
// after the last newline, as those of a write that was cut off; see Recovered. If anything
// else that it reads is not as a journal has written it, Open returns a *CorruptError and
// changes nothing; see Repair.
//
// Only the owner can read and write the files that Open makes. A later segment has the
// mode and group of the one before it: so whoever is given one can read those to come.
//
// Open returns ErrLocked if the journal is open, in this process or another one. It can
// tell that on the BSDs, illumos, Linux and macOS, and not on all network file systems.
// Elsewhere the user must make sure that the journal is opened once at a time.
//
// Open refuses a type E whose values cannot be read back: see package journal.
func Open[E any](path string, o Options) (*Journal[E], error) {
	v, err := valuesOf[E](o)
	if err != nil {
		return nil, err
	}
	j := &Journal[E]{values: v}
	d, unlock, err := openDirectory(path, o)
	if err == nil {
		j.log.path = d.path
		if err = j.log.begun(d, unlock, o, rand.Text()); err != nil {
			unlock.Close()
		}
	}
	if corrupt := new(CorruptError); errors.As(err, &corrupt) {
		return nil, fmt.Errorf("%w (journal at %s): put %s back as it was, or see Repair", err, path, corrupt.File)
	}
	if err != nil {
		return nil, fmt.Errorf("%w (journal at %s)", err, path)
	}
	return j, nil
}

// openDirectory finds or makes the directory of a journal, and locks it.
func openDirectory(path string, o Options) (d directory, unlock io.Closer, err error) {
	fails := func(err error) (directory, io.Closer, error) { return d, nil, fmt.Errorf("journal: %w", err) }
	made, err := makeDirectory(path, o)
	if err != nil {
		return fails(err)
	}
	if d.path, err = resolve(path); err != nil {
		return fails(err)
	}
	if o.Archive != "" {
		if d.store, err = resolve(o.Archive); err != nil {
			return fails(fmt.Errorf("Options.Archive: %w", err))
		}
		if d.store == d.path {
			return fails(errors.New("Options.Archive: must not be the directory of the journal itself"))
		}
	}
	names, err := d.Names()
	if err != nil {
		return fails(err)
	}
	if files, _, _ := segmentsOf(names); len(files) == 0 {
		if o.MustExist || o.Identity != "" { // it leaves no lock where there is none
			return d, nil, errNoSegments
		}
		// Whoever makes the first segment has synced the directory's name before: it may
		// be of a process that was killed. If the parent may not be read, somebody else
		// has made the directory.
		if err := syncDir(filepath.Dir(d.path)); err != nil && (made || !errors.Is(err, fs.ErrPermission)) {
			if made {
				os.Remove(d.path)
			}
			return fails(fmt.Errorf("fsync of the directory that it is in: %w", err))
		}
	}
	lock, err := lockFile(d.in(lockName))
	if err != nil {
		return d, nil, err
	}
	if d.opened, err = openDir(d.path); err != nil {
		lock.Close()
		return fails(err)
	}
	return d, held{lock, d.opened}, nil
}

// A held directory is locked and open.
type held struct{ lock, opened *os.File }

// Close lets others open the journal.
func (h held) Close() error {
	h.opened.Close() // which was not written
	return h.lock.Close()
}

// makeDirectory makes a directory at path if there is nothing and there may be, and
// reports whether it has.
func makeDirectory(path string, o Options) (made bool, err error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) && !o.MustExist && o.Identity == "" {
		err = os.Mkdir(path, 0o700)
		if made = err == nil; err != nil && !errors.Is(err, fs.ErrExist) {
			return false, err
		}
		info, err = os.Stat(path) // what others have made meanwhile will do
	}
	if err == nil && !info.IsDir() {
		err = errNoDirectory
	}
	return made, err
}

// lockFile returns a file that is locked, and at its path.
func lockFile(path string) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, fmt.Errorf("journal: %w", err)
		}
		if same, err := lockAt(f, path); same {
			return f, nil
		} else if f.Close(); err != nil {
			return nil, err
		}
	}
}

// lockAt locks a file that was opened at a path, and reports whether it is still there.
func lockAt(f *os.File, path string) (same bool, err error) {
	if err := lock(f); err != nil { // another process has it
		return false, err
	}
	is, err := f.Stat()
	if err != nil {
		return false, fmt.Errorf("journal: %w", err)
	}
	at, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("journal: %w", err)
	}
	return os.SameFile(is, at), nil
}

// resolve returns the absolute path, without symbolic links, of what is at a path.
func resolve(path string) (string, error) {
	path, err := absolute(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(path)
}

// absolute returns an absolute path. It does not clean it: what ".." is depends on where
// links lead.
func absolute(path string) (string, error) {
	if filepath.IsAbs(path) {
		return path, nil
	}
	dir, err := os.Getwd()
	return dir + string(filepath.Separator) + path, err
}

// begun makes a log of the contents of a folder that nobody else uses.
func (g *log) begun(f folder, unlock io.Closer, o Options, identity string) error {
	g.folder, g.unlock, g.options, g.identity = f, unlock, o, identity
	if err := g.recover(); err != nil {
		if g.file != nil {
			g.file.Close()
		}
		return err
	}
	g.open, g.stats = true, Stats{} // what Open has written does not count
	return nil
}

// recover reads what it needs of the segments, removes the remains of a crash, and makes everything
// durable. It changes nothing in a journal that is corrupt.
//
// The lines that it has read may be in the kernel's memory only: the process that wrote
// them may have been killed before its fsync. Calls that repeat them get nil without a
// write, so recover calls fsync, whatever the policy.
func (g *log) recover() error {
	files, litter, strange, err := list(g.folder)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return g.create(litter, strange)
	}
	s, err := survey(context.Background(), g.folder, files, true)
	if err != nil {
		return err
	}
	if err := g.options.identify(s.state.journal); err != nil {
		return err
	}
	g.state, g.segments, g.lines, g.hash, g.torn = s.state, s.files, s.number, s.hash, s.torn
	g.active().size = s.size
	if err := g.clean(litter); err != nil {
		return err
	}
	g.name = g.active().name()
	if g.file, err = g.folder.Edit(g.name); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	if err := g.mend(s); err != nil {
		return fmt.Errorf("journal: removing the torn tail: %w", err)
	}
	if err := g.file.Sync(); err != nil {
		return fmt.Errorf("journal: fsync: %w", err)
	}
	if err := g.folder.Sync(); err != nil {
		return fmt.Errorf("journal: fsync of the directory: %w", err)
	}
	g.identity = g.state.journal
	g.drop()           // or a Prune does, and says why it cannot
	g.folder.Reserve() // or a later Prune has none
	return nil
}

// mend removes the torn tail, and gives the last line the newline that it lost.
func (g *log) mend(s *scanner) error {
	if s.fixed {
		if err := g.file.Truncate(s.size - 1); err != nil {
			return err
		}
		return writeAll(g.file, []byte("\n"))
	}
	if s.torn > 0 {
		return g.file.Truncate(s.size)
	}
	return nil
}

// create makes the first segment.
func (g *log) create(litter, strange []string) error {
	if g.options.MustExist || g.options.Identity != "" {
		return errNoSegments
	}
	strange = slices.DeleteFunc(strange, ofVolume)
	if len(strange) > 0 {
		return fmt.Errorf("journal: the directory is not one of a journal: it has %q", strange[0])
	}
	if err := g.clean(litter); err != nil {
		return err
	}
	g.state, g.hash = newState(), noHash()
	if err := g.begin(); err != nil {
		return err
	}
	g.folder.Reserve() // or a later Prune has none
	return nil
}

// ofVolume reports whether a name is one that a file system or its tools have made:
// lost+found, .snapshot and the like say nothing about whose the directory is.
func ofVolume(name string) bool { return name == "lost+found" || name[0] == '.' }

// clean removes files that were to become segments.
func (g *log) clean(litter []string) error {
	for _, name := range litter {
		if err := g.folder.Remove(name); err != nil {
			return fmt.Errorf("journal: %w", err)
		}
	}
	return nil
}
