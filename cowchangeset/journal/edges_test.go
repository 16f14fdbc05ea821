package journal_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/cowchangeset/journal/reader"
	"github.com/latchfree/latchfree/internal/tools/journaltest"
)

// A rotation looks at the segment that it ends, by itself too, and takes the place of
// no other.
func TestRotateOverDamage(t *testing.T) {
	for name, damage := range map[string]func(*memory){
		"cut":     func(m *memory) { m.Put(1, m.Segment(1).Data[:300]) },
		"longer":  func(m *memory) { m.Put(1, append(m.Segment(1).Data, '\n')) },
		"gone":    func(m *memory) { m.Delete(journaltest.SegmentName(1)) },
		"another": func(m *memory) { m.Put(2, []byte("somebody else's")) },
	} {
		for _, o := range []journal.Options{{}, {SegmentSize: 1}} {
			m := &memory{}
			j := with(t, m, o)
			must(t, start("A", 1, "").Call(j))
			damage(m)
			before := string(m.Text())
			again := seal("A", 0, 0).Call // which begins a segment first, if they are small
			if o.SegmentSize == 0 {
				again = func(j *journal.Journal[any]) error { return j.Rotate(background) }
			}
			err := again(j)
			if !errors.Is(err, journal.ErrBroken) {
				t.Errorf("%s, %d: %v", name, o.SegmentSize, err)
			}
			if name == "another" && !strings.Contains(string(m.Text()), "somebody else's") {
				t.Errorf("%s: %q became %q", name, before, m.Text())
			}
			if err := j.Close(); !errors.Is(err, journal.ErrBroken) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// If a segment cannot begin, the last one grows, and only a call of Rotate returns the
// error.
func TestRotateFails(t *testing.T) {
	m := &memory{}
	j := with(t, m, journal.Options{SegmentSize: 500})
	tell(t, j, story()[:2])
	m.Fault = func(op string) (int, error) {
		if op == "create" {
			return 0, errBoom
		}
		return 0, nil
	}
	for _, s := range story()[2:8] {
		must(t, s.Call(j))
	}
	if err := j.Rotate(background); !errors.Is(err, errBoom) || errors.Is(err, journal.ErrBroken) {
		t.Error(err)
	}
	equal(t, len(m.Segments()), 1)
	m.Fault = nil
	for _, s := range story()[8:] {
		must(t, s.Call(j))
	}
	if len(m.Segments()) < 2 {
		t.Error("no segment has begun")
	}
	must(t, journalIs(m, load(t, j), nil))
}

// An archive that is not there for a while fails prunes for a while; one that has a
// file of that name fails no Open.
func TestArchiveAway(t *testing.T) {
	archive, path := filepath.Join(t.TempDir(), "archive"), newPath(t)
	must(t, os.Mkdir(archive, 0o700))
	o := journal.Options{SegmentSize: 500, Archive: archive}
	j, err := journal.Open[any](path, o)
	must(t, err)
	must(t, start("1", 1, "").Call(j))
	for n := uint64(1); n < 20; n++ {
		tell(t, j, finished(n))
	}
	must(t, os.Rename(archive, archive+".away"))
	if err := j.Prune(background, 10); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	must(t, os.Rename(archive+".away", archive))
	must(t, j.Prune(background, 15))
	equal(t, len(load(t, j)), 6)
	must(t, j.Close())
	_, err = verify(path)
	must(t, err)

	names, err := os.ReadDir(path)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(archive, names[0].Name()), nil, 0o600))
	j, err = journal.Open[any](path, o)
	must(t, err)
	if err := j.Prune(background, 20); !errors.Is(err, fs.ErrExist) {
		t.Error(err)
	}
	must(t, j.Close())
	j, err = journal.Open[any](path, o)
	must(t, err)
	equal(t, len(load(t, j)), 1)
	must(t, j.Close())
}

// Only what was to become a segment is removed.
func TestOnlyOurLitter(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "thesis.new"), nil, 0o600))
	if _, err := journal.Open[any](dir, journal.Options{}); err == nil || !strings.Contains(err.Error(), "thesis.new") {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "thesis.new")); err != nil {
		t.Error(err)
	}
}

// What became of a changeset may be said again although it was pruned meanwhile.
func TestNotifiedAgainAfterPrune(t *testing.T) {
	m := &memory{}
	j := on(t, m)
	tell(t, j, []step{start("A", 1, ""), start("B", 2, "A"), seal("A", 0, 0), abort("A", "why")})
	if err := abort("none", "").Call(j); !errors.Is(err, journal.ErrConflict) {
		t.Error(err)
	}
	must(t, j.Prune(background, 2))
	for range 2 {
		size := len(m.Text())
		for _, s := range []step{seal("A", 0, 0), abort("A", "why"), applied("A", whole)} {
			must(t, s.Call(j))
		}
		if len(m.Text()) != size {
			t.Error("it was written again")
		}
		if err := add("A", item(0, 1)).Call(j); !errors.Is(err, journal.ErrConflict) {
			t.Error(err)
		}
		must(t, j.Close())
		j = on(t, m)
	}
}

