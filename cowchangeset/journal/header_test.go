package journal_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset/journal"
)

// Damage to a header is told of its own segment, and not of the end of the one before.
func TestDamagedHeaderIsNamed(t *testing.T) {
	m := &memory{}
	j := on(t, m)
	tell(t, j, story()[:3])
	must(t, j.Rotate(background))
	must(t, start("lost", 2, "A").call(j))
	must(t, j.Close())
	whole, end := m.segment(2).data, int64(len(m.segment(1).data))
	for what, text := range map[string][]byte{"empty": {}, "cut off": whole[:50], "other bytes": append([]byte("x"), whole...)} {
		c := m.clone()
		c.put(2, text)
		_, err := journal.OpenOn[any](c, journal.Options{})
		var corrupt *journal.CorruptError
		if !errors.As(err, &corrupt) || corrupt.File != journal.SegmentName(2) || corrupt.Offset != 0 || corrupt.Line != 5 {
			t.Errorf("%s: %v", what, err)
		}
	}
	// Lines that chain, and are not each in a segment with a header of its own.
	lines := bytes.SplitAfter(m.bytes(), []byte("\n"))
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
			c.put(i+1, text)
		}
		_, err := journal.OpenOn[any](c, journal.Options{})
		var corrupt *journal.CorruptError
		if !errors.As(err, &corrupt) || corrupt.File != journal.SegmentName(tt.file) || corrupt.Line != tt.line ||
			!bytes.HasPrefix(tt.texts[tt.file-1][corrupt.Offset:], lines[tt.line-1][:50]) {
			t.Fatalf("%s: %v", tt.what, err)
		}
		cut, err := journal.RepairOn(c)
		must(t, err)
		equal(t, *cut.Damage, *corrupt)
		for _, line := range lines {
			if !bytes.Contains(c.bytes(), bytes.TrimSpace(line)) {
				t.Errorf("%s: %q is lost", tt.what, line)
			}
		}
		must(t, on(t, c).Close())
	}
	m.put(1, append(m.segment(1).data, "torn"...))
	for _, text := range [][]byte{{}, whole} {
		c := m.clone()
		c.put(2, text)
		_, err := journal.OpenOn[any](c, journal.Options{})
		var corrupt *journal.CorruptError
		if !errors.As(err, &corrupt) || corrupt.File != journal.SegmentName(1) || corrupt.Offset != end || corrupt.Line != 5 {
			t.Error(err)
		}
	}
}
