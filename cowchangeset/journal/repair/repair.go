package repair

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/cowchangeset/journal/internal/chain"
	"github.com/latchfree/latchfree/internal/folder"
)

// Repair makes a damaged journal one that Open opens, and returns what it has done. If
// the journal is sound, Repair changes nothing; a write that was cut off, which Open
// removes, is no damage.
//
// A damaged segment that others follow is taken out, and a line at the end of the journal
// says which segment is missing, and why. Verify reports it from then on. The header of the
// next segment has everything but entries, so that nothing is applied a second time, and no
// receipt is given twice. Changesets with entries in the segment that are neither applied
// nor aborted become aborted. Applied and aborted ones keep the entries that they have in
// other segments. The same goes for a segment that is missing.
//
// If adjacent segments are missing, it is unknown how changesets ended in the first of
// them: they count as aborted. A tracker gets the changesets after the last that is unknown,
// and those before it are aborted; a Reader yields all that are known.
//
// From the last segment, Repair cuts everything from the first damaged line on, or takes it
// out as a whole if that is its header: then the one before it is the last.
//
// Each file that Repair takes out or changes is kept as it was, beside the others: under the
// name of the segment, the number and hash of the journal's last line after the repair, and
// the suffix .damaged. Changing the last segment takes room on the disk for two copies of it.
//
// Repair fails and changes nothing if nothing would be left, as when the only header is
// damaged; that error wraps the *CorruptError. It returns ErrLocked if the journal is open.
//
// After any crash that interrupts it, Repair can be called again, and nothing is lost.
// Undo reverts a repair, and a segment that is found again, as in a backup, can be put
// back at any time: then its lines are read again.
//
// Repair is blocking: it waits for the disk. It takes effect when the first of its changes
// is on the disk.
func Repair(path string) (Repaired, error) { return onDisk(path, repair) }

// Examine returns what Repair would do, and changes nothing. It returns ErrLocked if the
// journal is open.
//
// Examine is blocking: it waits for the disk. It takes effect when the files are read.
func Examine(path string) (Repaired, error) {
	return onDisk(path, func(f folder.Gzip) (Repaired, error) {
		p, err := examine(f)
		return p.Repaired, err
	})
}

// onDisk runs do on the directory of a journal that nobody else uses.
func onDisk(path string, do func(folder.Gzip) (Repaired, error)) (c Repaired, err error) {
	defer func() {
		if err != nil {
			c, err = Repaired{}, fmt.Errorf("%w (journal at %s)", err, path)
		}
	}()
	d, err := folder.At(path)
	if err != nil {
		return c, fmt.Errorf("journal: %w", err)
	}
	names, err := folder.Gzip{Folder: d}.Names()
	if err != nil {
		return c, fmt.Errorf("journal: %w", err)
	}
	if files, _, _ := chain.SegmentsIn(names); len(files) == 0 { // it leaves no lock where there is none
		return c, chain.ErrNoSegments
	}
	l, err := chain.Lock(d)
	if err != nil {
		return c, err
	}
	defer l.Close()
	f := folder.Gzip{Folder: l}
	c, err = do(f)
	for i, name := range c.Aside {
		if is, stored, err := f.Stored(name); err == nil {
			is.Close()
			name = stored
		}
		c.Aside[i] = d.In(name)
	}
	return c, err
}

// A plan says how to repair a journal.
type plan struct {
	Repaired
	s    *chain.Scanner  // has read what is left
	left []chain.Segment // which is in these
	cut  bool            // the end of the last of left goes, and is more than a torn tail
	tail []chain.Segment // behind it, which go as a whole

	lines []byte   // that say what is missing
	out   []string // segments that go
	n     int      // of the names of files: see aside
	last  journal.Anchor
}

