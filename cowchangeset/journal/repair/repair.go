package repair

import (
	"cmp"
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
// A segment that is damaged, and has others behind it, is taken out: its file gets the
// suffix .damaged, and a line at the end of the journal says which segment is missing,
// and why. Verify reports it from then on. All other segments stay as they are. The
// header of the next one has all but entries: so changesets with entries in the segment
// that are neither applied nor aborted are sealed and aborted, nothing is applied a second
// time, and no receipt is given twice. Of those that are, the other entries are yielded.
// The same goes for a segment that is missing.
//
// If segments that follow one another are missing, changesets that had finished in the
// first are not known, or only that they had: then they count as aborted. A tracker gets
// the changesets behind the last that is not known, and those before it are aborted; a
// Reader yields all that are known.
//
// From the last segment, Repair moves everything from the first damaged line on to a file
// beside the others, or the segment as a whole if that is its header: then the one before
// it is the last.
//
// Repair fails and changes nothing if nothing would be left, as when the only header is
// damaged; that error wraps the *CorruptError. So it does if a file .damaged of an
// earlier repair is in the way. It returns ErrLocked if the journal is open.
//
// After any crash that interrupts it, Repair can be called again, and nothing is lost.
// Undo takes a repair back, and a segment that is found again, as in a backup, can be put
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
	return onDisk(path, func(f folder.Folder) (Repaired, error) {
		p, err := examine(f)
		return p.Repaired, err
	})
}

// onDisk runs do on the directory of a journal that nobody else uses.
func onDisk(path string, do func(folder.Folder) (Repaired, error)) (c Repaired, err error) {
	defer func() {
		if err != nil {
			c, err = Repaired{}, fmt.Errorf("%w (journal at %s)", err, path)
		}
	}()
	d, err := folder.At(path)
	if err != nil {
		return c, fmt.Errorf("journal: %w", err)
	}
	names, err := d.Names()
	if err != nil {
		return c, fmt.Errorf("journal: %w", err)
	}
	if files, _, _ := chain.SegmentsIn(names); len(files) == 0 { // it leaves no lock where there is none
		return c, chain.ErrNoSegments
	}
	l, err := d.Lock(chain.LockName)
	if errors.Is(err, folder.ErrLocked) {
		return c, journal.ErrLocked
	}
	if err != nil {
		return c, fmt.Errorf("journal: %w", err)
	}
	defer l.Close()
	if c, err = do(folder.Gzip{Folder: l}); c.File != "" {
		c.File = d.In(c.File)
	}
	return c, err
}

// A repairPlan says how to repair a journal.
type repairPlan struct {
	Repaired
	s       *chain.Scanner  // has read what is left
	left    []chain.Segment // which is in these
	strange []string        // files that are not of the journal

	cut   int64           // how long the last of left is to be, if more is to go than a torn tail
	aside []chain.Segment // that are behind it, and go as a whole
}

// repair returns the Repaired that it has made, with a name for a path.
//
// Each step leaves a journal that another repair repairs: first segments go from the end
// on, then the end of the last one that is left, of which there is a copy by then; then
// lines say what is to be missing; then that is moved aside.
func repair(f folder.Folder) (Repaired, error) {
	p, err := examine(f)
	if err != nil || p.Damage == nil {
		return Repaired{}, err
	}
	if err := p.free(); err != nil {
		return Repaired{}, err
	}
	last := p.left[len(p.left)-1]
	if p.cut > 0 {
		if err := p.save(f, last.Name()); err != nil {
			return Repaired{}, fmt.Errorf("journal: keeping what is to be cut: %w", err)
		}
	}
	for _, s := range slices.Backward(p.aside) {
		if err := f.Rename(s.Name(), asideName(s.Name(), p.s.Last())); err != nil { // LP(Repair)
			return Repaired{}, fmt.Errorf("journal: taking a segment out: %w", err)
		}
	}
	if err := f.Sync(); err != nil {
		return Repaired{}, fmt.Errorf("journal: fsync of the directory: %w", err)
	}
	if p.cut > 0 {
		if err := truncate(f, last.Name(), p.cut); err != nil { // LP(Repair)
			return Repaired{}, fmt.Errorf("journal: cutting: %w", err)
		}
	}
	var lines []*chain.Line
	for _, g := range p.Lost {
		if !p.s.State.Declared(g.Segment) {
			lines = append(lines, &chain.Line{Op: chain.OpGap, Segment: g.Segment, Ordinal: g.Ordinal, Sum: g.SHA256, Reason: g.Reason})
		}
	}
	if len(lines) > 0 {
		if err := p.write(f, last.Name(), lines); err != nil { // LP(Repair)
			return Repaired{}, fmt.Errorf("journal: writing what is missing: %w", err)
		}
	}
	for _, g := range p.Lost {
		if g.SHA256 == "" {
			continue
		}
		if err := f.Rename(chain.FileName(g.Segment), p.outName(g)); err != nil { // LP(Repair)
			return Repaired{}, fmt.Errorf("journal: taking a segment out: %w", err)
		}
	}
	return p.Repaired, f.Sync()
}

