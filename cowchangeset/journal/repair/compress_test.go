package repair_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/cowchangeset/journal/repair"
	"github.com/latchfree/latchfree/internal/tools/journaltest"
)

// Damage to a compressed segment costs that segment, and can be taken back, as that to any
// other; or it changes none of its lines.
func TestRepairOfCompressed(t *testing.T) {
	whole, _ := three(t)
	j := on(t, whole)
	must(t, j.Compress(background))
	must(t, j.Close())
	const name = "0000000002.journal.gz"
	tried, found := 0, 0
	for at := range whole.File(name).Data {
		if testing.Short() && at%5 != 0 {
			continue
		}
		tried++
		m := whole.Clone()
		m.File(name).Data[at] ^= 1 << (at % 8)
		bad := m.Clone()
		_, err := verify(m, journal.Anchor{})
		cut, repaired := repair.RepairOn(m)
		must(t, repaired)
		if err == nil {
			if cut.Damage != nil {
				t.Fatalf("byte %d: Verify finds nothing, and Repair %v", at, cut)
			}
			continue
		}
		found++
		if corrupt := new(journal.CorruptError); !errors.As(err, &corrupt) || corrupt.File != "0000000002.journal" {
			t.Fatalf("byte %d: %v", at, err)
		}
		if len(cut.Lost) != 1 || cut.Lost[0].Segment != 2 || slices.Contains(m.Segments(), name) {
			t.Fatalf("byte %d: %v; %q", at, cut, m.Segments())
		}
		report, err := verify(m, journal.Anchor{})
		must(t, err)
		if len(report.Gaps) != 1 {
			t.Fatalf("byte %d: %+v", at, report)
		}
		must(t, on(t, m.Clone()).Close())
		must(t, repair.UndoOn(m))
		if name := unlike(m, bad); name != "" {
			t.Fatalf("byte %d: Undo has not restored %s", at, name)
		}
	}
	if found < tried/2 {
		t.Errorf("%d of %d bytes matter", found, tried)
	}
}

// Where the last segment has no header, the one before it becomes the last, and is
// compressed no longer.
func TestRepairOfTheLastBehindCompressed(t *testing.T) {
	whole, _ := three(t)
	j := on(t, whole)
	must(t, j.Compress(background))
	must(t, j.Close())
	m := damaged(whole, 3, 5)
	must(t, journaltest.ErrorOf(repair.RepairOn(m)))
	j = on(t, m)
	must(t, start("next", 4, "C").Call(j))
	must(t, j.Close())
	must(t, journaltest.ErrorOf(verify(m, journal.Anchor{})))
	if !slices.ContainsFunc(m.Segments(), func(name string) bool { return strings.HasSuffix(name, "2.journal") }) {
		t.Error(m.Segments())
	}
}

// Repair may leave nothing but compressed segments: it is a journal all the same.
func TestRepairLeavesCompressed(t *testing.T) {
	path := newPath(t)
	j := open[any](t, path)
	for i, s := range story() {
		must(t, s.Call(j))
		if i == 9 {
			must(t, j.Rotate(background))
		}
	}
	must(t, j.Compress(background))
	must(t, j.Close())
	last := filepath.Join(path, journaltest.SegmentName(2))
	text, err := os.ReadFile(last)
	must(t, err)
	text[3] ^= 1
	must(t, os.WriteFile(last, text, 0o600))
	cut, err := repair.Repair(path)
	must(t, err)
	for _, name := range cut.Aside {
		if _, err := os.Stat(name); err != nil {
			t.Error(err)
		}
	}
	must(t, repair.Undo(path))
	if now, err := os.ReadFile(last); err != nil || !bytes.Equal(now, text) {
		t.Error("Undo has not restored it:", err)
	}
	must(t, journaltest.ErrorOf(repair.Repair(path)))
	must(t, journaltest.ErrorOf(repair.Examine(path)))
	again, err := journal.Open[any](path, journal.Options{MustExist: true})
	must(t, err)
	must(t, again.Close())
}

// What was compressed and is written again does not come back when a later repair takes it
// out.
func TestRepairOfTheLastThatWasCompressed(t *testing.T) {
	whole, _ := three(t)
	j := on(t, whole)
	must(t, j.Compress(background))
	must(t, j.Close())
	m := damaged(whole, 3, 5)
	must(t, journaltest.ErrorOf(repair.RepairOn(m)))
	j = on(t, m)
	must(t, j.Rotate(background))
	must(t, j.Close())
	second := m.Segment(2)
	if second == nil {
		t.Fatal(m.Segments())
	}
	second.Data[len(second.Data)-100] ^= 1
	must(t, journaltest.ErrorOf(repair.RepairOn(m)))
	must(t, on(t, m).Close())
	if slices.Contains(m.Segments(), "0000000002.journal.gz") {
		t.Error(m.Segments())
	}
}
