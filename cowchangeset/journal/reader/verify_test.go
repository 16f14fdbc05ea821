package reader_test

import (
	"errors"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/cowchangeset/journal/reader"
)

// An anchor is found again while its line is kept, and says if anything up to there
// has changed.
func TestAnchors(t *testing.T) {
	path := newPath(t)
	j, err := journal.Open[any](path, journal.Options{SegmentSize: 1500})
	must(t, err)
	anchors := []journal.Anchor{{}, j.Hash()}
	for _, s := range story() {
		must(t, s.Call(j))
		anchors = append(anchors, j.Hash())
	}
	report, err := reader.Verify(path, journal.Anchor{})
	must(t, err)
	for i, a := range anchors {
		again, err := reader.Verify(path, a) // beside the open journal
		must(t, err)
		equal(t, again, report)
		parsed, err := journal.ParseAnchor(a.String())
		if i > 0 && (err != nil || parsed != a) {
			t.Error(parsed, err)
		}
		a.Line++
		if _, err := reader.Verify(path, a); i > 0 && err == nil {
			t.Errorf("%v was found", a)
		}
	}
	must(t, start("E", 5, "D").Call(j))
	must(t, seal("D", 0, 0).Call(j))
	must(t, applied("D", 1<<64-1).Call(j))
	must(t, start("F", 6, "E").Call(j))
	must(t, j.Rotate(background))
	must(t, start("G", 6, "E").Call(j))
	before := j.Hash()
	must(t, j.Prune(background, 5))
	dropped := 0
	for _, a := range append(anchors, before, j.Hash()) {
		_, err := reader.Verify(path, a)
		if errors.Is(err, journal.ErrDropped) {
			dropped++
		} else {
			must(t, err)
		}
	}
	if dropped == 0 || dropped > len(anchors) {
		t.Errorf("%d of %d were dropped", dropped, len(anchors))
	}
	must(t, j.Close())
}
