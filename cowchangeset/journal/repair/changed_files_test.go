package repair_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/cowchangeset/journal/reader"
	"github.com/latchfree/latchfree/cowchangeset/journal/repair"
	"github.com/latchfree/latchfree/internal/tools/journaltest"
)

// manySegments returns a journal of five segments: changesets 2, 5, 8 and so on are sealed
// and not applied, the others are applied, and the latest one is open.
func manySegments(t testing.TB, identity string) *memory {
	t.Helper()
	m := &memory{}
	j := on(t, m)
	previous := ""
	for n := uint64(1); n <= 20; n++ {
		id := fmt.Sprint(identity, n)
		tell(t, j, []step{start(id, n, previous), add(id, item(0, id), item(1, id))})
		if n%4 == 0 {
			must(t, j.Rotate(background)) // so that some are in two segments
		}
		must(t, add(id, item(2, id)).Call(j))
		if previous = id; n < 20 {
			must(t, seal(id, 3, 2).Call(j))
		}
		if n < 20 && n%3 != 2 {
			must(t, applied(id, whole).Call(j))
		}
	}
	must(t, j.Close())
	if m.Segment(6) == nil || m.Segment(7) != nil {
		t.Fatal(len(m.Segments()))
	}
	return m
}

// Whatever somebody does to one file of the directory, Open or Verify names a file, or
// nothing has changed. After Repair the journal opens, nothing that was applied is pending,
// and what is pending has all its entries.
func TestChangedFiles(t *testing.T) {
	sound, other := manySegments(t, "id"), manySegments(t, "of another journal ")
	last := 6
	report, err := verify(sound, journal.Anchor{})
	must(t, err)
	truth := load(t, on(t, sound.Clone()))
	older := func(text []byte, n int) []byte { // without its last n lines, but for the header
		for range min(n, bytes.Count(text, []byte("\n"))-1) {
			text = text[:bytes.LastIndexByte(text[:len(text)-1], '\n')+1]
		}
		return text
	}
	changes := map[string]func(m *memory, n int){
		"missing":                func(m *memory, n int) { m.Delete(journaltest.SegmentName(n)) },
		"empty":                  func(m *memory, n int) { m.Put(n, nil) },
		"doubled, at the end":    func(m *memory, n int) { m.Put(last+1, m.Segment(n).Data) },
		"doubled, over the next": func(m *memory, n int) { m.Put(n%last+1, m.Segment(n).Data) },
		"doubled, elsewhere":     func(m *memory, n int) { m.Files["copy of "+journaltest.SegmentName(n)] = m.Segment(n) },
		"renamed to the end":     func(m *memory, n int) { m.Put(last+1, m.Segment(n).Data); m.Delete(journaltest.SegmentName(n)) },
		"renamed to a far end":   func(m *memory, n int) { m.Put(last+9, m.Segment(n).Data); m.Delete(journaltest.SegmentName(n)) },
		"renamed to something":   func(m *memory, n int) { m.Files["old"] = m.Segment(n); m.Delete(journaltest.SegmentName(n)) },
		"swapped with the next": func(m *memory, n int) {
			a, b := m.Segment(n).Data, m.Segment(n%last+1).Data
			m.Put(n, b)
			m.Put(n%last+1, a)
		},
		"older by a line":     func(m *memory, n int) { m.Put(n, older(m.Segment(n).Data, 1)) },
		"older by many lines": func(m *memory, n int) { m.Put(n, older(m.Segment(n).Data, 6)) },
		"older by a part":     func(m *memory, n int) { m.Put(n, m.Segment(n).Data[:len(m.Segment(n).Data)-99]) },
		"of another journal":  func(m *memory, n int) { m.Put(n, other.Segment(n).Data) },
		"longer":              func(m *memory, n int) { m.Put(n, append(bytes.Clone(m.Segment(n).Data), "more\n"...)) },
		"of another in its midst": func(m *memory, n int) {
			m.Put(n, bytes.Replace(m.Segment(n).Data, []byte(`"value":"id`), []byte(`"value":"iD`), 1))
		},
	}
	for what, change := range changes {
		for n := 1; n <= last; n++ {
			m := sound.Clone()
			change(m, n)
			_, found := verify(m, journal.Anchor{})
			_, anchored := verify(m, report.Last)
			j, refused := journaltest.Open[any](m.Clone(), journal.Options{})
			var corrupt *journal.CorruptError
			for _, err := range []error{found, anchored, refused} {
				if err != nil && (!errors.As(err, &corrupt) || err == found && !strings.HasSuffix(corrupt.File, ".journal")) {
					t.Fatalf("%s, segment %d: %v", what, n, err)
				}
			}
			same := what == "doubled, elsewhere"
			switch {
			case same && errors.Join(found, anchored, refused) != nil:
				t.Fatalf("%s, segment %d: %v, %v, %v", what, n, found, anchored, refused)
			case !same && anchored == nil && !strings.HasPrefix(what, "longer"), found == nil && refused != nil:
				t.Fatalf("%s, segment %d is not found: %v, %v", what, n, found, refused)
			case !same && found == nil && n < last:
				t.Fatalf("%s, segment %d is only found by an anchor", what, n)
			}
			if refused == nil { // what it says is true, or it says that it cannot
				if all, err := journaltest.Everything(j); err == nil && found != nil {
					equal(t, all, truth)
				} else if err != nil && !errors.As(err, &corrupt) {
					t.Fatalf("%s, segment %d: %v", what, n, err)
				}
			}
			bad := m.Clone()
			cut, err := repair.RepairOn(m)
			if err != nil {
				t.Fatalf("%s, segment %d: %v", what, n, err)
			}
			j = on(t, m)
			all := load(t, j)
			atEnd := n == last || m.Segment(last) == nil || len(m.Segment(last).Data) < len(bad.Segment(last).Data) // which was newer, perhaps
			for _, s := range all {
				was := truth[s.Ordinal-1]
				pending := !s.Aborted && s.Applied != whole
				if s.ID != was.ID || pending && was.Applied == whole && !atEnd || pending && len(s.Entries) < 3 && !atEnd {
					t.Fatalf("%s, segment %d: %+v, and it was %+v; %v", what, n, s, was, cut)
				}
			}
			if !atEnd && all[len(all)-1].Ordinal != 20 {
				t.Fatalf("%s, segment %d: the latest changeset is %d", what, n, all[len(all)-1].Ordinal)
			}
			latest := all[len(all)-1]
			must(t, start("next", latest.Ordinal+1, latest.ID).Call(j))
			must(t, j.Rotate(background))
			must(t, j.Close())
			must(t, on(t, m).Close())
			_, err = verify(m, journal.Anchor{})
			must(t, err)
		}
	}
}

