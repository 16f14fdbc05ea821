package repair_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/cowchangeset/journal/reader"
	"github.com/latchfree/latchfree/cowchangeset/journal/repair"
	"github.com/latchfree/latchfree/internal/folder/foldertest"
	"github.com/latchfree/latchfree/internal/tools/journaltest"
)

// lineAt returns the number of the line that has a byte, and where it begins.
func lineAt(text []byte, i int) (number, offset int) {
	offset = bytes.LastIndexByte(text[:i], '\n') + 1
	return bytes.Count(text[:i], []byte("\n")) + 1, offset
}

// Whatever byte is another one: of a sealed segment, Repair takes the segment out and
// keeps the others; of the last one, it cuts from the line on and keeps what it cuts. A
// dry run says the same, and Undo takes it back.
func TestRepairEveryFlip(t *testing.T) {
	sound, states := three(t)
	whole := sound.Text()
	anchors := []journal.Anchor{{}}
	for _, e := range journaltest.Collect(t, readerOf(t, sound).Events(background, 0)) {
		anchors = append(anchors, e.Anchor())
	}
	total := bytes.Count(whole, []byte("\n"))
	base := 0
	for number := 1; number <= 3; number++ {
		size := len(sound.Segment(number).Data)
		for i := range size {
			if testing.Short() && (number+i)%5 != 0 && i != size-1 {
				continue
			}
			bad := damaged(sound, number, i)
			m := bad.Clone()
			line, offset := lineAt(whole, base+i)
			plan, err := repair.ExamineOn(m)
			must(t, err)
			if m.Changes() > 0 {
				t.Fatalf("byte %d of %d: a dry run has changed something", i, number)
			}
			cut, err := repair.RepairOn(m)
			must(t, err)
			if !m.Closed() {
				t.Fatal("a file is still open")
			}
			if base+i == len(whole)-1 {
				equal(t, cut, repair.Repaired{})
				continue
			}
			_, found := verify(bad.Clone(), journal.Anchor{})
			equal(t, error(cut.Damage), found)
			if cut.Damage.Line != line || cut.Damage.File != journaltest.SegmentName(number) || cut.Damage.Offset != int64(offset-base) {
				t.Fatalf("byte %d of %d: %v, want line %d at %d", i, number, cut, line, offset-base)
			}
			lost := bytes.Count(sound.Segment(number).Data, []byte("\n"))
			switch last := number == 3; {
			case !last:
				if len(cut.Lost) != 1 || cut.Lost[0].Segment != uint64(number) || cut.Lost[0].SHA256 != sumOf(bad.Segment(number).Data) ||
					cut.Kept != total-lost || cut.Cutting != line-1 {
					t.Fatalf("byte %d of %d: %+v", i, number, cut)
				}
				equal(t, m.Segment(number), (*foldertest.File)(nil))
				equal(t, len(cut.Aside), 2)
			case offset == base:
				equal(t, m.Segment(number), (*foldertest.File)(nil))
				equal(t, len(cut.Aside), 1)
			default:
				equal(t, string(m.Segment(number).Data), string(whole[base:offset]))
				equal(t, len(cut.Aside), 1)
				equal(t, cut.Bytes, int64(len(whole)-offset))
			}
			for _, name := range cut.Aside {
				if f := m.Files[name]; string(f.Data) != string(bad.Files[name[:len(journaltest.SegmentName(1))]].Data) || name[:len(journaltest.SegmentName(1))] != journaltest.SegmentName(number) && !f.Durable() {
					t.Fatalf("byte %d of %d: %s is not as it was", i, number, name)
				}
			}
			equal(t, plan, cut)
			if i%7 > 0 {
				continue
			}
			again, err := repair.RepairOn(m)
			equal(t, again, repair.Repaired{})
			must(t, err)
			opened := m.Clone()
			j := on(t, opened)
			if number == 3 {
				equal(t, load(t, j), states[line-1])
				_, err = verify(opened, anchors[line-1])
				must(t, err)
			} else {
				report, err := verify(opened, journal.Anchor{})
				must(t, err)
				equal(t, report.Gaps, cut.Lost)
				for _, e := range journaltest.Collect(t, readerOf(t, opened).Events(background, 0)) {
					if e.Kind != reader.Lost && e.Anchor() != anchors[e.Line] {
						t.Fatalf("line %d has another hash", e.Line)
					}
				}
			}
			must(t, j.Close())
			must(t, repair.UndoOn(m))
			for name, f := range bad.Files {
				if m.Files[name] == nil || string(m.Files[name].Data) != string(f.Data) || len(m.Segments()) != len(bad.Segments()) {
					t.Fatalf("byte %d of %d: %s is another one after Undo", i, number, name)
				}
			}
		}
		base += size
	}
}

