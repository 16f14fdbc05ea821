package journal_test

import (
	"errors"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset/journal"
)

// Damage to a header is told of its own segment, and not of the end of the one before.
func TestDamagedHeaderIsNamed(t *testing.T) {
	m := &memory{}
	j := on(t, m)
	tell(t, j, story()[:3])
	must(t, j.Rotate(background))
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
