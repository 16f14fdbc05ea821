package journal_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal"
)

// The counts are those of the file's operations and of the segments, for each policy.
func TestStats(t *testing.T) {
	for _, o := range []journal.Options{{}, {SegmentSize: 1000}, {SegmentSize: 1000, Sync: journal.SyncNever}} {
		t.Run(fmt.Sprint(o.SegmentSize, o.Sync), func(t *testing.T) {
			m := &memory{}
			j := with(t, m, o)
			segment := int64(len(m.Text()))
			equal(t, j.Stats(), journal.Stats{Segments: 1, Size: segment})
			writes, syncs, begun := m.Count("write"), m.Count("sync"), 1
			tell(t, j, story())
			must(t, j.Sync(background))
			must(t, j.Sync(background)) // has nothing to do
			for m.Segment(begun+1) != nil {
				begun++
			}
			saved := load(t, j)
			entries := 0
			for _, s := range saved {
				entries += len(s.Entries)
			}
			s := j.Stats()
			if text := m.Text(); s.Size != int64(len(text)) || s.Bytes != uint64(len(text))-uint64(segment) || s.Lines != uint64(strings.Count(string(text), "\n"))-1 {
				t.Errorf("%+v of %d bytes", s, len(text))
			}
			// One write and one fsync are the header's.
			if got := uint64(m.Count("write") - writes - (begun - 1)); s.Writes != got {
				t.Errorf("%d writes, want %d", s.Writes, got)
			}
			if got := uint64(m.Count("sync") - syncs); s.Syncs != got {
				t.Errorf("%d fsyncs, want %d", s.Syncs, got)
			}
			if s.Entries != uint64(entries) || s.Segments != begun || s.Failures != 0 || s.LastError != nil || s.Waiting != 0 || entries == 0 {
				t.Errorf("%+v, want %d entries in %d segments", s, entries, begun)
			}
			must(t, j.Close())
			if got := j.Stats(); got != s {
				t.Errorf("%+v after Close", got)
			}
			equal(t, with(t, m, o).Stats(), journal.Stats{Segments: begun, Size: s.Size})
		})
	}
}

// Calls that wait are seen, and one write has them all. A segment that goes is gone.
func TestStatsOfGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, _, g := gated(t, "write", 4)
		before := j.Stats()
		errs := appends(background, j, 1, 4)
		if s := j.Stats(); s.Waiting != 3 || s.Writes != before.Writes {
			t.Errorf("%+v", s)
		}
		g.next <- nil
		g.next <- nil
		for range 4 {
			must(t, <-errs)
		}
		s := j.Stats()
		if s.Writes != before.Writes+2 || s.Lines != before.Lines+4 || s.Entries != 4 || s.Waiting != 0 || s.Syncs != before.Syncs+2 {
			t.Errorf("%+v", s)
		}
		g.shut = false
		must(t, j.Rotate(background))
		for i := range 4 {
			must(t, j.Seal(background, fmt.Sprint(i+1), cowchangeset.Manifest{Len: 1}))
			must(t, j.Applied(background, fmt.Sprint(i+1), cowchangeset.AllApplied))
		}
		must(t, j.Rotate(background))
		must(t, j.Start(background, header{ID: "5", Ordinal: 5, Previous: "4"}))
		must(t, j.Prune(background, 5))
		if s := j.Stats(); s.Segments != 1 || s.Failures != 0 {
			t.Errorf("%+v", s)
		}
		must(t, j.Close())
	})
}

// A failure is counted and kept, also where no call fails: as that of a new segment, after
// which calls go on in the one before.
func TestStatsOfFailures(t *testing.T) {
	m := &memory{}
	j := with(t, m, journal.Options{SegmentSize: 1})
	must(t, j.Start(background, header{ID: "1", Ordinal: 1}))
	m.Fault = func(op string) (int, error) {
		if op == "create" {
			return 0, errBoom
		}
		return 1 << 30, nil
	}
	must(t, j.Append(background, "1", []entry{item(0, "x")}))
	if s := j.Stats(); s.Failures != 1 || !errors.Is(s.LastError, errBoom) || errors.Is(s.LastError, journal.ErrBroken) || s.Segments != 1 || s.Entries != 1 {
		t.Errorf("%+v", s)
	}
	m.Fault = func(op string) (int, error) {
		if op == "sync" {
			return 0, errBoom
		}
		return 1 << 30, nil
	}
	if err := j.Append(background, "1", []entry{item(1, "y")}); !errors.Is(err, journal.ErrBroken) {
		t.Error(err)
	}
	s := j.Stats() // the new segment could not be synced, nor then the last one
	if s.Failures != 3 || !errors.Is(s.LastError, journal.ErrBroken) {
		t.Errorf("%+v", s)
	}
	j.Append(background, "1", []entry{item(1, "y")}) // is refused, and tries nothing
	if got := j.Stats(); got != s {
		t.Errorf("%+v", got)
	}
	j.Close()
}

// A segment that cannot be removed is a failure, although its prune counts; and so is a
// file that panics.
func TestStatsOfRemovalsAndPanics(t *testing.T) {
	m := &memory{}
	j := with(t, m, journal.Options{SegmentSize: 1, Archive: "archive"})
	tell(t, j, append([]step{start("1", 1, "")}, finished(1)...))
	m.Fault = func(op string) (int, error) {
		if op == "move" {
			return 0, errBoom
		}
		return 1 << 30, nil
	}
	if err := j.Prune(background, 2); !errors.Is(err, errBoom) {
		t.Error(err)
	}
	if s := j.Stats(); s.Failures != 1 || !errors.Is(s.LastError, errBoom) {
		t.Errorf("%+v", s)
	}
	m.Fault = func(op string) (int, error) { panic("mine") }
	if err := j.Start(background, header{ID: "3", Ordinal: 3, Previous: "2"}); !errors.Is(err, journal.ErrBroken) {
		t.Error(err)
	}
	if s := j.Stats(); s.Failures != 2 || !errors.Is(s.LastError, journal.ErrBroken) {
		t.Errorf("%+v", s)
	}
	m.Fault = nil
	j.Close()
}

// Stats can be logged and published.
func TestStatsLogValue(t *testing.T) {
	s := journal.Stats{Entries: 3, Lines: 2, Segments: 1, Size: 500, LastError: errBoom}
	if got, want := s.LogValue().String(), "[entries=3 lines=2 segments=1 size=500 last_error=boom]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if v := (journal.Stats{}).LogValue(); v.Kind() != slog.KindGroup || len(v.Group()) != 0 {
		t.Error(v)
	}
	text, err := json.Marshal(s)
	if err != nil || strings.Contains(string(text), "LastError") {
		t.Error(string(text), err)
	}
}
