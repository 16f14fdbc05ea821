package repair_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/cowchangeset/journal/repair"
	"github.com/latchfree/latchfree/internal/tools/journaltest"
)

// Damage to a header is told of its own segment, and not of the end of the one before.
func TestDamagedHeaderIsNamed(t *testing.T) {
	m := &memory{}
	j := on(t, m)
	tell(t, j, story()[:3])
	must(t, j.Rotate(background))
	must(t, start("lost", 2, "A").Call(j))
	must(t, j.Close())
	whole, end := m.Segment(2).Data, int64(len(m.Segment(1).Data))
	for what, text := range map[string][]byte{"empty": {}, "cut off": whole[:50], "other bytes": append([]byte("x"), whole...)} {
		c := m.Clone()
		c.Put(2, text)
		_, err := journaltest.Open[any](c, journal.Options{})
		var corrupt *journal.CorruptError
		if !errors.As(err, &corrupt) || corrupt.File != journaltest.SegmentName(2) || corrupt.Offset != 0 || corrupt.Line != 5 {
			t.Errorf("%s: %v", what, err)
		}
	}
	// Lines that chain, and are not each in a segment with a header of its own.
	lines := bytes.SplitAfter(m.Text(), []byte("\n"))
	for _, tt := range []struct {
		what  string
		file  int
		line  int
		texts [][]byte
	}{
		{"a segment without a header", 2, 3, [][]byte{slices.Concat(lines[:2]...), slices.Concat(lines[2:4]...), slices.Concat(lines[4:]...)}},
		{"a newline too late", 1, 4, [][]byte{slices.Concat(lines[:4]...)[:end-1], slices.Concat([]byte("\n"), whole)}},
		{"a header in the middle", 1, 5, [][]byte{slices.Concat(lines[:5]...), slices.Concat(lines[5:]...)}},
	} {
		c := &memory{}
		for i, text := range tt.texts {
			c.Put(i+1, text)
		}
		_, err := journaltest.Open[any](c, journal.Options{})
		var corrupt *journal.CorruptError
		if !errors.As(err, &corrupt) || corrupt.File != journaltest.SegmentName(tt.file) || corrupt.Line != tt.line ||
			!bytes.HasPrefix(tt.texts[tt.file-1][corrupt.Offset:], lines[tt.line-1][:50]) {
			t.Fatalf("%s: %v", tt.what, err)
		}
		cut, err := repair.RepairOn(c)
		must(t, err)
		equal(t, *cut.Damage, *corrupt)
		for _, line := range lines {
			if !bytes.Contains(c.Text(), bytes.TrimSpace(line)) {
				t.Errorf("%s: %q is lost", tt.what, line)
			}
		}
		must(t, on(t, c).Close())
	}
	m.Put(1, append(m.Segment(1).Data, "torn"...))
	for _, text := range [][]byte{{}, whole} {
		c := m.Clone()
		c.Put(2, text)
		_, err := journaltest.Open[any](c, journal.Options{})
		var corrupt *journal.CorruptError
		if !errors.As(err, &corrupt) || corrupt.File != journaltest.SegmentName(1) || corrupt.Offset != end || corrupt.Line != 5 {
			t.Error(err)
		}
	}
}