// free returns an error if a segment would be moved over one that an earlier repair has taken
// out: that is a version of its own.
func (p *repairPlan) free() error {
	names := make([]string, 0, len(p.aside)+len(p.Lost))
	for _, s := range p.aside {
		names = append(names, asideName(s.Name(), p.s.Last()))
	}
	for _, g := range p.Lost {
		if g.SHA256 != "" {
			names = append(names, chain.FileName(g.Segment)+damaged, p.outName(g))
		}
	}
	for _, name := range names {
		if slices.Contains(p.strange, name) {
			return fmt.Errorf("journal: %s is there from an earlier repair: move it to another place first", name)
		}
	}
	return nil
}

// damaged is the suffix of a segment that was taken out.
const damaged = ".damaged"

// outName returns the name of a segment that was taken out. If an earlier line says that it is
// missing, no other one does.
func (p *repairPlan) outName(g journal.Gap) string {
	if p.s.State.Declared(g.Segment) {
		return asideName(chain.FileName(g.Segment), p.s.Last())
	}
	return chain.FileName(g.Segment) + damaged
}

// asideName returns the name of a segment of which no line says that it was taken out, with
// the last line that was kept: Undo must know whether others came since.
func asideName(segment string, kept journal.Anchor) string { return segment + asideSuffix(kept) }

func asideSuffix(kept journal.Anchor) string { return "." + behind(kept) + damaged }

// cutName returns the name of the nth file that has what was cut behind a line.
func cutName(kept journal.Anchor, n int) string {
	if n == 1 {
		return behind(kept) + ".cut"
	}
	return fmt.Sprintf("%s-%d.cut", behind(kept), n)
}

// cuts returns the n of the newest of these files among names; 0 if there is none.
func cuts(names []string, kept journal.Anchor) (newest int) {
	for _, name := range names {
		n := 1
		fmt.Sscanf(name, behind(kept)+"-%d.cut", &n)
		if name == cutName(kept, n) {
			newest = max(newest, n)
		}
	}
	return newest
}

// behind names the place behind a line, also if others had its number.
func behind(kept journal.Anchor) string { return fmt.Sprintf("line-%d-%.8s", kept.Line+1, kept.Hash) }

// examine reads a journal as often as it finds damage, each time without the segments that
// are damaged, until only the end of the last one may be. If nothing of that can stay, it
// begins anew without it: what is damaged in the one before it is then at the end.
func examine(f folder.Folder) (p repairPlan, err error) {
	files, _, strange, err := chain.List(f)
	if err != nil {
		return p, err
	}
	if len(files) == 0 {
		return p, chain.ErrNoSegments
	}
	p.left, p.strange = files, strange
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
			p.cut = bad.Offset
			break
		}
		if taken < 0 {
			n := len(files) - len(p.aside) - 1
			p.left, p.aside, p.Lost = files[:n], files[n:], nil
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
	if len(p.aside) > 0 && p.s.Torn > 0 && !p.s.Fixed {
		p.cut = p.s.Size // no write was cut off there: others have followed
	}
	p.declare(files[0].Number)
	p.Kept = p.s.Read
	for _, s := range p.aside {
		p.Aside = append(p.Aside, s.Name())
	}
	return p, p.count(f, files)
}