// repair returns the Repaired that it has made, with names for paths.
//
// First the last segment that is left is replaced, by what is left of it and lines that say what
// is missing. Until the other files are set aside, Open or Verify finds damage in them: those
// behind the new last line do not continue it.
func repair(f folder.Gzip) (Repaired, error) {
	p, err := examine(f)
	if err != nil || p.Damage == nil {
		return Repaired{}, err
	}
	if p.cut || len(p.lines) > 0 {
		if err := p.replace(f, p.left[len(p.left)-1].Name()); err != nil {
			return Repaired{}, fmt.Errorf("journal: changing the last segment: %w", err)
		}
	}
	for _, name := range p.out {
		if err := f.Rename(name, aside(name, p.last, p.n)); err != nil { // LP(Repair)
			return Repaired{}, fmt.Errorf("journal: taking a segment out: %w", err)
		}
	}
	return p.Repaired, f.Sync()
}

// replace replaces the last segment, and keeps it as it was. If it fails before that, it
// leaves no copy: the disk may be full.
func (p *plan) replace(f folder.Gzip, name string) error {
	fresh, was := name+chain.Unborn, aside(name, p.last, p.n)
	keep, end := p.s.Size, p.lines
	if p.s.Unterminated {
		keep, end = keep-1, append([]byte("\n"), end...)
	}
	err := write(f, fresh, name, keep, end)
	if err == nil {
		err = f.Copy(name, was)
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		f.Remove(fresh)
		f.Remove(was)
		return err
	}
	if err := f.Rename(fresh, name); err != nil { // LP(Repair)
		return err
	}
	return f.Sync()
}

// write makes a file of the beginning of another one and a text, and syncs it.
func write(f folder.Gzip, name, like string, size int64, text []byte) error {
	if err := f.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) { // of a process that was killed
		return err
	}
	from, err := f.Open(like)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := f.Create(name, like)
	if err != nil {
		return err
	}
	n, err := io.Copy(to, io.NewSectionReader(from, 0, size))
	if err == nil && n < size {
		err = io.ErrUnexpectedEOF
	}
	if err == nil && len(text) > 0 {
		err = folder.Write(to, text)
	}
	if err == nil {
		err = to.Sync()
	}
	if e := to.Close(); err == nil {
		err = e
	}
	return err
}

// examine reads a journal as often as it finds damage, each time without the segments that
// are damaged, until only the end of the last one may be. If nothing of that can stay, it
// begins anew without it: what is damaged in the one before it is then at the end.
func examine(f folder.Gzip) (p plan, err error) {
	files, _, strange, err := chain.List(f)
	if err != nil {
		return p, err
	}
	if len(files) == 0 {
		return p, chain.ErrNoSegments
	}
	p.left = files
	for {
		found, bad, err := damageIn(f, p.left)
		if err != nil {
			return p, err
		}
		if p.s = found; bad == nil {
			break
		}
		if p.Damage == nil {
			p.Damage, p.Cutting = bad, found.Read
		}
		i := slices.IndexFunc(p.left, func(s chain.Segment) bool { return s.Name() == bad.File })
		if i < 0 || bad.Line <= found.Number {
			break // all was read, and something is missing
		}
		taken, err := p.blame(f, i, bad)
		if err != nil {
			return p, err
		}
		if taken < 0 && bad.Offset > 0 {
			p.cut = true
			break
		}
		if taken < 0 {
			n := len(files) - len(p.tail) - 1
			p.left, p.tail, p.Lost = files[:n], files[n:], nil
			continue
		}
		sum, err := sumOf(f, p.left[taken].Name())
		if err != nil {
			return p, err
		}
		p.Lost = append(p.Lost, journal.Gap{Segment: p.left[taken].Number, SHA256: sum, Reason: bad.Reason})
		p.left = slices.Delete(slices.Clone(p.left), taken, taken+1)
	}
	if p.Damage == nil {
		return p, nil
	}
	if p.s.Read == 0 {
		return p, fmt.Errorf("journal: no repair: nothing would be left: %w", p.Damage)
	}
	if len(p.tail) > 0 && p.s.Torn > 0 && !p.s.Unterminated {
		p.cut = true // no write was cut off there: others have followed
	}
	p.declare(files[0].Number)
	p.finish(files, strange)
	return p, nil
}

