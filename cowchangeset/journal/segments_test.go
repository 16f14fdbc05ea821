package journal_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/internal/tools/journaltest"
)

// A segment ends when it has its size, and the journal is what it is with one: also
// when it is opened again with another size.
func TestSegments(t *testing.T) {
	m, want := segmented(t)
	for n := 1; m.Segment(n) != nil; n++ {
		text := m.Segment(n).Data
		if size := len(text); m.Segment(n+1) != nil && size < 1500 || size > 2300 {
			t.Errorf("segment %d has %d bytes", n, size)
		}
		if want := fmt.Sprintf(`,"op":"journal","format":1,"journal":"test","segment":%d,`, n); !bytes.Contains(text[:bytes.IndexByte(text, '\n')], []byte(want)) {
			t.Errorf("the header of segment %d: %s", n, text)
		}
	}
	report, err := verifyFolder(m, journal.Anchor{})
	must(t, err)
	if report.Segments != len(m.Segments()) || report.Lines != len(story())+len(m.Segments()) || report.Journal != "test" {
		t.Errorf("%+v", report)
	}
	for _, size := range []int64{1, 1500, 0} {
		j := with(t, m.Clone(), journal.Options{SegmentSize: size})
		equal(t, load(t, j), want)
		for _, s := range story() {
			if s.Name != `start "lost" 2` {
				must(t, s.Call(j)) // and say nothing new
			}
		}
		must(t, add("D", item(1, "more")).Call(j))
		must(t, add("D", item(2, "more")).Call(j))
		if got := load(t, j); len(got[3].Entries) != 2 {
			t.Error(got)
		}
		must(t, j.Close())
	}
}

// Every byte of every segment matters: Verify names its line. Open finds it in headers, at
// the end of a segment and in the last one; and what it does not find there changes
// nothing that is loaded, but gives the error when it is read.
func TestEveryFlipInSegments(t *testing.T) {
	m, want := segmented(t)
	last := len(m.Segments())
	found := 0
	for n := 1; n <= last; n++ {
		text := m.Segment(n).Data
		for i := range text {
			if testing.Short() && (n+i)%5 != 0 && i != len(text)-1 {
				continue
			}
			bad := m.Clone()
			bad.Segment(n).Data[i] ^= 1
			before := bad.Text()
			_, verdict := verifyFolder(bad, journal.Anchor{})
			j, err := journaltest.Open[any](bad, journal.Options{})
			if n == last && i == len(text)-1 {
				must(t, err)
				equal(t, load(t, j), want)
				continue
			}
			var corrupt *journal.CorruptError
			if !errors.As(verdict, &corrupt) || corrupt.File != journaltest.SegmentName(n) || corrupt.Offset > int64(i) || corrupt.Offset+1500 < int64(i) {
				t.Fatalf("segment %d, byte %d: %v", n, i, verdict)
			}
			if err == nil {
				if n == last || i < bytes.IndexByte(text, '\n') || i >= len(text)-len(`0","hash":"`) {
					t.Fatalf("segment %d, byte %d: it is not found", n, i)
				}
				if all, err := journaltest.Everything(j); err == nil {
					equal(t, all, want)
				} else if !errors.As(err, &corrupt) || corrupt.File != journaltest.SegmentName(n) {
					t.Fatalf("segment %d, byte %d: %v", n, i, err)
				} else {
					found++
				}
				continue
			}
			equal(t, err, verdict)
			if !bytes.Equal(bad.Text(), before) || bad.Changes() > 0 {
				t.Fatalf("segment %d, byte %d: something was changed", n, i)
			}
		}
	}
	if found == 0 {
		t.Error("no damage was found where entries are read")
	}
}