// Open says which file it is, where, and what to do.
func TestChangedFilesOnDisk(t *testing.T) {
	m := manySegments(t, "id")
	path := t.TempDir()
	for name, f := range m.Files {
		must(t, os.WriteFile(filepath.Join(path, name), f.Data, 0o600))
	}
	j := open[any](t, path)
	equal(t, len(load(t, j)), 20)
	must(t, j.Close())
	names := m.Segments()
	for _, name := range names {
		for _, change := range []func(string) error{os.Remove, func(file string) error { return os.WriteFile(file, []byte("x"), 0o600) }} {
			file := filepath.Join(path, name)
			must(t, change(file))
			_, err := journal.Open[any](path, journal.Options{})
			if name == journaltest.SegmentName(6) {
				if errors.Is(err, os.ErrNotExist) {
					t.Error(err)
				}
			} else if err == nil || !strings.Contains(err.Error(), "put "+name+" back as it was, or see package repair") || !strings.Contains(err.Error(), path) {
				t.Errorf("%s: %v", name, err)
			}
			if err == nil {
				return // a journal without its last segment is an older one
			}
			must(t, os.WriteFile(file, m.Files[name].Data, 0o600))
		}
	}
}

// Resume of a tracker reads headers of what is finished, and what is pending whole; so it
// does when the process was killed at any place of a rotation.
func TestResumeFromACheckpoint(t *testing.T) {
	m := manySegments(t, "id")
	m.Put(3, bytes.ReplaceAll(m.Segment(3).Data, []byte(`"value":"id9"`), []byte(`"value":"iD9"`))) // which is finished
	j := on(t, m)
	tracker, err := cowchangeset.Resume(background, cowchangeset.Config[any]{Store: j})
	must(t, err)
	equal(t, len(tracker.IDs()), 20)
	n := 0
	for c := range tracker.Pending() {
		f, err := c.Seal(background)
		must(t, err)
		equal(t, f.Len(), 3)
		n++
	}
	equal(t, n, 6)
	c, _ := tracker.ByOrdinal(9)
	var corrupt *journal.CorruptError
	if _, err := c.Seal(background); !errors.As(err, &corrupt) || corrupt.File != journaltest.SegmentName(3) {
		t.Error(err)
	}
	c, _ = tracker.ByOrdinal(13)
	f, err := c.Seal(background)
	must(t, err)
	equal(t, f.Len(), 3)
	must(t, tracker.Flush(background))
	must(t, j.Close())
}

// Who has seen lines does not read the segments before them again, wherever they end.
func TestEventsBehindDamage(t *testing.T) {
	m := manySegments(t, "id")
	all := journaltest.Collect(t, readerOf(t, m).Events(background, 0))
	m.Put(2, bytes.ReplaceAll(m.Segment(2).Data, []byte(`"value":"id5"`), []byte(`"value":"iD5"`)))
	for after := range len(all) {
		got, err := journaltest.CollectAll(readerOf(t, m).Events(background, after))
		var corrupt *journal.CorruptError
		if after >= lineOfSegment(all, 3) {
			if must(t, err); len(got) > 0 {
				equal(t, got, all[after:])
			}
		} else if !errors.As(err, &corrupt) || corrupt.File != journaltest.SegmentName(2) {
			t.Errorf("after line %d: %d events, %v", after, len(got), err)
		}
	}
}

// lineOfSegment returns the line with which a segment begins.
func lineOfSegment(events []reader.Event[any], segment uint64) int {
	i := slices.IndexFunc(events, func(e reader.Event[any]) bool { return e.Segment == segment })
	return events[i].Line
}
