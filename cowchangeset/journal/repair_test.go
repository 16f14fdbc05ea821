package journal_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal"
)

// three returns a folder with a story in three segments, and what there is to load
// after each line.
func three(t testing.TB) (m *memory, states [][]saved) {
	t.Helper()
	m = &memory{}
	j := on(t, m)
	var all []saved
	states = append(states, nil, all)
	for i, s := range story() {
		must(t, s.call(j))
		if all = s.then(all); i == 5 || i == 10 {
			states = append(states, all)
			must(t, j.Rotate(background))
		}
		states = append(states, all)
	}
	must(t, j.Close())
	return m, states
}

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
	whole := sound.bytes()
	anchors := []journal.Anchor{{}}
	for _, e := range collect(t, reader(t, sound).Events(background, 0)) {
		anchors = append(anchors, e.Anchor())
	}
	total := bytes.Count(whole, []byte("\n"))
	base := 0
	for number := 1; number <= 3; number++ {
		size := len(sound.segment(number).data)
		for i := range size {
			bad := damaged(sound, number, i)
			m := bad.clone()
			line, offset := lineAt(whole, base+i)
			plan, err := journal.ExamineOn(m)
			must(t, err)
			if m.changes() > 0 {
				t.Fatalf("byte %d of %d: a dry run has changed something", i, number)
			}
			cut, err := journal.RepairOn(m)
			must(t, err)
			if !m.closed() {
				t.Fatal("a file is still open")
			}
			if base+i == len(whole)-1 {
				equal(t, cut, journal.Repaired{})
				continue
			}
			_, found := journal.VerifyOn(bad.clone(), journal.Anchor{})
			equal(t, error(cut.Damage), found)
			if cut.Damage.Line != line || cut.Damage.File != journal.SegmentName(number) || cut.Damage.Offset != int64(offset-base) {
				t.Fatalf("byte %d of %d: %v, want line %d at %d", i, number, cut, line, offset-base)
			}
			lost := bytes.Count(sound.segment(number).data, []byte("\n"))
			switch last := number == 3; {
			case !last:
				if len(cut.Lost) != 1 || cut.Lost[0].Segment != uint64(number) || cut.Lost[0].SHA256 != sumOf(bad.segment(number).data) ||
					cut.Kept != total-lost || cut.Cutting != line-1 || cut.File != "" {
					t.Fatalf("byte %d of %d: %+v", i, number, cut)
				}
				equal(t, string(m.files[journal.SegmentName(number)+".damaged"].data), string(bad.segment(number).data))
			case offset == base:
				equal(t, cut.Aside, []string{journal.SegmentName(number)})
				equal(t, string(movedTo(m, bad, journal.SegmentName(number)).data), string(bad.segment(number).data))
			default:
				equal(t, string(m.files[cut.File].data), string(bad.bytes()[offset:]))
				if f := m.files[cut.File]; f.synced != len(f.data) {
					t.Fatal("the cut was not synced")
				}
				equal(t, cut.Bytes, int64(len(whole)-offset))
			}
			file := cut.File
			cut.File = ""
			equal(t, plan, cut)
			if i%7 > 0 {
				continue
			}
			again, err := journal.RepairOn(m)
			equal(t, again, journal.Repaired{})
			must(t, err)
			opened := m.clone()
			j := on(t, opened)
			if number == 3 {
				equal(t, load(t, j), states[line-1])
				_, err = journal.VerifyOn(opened, anchors[line-1])
				must(t, err)
			} else {
				report, err := journal.VerifyOn(opened, journal.Anchor{})
				must(t, err)
				equal(t, report.Gaps, cut.Lost)
				for _, e := range collect(t, reader(t, opened).Events(background, 0)) {
					if e.Kind != journal.Lost && e.Anchor() != anchors[e.Line] {
						t.Fatalf("line %d has another hash", e.Line)
					}
				}
			}
			must(t, j.Close())
			must(t, journal.UndoOn(m))
			for name, f := range bad.files {
				if m.files[name] == nil || string(m.files[name].data) != string(f.data) || len(m.files) != len(bad.files) {
					t.Fatalf("byte %d of %d, %q: %s is another one after Undo", i, number, file, name)
				}
			}
		}
		base += size
	}
}

func sumOf(data []byte) string { return fmt.Sprintf("%x", sha256.Sum256(data)) }