func sumOf(data []byte) string { return fmt.Sprintf("%x", sha256.Sum256(data)) }

// Repair tells what was lost.
func TestCut(t *testing.T) {
	m, _ := three(t)
	cut, err := repair.RepairOn(damaged(m, 2, 500))
	must(t, err)
	for _, part := range []string{"corrupt at line", "segment 2 is taken out", "lines are kept; cutting", "bytes are taken out", "as it was: 0000000003.journal."} {
		if !strings.Contains(cut.String(), part) {
			t.Errorf("%q is missing in:\n%v", part, cut)
		}
	}
	line, _, _ := bytes.Cut(m.Segment(3).Data, []byte("\n"))
	cut, err = repair.RepairOn(damaged(m, 3, len(line)+20))
	must(t, err)
	for _, part := range []string{"corrupt at line", "lines are kept\n", "bytes are taken out", "as it was: 0000000003.journal."} {
		if !strings.Contains(cut.String(), part) {
			t.Errorf("%q is missing in:\n%v", part, cut)
		}
	}
	if text := (repair.Repaired{}).String(); text != "the journal is sound: nothing was taken out" {
		t.Error(text)
	}
}

// A segment that is missing in the middle is declared to be so, and what is behind it
// stays. If it is found, it can be put back.
func TestRepairGap(t *testing.T) {
	whole, _ := three(t)
	for _, empty := range []bool{false, true} {
		m := whole.Clone()
		second := m.Segment(2).Data
		m.Delete(journaltest.SegmentName(2))
		if empty {
			m.Put(2, nil)
		}
		_, err := journaltest.Open[any](m, journal.Options{})
		cut, repaired := repair.RepairOn(m)
		must(t, repaired)
		equal(t, error(cut.Damage), err)
		if cut.Damage.File != journaltest.SegmentName(2) || len(cut.Lost) != 1 || cut.Lost[0].Segment != 2 || cut.Lost[0].Ordinal != 0 || (cut.Lost[0].SHA256 == "") == empty {
			t.Errorf("%+v", cut)
		}
		j := on(t, m)
		equal(t, len(load(t, j)), 4) // all but entries of C
		must(t, start("E", 5, "D").Call(j))
		must(t, j.Close())
		m.Put(2, second)
		report, err := verify(m, journal.Anchor{})
		must(t, err)
		if report.Gaps != nil || report.Segments != 3 {
			t.Errorf("%+v", report)
		}
		j = on(t, m)
		all := load(t, j)
		equal(t, len(all), 5)
		equal(t, len(all[0].Entries), 3)
		must(t, j.Close())
	}
}

