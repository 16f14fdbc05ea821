package journal_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/cowchangeset/journal/reader"
	"github.com/latchfree/latchfree/internal/tools/journaltest"
)

// A file is made for its owner only, has a header, and is found again.
func TestFile(t *testing.T) {
	path := newPath(t)
	j := open[any](t, path)
	for name, want := range map[string]fs.FileMode{path: fs.ModeDir | 0o700, first(path): 0o600, filepath.Join(path, "lock"): 0o600} {
		info, err := os.Stat(name)
		must(t, err)
		if runtime.GOOS != "windows" && info.Mode() != want {
			t.Errorf("%s: %v", name, info.Mode())
		}
	}
	text, err := os.ReadFile(first(path))
	must(t, err)
	if want := strings.Replace(string(journaltest.FirstLine()), `"journal":"test"`, `"journal":"`+j.Identity()+`"`, 1); !strings.HasPrefix(string(text), want[:strings.Index(want, `,"hash":`)]) || len(j.Identity()) < 20 {
		t.Errorf("%s", text)
	}
	states := tell(t, j, story())
	must(t, j.Close())
	j = open[any](t, path)
	equal(t, load(t, j), states[len(states)-1])
	must(t, j.Close())
	report, err := verify(path)
	must(t, err)
	if report.Lines != len(story())+1 {
		t.Errorf("%+v", report)
	}
}

func verify(path string) (reader.Report, error) { return reader.Verify(path, journal.Anchor{}) }

// first returns the path of a journal's first segment.
func first(path string) string { return filepath.Join(path, journaltest.SegmentName(1)) }

// A file is open once at a time.
func TestTwoOpens(t *testing.T) {
	path := newPath(t)
	j := open[any](t, path)
	must(t, start("A", 1, "").Call(j))
	before, _ := os.ReadFile(first(path))
	if _, err := journal.Open[any](path, journal.Options{}); !errors.Is(err, journal.ErrLocked) || !strings.Contains(err.Error(), path) {
		t.Error(err)
	}
	if after, _ := os.ReadFile(first(path)); !bytes.Equal(before, after) {
		t.Error("the file has changed")
	}
	must(t, seal("A", 0, 0).Call(j))
	must(t, j.Close())
	must(t, open[any](t, path).Close())
}

// What cannot be a journal is refused, and left as it is.
func TestNoJournal(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "other"), nil, 0o600))
	if _, err := journal.Open[any](dir, journal.Options{}); err == nil || !strings.Contains(err.Error(), `not one of a journal: it has "other"`) {
		t.Errorf("a folder of something else: %v", err)
	}
	if _, err := journal.Open[any](filepath.Join(dir, "none", "x"), journal.Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
	if _, err := journal.Open[any](os.DevNull, journal.Options{}); err == nil || !strings.Contains(err.Error(), "is no directory") {
		t.Errorf("a device: %v", err)
	}
	path := filepath.Join(dir, "unwanted")
	if _, err := journal.Open[any](path, journal.Options{Sync: 9}); err == nil || err.Error() != "journal: Options.Sync SyncPolicy(9): must be SyncAlways or SyncNever" {
		t.Error(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Error("bad options have made a file")
	}
	h := string(journaltest.FirstLine())
	for _, text := range []string{
		"", "hello", "hello\n", "\n", "{}\n", "{\"a\":\"b\"}\n", "\x00", strings.Repeat("\x00", 4096), h[:40] + "x", h[1:], h[:40] + "\n", " " + h,
		strings.Replace(h, `"format":1`, `"format":3`, 1), `{"line":1}`, h[:len(h)-9], h + "\n", h + h,
	} {
		path := t.TempDir()
		must(t, os.WriteFile(first(path), []byte(text), 0o644))
		_, err := journal.Open[any](path, journal.Options{})
		var corrupt *journal.CorruptError
		line, offset := 1, int64(0)
		if strings.HasPrefix(text, h) {
			line, offset = 2, int64(len(h))
		}
		if !errors.As(err, &corrupt) || corrupt.Line != line || corrupt.Offset != offset || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: %v", text, err)
		}
		if after, _ := os.ReadFile(first(path)); string(after) != text {
			t.Errorf("%q became %q", text, after)
		}
	}
}

// A file of a later version says so.
func TestOtherFormat(t *testing.T) {
	text := chain(`{"line":1,"op":"journal","format":3,"prev":"` + strings.Repeat("0", 64) + `"`)
	_, err := journaltest.Open[any](holding(text), journal.Options{})
	if err == nil || !strings.Contains(err.Error(), "the file has format 3, and not 1") {
		t.Error(err)
	}
}

// Lines may be long, and memory for them is not kept.
func TestHugeLines(t *testing.T) {
	if testing.Short() {
		t.Skip("it writes and reads 16 MiB several times")
	}
	path := newPath(t)
	o := journal.Options{MaxEntry: 64 << 20}
	j, err := journal.Open[string](path, o)
	must(t, err)
	must(t, j.Start(background, header{ID: "A", Ordinal: 1}))
	huge := strings.Repeat("0123456789abcde\n", 1<<20) // 16 MiB, and more once encoded
	must(t, j.Append(background, "A", journaltest.Entries(0, huge, "small")))
	must(t, j.Append(background, "A", journaltest.Entries(2, "after")))
	if n := j.Buffer(); n > 1<<20 {
		t.Errorf("%d bytes are kept", n)
	}
	must(t, j.Close())
	j = open[string](t, path)
	got := load(t, j)[0].Entries
	if len(got) != 3 || got[0].Value != huge || got[1].Value != "small" || got[2].Value != "after" {
		t.Errorf("%d entries", len(got))
	}
	must(t, j.Close())

	must(t, os.Truncate(first(path), 8<<20)) // within the huge line
	j = open[string](t, path)
	if got := load(t, j); len(got) != 1 || got[0].Entries != nil || j.Recovered() < 7<<20 {
		t.Errorf("%d entries, %d recovered", len(got[0].Entries), j.Recovered())
	}
	must(t, j.Close())
}

// Directories that nobody has made a journal of: a volume has entries of its own.
func TestFreshVolume(t *testing.T) {
	for _, entry := range []string{"lost+found", ".snapshot", ".DS_Store", "..Data"} {
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
