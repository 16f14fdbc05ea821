package journal_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/internal/folder"
	"github.com/latchfree/latchfree/internal/tools/journaltest"
)

// finished returns the calls of a changeset that is applied, and the start of the
// next one.
func finished(n uint64) []step {
	id, next := fmt.Sprint(n), fmt.Sprint(n+1)
	return []step{add(id, item(0, "some"), item(1, "thing")), start(next, n+1, id), seal(id, 2, 1), applied(id, whole)}
}

// What is pruned is not loaded any more, at once and after opening the journal
// again, and its segments go; what is left verifies, and goes on.
func TestPrune(t *testing.T) {
	m := &memory{}
	o := journal.Options{SegmentSize: 1000, Archive: "archive"}
	j := with(t, m, o)
	all := tell(t, j, []step{start("1", 1, "")})[1]
	most := 0
	for n := uint64(1); n <= 200; n++ {
		for _, s := range finished(n) {
			must(t, s.Call(j))
			all = s.Then(all)
		}
		s := prune(n - n%3) // keeps 2 to 4
		must(t, s.Call(j))
		all = s.Then(all)
		equal(t, load(t, j), all)
		most = max(most, len(m.Text()))
		if n%10 == 0 {
			must(t, j.Close())
			report, err := verifyFolder(m, journal.Anchor{})
			must(t, err)
			if report.Changesets != len(all) || report.Last.Line < int(n*4) {
				t.Fatalf("%+v", report)
			}
			j = with(t, m, o)
			equal(t, load(t, j), all)
		}
	}
	if len(m.Segments()) > 6 || most > 9000 {
		t.Errorf("%d segments, up to %d bytes", len(m.Segments()), most)
	}
	if m.Segment(1) != nil || m.Moved[journaltest.SegmentName(1)] == nil {
		t.Error("the first segment was not archived")
	}
	archived := m.Clone()
	for n := 1; m.Segment(n) == nil; n++ {
		archived.Put(n, m.Moved[journaltest.SegmentName(n)].Data)
	}
	if report, err := verifyFolder(archived, journal.Anchor{}); err != nil || report.Entries != 400 {
		t.Errorf("with what was archived: %+v, %v", report, err)
	}
	// The same in other words: they are refused, or known.
	if err := add("1", item(2, "late")).Call(j); !errors.Is(err, journal.ErrConflict) {
		t.Error(err)
	}
	if err := start("1", 1, "").Call(j); !errors.Is(err, journal.ErrConflict) {
		t.Error(err)
	}
	must(t, prune(2).Call(j))
	must(t, j.Close())
}

// What somebody may still have to apply stays, and all after it; and so does the
// latest changeset.
func TestPruneKeeps(t *testing.T) {
	for name, tt := range map[string]struct {
		calls []step
		left  []string
	}{
		"nothing":          {calls: nil},
		"an open one":      {calls: []step{start("1", 1, "")}, left: []string{"1"}},
		"the latest":       {calls: []step{start("1", 1, ""), seal("1", 0, 0), abort("1", "")}, left: []string{"1"}},
		"one that is open": {calls: []step{start("1", 1, ""), seal("1", 0, 0), start("2", 2, "1"), start("3", 3, "2")}, left: nil},
	} {
		m := &memory{}
		j := with(t, m, journal.Options{})
		for i, s := range tt.calls {
			if err := s.Call(j); err != nil && i > 0 && tt.left != nil {
				t.Fatalf("%s: %s: %v", name, s.Name, err)
			}
		}
		if tt.left == nil && len(tt.calls) > 0 { // 2 was open when 3 was started, and goes with nothing
			tt.left = []string{"2", "3"}
		}
		must(t, j.Prune(background, 1000))
		for range 2 {
			var ids []string
			for _, s := range load(t, j) {
				ids = append(ids, s.ID)
			}
			equal(t, ids, tt.left)
			must(t, j.Close())
			j = with(t, m, journal.Options{})
		}
	}
}

