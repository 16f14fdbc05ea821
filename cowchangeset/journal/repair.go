package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// Repair makes a damaged journal one that Open opens. It moves everything from the
// first damaged line on, with the later segments, to a file beside the others, and
// returns a description of that part. The lines before the damage stay as they were. If
// the journal is sound, Repair changes nothing; a write that was cut off, which Open
// removes, is no damage.
//
// A missing segment between others is damage, too. If the oldest ones are missing, and
// no line that would be left says that they were dropped, Repair writes that the
// changesets which began in them were pruned.
//
// Repair fails and changes nothing if no usable changeset would be left, as when the
// first header is damaged; that error wraps the *CorruptError. It returns ErrLocked if
// the journal is open.
//
// After any crash that interrupts it, Repair can be called again, and nothing is lost:
// the file is on the disk before anything is removed, from the end of the journal on.
//
// Repair is blocking: it waits for the disk. It takes effect when the damaged segment
// is truncated, or removed.
func Repair(path string) (Cut, error) {
	d, unlock, err := openDirectory(path, Options{MustExist: true})
	var c Cut
	if err == nil {
		defer unlock.Close()
		c, err = repair(d)
	}
	if err != nil {
		return Cut{}, fmt.Errorf("%w (journal at %s)", err, path)
	}
	if c.File != "" {
		c.File = d.in(c.File)
	}
	return c, nil
}

// repair returns the Cut that it has made, with a name for a path.
//
// The order of the steps is such that a crash leaves either the damage, and perhaps a
// copy, or the repaired journal. That may lack the prune, which another Repair writes.
func repair(f folder) (Cut, error) {
	files, _, _, err := list(f)
	if err != nil {
		return Cut{}, err
	}
	if len(files) == 0 {
		return Cut{}, errNoSegments
	}
	s, c, at, err := examine(f, files)
	if err != nil || c.Damage == nil {
		return Cut{}, err
	}
	if s.headless() {
		c.Pruned = s.head + 1
	}
	if why := hopeless(s, c); why != "" {
		return Cut{}, fmt.Errorf("journal: no repair: %s: %w", why, c.Damage)
	}
	if len(at.files) > 0 {
		if err := c.save(f, at); err != nil {
			return Cut{}, fmt.Errorf("journal: keeping what is to be cut: %w", err)
		}
		if err := at.remove(f); err != nil {
			return Cut{}, fmt.Errorf("journal: cutting: %w", err)
		}
	}
	if c.Pruned > 0 {
		last := len(files) - len(at.files) // which is the number of those that are whole
		if at.offset == 0 {
			last--
		}
		if err := behead(f, files[last].name(), s, at.offset == 0, c.Pruned); err != nil {
			return Cut{}, fmt.Errorf("journal: writing what was pruned: %w", err)
		}
	}
	return c, nil
}

// A place is where a cut is to be made: all files go, except for the first one's bytes
// before the offset.
type place struct {
	files  []segment
	offset int64
}

// examine returns a scanner that has read the sound lines, the damage, if there is any,
// and its place.
func examine(f source, files []segment) (s *scanner, c Cut, at place, err error) {
	n := 1 // how many are there before a gap
	for n < len(files) && files[n].number == files[0].number+uint64(n) {
		n++
	}
	s, end := scanFiles(f, files[:n])
	err = s.all(nil)
	end()
	switch {
	case errors.As(err, &c.Damage) && c.Damage.Line > s.lines:
		i := 0
		for files[i].name() != c.Damage.File {
			i++
		}
		at = place{files[i:], c.Damage.Offset}
	case err != nil && c.Damage == nil:
		return s, c, at, err
	case n < len(files):
		c.Damage = &CorruptError{File: fileName(files[n-1].number + 1), Line: s.lines + 1, Reason: "the segment is missing"}
		at.files = files[n:]
		if s.torn > 0 && !s.whole { // which is the end no more
			at = place{files[n-1:], s.size}
		}
	}
	return s, c, at, nil
}

// hopeless returns why the lines that s has read are no journal to go on with, or an
// empty text.
func hopeless(s *scanner, c Cut) string {
	if s.read == 0 {
		return "nothing would be left"
	}
	if c.Pruned > 0 {
		if _, why := s.state.check(&line{op: opPrune, before: c.Pruned}); why != "" {
			return fmt.Sprintf("the changesets below ordinal %d are missing, and cannot be taken for pruned: %s", c.Pruned, why)
		}
	}
	return ""
}

// save copies the bytes that are to be cut to a new file.
func (c *Cut) save(f folder, at place) (err error) {
	name := fmt.Sprintf("line-%d.cut", c.Damage.Line)
	for n := 2; ; n++ { // an earlier Repair may not have come to its end
		is, err := f.Open(name)
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return err
		}
		is.Close()
		name = fmt.Sprintf("line-%d-%d.cut", c.Damage.Line, n)
	}
	if err := f.Remove(name + unborn); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	to, err := f.Create(name + unborn)
	if err != nil {
		return err
	}
	defer to.Close()
	in := &stream{from: f, files: at.files}
	defer in.close()
	if at.offset > 0 {
		if in.file, err = f.Open(at.files[0].name()); err != nil {
			return err
		}
		in.at = at.offset
	}
	if err := c.read(io.TeeReader(in, to)); err != nil {
		return err
	}
	for _, s := range at.files {
		c.Bytes += s.size
	}
	c.Bytes -= at.offset
	if size, err := to.Size(); err != nil || size != c.Bytes {
		return errors.Join(io.ErrShortWrite, err)
	}
	if err := to.Sync(); err != nil {
		return err
	}
	if err := f.Rename(name+unborn, name); err != nil {
		return err
	}
	c.File = name
	return f.Sync()
}

// remove removes from the end on, so that nothing is missing in between.
func (at place) remove(f folder) error {
	for i := len(at.files) - 1; i >= 0; i-- {
		if i == 0 && at.offset > 0 {
			break
		}
		if err := f.Remove(at.files[i].name()); err != nil { // LP(Repair): of the damaged one
			return err
		}
	}
	if err := f.Sync(); err != nil || at.offset == 0 {
		return err
	}
	is, err := f.Edit(at.files[0].name())
	if err != nil {
		return err
	}
	defer is.Close()
	if err := is.Truncate(at.offset); err != nil { // LP(Repair)
		return err
	}
	return is.Sync()
}

// behead writes a prune behind the lines that s has read. At the end of a file, that
// may have to be mended first.
func behead(f folder, name string, s *scanner, whole bool, before uint64) error {
	is, err := f.Edit(name)
	if err != nil {
		return err
	}
	defer is.Close()
	if whole {
		if err := (&log{file: is}).mend(s); err != nil {
			return err
		}
	}
	text, _ := (&line{op: opPrune, before: before}).encode(nil, s.lines+1, s.hash)
	if err := writeAll(is, text); err != nil {
		return err
	}
	return is.Sync()
}
