package repair_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/cowchangeset/journal/internal/journaltest"
	"github.com/latchfree/latchfree/cowchangeset/journal/repair"
)

// Damage to a compressed segment costs that segment, and can be taken back, as that to any
// other; or it changes none of its lines.
func TestRepairOfCompressed(t *testing.T) {
	whole, _ := three(t)
	j := on(t, whole)
	must(t, j.Compress(background))
	must(t, j.Close())
	const name = "0000000002.journal.gz"
	found := 0
	for at := range whole.File(name).Data {
		m := whole.Clone()
		m.File(name).Data[at] ^= 1 << (at % 8)
		bad := m.Clone()
		_, err := journaltest.Verify(m, journal.Anchor{})
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
		report, err := journaltest.Verify(m, journal.Anchor{})
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
	if found < len(whole.File(name).Data)/2 {
		t.Errorf("%d of %d bytes matter", found, len(whole.File(name).Data))
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
	must(t, journaltest.ErrorOf(journaltest.Verify(m, journal.Anchor{})))
	if !slices.ContainsFunc(m.Segments(), func(name string) bool { return strings.HasSuffix(name, "2.journal") }) {
		t.Error(m.Segments())
	}
}