// count looks at everything that is to go.
func (p *repairPlan) count(f folder.Folder, files []chain.Segment) error {
	for _, s := range files {
		from := int64(0)
		if slices.ContainsFunc(p.left, func(l chain.Segment) bool { return l.Number == s.Number }) {
			if from = p.cut; from == 0 || s.Number != p.left[len(p.left)-1].Number {
				continue
			}
		}
		is, err := f.Open(s.Name())
		if err != nil {
			return err
		}
		p.Bytes += s.Size - from
		err = p.read(io.NewSectionReader(is, from, s.Size-from))
		is.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// damageIn reads segments, up to the first damage.
func damageIn(f folder.Folder, files []chain.Segment) (s *chain.Scanner, bad *journal.CorruptError, err error) {
	s, err = chain.Survey(context.Background(), f, files, false)
	if errors.As(err, &bad) {
		err = nil
	}
	return s, bad, err
}

// blame returns the segment to be taken out for damage that was found in segment i, or -1
// if the end is to be cut there. Where a header does not continue the segment before it,
// either may be the wrong one: then the one without which more can be read.
func (p *repairPlan) blame(f folder.Folder, i int, bad *journal.CorruptError) (int, error) {
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
func (p *repairPlan) declare(oldest uint64) {
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

// sumOf returns the SHA-256 of a file, in hexadecimal.
func sumOf(f chain.Source, name string) (string, error) {
	is, err := f.Open(name)
	if err != nil {
		return "", err
	}
	defer is.Close()
	size, err := is.Size()
	if err != nil {
		return "", err
	}
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(is, 0, size)); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) { // of a damaged one: what can be read
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// save copies the bytes that are to be cut to a new file. If it fails, it leaves none.
func (p *repairPlan) save(f folder.Folder, last string) (err error) {
	name := cutName(p.s.Last(), cuts(p.strange, p.s.Last())+1) // the newest is the last Repair's
	if err := f.Remove(name + chain.Unborn); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	to, err := f.Create(name+chain.Unborn, last)
	if err != nil {
		return err
	}
	defer func() {
		to.Close()
		if err != nil {
			f.Remove(name + chain.Unborn) // it may take the rest of a full disk
		}
	}()
	from, err := f.Open(last)
	if err != nil {
		return err
	}
	defer from.Close()
	size, err := from.Size()
	if err != nil {
		return err
	}
	if n, err := io.Copy(to, io.NewSectionReader(from, p.cut, size-p.cut)); err != nil || n < size-p.cut {
		return cmp.Or(err, io.ErrShortWrite)
	}
	if err := to.Sync(); err != nil {
		return err
	}
	if err := f.Rename(name+chain.Unborn, name); err != nil {
		return err
	}
	p.File = name
	return f.Sync()
}

// truncate makes a file shorter, for good.
func truncate(f folder.Folder, name string, size int64) error {
	is, err := f.Edit(name)
	if err != nil {
		return err
	}
	defer is.Close()
	if err := is.Truncate(size); err != nil {
		return err
	}
	return is.Sync()
}

// write writes lines behind those that were read. At the end of a file that was not cut,
// that may have to be mended first.
func (p *repairPlan) write(f folder.Folder, name string, lines []*chain.Line) error {
	is, err := f.Edit(name)
	if err != nil {
		return err
	}
	defer is.Close()
	if p.cut == 0 {
		if err := p.s.Mend(is); err != nil {
			return err
		}
	}
	var text []byte
	number, hash := p.s.Number, p.s.Hash
	for _, l := range lines {
		number++
		text, hash = l.Encode(text, number, hash)
	}
	if err := folder.Write(is, text); err != nil {
		return err
	}
	return is.Sync()
}