// Whatever step fails, what is left is damaged, or repaired, and has all bytes; and
// another Repair comes to the same end.
func TestRepairStops(t *testing.T) {
	whole, states := three(t)
	pruned, afterPrune := onlyPrune(t)
	gone := func(m *memory) []saved {
		must(t, journaltest.ErrorOf(repair.RepairOn(m)))
		return load(t, on(t, m))
	}
	line, header := damaged(whole, 1, len(whole.Segment(1).Data)-50), damaged(whole, 2, 50)
	end, last := damaged(whole, 3, len(whole.Segment(3).Data)-50), damaged(whole, 3, 50)
	both, three := damaged(damaged(whole, 3, 50), 2, len(whole.Segment(2).Data)-50), damaged(damaged(whole, 3, 50), 1, len(whole.Segment(1).Data)-50)
	want := map[string][]saved{
		"the end and what follows": gone(both.Clone()), "a line and the last header": gone(three.Clone()),
		"a line": gone(line.Clone()), "a header": gone(header.Clone()), "the prune": afterPrune,
		"the end": states[len(states)-2], "the last header": states[len(states)-7],
	}
	for what, bad := range map[string]*memory{"the end and what follows": both, "a line and the last header": three, "a line": line, "a header": header, "the end": end, "the last header": last, "the prune": pruned} {
		for steps := 0; ; steps++ {
			m := bad.Clone()
			n := 0
			m.Fault = func(string) (int, error) {
				if n++; n > steps {
					return 10, errBoom
				}
				return 0, nil
			}
			_, err := repair.RepairOn(m)
			if err == nil {
				t.Logf("%s: %d steps", what, steps)
				break
			}
			if !errors.Is(err, errBoom) {
				t.Fatalf("%s, %d steps: %v", what, steps, err)
			}
			all := m.Text()
			for _, name := range bad.Segments() {
				f := bad.Files[name]
				for line := range bytes.Lines(f.Data) {
					if !bytes.Contains(all, line) {
						t.Fatalf("%s, %d steps: of %s, %q is lost", what, steps, name, line)
					}
				}
			}
			for range 3 {
				lose := bad.Clone()
				lose.Settle()
				n = 0
				lose.Fault = func(string) (int, error) {
					if n++; n > steps {
						return 10, errBoom
					}
					return 0, nil
				}
				repair.RepairOn(lose)
				disk := lose.Crash()
				for name, f := range bad.Files {
					if moved := movedTo(disk, bad, name); !bytes.Equal(f.Data, disk.Files[name].Bytes()) && (moved == nil || !bytes.Equal(moved.Data, f.Data)) {
						t.Fatalf("%s, %d steps and a crash: %s is lost", what, steps, name)
					}
				}
				must(t, journaltest.ErrorOf(repair.RepairOn(disk)))
				equal(t, load(t, on(t, disk)), want[what])
			}
			left := m.Clone()
			for range 2 { // as it is, if it is not damaged any more, and repaired again
				if j, err := journaltest.Open[any](left.Clone(), journal.Options{}); err == nil {
					equal(t, load(t, j), want[what])
				} else if corrupt := new(journal.CorruptError); !errors.As(err, &corrupt) {
					t.Fatal(err)
				}
				_, err = repair.RepairOn(left)
				must(t, err)
			}
			equal(t, load(t, on(t, left)), want[what])
		}
	}
}

// What is cut is on the disk before anything is removed; what is missing is declared
// before it is. A copy that is too short is none.
func TestRepairOrder(t *testing.T) {
	whole, _ := three(t)
	end := damaged(whole, 3, len(whole.Segment(3).Data)-50)
	for want, m := range map[string]*memory{
		"remove remove create write sync remove create write sync syncdir rename syncdir syncdir":              end.Clone(),
		"remove remove create write write sync remove create write sync syncdir rename syncdir rename syncdir": damaged(whole, 1, 300),
		"rename syncdir": damaged(whole, 3, 50),
	} {
		var ops []string
		m.Fault = func(op string) (int, error) {
			ops = append(ops, op)
			return 0, nil
		}
		_, err := repair.RepairOn(m)
		must(t, err)
		equal(t, strings.Join(ops, " "), want)
	}

	for _, fault := range []error{foldertest.ErrShort, errBoom} {
		m := end.Clone()
		m.Fault = func(op string) (int, error) {
			if op == "write" {
				return 3, fault
			}
			return 0, nil
		}
		if _, err := repair.RepairOn(m); err == nil || len(m.Segments()) != len(end.Segments()) || !bytes.Equal(m.Text(), end.Text()) {
			t.Errorf("%v; it has left %d files", err, len(m.Segments()))
		}
	}
}