// finish says what goes, what comes instead, and what files are called.
func (p *plan) finish(files []chain.Segment, strange []string) {
	p.Kept, p.last = p.s.Read, p.s.Last()
	number, hash := p.s.Number, p.s.Hash
	for _, g := range p.Lost {
		if !p.s.State.Declared(g.Segment) {
			number++
			l := chain.Line{Op: chain.OpGap, Segment: g.Segment, Ordinal: g.Ordinal, Sum: g.SHA256, Reason: g.Reason}
			p.lines, hash = l.Encode(p.lines, number, hash)
			p.last = journal.Anchor{Line: number, Hash: hash.String()}
		}
	}
	p.n = repairs(strange, p.last) + 1
	last := p.left[len(p.left)-1]
	for _, s := range slices.Backward(files) {
		switch {
		case s.Number == last.Number && (p.cut || len(p.lines) > 0):
			p.Aside = append(p.Aside, aside(s.Name(), p.last, p.n))
			if p.cut {
				p.Bytes += s.Size - p.s.Size
			}
		case !slices.ContainsFunc(p.left, func(l chain.Segment) bool { return l.Number == s.Number }):
			p.out = append(p.out, s.Name())
			p.Aside = append(p.Aside, aside(s.Name(), p.last, p.n))
			p.Bytes += s.Size
		}
	}
}

// damageIn reads segments, up to the first damage.
func damageIn(f folder.Gzip, files []chain.Segment) (s *chain.Scanner, bad *journal.CorruptError, err error) {
	s, err = chain.Survey(context.Background(), f, files, false)
	if errors.As(err, &bad) {
		err = nil
	}
	return s, bad, err
}

// blame returns the segment to be taken out for damage that was found in segment i, or -1
// if the end is to be cut there. Where a header does not continue the segment before it,
// either may be the wrong one: then the one without which more can be read.
func (p *plan) blame(f folder.Gzip, i int, bad *journal.CorruptError) (int, error) {
	last := i == len(p.left)-1
	if bad.Offset > 0 || i == 0 {
		if last {
			i = -1
		}
		return i, nil
	}
	without := func(k int) (*chain.Scanner, error) {
		s, _, err := damageIn(f, slices.Delete(slices.Clone(p.left), k, k+1))
		return s, err
	}
	one, err := without(i)
	if err != nil {
		return 0, err
	}
	other, err := without(i - 1)
	switch {
	case err != nil:
		return 0, err
	case other.Read > one.Read:
		return i - 1, nil
	case last:
		return -1, nil
	}
	return i, nil
}

// declare says of all segments that are missing between others, or before them, what is
// lost with them.
func (p *plan) declare(oldest uint64) {
	state := p.s.State
	before := state.Unknown() // or starts before the first segment that is there
	for _, c := range state.List {
		if c.From.Segment < state.Begun {
			before = max(before, c.Ordinal)
		}
	}
	var missing []uint64
	for _, h := range state.Holes {
		missing = append(missing, h.Segment)
	}
	for n := oldest; n < state.Begun; n++ {
		missing = append(missing, n)
	}
	if p.s.Headless() && oldest == state.Begun {
		missing = append(missing, oldest-1)
	}
	for _, n := range missing {
		ordinal := state.Unknown()
		if n < state.Begun {
			ordinal = before
		}
		k := slices.IndexFunc(p.Lost, func(g journal.Gap) bool { return g.Segment == n })
		if k >= 0 {
			p.Lost[k].Ordinal = ordinal
		} else if !state.Declared(n) {
			p.Lost = append(p.Lost, journal.Gap{Segment: n, Ordinal: ordinal, Reason: "the segment is missing"})
		}
	}
}

// sumOf returns the SHA-256 of a file as it is there, in hexadecimal.
func sumOf(f folder.Gzip, name string) (string, error) {
	is, _, err := f.Stored(name)
	if err != nil {
		return "", err
	}
	defer is.Close()
	size, err := is.Size()
	if err != nil {
		return "", err
	}
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(is, 0, size)); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
