package journal_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal"
)

// many returns a folder with a journal of n applied changesets, each in a segment of its
// own, and the journal.
func many(t *testing.T, n int) (*memory, *journal.Journal[any]) {
	m := &memory{}
	j := on(t, m)
	before := ""
	for i := range n {
		id := strconv.Itoa(i + 1)
		must(t, start(id, uint64(i+1), before).call(j))
		must(t, seal(id, 0, 0).call(j))
		must(t, applied(id, cowchangeset.AllApplied).call(j))
		must(t, j.Rotate(background))
		before = id
	}
	return m, j
}

// However many segments there are, readers have few files open, and the same goes for
// Open and Load.
func TestFewDescriptors(t *testing.T) {
	m, j := many(t, 60)
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
		"Changesets": {17, func() int { return len(collect(t, reader(t, m).Changesets(background))) }, 60},
		"Events":     {17, func() int { return len(collect(t, reader(t, m).Events(background, 0))) }, 241},
		"Verify": {17, func() int {
			report, err := journal.VerifyOn(m, journal.Anchor{})
			must(t, err)
			return report.Segments
		}, 61},
	} {
		m.peak = 0
		if got := tt.run(); got != tt.want || m.peak > tt.most {
			t.Errorf("%s: %d, want %d; %d files were open at once", what, got, tt.want, m.peak)
		}
		if !m.closed() {
			t.Errorf("%s has left files open", what)
		}
	}
}

// A prune that overtakes a loop by more segments than the loop has open ends it with
// ErrDropped; what has not yielded anything yet begins again.
func TestPruneOvertakesAReader(t *testing.T) {
	m, j := many(t, 60)
	r := reader(t, m)
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
	equal(t, len(collect(t, r.Changesets(background))), 1)

	m, j = many(t, 60)
	n = 0
	for s, err := range reader(t, m).Changesets(background) {
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

	for what, read := range map[string]func(f journal.Folder) error{
		"Verify": func(f journal.Folder) error { return second(journal.VerifyOn(f, journal.Anchor{})) },
		"Changesets": func(f journal.Folder) error {
			r, err := journal.ReaderOn[any](f, journal.Options{})
			must(t, err)
			return second(ended(r.Changesets(background)))
		},
	} {
		m, j := many(t, 60)
		looks, sizes := 0, 1 // each look opens it to know its size, and so does OpenReader
		if what == "Changesets" {
			sizes = 2
		}
		f := &watched{m, func(name string) {
			if name == journal.SegmentName(30) {
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

func (w *watched) Open(name string) (journal.File, error) {
	w.opening(name)
	return w.memory.Open(name)
}

// A descriptor that is missing when a segment has just begun breaks nothing.
func TestNoDescriptorAtRotation(t *testing.T) {
	m := &memory{}
	j := on(t, m)
	must(t, start("A", 1, "").call(j))
	m.fault = func(op string) (int, error) {
		if op == "rename" {
			m.shut = errBoom // from here on
		}
		return 0, nil
	}
	must(t, j.Rotate(background))
	must(t, seal("A", 0, 0).call(j))
	equal(t, j.Stats().Segments, 2)
	m.fault, m.shut = nil, nil
	must(t, j.Close())
	equal(t, len(load(t, on(t, m))), 1)
	if m.opened > 1 {
		t.Errorf("%d files are open", m.opened)
	}
}

// Directories that nobody has made a journal of: a volume has entries of its own.
func TestFreshVolume(t *testing.T) {
	for _, entry := range []string{"lost+found", ".snapshot", ".DS_Store", "..data"} {
		dir := t.TempDir()
		must(t, os.Mkdir(filepath.Join(dir, entry), 0o700))
		j := open[any](t, dir)
		tell(t, j, story())
		must(t, j.Close())
		must(t, open[any](t, dir).Close())
		if _, err := os.Stat(filepath.Join(dir, entry)); err != nil {
			t.Error(err)
		}
	}
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "lost+found"), 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "data.db"), nil, 0o600))
	if _, err := journal.Open[any](dir, journal.Options{}); err == nil {
		t.Error("a directory of something else was opened")
	}
}
