package reader_test

import (
	"errors"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/cowchangeset/journal/reader"
	"github.com/latchfree/latchfree/internal/folder"
	"github.com/latchfree/latchfree/internal/tools/journaltest"
)

// However many segments there are, readers have few files open, and the same goes for
// Open and Load.
func TestFewDescriptors(t *testing.T) {
	m, j := journaltest.Many(t, 60)
	must(t, j.Close())
	for what, tt := range map[string]struct {
		most int
		run  func() int // how many of something it has seen
		want int
	}{
		"Open": {2, func() int {
			j := on(t, m)
			defer j.Close()
			return len(load(t, j))
		}, 60},
		"Changesets": {17, func() int { return len(journaltest.Collect(t, readerOf(t, m).Changesets(background))) }, 60},
		"Events":     {17, func() int { return len(journaltest.Collect(t, readerOf(t, m).Events(background, 0))) }, 241},
		"Verify": {17, func() int {
			report, err := verify(m, journal.Anchor{})
			must(t, err)
			return report.Segments
		}, 61},
	} {
		m.Peak = 0
		if got := tt.run(); got != tt.want || m.Peak > tt.most {
			t.Errorf("%s: %d, want %d; %d files were open at once", what, got, tt.want, m.Peak)
		}
		if !m.Closed() {
			t.Errorf("%s has left files open", what)
		}
	}
}

// A prune that overtakes a loop by more segments than the loop has open ends it with
// ErrDropped; what has not yielded anything yet begins again.
func TestPruneOvertakesAReader(t *testing.T) {
	m, j := journaltest.Many(t, 60)
	r := readerOf(t, m)
	n := 0
	for _, err := range r.Events(background, 0) {
		if n++; n == 1 {
			must(t, j.Prune(background, 60))
		}
		if err != nil && (!errors.Is(err, journal.ErrDropped) || n < 17) {
			t.Errorf("after %d events: %v", n, err)
		}
	}
	if n > 200 {
		t.Errorf("%d events", n)
	}
	equal(t, len(journaltest.Collect(t, r.Changesets(background))), 1)

	m, j = journaltest.Many(t, 60)
	n = 0
	for s, err := range readerOf(t, m).Changesets(background) {
		if n++; n == 1 {
			must(t, j.Prune(background, 60))
		}
		if err != nil && !errors.Is(err, journal.ErrDropped) || err == nil && s.Ordinal != uint64(n) {
			t.Errorf("changeset %d: %v, %v", n, s, err)
		}
	}
	if n < 2 || n > 60 {
		t.Errorf("%d changesets", n)
	}

	for what, read := range map[string]func(f folder.Folder) error{
		"Verify": func(f folder.Folder) error { return journaltest.ErrorOf(verify(f, journal.Anchor{})) },
		"Changesets": func(f folder.Folder) error {
			r, err := journaltest.Reader[any](f, reader.Options{})
			must(t, err)
			return journaltest.ErrorOf(journaltest.CollectAll(r.Changesets(background)))
		},
	} {
		m, j := journaltest.Many(t, 60)
		looks, sizes := 0, 1 // each look opens it to know its size, and so does OpenReader
		if what == "Changesets" {
			sizes = 2
		}
		f := &watched{m, func(name string) {
			if name == journaltest.SegmentName(30) {
				if looks++; looks == sizes+1 { // to read it
					must(t, j.Prune(background, 60))
				}
			}
		}}
		if err := read(f); err != nil || looks <= sizes {
			t.Errorf("%s, looked at %d times: %v", what, looks, err)
		}
	}
}

// A watched folder tells which files are about to be opened.
type watched struct {
	*memory
	opening func(name string)
}

func (w *watched) Open(name string) (folder.File, error) {
	w.opening(name)
	return w.memory.Open(name)
}