// While a Load reads them, segments stay.
func TestPruneWhileLoading(t *testing.T) {
	m := &memory{}
	j := with(t, m, journal.Options{SegmentSize: 500})
	must(t, start("1", 1, "").Call(j))
	for n := uint64(1); n < 20; n++ {
		tell(t, j, finished(n))
	}
	segments, n := len(m.Segments()), 0
	for s, err := range j.Load(background) {
		must(t, err)
		if n++; n == 1 {
			must(t, j.Prune(background, 20))
			if len(m.Segments()) != segments {
				t.Error("segments have gone")
			}
		}
		if s.Sealed {
			equal(t, s.Manifest, cowchangeset.Manifest{Len: 2, Last: 1})
		}
	}
	if n != 20 {
		t.Errorf("%d changesets", n)
	}
	equal(t, len(load(t, j)), 1)
	must(t, j.Rotate(background))
	if len(m.Segments()) > 4 {
		t.Errorf("%d segments are left", len(m.Segments()))
	}
	must(t, j.Close())
}

// A prune whose directory could not be synced fails, and hides nothing: what is left
// is loaded, and the next prune syncs it.
func TestPruneNotSynced(t *testing.T) {
	m := &memory{}
	j := with(t, m, journal.Options{SegmentSize: 500})
	must(t, start("1", 1, "").Call(j))
	for n := uint64(1); n < 20; n++ {
		tell(t, j, finished(n))
	}
	must(t, j.Close())
	j = on(t, m) // so that no segment begins meanwhile
	m.Fault = func(op string) (int, error) {
		if op == "syncdir" {
			return 0, errBoom
		}
		return 0, nil
	}
	if err := j.Prune(background, 20); !errors.Is(err, errBoom) {
		t.Error(err)
	}
	equal(t, len(load(t, j)), 1)
	if err := j.Prune(background, 20); !errors.Is(err, errBoom) {
		t.Error(err)
	}
	m.Fault = nil
	syncs := m.Count("syncdir")
	must(t, j.Prune(background, 20))
	if m.Count("syncdir") == syncs {
		t.Error("the directory was not synced")
	}
	equal(t, len(load(t, j)), 1)
	must(t, journalIs(m, load(t, j), nil))
}

// A head that was removed by somebody else is not a head that was pruned.
func TestHeadRemoved(t *testing.T) {
	m := &memory{}
	j := with(t, m, journal.Options{SegmentSize: 500})
	must(t, start("1", 1, "").Call(j))
	for n := uint64(1); n < 20; n++ {
		tell(t, j, finished(n))
	}
	must(t, j.Prune(background, 10))
	must(t, j.Close())
	c := m.Clone()
	for n := 1; ; n++ {
		if c.Segment(n) == nil {
			continue
		}
		c.Delete(journaltest.SegmentName(n))
		break
	}
	_, err := journaltest.Open[any](c, journal.Options{})
	var corrupt *journal.CorruptError
	if !errors.As(err, &corrupt) {
		t.Error(err)
	}
	must(t, on(t, m).Close())
}