// Entries that are told again are looked for: the segment may have gone.
func TestAppendedIntoNothing(t *testing.T) {
	m := &memory{}
	j := on(t, m)
	tell(t, j, []step{start("A", 1, ""), add("A", item(0, 1))})
	must(t, add("A", item(0, 1)).Call(j))
	m.Delete(journaltest.SegmentName(1))
	if err := add("A", item(0, 1)).Call(j); !errors.Is(err, journal.ErrBroken) {
		t.Error(err)
	}
}

// Headers with numbers that nobody counts to are refused, and keep nobody busy.
func TestHugeHeaders(t *testing.T) {
	const large = "4611686018427387904"
	prev := strings.Repeat("0", 64)
	for _, header := range []string{
		`{"line":2,"op":"journal","format":1,"journal":"X","segment":2,"ordinal":` + large + `,"id":"A","previous":"","prev":"` + prev + `"`,
		`{"line":2,"op":"journal","format":1,"journal":"X","segment":2,"ordinal":18446744073709551615,"id":"A","previous":"","before":1,"gaps":[],"changesets":[],"prev":"` + prev + `"`,
		`{"line":2,"op":"journal","format":1,"journal":"X","segment":` + large + `,"ordinal":1,"id":"A","previous":"","prev":"` + prev + `"`,
		`{"line":9223372036854775805,"op":"journal","format":1,"journal":"X","segment":2,"ordinal":1,"id":"A","previous":"","before":1,"gaps":[],"changesets":[],"prev":"` + prev + `"`,
	} {
		_, err := verifyText(chain(header))
		var corrupt *journal.CorruptError
		if !errors.As(err, &corrupt) {
			t.Errorf("%s: %v", header, err)
		}
	}
}

// A path may end with a separator, and its ".." are those of where links lead. A path of
// a segment is refused.
func TestPathsOfLinks(t *testing.T) {
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, "a", "b", "c"), 0o700))
	must(t, os.Symlink(filepath.Join("a", "b", "c"), filepath.Join(dir, "link")))
	must(t, os.Symlink(filepath.Join("..", "real"), filepath.Join(dir, "a", "b", "c", "j")))
	real := filepath.Join(dir, "a", "b", "real")
	up := dir + "/link/../real" // and not dir/real
	j := open[any](t, up)
	must(t, start("A", 1, "").Call(j))
	must(t, j.Close())
	if info, err := os.Stat(real); err != nil || !info.IsDir() {
		t.Error(info, err)
	}
	t.Chdir(dir)
	for _, path := range []string{"link/j", real + string(filepath.Separator), "link/../real"} {
		j = open[any](t, path)
		equal(t, len(load(t, j)), 1)
		must(t, j.Close())
		r, err := reader.Open[any](path, reader.Options{})
		must(t, err)
		equal(t, len(journaltest.Collect(t, r.Changesets(background))), 1)
	}
	for _, open := range []func(string) error{
		func(path string) error { return journaltest.ErrorOf(journal.Open[any](path, journal.Options{})) },
		func(path string) error { return journaltest.ErrorOf(reader.Open[any](path, reader.Options{})) },
		func(path string) error { return journaltest.ErrorOf(reader.Verify(path, journal.Anchor{})) },
	} {
		if err := open(first(real)); err == nil || !strings.Contains(err.Error(), "name the one that the files are in") {
			t.Error(err)
		}
	}
}

// An archive is another directory.
func TestArchiveItself(t *testing.T) {
	path := newPath(t)
	must(t, open[any](t, path).Close())
	if _, err := journal.Open[any](path, journal.Options{Archive: path + "/."}); err == nil || !strings.Contains(err.Error(), "itself") {
		t.Error(err)
	}
}

// A file that cannot be looked at, as too many are open, is not somebody else's: a
// rotation fails, and the journal goes on.
func TestRotateCannotLook(t *testing.T) {
	m := &memory{}
	j := on(t, m)
	tell(t, j, story()[:2])
	m.Shut = errBoom
	if err := j.Rotate(background); !errors.Is(err, errBoom) || errors.Is(err, journal.ErrBroken) {
		t.Error(err)
	}
	m.Shut = nil
	tell(t, j, story()[2:4])
	must(t, j.Rotate(background))
	equal(t, len(m.Segments()), 2)
}