func damaged(m *memory, number, i int) *memory {
	m = m.clone()
	m.segment(number).data[i] ^= 1
	return m
}

// Repair tells what was lost.
func TestCut(t *testing.T) {
	m, _ := three(t)
	cut, err := journal.RepairOn(damaged(m, 2, 500))
	must(t, err)
	const odd = "q\"uo\\te\n\x00\u2028é"
	want := []journal.LostChangeset{{ID: "C"}, {ID: "A"}, {ID: odd}}
	for _, w := range want {
		if !slices.ContainsFunc(cut.Changesets, func(c journal.LostChangeset) bool { return c.ID == w.ID }) {
			t.Errorf("%+v", cut)
		}
	}
	for _, part := range []string{"corrupt at line", "segment 2 is taken out", "lines are kept; cutting"} {
		if !strings.Contains(cut.String(), part) {
			t.Errorf("%q is missing in:\n%v", part, cut)
		}
	}
	line, _, _ := bytes.Cut(m.segment(3).data, []byte("\n"))
	cut, err = journal.RepairOn(damaged(m, 3, len(line)+20))
	must(t, err)
	if cut.Before != 0 || cut.Sound != cut.Lines-1 {
		t.Errorf("%+v", cut)
	}
	for _, part := range []string{"corrupt at line", "cut to line-", "lines, of which", `changeset "C": `, `changeset "D": `, "its start", "its seal"} {
		if !strings.Contains(cut.String(), part) {
			t.Errorf("%q is missing in:\n%v", part, cut)
		}
	}
	if text := (journal.Repaired{}).String(); text != "the journal is sound: nothing was cut" {
		t.Error(text)
	}
}

