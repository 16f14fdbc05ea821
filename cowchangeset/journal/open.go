package journal

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/latchfree/latchfree/cowchangeset/journal/internal/chain"
	"github.com/latchfree/latchfree/internal/folder"
)

// Open opens the journal at path, a directory, and makes one if there is none; the
// parent directory must exist. Open reads and checks the last segment and the headers of
// all others, which say what these have, and how they end; see reader.Verify. It removes bytes
// after the last newline, as those of a write that was cut off; see Recovered. If anything
// else that it reads is not as a journal has written it, Open returns a *CorruptError and
// changes nothing; see package repair.
//
// Only the owner can read and write the files that Open makes. A later segment has the
// mode, owner and group of the one before it: so whoever is given one can read those to come.
//
// Open returns ErrLocked if the journal is open, in this process or another one. It can
// tell that on the BSDs, illumos, Linux and macOS, and not on all network file systems.
// Elsewhere the user must make sure that the journal is opened once at a time.
//
// Open refuses a type E whose values cannot be read back: see package journal.
func Open[E any](path string, o Options) (*Journal[E], error) {
	err := o.validate()
	if err != nil {
		return nil, err
	}
	v, err := chain.ValuesOf[E](cmp.Or(o.MaxEntry, defaultMaxEntry))
	if err != nil {
		return nil, err
	}
	j := &Journal[E]{values: v}
	err = j.log.openAt(path, o)
	if corrupt := new(chain.CorruptError); errors.As(err, &corrupt) {
		return nil, fmt.Errorf("%w (journal at %s): put %s back as it was, or see package repair", err, path, corrupt.File)
	}
	if err != nil {
		return nil, fmt.Errorf("%w (journal at %s)", err, path)
	}
	return j, nil
}

// openAt makes a log of the journal at path, which is locked then.
func (g *log) openAt(path string, o Options) error {
	if o.Folder != nil {
		g.path, g.archive = path, o.Archive
		return g.read(o.Folder, io.NopCloser(nil), o)
	}
	d, err := g.find(path, o)
	if err != nil {
		return err
	}
	l, err := chain.Lock(d)
	if err != nil {
		return err
	}
	if err := g.read(l, l, o); err != nil {
		l.Close()
		return err
	}
	return nil
}

// find finds or makes the directory of a journal.
func (g *log) find(path string, o Options) (d folder.Directory, err error) {
	fails := func(err error) (folder.Directory, error) { return d, fmt.Errorf("journal: %w", err) }
	made, err := makeDirectory(path, o)
	if err != nil {
		return fails(err)
	}
	if d, err = folder.At(path); err != nil {
		return fails(err)
	}
	g.path = d.Path
	if o.Archive != "" {
		if g.archive, err = folder.Resolve(o.Archive); err != nil {
			return fails(fmt.Errorf("Options.Archive: %w", err))
		}
		if g.archive == d.Path {
			return fails(errors.New("Options.Archive: must not be the directory of the journal itself"))
		}
	}
	names, err := folder.Gzip{Folder: d}.Names()
	if err != nil {
		return fails(err)
	}
	if files, _, _ := chain.SegmentsIn(names); len(files) > 0 {
		return d, nil
	}
	if o.MustExist || o.Identity != "" { // it leaves no lock where there is none
		return d, chain.ErrNoSegments
	}
	// Whoever makes the first segment has synced the directory's name before: it may
	// be of a process that was killed. If the parent may not be read, somebody else
	// has made the directory.
	if err := folder.SyncDir(filepath.Dir(d.Path)); err != nil && (made || !errors.Is(err, fs.ErrPermission)) {
		if made {
			os.Remove(d.Path)
		}
		return fails(fmt.Errorf("fsync of the directory that it is in: %w", err))
	}
	return d, nil
}

// makeDirectory makes a directory at path if there is nothing and there may be, and
// reports whether it has.
func makeDirectory(path string, o Options) (made bool, err error) {
	if o.MustExist || o.Identity != "" {
		return false, nil
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err = os.Mkdir(path, 0o700); errors.Is(err, fs.ErrExist) {
		return false, nil // what others have made meanwhile will do
	}
	return err == nil, err
}

// read makes the log of what a folder has that nobody else uses.
func (g *log) read(f folder.Folder, unlock io.Closer, o Options) error {
	g.folder, g.unlock, g.options, g.identity = folder.Gzip{Folder: f}, unlock, o, cmp.Or(o.NewIdentity, rand.Text())
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
	files, litter, strange, err := chain.List(g.folder)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return g.create(litter, strange)
	}
	s, err := chain.Survey(context.Background(), g.folder, files, true)
	if err != nil {
		return err
	}
	if err := chain.Identify(s.State.Journal, g.options.Identity); err != nil {
		return err
	}
	g.state, g.segments, g.lines, g.hash, g.torn = s.State, s.Files, s.Number, s.Hash, s.Torn
	g.active().Size = s.Size
	if err := g.clean(litter); err != nil {
		return err
	}
	g.name = g.active().Name()
	if g.file, err = g.folder.Edit(g.name); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	if err := s.Mend(g.file); err != nil {
		return fmt.Errorf("journal: removing the torn tail: %w", err)
	}
	if err := g.file.Sync(); err != nil {
		return fmt.Errorf("journal: fsync: %w", err)
	}
	if err := g.folder.Sync(); err != nil {
		return fmt.Errorf("journal: fsync of the directory: %w", err)
	}
	g.identity = g.state.Journal
	g.drop()    // or a Prune does, and says why it cannot
	g.reserve() // or a later Prune has none
	return nil
}

// create makes the first segment.
func (g *log) create(litter, strange []string) error {
	if g.options.MustExist || g.options.Identity != "" {
		return chain.ErrNoSegments
	}
	strange = slices.DeleteFunc(strange, ofVolume)
	if len(strange) > 0 {
		return fmt.Errorf("journal: the directory is not one of a journal: it has %q", strange[0])
	}
	if err := g.clean(litter); err != nil {
		return err
	}
	g.state, g.hash = chain.NewState(), chain.NoHash()
	if err := g.begin(); err != nil {
		return err
	}
	g.reserve() // or a later Prune has none
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
