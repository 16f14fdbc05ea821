package journal_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/latchfree/latchfree/cowchangeset/journal"
)

// Nothing is acknowledged into a segment that is not there any more, or that
// somebody else has written to: the journal refuses everything from then on.
func TestSomebodyElse(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"removed": func(path string) error { return os.Remove(first(path)) },
		"renamed": func(path string) error { return os.Rename(first(path), path+".old") },
		"renamed over": func(path string) error {
			text, err := os.ReadFile(first(path))
			if err == nil {
				err = os.WriteFile(path+".new", text, 0o600)
			}
			if err == nil {
				err = os.Rename(path+".new", first(path))
			}
			return err
		},
		"the directory renamed": func(path string) error { return os.Rename(path, path+".old") },
		"another journal in its place": func(path string) error {
			if err := os.Rename(path, path+".old"); err != nil {
				return err
			}
			j, err := journal.Open[any](path, journal.Options{})
			if err == nil {
				err = j.Close()
			}
			return err
		},
		"emptied":   func(path string) error { return os.Truncate(first(path), 0) },
		"cut":       func(path string) error { return os.Truncate(first(path), 400) },
		"longer":    func(path string) error { return os.Truncate(first(path), 4000) },
		"a newline": func(path string) error { return appendTo(first(path), "\n") },
		"a line":    func(path string) error { return appendTo(first(path), strings.Repeat("x", 600)+"\n") },
	} {
		for _, o := range []journal.Options{{}, {Sync: journal.SyncNever}} {
			path := newPath(t)
			j, err := journal.Open[any](path, o)
			must(t, err)
			must(t, start("A", 1, "").Call(j))
			must(t, add("A", item(0, "before")).Call(j))
			must(t, change(path))
			broken := add("A", item(1, "after")).Call(j)
			if !errors.Is(broken, journal.ErrBroken) || !strings.Contains(broken.Error(), "somebody else has changed its files") {
				t.Errorf("%s: %v", name, broken)
			}
			for _, s := range story() {
				if err := s.Call(j); err != broken {
					t.Errorf("%s: %s: %v", name, s.Name, err)
				}
			}
			if err := j.Close(); err != broken {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func appendTo(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// What is seen only by a call that is known already, by a Sync and by Close.
func TestSomebodyElseUnnoticed(t *testing.T) {
	for name, call := range map[string]func(*journal.Journal[any]) error{
		"told again": start("A", 1, "").Call,
		"Sync":       func(j *journal.Journal[any]) error { return j.Sync(background) },
		"Prune":      func(j *journal.Journal[any]) error { return j.Prune(background, 1) },
		"Rotate":     func(j *journal.Journal[any]) error { return j.Rotate(background) },
		"Close":      (*journal.Journal[any]).Close,
	} {
		m := &memory{}
		j := with(t, m, journal.Options{Sync: journal.SyncNever})
		must(t, start("A", 1, "").Call(j))
		m.Put(1, m.Segment(1).Data[:300])
		if err := call(j); !errors.Is(err, journal.ErrBroken) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The directory may be reached by a symbolic link, by a relative path that the
// process leaves, and by both.
func TestPaths(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "real"), 0o700))
	must(t, os.Symlink("real", filepath.Join(dir, "link")))
	t.Chdir(dir)
	for _, path := range []string{"one", "link/two", "./link/../three", filepath.Join(dir, "link", "four")} {
		j, err := journal.Open[any](path, journal.Options{SegmentSize: 300})
		must(t, err)
		must(t, start("A", 1, "").Call(j))
		t.Chdir(t.TempDir())
		must(t, seal("A", 0, 0).Call(j))
		must(t, abort("A", "").Call(j))
		equal(t, len(load(t, j)), 1)
		must(t, j.Close())
		t.Chdir(dir)
	}
	for _, path := range []string{"real/two", "real/four", "three", "one"} {
		if report, err := verify(path); err != nil || report.Lines < 4 {
			t.Errorf("%s: %+v, %v", path, report, err)
		}
	}
	must(t, os.Symlink("nowhere", "dangling")) // as of a disk that is not mounted
	must(t, os.Symlink("loop", "loop"))
	for _, path := range []string{"dangling", "dangling/", "loop"} {
		if _, err := journal.Open[any](path, journal.Options{}); err == nil {
			t.Errorf("%s: a link to nothing was opened", path)
		}
	}
}

// A tracker's journal is no other tracker's.
func TestClaim(t *testing.T) {
	m := &memory{}
	j := on(t, m)
	must(t, j.Claim(background))
	if err := j.Claim(background); err != journal.ErrClaimed {
		t.Error(err)
	}
	j.Release()
	ended, cancel := context.WithCancelCause(background)
	cancel(os.ErrProcessDone)
	if err := j.Claim(ended); err != os.ErrProcessDone {
		t.Error(err)
	}
	must(t, j.Claim(background))
	must(t, j.Close())
	if err := j.Claim(background); err != journal.ErrClosed {
		t.Error(err)
	}
	j = on(t, m)
	must(t, j.Claim(background))
	must(t, j.Close())
}

// Close waits for a write, and for an fsync, that is under way, and closes no file
// before; and so does one that finds the writer between two groups.
func TestCloseWaitsForTheWriter(t *testing.T) {
	for _, op := range []string{"write", "sync"} {
		synctest.Test(t, func(t *testing.T) {
			j, m, g := gated(t, op, 2)
			first := appends(background, j, 1, 1)
			closed := make(chan error, 1)
			go func() { closed <- j.Close() }()
			synctest.Wait()
			if len(closed) != 0 || m.Closed() {
				t.Fatalf("%s: Close did not wait", op)
			}
			size := len(m.Text())
			g.shut = false
			g.next <- nil
			must(t, <-first)
			must(t, <-closed)
			if !m.Closed() || op == "write" && len(m.Text()) == size {
				t.Errorf("%s: closed before it was written", op)
			}
			j = on(t, m.Clone())
			if got := load(t, j); !bytes.Contains(m.Text(), []byte(`"append","id":"1"`)) || len(got[0].Entries) != 1 {
				t.Errorf("%s: %v", op, got)
			}
		})
	}
}