// A segment that is missing in the middle is declared to be so, and what is behind it
// stays. If it is found, it can be put back.
func TestRepairGap(t *testing.T) {
	whole, _ := three(t)
	for _, empty := range []bool{false, true} {
		m := whole.clone()
		second := m.segment(2).data
		delete(m.files, journal.SegmentName(2))
		if empty {
			m.put(2, nil)
		}
		_, err := journal.OpenOn[any](m, journal.Options{})
		cut, repaired := journal.RepairOn(m)
		must(t, repaired)
		equal(t, error(cut.Damage), err)
		if cut.Damage.File != journal.SegmentName(2) || len(cut.Lost) != 1 || cut.Lost[0].Segment != 2 || cut.Lost[0].Ordinal != 0 || (cut.Lost[0].SHA256 == "") == empty {
			t.Errorf("%+v", cut)
		}
		j := on(t, m)
		equal(t, len(load(t, j)), 4) // all but entries of C
		must(t, start("E", 5, "D").call(j))
		must(t, j.Close())
		delete(m.files, journal.SegmentName(2)+".damaged")
		m.put(2, second)
		report, err := journal.VerifyOn(m, journal.Anchor{})
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
		must(t, second(journal.RepairOn(m)))
		return load(t, on(t, m))
	}
	line, header := damaged(whole, 1, len(whole.segment(1).data)-50), damaged(whole, 2, 50)
	end, last := damaged(whole, 3, len(whole.segment(3).data)-50), damaged(whole, 3, 50)
	want := map[string][]saved{
		"a line": gone(line.clone()), "a header": gone(header.clone()), "the prune": afterPrune,
		"the end": states[len(states)-2], "the last header": states[len(states)-7],
	}
	for what, bad := range map[string]*memory{"a line": line, "a header": header, "the end": end, "the last header": last, "the prune": pruned} {
		for steps := 0; ; steps++ {
			m := bad.clone()
			n := 0
			m.fault = func(string) (int, error) {
				if n++; n > steps {
					return 10, errBoom
				}
				return 0, nil
			}
			_, err := journal.RepairOn(m)
			if err == nil {
				t.Logf("%s: %d steps", what, steps)
				break
			}
			if !errors.Is(err, errBoom) {
				t.Fatalf("%s, %d steps: %v", what, steps, err)
			}
			all := m.bytes()
			for name, f := range bad.files {
				for line := range bytes.Lines(f.data) {
					if !bytes.Contains(all, line) {
						t.Fatalf("%s, %d steps: of %s, %q is lost", what, steps, name, line)
					}
				}
			}
			left := m.clone()
			for range 2 { // as it is, if it is not damaged any more, and repaired again
				if j, err := journal.OpenOn[any](left.clone(), journal.Options{}); err == nil {
					equal(t, load(t, j), want[what])
				} else if corrupt := new(journal.CorruptError); !errors.As(err, &corrupt) {
					t.Fatal(err)
				}
				_, err = journal.RepairOn(left)
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
	end := damaged(whole, 3, len(whole.segment(3).data)-50)
	for want, m := range map[string]*memory{
		"remove create write sync rename syncdir syncdir edit truncate sync syncdir": end.clone(),
		"syncdir edit write sync rename syncdir":                                     damaged(whole, 1, 300),
		"rename syncdir syncdir":                                                     damaged(whole, 3, 50),
	} {
		var ops []string
		m.fault = func(op string) (int, error) {
			ops = append(ops, op)
			return 0, nil
		}
		_, err := journal.RepairOn(m)
		must(t, err)
		equal(t, strings.Join(ops, " "), want)
	}

	for _, fault := range []error{errShort, errBoom} {
		m := end.clone()
		m.fault = func(op string) (int, error) {
			if op == "write" {
				return 3, fault
			}
			return 0, nil
		}
		if _, err := journal.RepairOn(m); err == nil || len(m.files) != len(end.files) || !bytes.Equal(m.bytes(), end.bytes()) {
			t.Errorf("%v; it has left %d files", err, len(m.files))
		}
	}
}

// onlyPrune returns a folder whose first segment was dropped, and in which the line
// that allowed it is damaged; and what can still be loaded.
func onlyPrune(t testing.TB) (*memory, []saved) {
	t.Helper()
	m := &memory{}
	j := on(t, m)
	tell(t, j, []step{start("A", 1, ""), seal("A", 0, 0), applied("A", cowchangeset.AllApplied)})
	must(t, j.Rotate(background))
	must(t, start("B", 2, "A").call(j))
	must(t, add("B", item(0, "b")).call(j))
	n := len(m.segment(2).data)
	must(t, j.Prune(background, 2))
	must(t, seal("B", 1, 0).call(j))
	must(t, j.Close())
	return damaged(m, 2, n+50), []saved{
		{Header: header{ID: "A", Ordinal: 1}, Sealed: true, Applied: cowchangeset.AllApplied},
		{Header: header{ID: "B", Ordinal: 2, Previous: "A"}, Entries: []entry{item(0, "b")}},
	}
}

// If the line that says that the oldest segments were dropped is cut, Repair writes that
// they are missing; and so it does if they are missing otherwise. What is known of their
// changesets stays.
func TestRepairDeclaresTheOldest(t *testing.T) {
	m, want := onlyPrune(t)
	cut, err := journal.RepairOn(m)
	must(t, err)
	if len(cut.Lost) != 1 || cut.Lost[0].Segment != 1 || cut.Lost[0].SHA256 != "" || cut.Lines != 2 || cut.Sound != 1 {
		t.Errorf("%+v", cut)
	}
	j := on(t, m)
	equal(t, load(t, j), want)
	must(t, start("C", 3, "B").call(j))

	whole, states := three(t)
	for _, tail := range []int{0, 1, 9} { // bytes that the last line has lost
		m := whole.clone()
		delete(m.files, journal.SegmentName(1))
		m.put(3, m.segment(3).data[:len(m.segment(3).data)-tail])
		_, err := journal.OpenOn[any](m.clone(), journal.Options{})
		cut, repaired := journal.RepairOn(m)
		must(t, repaired)
		equal(t, error(cut.Damage), err)
		if cut.Damage.File != journal.SegmentName(1) || len(cut.Lost) != 1 || cut.Lost[0].Segment != 1 || cut.File != "" {
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
	must(t, seal("B", 0, 0).call(j))
	must(t, start("C", 3, "B").call(j))
	delete(m.files, journal.SegmentName(1))
	for what, m := range map[string]*memory{
		"the only header": damaged(m, 2, 9),
	} {
		before := m.bytes()
		_, err := journal.RepairOn(m)
		var corrupt *journal.CorruptError
		if !errors.As(err, &corrupt) || !strings.Contains(err.Error(), "no repair") || !bytes.Equal(m.bytes(), before) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := journal.RepairOn(&memory{}); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// What an earlier repair has taken out is not overwritten, if the segment was put back from
// elsewhere and is damaged again.
func TestRepairKeepsEarlierRepairs(t *testing.T) {
	whole, _ := three(t)
	m := damaged(whole, 2, 50)
	must(t, second(journal.RepairOn(m)))
	m.put(2, whole.segment(2).data)
	m = damaged(m, 2, 60)
	before := m.bytes()
	if _, err := journal.RepairOn(m); err == nil || !strings.Contains(err.Error(), ".damaged is there from an earlier repair") || !bytes.Equal(m.bytes(), before) {
		t.Errorf("error %v", err)
	}
	delete(m.files, journal.SegmentName(2)+".damaged")
	must(t, second(journal.RepairOn(m)))
	equal(t, len(load(t, on(t, m))), 4)
}

// On a disk: a directory, whose lock is respected.
func TestRepairOnDisk(t *testing.T) {
	path := newPath(t)
	if _, err := journal.Repair(path); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, err := journal.Repair(filepath.Dir(path)); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if names, _ := os.ReadDir(filepath.Dir(path)); len(names) > 0 {
		t.Errorf("it has left %v where there is no journal", names)
	}
	j := open[any](t, path)
	tell(t, j, story())
	if _, err := journal.Repair(path); !errors.Is(err, journal.ErrLocked) || !strings.Contains(err.Error(), path) {
		t.Error(err)
	}
	must(t, j.Close())
	cut, err := journal.Repair(path)
	must(t, err)
	equal(t, cut, journal.Repaired{})
	file := first(path)
	sound, err := os.ReadFile(file)
	must(t, err)
	bad := slices.Clone(sound)
	bad[len(bad)-300] ^= 1
	must(t, os.WriteFile(file, bad, 0o600))
	cut, err = journal.Repair(path)
	must(t, err)
	_, offset := lineAt(sound, len(sound)-300)
	equal(t, cut.Damage.Offset, int64(offset))
	kept, err := os.ReadFile(cut.File)
	must(t, err)
	left, err := os.ReadFile(file)
	must(t, err)
	equal(t, string(left)+string(kept), string(bad))
	if info, err := os.Stat(cut.File); err != nil || info.Mode().Perm() != 0o600 {
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
	must(t, os.Remove(filepath.Join(path, journal.SegmentName(2))))
	cut, err := journal.Repair(path)
	must(t, err)
	if cut.Damage == nil || cut.Damage.File != journal.SegmentName(2) {
		t.Error(cut)
	}
	all := load(t, open[any](t, path))
	equal(t, len(all), 2)
	equal(t, all[0], states[len(states)-1][0]) // which has nothing in it
}

// Lines behind the damage may be in any order: of prunes, the largest one counts.
func TestCutPrunes(t *testing.T) {
	body, _, _ := strings.Cut(string(journal.Header()), `,"hash":`)
	bodies := []string{body}
	for _, before := range []int{5, 3} {
		prev := sumOf([]byte(bodies[len(bodies)-1]))
		bodies = append(bodies, fmt.Sprintf(`{"line":%d,"op":"prune","before":%d,"prev":"%s"`, len(bodies)+1, before, prev))
	}
	cut, err := journal.RepairOn(holding(chain(bodies...)))
	must(t, err)
	if cut.Before != 5 || cut.Sound != 2 || cut.Damage.Line != 2 {
		t.Errorf("%+v", cut)
	}
}

// Lines about what is missing are appended to the last segment that is kept, also if the one
// behind it is moved aside whole.
func TestRepairKeepsTheSegmentBeforeOneWithoutAHeader(t *testing.T) {
	m, _ := three(t)
	names := slices.Sorted(maps.Keys(m.files))
	kept := slices.Clone(m.files[names[1]].data)
	m.files[names[0]].data = bytes.Replace(m.files[names[0]].data, []byte(`"one"`), []byte(`"two"`), 1)
	m.files[names[2]].data = []byte(`{"`)
	cut, err := journal.RepairOn(m)
	must(t, err)
	if len(cut.Lost) != 1 || len(cut.Aside) != 1 || !bytes.HasPrefix(m.files[names[1]].data, kept) || len(m.files[names[1]].data) == len(kept) {
		t.Fatalf("%v: %s has %d bytes of %d", cut, names[1], len(m.files[names[1]].data), len(kept))
	}
	must(t, on(t, m).Close())
}
