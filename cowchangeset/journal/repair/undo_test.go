package repair_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset/journal/repair"
	"github.com/latchfree/latchfree/internal/tools/journaltest"
)

// Undo puts back what the last repair has cut, also if an earlier one has cut something at the
// same place, or has written lines right before.
func TestUndoOfTheLastRepair(t *testing.T) {
	whole, _ := three(t)
	for what, m := range map[string]*memory{
		"a cut":  damaged(whole, 3, len(whole.Segment(3).Data)-50),
		"a line": damaged(whole, 2, 50),
	} {
		must(t, journaltest.ErrorOf(repair.RepairOn(m)))
		for range 11 { // of which the tenth has the number of the others in its name
			m.Put(3, append(m.Segment(3).Data, what+"\n"...))
			bad := m.Clone()
			must(t, journaltest.ErrorOf(repair.RepairOn(m)))
			undone := m.Clone()
			must(t, repair.UndoOn(undone))
			if name := unlike(undone, bad); name != "" {
				t.Fatalf("%s: Undo has not restored %s", what, name)
			}
		}
	}
}

// A segment that was moved aside is not put back behind lines that came since, whatever
// their numbers are.
func TestUndoBehindASegmentMovedAside(t *testing.T) {
	whole, _ := three(t)
	m := damaged(whole, 3, 50)
	must(t, journaltest.ErrorOf(repair.RepairOn(m)))
	if len(m.Segment(2).Data) != len(whole.Segment(2).Data) {
		t.Fatal("a line was written")
	}
	j := on(t, m)
	must(t, start("E", 4, "C").Call(j))
	must(t, j.Close())
	before := m.Text()
	if err := repair.UndoOn(m); err == nil || !strings.Contains(err.Error(), "nothing to undo") || !bytes.Equal(m.Text(), before) {
		t.Error(err)
	}
}

// What nothing can be read behind is cut where it is damaged: it does not go as a whole.
func TestRepairCutsBeforeASegmentWithoutAHeader(t *testing.T) {
	whole, _ := three(t)
	size := len(whole.Segment(2).Data)
	m := damaged(damaged(whole, 3, 50), 2, size-50)
	bad := m.Clone()
	cut, err := repair.RepairOn(m)
	must(t, err)
	if len(cut.Lost) > 0 || len(cut.Aside) != 2 || cut.Kept != cut.Cutting || lost(m, bad) != "" || len(m.Segment(2).Data) >= size {
		t.Error(cut)
	}
	must(t, on(t, m).Close())

	m = damaged(whole, 3, 50)
	m.Put(2, whole.Segment(2).Data[:size-9]) // which no crash has left
	bad = m.Clone()
	cut, err = repair.RepairOn(m)
	must(t, err)
	if len(cut.Lost) > 0 || len(cut.Aside) != 2 || lost(m, bad) != "" || len(m.Segment(2).Data) >= size-9 {
		t.Error(cut)
	}
	must(t, on(t, m).Close())
}

// A segment that has lost its last lines shows behind a hole too: the next checkpoint knows how
// many entries there were.
func TestLinesLostBeforeAHole(t *testing.T) {
	m := &memory{}
	j := on(t, m)
	must(t, start("A", 1, "").Call(j))
	short := len(m.Segment(1).Data)
	tell(t, j, []step{add("A", item(0, "a")), seal("A", 1, 0)})
	must(t, j.Rotate(background))
	must(t, start("B", 2, "A").Call(j))
	must(t, j.Rotate(background))
	tell(t, j, []step{add("B", item(0, "b")), seal("B", 1, 0), start("C", 3, "B"), seal("C", 0, 0), start("D", 4, "C")})
	must(t, j.Close())
	m.Put(1, m.Segment(1).Data[:short])
	m.Put(2, nil)
	must(t, journaltest.ErrorOf(repair.RepairOn(m)))
	all := load(t, on(t, m))
	if len(all) != 4 || !all[0].Aborted || len(all[1].Entries) != 1 {
		t.Errorf("%+v", all)
	}
}

// A segment that an earlier repair has taken out stays out, if the last one has only found that
// it is missing.
func TestUndoOfAnotherGap(t *testing.T) {
	whole, _ := three(t)
	m := damaged(whole, 2, 50)
	must(t, journaltest.ErrorOf(repair.RepairOn(m)))
	m.Put(3, whole.Segment(3).Data) // without the line about it
	bad := m.Clone()
	must(t, journaltest.ErrorOf(repair.RepairOn(m)))
	must(t, repair.UndoOn(m))
	if name := unlike(m, bad); name != "" {
		t.Errorf("Undo has not restored %s", name)
	}
}

// A repair that was interrupted and called again is taken back by two calls, and an Undo
// that was interrupted by another one.
func TestUndoOfInterrupted(t *testing.T) {
	whole, _ := three(t)
	cut := damaged(whole, 3, len(whole.Segment(3).Data)-50)
	for what, bad := range map[string]*memory{
		"a segment":     damaged(whole, 2, 50),
		"two and a cut": damaged(damaged(cut, 2, 50), 1, 300),
	} {
		stop := func(m *memory, n int) (stopped *bool) {
			stopped = new(bool)
			m.SetFault(func(op string) (int, error) {
				if n--; n < 0 {
					*stopped = true
					return 0, errBoom
				}
				return 1 << 30, nil
			})
			return stopped
		}
		steps := 0
		for n := 0; ; n++ {
			m := bad.Clone()
			stopped := stop(m, n)
			repair.RepairOn(m)
			if !*stopped {
				break
			}
			m.SetFault(nil)
			must(t, journaltest.ErrorOf(repair.RepairOn(m)))
			if err := repair.UndoOn(m); err != nil {
				t.Fatalf("%s: stopped after %d steps: %v", what, n, err)
			}
			repair.UndoOn(m) // if there were two
			for name, f := range bad.Files {
				if name != journaltest.SegmentName(3) && (m.File(name) == nil || !bytes.Equal(m.File(name).Data, f.Data)) {
					t.Fatalf("%s: stopped after %d steps, Undo has not restored %s", what, n, name)
				}
			}
			if is := m.Segment(3).Data; !bytes.Equal(is, bad.Segment(3).Data) {
				t.Fatalf("%s: stopped after %d steps, Undo has not restored the last segment", what, n)
			}
			steps++
		}
		done := bad.Clone()
		must(t, journaltest.ErrorOf(repair.RepairOn(done)))
		for n := 0; ; n++ {
			m := done.Clone()
			stopped := stop(m, n)
			repair.UndoOn(m)
			m.SetFault(nil)
			if !*stopped {
				break
			}
			err := repair.UndoOn(m) // which has nothing to do if only the fsync was missing
			if name := unlike(m, bad); name != "" {
				t.Fatalf("%s: Undo, stopped after %d steps and called again, has not restored %s: %v", what, n, name, err)
			}
			steps++
		}
		if steps < 5 {
			t.Errorf("%s: %d steps", what, steps)
		}
	}
}

// The last segment may have nothing but a header, and that no newline: then it is sound all
// the same.
func TestUndoBehindAHeaderWithoutANewline(t *testing.T) {
	m, _ := three(t)
	j := on(t, m)
	must(t, j.Rotate(background))
	must(t, j.Close())
	m.Put(4, m.Segment(4).Data[:len(m.Segment(4).Data)-1])
	m.Put(5, nil)
	bad := m.Clone()
	must(t, journaltest.ErrorOf(repair.RepairOn(m)))
	must(t, repair.UndoOn(m))
	if name := unlike(m, bad); name != "" {
		t.Errorf("Undo has not restored %s", name)
	}
}
