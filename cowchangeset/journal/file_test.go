package journal_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset/journal"
)

// A file is made for its owner only, has a header, and is found again.
func TestFile(t *testing.T) {
	path := newPath(t)
	j := open[any](t, path)
	info, err := os.Stat(path)
	must(t, err)
	if runtime.GOOS != "windows" && info.Mode() != 0o600 {
		t.Error(info.Mode())
	}
	text, err := os.ReadFile(path)
	must(t, err)
	if want := `{"line":1,"op":"journal","format":1,"prev":"` + strings.Repeat("0", 64) + `","hash":"`; !strings.HasPrefix(string(text), want) || string(text) != string(journal.Header()) {
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

func verify(path string) (journal.Report, error) {
	f, err := os.Open(path)
	if err != nil {
		return journal.Report{}, err
	}
	defer f.Close()
	return journal.Verify(f)
}

// A file is open once at a time.
func TestTwoOpens(t *testing.T) {
	path := newPath(t)
	j := open[any](t, path)
	must(t, start("A", 1, "").call(j))
	before, _ := os.ReadFile(path)
	if _, err := journal.Open[any](path, journal.Options{}); !errors.Is(err, journal.ErrLocked) || !strings.Contains(err.Error(), path) {
		t.Error(err)
	}
	if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
		t.Error("the file has changed")
	}
	must(t, seal("A", 0, 0).call(j))
	must(t, j.Close())
	must(t, open[any](t, path).Close())
}

// What cannot be a journal is refused, and left as it is.
func TestNoJournal(t *testing.T) {
	dir := t.TempDir()
	if _, err := journal.Open[any](dir, journal.Options{}); err == nil || !strings.HasPrefix(err.Error(), "journal: ") {
		t.Errorf("a folder: %v", err)
	}
	if _, err := journal.Open[any](filepath.Join(dir, "none", "x"), journal.Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
	if _, err := journal.Open[any](os.DevNull, journal.Options{}); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a device: %v", err)
	}
	path := filepath.Join(dir, "unwanted")
	if _, err := journal.Open[any](path, journal.Options{Sync: 9}); err == nil || err.Error() != "journal: Options.Sync is SyncPolicy(9)" {
		t.Error(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Error("bad options have made a file")
	}
	h := string(journal.Header())
	for _, text := range []string{
		"hello", "hello\n", "\n", "{}\n", "{\"a\":\"b\"}\n", "\x00", strings.Repeat("\x00", 4096), h[:40] + "x", h[1:], h[:40] + "\n", " " + h,
		strings.Replace(h, `"format":1`, `"format":2`, 1), `{"line":1}`, h + "\n", h + h,
	} {
		path := filepath.Join(t.TempDir(), "file")
		must(t, os.WriteFile(path, []byte(text), 0o644))
		_, err := journal.Open[any](path, journal.Options{})
		var corrupt *journal.CorruptError
		line, offset := 1, int64(0)
		if strings.HasPrefix(text, h) {
			line, offset = 2, int64(len(h))
		}
		if !errors.As(err, &corrupt) || corrupt.Line != line || corrupt.Offset != offset || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: %v", text, err)
		}
		if after, _ := os.ReadFile(path); string(after) != text {
			t.Errorf("%q became %q", text, after)
		}
	}
}

// A file of a later version says so.
func TestOtherFormat(t *testing.T) {
	text := chain(`{"line":1,"op":"journal","format":2,"prev":"` + strings.Repeat("0", 64) + `"`)
	_, err := journal.OpenOn[any](&memory{data: text}, int64(len(text)), journal.Options{})
	if err == nil || !strings.Contains(err.Error(), "the file has format 2, and not 1") {
		t.Error(err)
	}
}

// An empty file, and one that a crash has left with a part of its header, become
// journals.
func TestTornHeader(t *testing.T) {
	h := journal.Header()
	for n := range len(h) {
		path := newPath(t)
		must(t, os.WriteFile(path, h[:n], 0o600))
		if _, err := verify(path); err != nil {
			t.Errorf("%d: %v", n, err)
		}
		j := open[any](t, path)
		if j.Recovered() != int64(n) {
			t.Errorf("%d: recovered %d", n, j.Recovered())
		}
		must(t, start("A", 1, "").call(j))
		must(t, j.Close())
		if report, err := verify(path); err != nil || report.Lines != 2 {
			t.Errorf("%d: %+v, %v", n, report, err)
		}
	}
}

// A file that cannot be written fails calls, not readers, until it is opened
// again.
func TestReadOnly(t *testing.T) {
	path := newPath(t)
	j := open[any](t, path)
	must(t, start("A", 1, "").call(j))
	must(t, j.Close())
	must(t, os.Chmod(path, 0o400))
	switch j, err := journal.Open[any](path, journal.Options{}); {
	case err == nil && os.Getuid() == 0: // who may write all the same
		must(t, j.Close())
	case !errors.Is(err, fs.ErrPermission):
		t.Error(err)
	}
	f, err := os.Open(path)
	must(t, err)
	size, err := journal.Claim(f)
	must(t, err)
	j, err = journal.OpenOn[any](f, size, journal.Options{})
	must(t, err)
	equal(t, len(load(t, j)), 1)
	first := seal("A", 0, 0).call(j)
	if !errors.Is(first, syscall.EBADF) {
		t.Error(first)
	}
	for _, s := range story() {
		if err := s.call(j); !errors.Is(err, journal.ErrBroken) || err != first {
			t.Errorf("%s: %v", s.name, err)
		}
	}
	if err := j.Close(); err != first {
		t.Error(err)
	}
}

// Lines may be long, and memory for them is not kept.
func TestHugeLines(t *testing.T) {
	path := newPath(t)
	j := open[string](t, path)
	must(t, j.Start(background, header{ID: "A", Ordinal: 1}))
	huge := strings.Repeat("0123456789abcde\n", 1<<20) // 16 MiB, and more once encoded
	must(t, j.Append(background, "A", entries(0, huge, "small")))
	must(t, j.Append(background, "A", entries(2, "after")))
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

	must(t, os.Truncate(path, 8<<20)) // within the huge line
	j = open[string](t, path)
	if got := load(t, j); len(got) != 1 || got[0].Entries != nil || j.Recovered() < 7<<20 {
		t.Errorf("%d entries, %d recovered", len(got[0].Entries), j.Recovered())
	}
	must(t, j.Close())
}