// If the line that says that the oldest segments were dropped is cut, Repair writes that
// they are missing; and so it does if they are missing otherwise. What is known of their
// changesets stays.
func TestRepairDeclaresTheOldest(t *testing.T) {
	m, want := onlyPrune(t)
	cut, err := repair.RepairOn(m)
	must(t, err)
	if len(cut.Lost) != 1 || cut.Lost[0].Segment != 1 || cut.Lost[0].SHA256 != "" {
		t.Errorf("%+v", cut)
	}
	j := on(t, m)
	equal(t, load(t, j), want)
	must(t, start("C", 3, "B").Call(j))

	whole, states := three(t)
	for _, tail := range []int{0, 1, 9} { // bytes that the last line has lost
		m := whole.Clone()
		m.Delete(journaltest.SegmentName(1))
		m.Put(3, m.Segment(3).Data[:len(m.Segment(3).Data)-tail])
		_, err := journaltest.Open[any](m.Clone(), journal.Options{})
		cut, repaired := repair.RepairOn(m)
		must(t, repaired)
		equal(t, error(cut.Damage), err)
		if cut.Damage.File != journaltest.SegmentName(1) || len(cut.Lost) != 1 || cut.Lost[0].Segment != 1 {
			t.Errorf("%+v", cut)
		}
		all := slices.Clone(states[len(states)-1])
		all[0].Entries, all[1].Entries = nil, nil // which were in it
		if tail == 9 {
			all = all[:3]
		}
		equal(t, load(t, on(t, m)), all)
	}
}