// On a disk, segments are removed, or moved to the archive, which must be there and
// have no file of that name.
func TestArchive(t *testing.T) {
	archive := t.TempDir()
	for _, o := range []journal.Options{{SegmentSize: 500}, {SegmentSize: 500, Archive: archive}} {
		path := newPath(t)
		j, err := journal.Open[any](path, o)
		must(t, err)
		must(t, start("1", 1, "").Call(j))
		for n := uint64(1); n < 20; n++ {
			tell(t, j, finished(n))
		}
		must(t, j.Prune(background, 20))
		if _, err := os.Stat(first(path)); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
		equal(t, len(load(t, j)), 1)
		must(t, j.Close())
		_, err = os.Stat(filepath.Join(archive, journaltest.SegmentName(1)))
		if (err == nil) != (o.Archive != "") {
			t.Errorf("%q: %v", o.Archive, err)
		}
	}
	if _, err := journal.Open[any](newPath(t), journal.Options{Archive: filepath.Join(archive, "none")}); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}

	path := newPath(t)
	j, err := journal.Open[any](path, journal.Options{SegmentSize: 500, Archive: archive})
	must(t, err)
	must(t, start("1", 1, "").Call(j))
	for n := uint64(1); n < 20; n++ {
		tell(t, j, finished(n))
	}
	if err := j.Prune(background, 20); !errors.Is(err, fs.ErrExist) {
		t.Error(err)
	}
	equal(t, len(load(t, j)), 1) // it was pruned nevertheless
	if _, err := os.Stat(first(path)); err != nil {
		t.Error(err)
	}
	must(t, j.Sync(background))
	if err := j.Close(); err != nil {
		t.Error(err)
	}
}

// On a full disk a prune takes the room that is kept for it, alone, and its segments make
// room for the next one.
func TestPruneOnAFullDisk(t *testing.T) {
	m, j := journaltest.Many(t, 5)
	spent := 0
	m.Fault = func(op string) (int, error) {
		switch {
		case op == "write" && m.Reserved():
			return 9, errBoom // and leaves a part
		case op == "write":
			spent++
		case op == "remove":
			spent = 0
		}
		if spent > 1 {
			return 0, errBoom // the room is for one line
		}
		return 0, nil
	}
	for before := range uint64(4) {
		if err := start("next", 6, "5").Call(j); !errors.Is(err, errBoom) {
			t.Fatal(err)
		}
		must(t, j.Prune(background, before+2))
		if m.Segment(int(before)+1) != nil || m.Segment(int(before)+2) == nil || !m.Reserved() {
			t.Errorf("pruned below %d: %d segments, reserve %v", before+2, len(m.Segments()), m.Reserved())
		}
	}
	path := newPath(t)
	real := open[any](t, path)
	info, err := os.Stat(filepath.Join(path, "reserve"))
	must(t, err)
	if info.Size() != 64<<10 {
		t.Errorf("%d bytes are kept", info.Size())
	}
	must(t, real.Close())
	f := folder.Directory{Path: path}
	if f.Remove("reserve") != nil {
		t.Error("there is none")
	}
	must(t, open[any](t, path).Close())
	if f.Remove("reserve") != nil {
		t.Error("Open keeps none")
	}
}

// With others in its group, only the prune gets the room.
func TestPruneOnAFullDiskInAGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, j := journaltest.Many(t, 3)
		next, full := make(chan struct{}), false
		m.Fault = func(op string) (int, error) {
			if op == "sync" && !full {
				<-next
			}
			if op == "write" && full && m.Reserved() {
				return 9, errBoom
			}
			return 0, nil
		}
		begun := make(chan error, 1)
		go func() { begun <- start("next", 4, "3").Call(j) }()
		synctest.Wait()
		before, pruned, after := make(chan error, 1), make(chan error, 1), make(chan error, 1)
		go func() { before <- add("next", item(0, "x")).Call(j) }()
		synctest.Wait()
		go func() { pruned <- j.Prune(background, 3) }()
		synctest.Wait()
		go func() { after <- add("next", item(1, "y")).Call(j) }()
		synctest.Wait()
		full = true
		close(next)
		must(t, <-begun)
		if err := <-pruned; err != nil {
			t.Error(err)
		}
		for _, failed := range []error{<-before, <-after} {
			if !errors.Is(failed, errBoom) {
				t.Error(failed)
			}
		}
		full = false
		tell(t, j, []step{add("next", item(0, "x"), item(1, "y"))})
		must(t, j.Close())
		all := load(t, on(t, m))
		if len(all) != 2 || len(all[1].Entries) != 2 {
			t.Error(all)
		}
	})
}
