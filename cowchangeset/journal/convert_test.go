package journal_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset/journal"
)

// A file of format 1 is a journal, which goes on in a directory at its path.
func TestFormat1(t *testing.T) {
	old, err := os.ReadFile(filepath.Join("testdata", "format1.journal"))
	must(t, err)
	want := tell(t, on(t, &memory{}), story())
	for _, tt := range []struct {
		text  []byte
		calls int
		torn  int64
	}{
		{old, len(story()), 0},
		{old[:len(old)-1], len(story()), 0},
		{old[:len(old)-2], len(story()) - 1, int64(len(old) - 3 - bytes.LastIndexByte(old[:len(old)-1], '\n'))},
	} {
		path := newPath(t)
		must(t, os.WriteFile(path, tt.text, 0o644))
		report, err := verify(path)
		must(t, err)
		if report.Segments != 1 || report.Journal != "" || report.Lines != 1+tt.calls {
			t.Errorf("%+v", report)
		}
		j := open[any](t, path)
		equal(t, load(t, j), want[tt.calls])
		equal(t, j.Recovered(), tt.torn)
		if info, err := os.Stat(first(path)); err != nil || runtime.GOOS != "windows" && info.Mode() != 0o600 {
			t.Error(info, err)
		}
		tell(t, j, story()[tt.calls:])
		must(t, j.Close())
		j = open[any](t, path)
		equal(t, load(t, j), want[len(want)-1])
		must(t, j.Close())
		report, err = verify(path)
		must(t, err)
		if report.Segments != 2 || report.Journal != j.Identity() || report.Lines != 2+len(story()) {
			t.Errorf("%+v", report)
		}
	}
}

// A conversion that ended halfway is finished by the next Open, wherever it ended.
func TestFormat1Halfway(t *testing.T) {
	old, err := os.ReadFile(filepath.Join("testdata", "format1.journal"))
	must(t, err)
	want := tell(t, on(t, &memory{}), story())
	for name, halfway := range map[string]func(path, dir string) error{
		"the directory was made": func(path, dir string) error {
			return errors.Join(os.WriteFile(path, old, 0o600), os.Mkdir(dir, 0o700))
		},
		"the file was moved": func(_, dir string) error {
			return errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(first(dir), old, 0o600))
		},
	} {
		for _, link := range []bool{false, true} {
			path := newPath(t)
			must(t, halfway(path, path+".converting"))
			if link {
				to := path
				path = filepath.Join(t.TempDir(), "link")
				must(t, os.Symlink(to, path))
			}
			j, err := journal.Open[any](path, journal.Options{MustExist: true})
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			equal(t, load(t, j), want[len(want)-1])
			must(t, j.Close())
		}
	}
}

// A file of format 1 that is corrupt, or a segment of a directory, stays where it is.
func TestFormat1Corrupt(t *testing.T) {
	old, err := os.ReadFile(filepath.Join("testdata", "format1.journal"))
	must(t, err)
	for i := 7; i < len(old)-1; i += 97 {
		path := newPath(t)
		bad := bytes.Clone(old)
		bad[i] ^= 1
		must(t, os.WriteFile(path, bad, 0o600))
		_, err := journal.Open[any](path, journal.Options{})
		var corrupt *journal.CorruptError
		if !errors.As(err, &corrupt) {
			t.Errorf("byte %d: %v", i, err)
		}
		if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, bad) {
			t.Errorf("byte %d: it was changed, %v", i, err)
		}
	}
	path := newPath(t)
	must(t, open[any](t, path).Close())
	if _, err := journal.Open[any](first(path), journal.Options{}); err == nil || !strings.Contains(err.Error(), "name the directory that it is in") {
		t.Error(err)
	}
}

// A file that an older program has open is not moved away under it.
func TestFormat1Locked(t *testing.T) {
	path := newPath(t)
	must(t, os.WriteFile(path, journal.OldHeader(), 0o600))
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	must(t, journal.Lock(f))
	other, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	if err := journal.Lock(other); err == nil {
		t.Skip("files cannot be locked here")
	}
	must(t, other.Close())
	if _, err := journal.Open[any](path, journal.Options{}); !errors.Is(err, journal.ErrLocked) {
		t.Error(err)
	}
	must(t, f.Close())
	must(t, open[any](t, path).Close())
}