// What would be left is no journal: then nothing is changed.
func TestRepairRefuses(t *testing.T) {
	m := &memory{}
	j := on(t, m)
	tell(t, j, []step{start("A", 1, ""), seal("A", 0, 0), start("B", 2, "A")})
	must(t, j.Rotate(background))
	must(t, seal("B", 0, 0).Call(j))
	must(t, start("C", 3, "B").Call(j))
	m.Delete(journaltest.SegmentName(1))
	for what, m := range map[string]*memory{
		"the only header": damaged(m, 2, 9),
	} {
		before := m.Text()
		_, err := repair.RepairOn(m)
		var corrupt *journal.CorruptError
		if !errors.As(err, &corrupt) || !strings.Contains(err.Error(), "no repair") || !bytes.Equal(m.Text(), before) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := repair.RepairOn(&memory{}); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// What an earlier repair has taken out is not overwritten, if the segment was put back from
// elsewhere and is damaged again.
func TestRepairKeepsEarlierRepairs(t *testing.T) {
	whole, _ := three(t)
	m := damaged(whole, 2, 50)
	must(t, journaltest.ErrorOf(repair.RepairOn(m)))
	m.Put(2, whole.Segment(2).Data)
	m = damaged(m, 2, 60)
	bad := m.Clone()
	must(t, journaltest.ErrorOf(repair.RepairOn(m)))
	for name, f := range bad.Files {
		if is := m.Files[name]; name != journaltest.SegmentName(2) && (is == nil || !bytes.Equal(is.Data, f.Data)) {
			t.Errorf("%s has changed", name)
		}
	}
	equal(t, len(load(t, on(t, m))), 4)
	must(t, repair.UndoOn(m))
	if name := unlike(m, bad); name != "" {
		t.Errorf("Undo has not restored %s", name)
	}
}

// On a disk: a directory, whose lock is respected.
func TestRepairOnDisk(t *testing.T) {
	path := newPath(t)
	if _, err := repair.Repair(path); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, err := repair.Repair(filepath.Dir(path)); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if names, _ := os.ReadDir(filepath.Dir(path)); len(names) > 0 {
		t.Errorf("it has left %v where there is no journal", names)
	}
	j := open[any](t, path)
	tell(t, j, story())
	if _, err := repair.Repair(path); !errors.Is(err, journal.ErrLocked) || !strings.Contains(err.Error(), path) {
		t.Error(err)
	}
	must(t, j.Close())
	cut, err := repair.Repair(path)
	must(t, err)
	equal(t, cut, repair.Repaired{})
	file := filepath.Join(path, journaltest.SegmentName(1))
	sound, err := os.ReadFile(file)
	must(t, err)
	bad := slices.Clone(sound)
	bad[len(bad)-300] ^= 1
	must(t, os.WriteFile(file, bad, 0o600))
	cut, err = repair.Repair(path)
	must(t, err)
	_, offset := lineAt(sound, len(sound)-300)
	equal(t, cut.Damage.Offset, int64(offset))
	kept, err := os.ReadFile(cut.Aside[0])
	must(t, err)
	left, err := os.ReadFile(file)
	must(t, err)
	equal(t, string(kept), string(bad))
	equal(t, string(left), string(bad[:offset]))
	if info, err := os.Stat(cut.Aside[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info, err)
	}
	must(t, open[any](t, path).Close())
}

// On a disk: a segment that is missing in the middle.
func TestRepairGapOnDisk(t *testing.T) {
	path := newPath(t)
	j := open[any](t, path)
	states := tell(t, j, story()[:3])
	must(t, j.Rotate(background))
	tell(t, j, story()[3:5])
	must(t, j.Rotate(background))
	must(t, j.Close())
	must(t, os.Remove(filepath.Join(path, journaltest.SegmentName(2))))
	cut, err := repair.Repair(path)
	must(t, err)
	if cut.Damage == nil || cut.Damage.File != journaltest.SegmentName(2) {
		t.Error(cut)
	}
	all := load(t, open[any](t, path))
	equal(t, len(all), 2)
	equal(t, all[0], states[len(states)-1][0]) // which has nothing in it
}

// Lines about what is missing are appended to the last segment that is kept, also if the one
// behind it is moved aside whole.
func TestRepairKeepsTheSegmentBeforeOneWithoutAHeader(t *testing.T) {
	m, _ := three(t)
	names := m.Segments()
	kept := slices.Clone(m.Files[names[1]].Data)
	m.Files[names[0]].Data = bytes.Replace(m.Files[names[0]].Data, []byte(`"one"`), []byte(`"two"`), 1)
	m.Files[names[2]].Data = []byte(`{"`)
	cut, err := repair.RepairOn(m)
	must(t, err)
	if len(cut.Lost) != 1 || len(cut.Aside) != 3 || !bytes.HasPrefix(m.Files[names[1]].Data, kept) || len(m.Files[names[1]].Data) == len(kept) {
		t.Fatalf("%v: %s has %d bytes of %d", cut, names[1], len(m.Files[names[1]].Data), len(kept))
	}
	must(t, on(t, m).Close())
}

// Repair refuses the path of a segment in place of the journal's, and cuts nothing.
func TestRepairSegment(t *testing.T) {
	path := newPath(t)
	j := open[any](t, path)
	tell(t, j, story())
	text, err := os.ReadFile(filepath.Join(path, journaltest.SegmentName(1)))
	must(t, err)
	text[900] ^= 1
	must(t, os.WriteFile(filepath.Join(path, journaltest.SegmentName(1)), text, 0o600))
	if c, err := repair.Repair(filepath.Join(path, journaltest.SegmentName(1))); err == nil || !strings.Contains(err.Error(), "name the one that the files are in") {
		t.Errorf("%v, %v", c, err)
	}
	if after, err := os.ReadFile(filepath.Join(path, journaltest.SegmentName(1))); err != nil || string(after) != string(text) {
		t.Error("it was changed", err)
	}
	must(t, j.Close())
}