// A segment that ends too early, is empty, is missing, or is another journal's is
// found.
func TestSegmentsChanged(t *testing.T) {
	m, _ := segmented(t)
	other := &memory{}
	j, err := journaltest.Open[any](other, journal.Options{SegmentSize: 1500})
	must(t, err)
	tell(t, j, append([]step{start("other", 1, ""), prune(1)}, seal("other", 0, 0)))
	for range 3 {
		must(t, j.Rotate(background)) // and nothing the second time
	}
	tell(t, j, []step{start("next", 2, "other")})
	must(t, j.Rotate(background))
	tell(t, j, []step{seal("next", 0, 0)})
	if other.Segment(3) == nil || other.Segment(4) != nil {
		t.Fatal(len(other.Segments()))
	}
	for name, tt := range map[string]struct {
		change func(*memory)
		file   int
	}{
		"the first one is cut at a line": {func(c *memory) {
			text := c.Segment(1).Data
			c.Put(1, text[:bytes.LastIndexByte(text[:len(text)-1], '\n')+1])
		}, 2},
		"the first one is cut within a line": {func(c *memory) { c.Put(1, c.Segment(1).Data[:1400]) }, 1},
		"the second one is empty":            {func(c *memory) { c.Put(2, nil) }, 2},
		"the last one is empty":              {func(c *memory) { c.Put(3, nil); c.Delete(journaltest.SegmentName(4)) }, 3},
		"the first one is empty":             {func(c *memory) { c.Put(1, nil) }, 1},
		"the first one is missing":           {func(c *memory) { c.Delete(journaltest.SegmentName(1)) }, 1},
		"the second one is missing":          {func(c *memory) { c.Delete(journaltest.SegmentName(2)) }, 2},
		"the second one is another's":        {func(c *memory) { c.Put(2, other.Segment(2).Data) }, 2},
		"two have changed places": {func(c *memory) {
			two := bytes.Clone(c.Segment(2).Data)
			c.Put(2, c.Segment(3).Data)
			c.Put(3, two)
		}, 2},
		"two are in one file": {func(c *memory) {
			c.Put(1, append(bytes.Clone(c.Segment(1).Data), c.Segment(2).Data...))
			c.Put(2, c.Segment(3).Data)
			c.Delete(journaltest.SegmentName(3))
		}, 1},
		"the last one is the only one": {func(c *memory) {
			c.Put(1, c.Segment(3).Data)
			c.Delete(journaltest.SegmentName(2))
			c.Delete(journaltest.SegmentName(3))
		}, 1},
		"one is there twice": {func(c *memory) { c.Put(4, c.Segment(3).Data); c.Delete(journaltest.SegmentName(5)) }, 4},
	} {
		c := m.Clone()
		tt.change(c)
		_, err := journaltest.Open[any](c, journal.Options{})
		var corrupt *journal.CorruptError
		if !errors.As(err, &corrupt) || corrupt.File != journaltest.SegmentName(tt.file) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A first segment is the first one in its number, its line and its name.
func TestFirstSegment(t *testing.T) {
	zeros := strings.Repeat("0", 64)
	for _, header := range []string{
		`{"line":2,"op":"journal","format":1,"journal":"X","segment":1,"ordinal":0,"id":"","previous":"","before":1,"gaps":[],"changesets":[],"prev":"` + zeros + `"`,
		`{"line":1,"op":"journal","format":1,"journal":"X","segment":2,"ordinal":0,"id":"","previous":"","before":1,"gaps":[],"changesets":[],"prev":"` + zeros + `"`,
		`{"line":1,"op":"journal","format":1,"journal":"X","segment":0,"ordinal":0,"id":"","previous":"","before":1,"gaps":[],"changesets":[],"prev":"` + zeros + `"`,
		`{"line":1,"op":"journal","format":1,"journal":"","segment":1,"ordinal":0,"id":"","previous":"","before":1,"gaps":[],"changesets":[],"prev":"` + zeros + `"`,
		`{"line":1,"op":"journal","format":1,"journal":"X","segment":1,"ordinal":1,"id":"A","previous":"","before":1,"gaps":[],"changesets":[],"prev":"` + zeros + `"`,
		`{"line":0,"op":"journal","format":1,"journal":"X","segment":1,"ordinal":0,"id":"","previous":"","before":1,"gaps":[],"changesets":[],"prev":"` + zeros + `"`,
	} {
		if report, err := verifyText(chain(header)); err == nil {
			t.Errorf("%s: %+v", header, report)
		}
	}
}

// Segments can be read one by one, and each says what comes before it.
func TestVerifySegment(t *testing.T) {
	m, _ := segmented(t)
	whole, err := verifyFolder(m, journal.Anchor{})
	must(t, err)
	last := &memory{}
	last.Put(len(m.Segments()), m.Segment(len(m.Segments())).Data)
	report, err := verifyFolder(last, journal.Anchor{})
	if err == nil || !strings.Contains(err.Error(), "the segment is missing") || report.Last != whole.Last {
		t.Errorf("%+v, %v", report, err)
	}
}

// A file that was to become a segment when the process ended is removed.
func TestUnborn(t *testing.T) {
	m, want := segmented(t)
	name := journaltest.SegmentName(len(m.Segments())+1) + ".new"
	m.PutFile(name, []byte(`{"line":`))
	j := on(t, m)
	if m.Files[name] != nil {
		t.Error("it is there")
	}
	equal(t, load(t, j), want)
	must(t, j.Close())

	none := &memory{}
	none.PutFile(name, nil)
	none.PutFile("lock", nil)
	must(t, on(t, none).Close())
}

// Where a journal must exist, none is made.
func TestMustExist(t *testing.T) {
	for _, o := range []journal.Options{{MustExist: true}, {Identity: "test"}} {
		m := &memory{}
		if _, err := journaltest.Open[any](m, o); !errors.Is(err, fs.ErrNotExist) || len(m.Segments()) != 0 {
			t.Error(err)
		}
		must(t, on(t, m).Close())
		must(t, with(t, m, o).Close())
		o.Identity = "another"
		if _, err := journaltest.Open[any](m, o); err == nil || !strings.Contains(err.Error(), `it is "test", and not "another"`) {
			t.Error(err)
		}
	}
	path := newPath(t)
	if _, err := journal.Open[any](path, journal.Options{MustExist: true}); !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), "journal: ") {
		t.Error(err)
	}
	must(t, os.Mkdir(path, 0o700))
	if _, err := journal.Open[any](path, journal.Options{MustExist: true}); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if names, err := os.ReadDir(path); err != nil || len(names) != 0 {
		t.Error(names, err)
	}
	j := open[any](t, path)
	identity := j.Identity()
	must(t, j.Close())
	j, err := journal.Open[any](path, journal.Options{MustExist: true, Identity: identity})
	must(t, err)
	if j.Identity() != identity {
		t.Error(j.Identity())
	}
	must(t, j.Close())
}

// A descriptor that is missing when a segment has just begun breaks nothing.
func TestNoDescriptorAtRotation(t *testing.T) {
	m := &memory{}
	j := on(t, m)
	must(t, start("A", 1, "").Call(j))
	m.Fault = func(op string) (int, error) {
		if op == "rename" {
			m.Shut = errBoom // from here on
		}
		return 0, nil
	}
	must(t, j.Rotate(background))
	must(t, seal("A", 0, 0).Call(j))
	equal(t, j.Stats().Segments, 2)
	m.Fault, m.Shut = nil, nil
	must(t, j.Close())
	equal(t, len(load(t, on(t, m))), 1)
	if m.Opened > 1 {
		t.Errorf("%d files are open", m.Opened)
	}
}
