package journal_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
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

// Whatever byte is another one: Repair cuts from its line on, keeps what it cuts,
// and leaves a journal with everything before.
func TestRepairEveryFlip(t *testing.T) {
	sound, states := three(t)
	whole := sound.bytes()
	anchors := []journal.Anchor{{}}
	for _, e := range collect(t, reader(t, sound).Events(background, 0)) {
		anchors = append(anchors, e.Anchor())
	}
	base := 0
	for number := 1; number <= 3; number++ {
		size := len(sound.segment(number).data)
		for i := range size {
			m := sound.clone()
			m.segment(number).data[i] ^= 1
			bad := m.bytes()
			line, offset := lineAt(whole, base+i)
			cut, err := journal.RepairOn(m)
			switch {
			case base+i == len(whole)-1:
				equal(t, cut, journal.Cut{})
				equal(t, m.bytes(), bad)
			case line == 1:
				var corrupt *journal.CorruptError
				if !errors.As(err, &corrupt) || !bytes.Equal(m.bytes(), bad) || m.changes() > 0 {
					t.Fatalf("byte %d: %v", i, err)
				}
				continue
			default:
				must(t, err)
				_, open := journal.OpenOn[any](damaged(sound, number, i), journal.Options{})
				equal(t, error(cut.Damage), open)
				if cut.Damage.Line != line || cut.Damage.File != journal.SegmentName(number) || cut.Damage.Offset != int64(offset-base) {
					t.Fatalf("byte %d of %d: %v, want line %d at %d", i, number, cut, line, offset-base)
				}
				equal(t, string(m.files[cut.File].data), string(bad[offset:]))
				equal(t, string(m.bytes()), string(bad)) // as it sorts behind the others
				equal(t, cut.Bytes, int64(len(bad)-offset))
				equal(t, cut.Lines, bytes.Count(bad[offset:], []byte("\n")))
				if sound := bytes.Count(whole[offset:], []byte("\n")) - 1; cut.Sound != sound && whole[base+i] != '\n' {
					t.Fatalf("byte %d of %d: %d of %d lines are sound", i, number, cut.Sound, sound)
				}
				if f := m.files[cut.File]; f.synced != len(f.data) {
					t.Fatal("the cut was not synced")
				}
			}
			if i%7 == 0 {
				again, err := journal.RepairOn(m)
				equal(t, again, journal.Cut{})
				must(t, err)
				j := on(t, m)
				equal(t, load(t, j), states[min(line-1, len(states)-1)+btoi(base+i == len(whole)-1)])
				must(t, j.Close())
				_, err = journal.VerifyOn(m, anchors[line-1])
				must(t, err)
			}
			if !m.closed() {
				t.Fatal("a file is still open")
			}
		}
		base += size
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func damaged(m *memory, number, i int) *memory {
	m = m.clone()
	m.segment(number).data[i] ^= 1
	return m
}

// The Cut tells what was lost.
func TestCut(t *testing.T) {
	m, _ := three(t)
	line, _, _ := bytes.Cut(m.segment(2).data[200:], []byte("\n"))
	cut, err := journal.RepairOn(damaged(m, 2, 200+len(line)+20))
	must(t, err)
	const odd = "q\"uo\\te\n\x00\u2028é"
	want := []journal.CutChangeset{
		{ID: "C", Lines: 4, Entries: 1, Started: true, Sealed: true},
		{ID: "A", Lines: 2},
		{ID: odd, Lines: 2, Sealed: true},
		{ID: "D", Lines: 1, Started: true},
	}
	if !slices.EqualFunc(cut.Changesets, want, func(a, b journal.CutChangeset) bool { return a.ID == b.ID }) {
		t.Errorf("%+v", cut)
	}
	for _, part := range []string{"corrupt at line", "to line-", "lines, of which", `changeset "C": `, "its start", "its seal"} {
		if !strings.Contains(cut.String(), part) {
			t.Errorf("%q is missing in:\n%v", part, cut)
		}
	}
	if text := (journal.Cut{}).String(); text != "the journal is sound: nothing was cut" {
		t.Error(text)
	}
}

// A segment that is missing in the middle: what follows is cut, with what stands
// before without being a line.
func TestRepairGap(t *testing.T) {
	whole, states := three(t)
	for _, tail := range []string{"", "torn"} {
		m := whole.clone()
		m.put(1, append(m.segment(1).data, tail...))
		third := string(m.segment(3).data)
		delete(m.files, journal.SegmentName(2))
		cut, err := journal.RepairOn(m)
		must(t, err)
		if string(m.files[cut.File].data) != tail+third || cut.Damage.File != journal.SegmentName(2) {
			t.Errorf("%v: %q", cut, m.files[cut.File].data)
		}
		equal(t, load(t, on(t, m)), states[7])
	}
	m := whole.clone()
	m.put(2, nil)
	_, err := journal.RepairOn(m)
	must(t, err)
	equal(t, load(t, on(t, m)), states[7])
}

// Whatever step fails, what is left is damaged, or repaired, and has all bytes; and
// another Repair comes to the same end.
func TestRepairStops(t *testing.T) {
	whole, states := three(t)
	pruned, afterPrune := onlyPrune(t)
	want := map[string][]saved{"a line": states[6], "a header": states[7], "the prune": afterPrune}
	for what, bad := range map[string]*memory{
		"a line":    damaged(whole, 1, len(whole.segment(1).data)-50),
		"a header":  damaged(whole, 2, 50),
		"the prune": pruned,
	} {
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

// What is cut is on the disk before anything is removed, and that goes from the end
// on. A copy that is too short is none.
func TestRepairOrder(t *testing.T) {
	whole, _ := three(t)
	m := damaged(whole, 1, len(whole.segment(1).data)-50)
	var ops []string
	m.fault = func(op string) (int, error) {
		ops = append(ops, op)
		return 0, nil
	}
	_, err := journal.RepairOn(m)
	must(t, err)
	equal(t, strings.Join(ops, " "), "remove create write write write sync rename syncdir remove remove syncdir edit truncate sync")

	m = damaged(whole, 1, len(whole.segment(1).data)-50)
	before := m.bytes()
	m.fault = func(op string) (int, error) {
		if op == "write" {
			return 3, errShort
		}
		return 0, nil
	}
	if _, err := journal.RepairOn(m); !errors.Is(err, io.ErrShortWrite) || !bytes.HasPrefix(m.bytes(), before[:100]) || len(m.bytes()) < len(before) {
		t.Error(err)
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
	return damaged(m, 2, n+50), []saved{{Header: header{ID: "B", Ordinal: 2, Previous: "A"}, Entries: []entry{item(0, "b")}}}
}

// If the line that says that the oldest segments were dropped is cut, Repair writes
// another one; and so it does if they are missing otherwise.
func TestRepairPrunes(t *testing.T) {
	m, want := onlyPrune(t)
	cut, err := journal.RepairOn(m)
	must(t, err)
	if cut.Pruned != 2 || cut.Lines != 2 || cut.Sound != 1 || !strings.Contains(cut.String(), "below ordinal 2 are taken for pruned") {
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
		if cut.Pruned != 3 || cut.File != "" {
			t.Errorf("%+v", cut)
		}
		all := states[len(states)-1][2:]
		if tail == 9 {
			all = all[:1]
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
	n := len(m.segment(2).data)
	must(t, start("C", 3, "B").call(j))
	delete(m.files, journal.SegmentName(1))
	for what, m := range map[string]*memory{
		"no changeset is left": damaged(m, 2, n+9),
		"the first header":     damaged(m, 2, 9),
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
	equal(t, cut, journal.Cut{})
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
	equal(t, load(t, open[any](t, path)), states[3])
}
