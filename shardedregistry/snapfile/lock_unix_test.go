//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package snapfile_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/latchfree/latchfree/shardedregistry/snapfile"
)

// A Save removes what killed ones have left behind: nothing that is being written, and
// nothing of others.
func TestSaveRemovesWhatIsLeft(t *testing.T) {
	dir, r := t.TempDir(), three(t)
	long := strings.Repeat("n", 255)
	var running *os.File
	left := []string{"a.snapfile-1.tmp", "a.snapfile-4294967295.tmp", "a.snapfile-7.tmp", long[:100] + ".snapfile-3.tmp"}
	others := []string{
		"a.1.tmp", "a.snapfile-.tmp", "a.snapfile-1", "a.snapfile-1x.tmp", "ab.snapfile-1.tmp", "a.snapfile-1.tmp.snapfile-1.tmp",
		"b.snapfile-1.tmp",
	}
	const writing = "a.snapfile-0.tmp"
	for _, name := range slices.Concat(left, others, []string{writing}) {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if name == writing {
			if running = f; syscall.Flock(int(f.Fd()), syscall.LOCK_EX) != nil {
				t.Skip("no locks here")
			}
			continue
		}
		f.Close()
	}
	if err := os.Chmod(filepath.Join(dir, left[2]), 0o400); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "a.snapfile-5.tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	wantNames := func(want ...string) {
		t.Helper()
		for _, name := range []string{"a", long} {
			if err := snapfile.Save(filepath.Join(dir, name), r, raw); err != nil {
				t.Fatal(err)
			}
		}
		slices.Sort(want)
		if got := names(t, dir); !slices.Equal(got, want) {
			t.Errorf("there are %q, want %q", got, want)
		}
	}
	stays := append([]string{"a", long, "a.snapfile-5.tmp"}, others...)
	wantNames(slices.Concat(stays, []string{writing})...)
	running.Close() // the process is killed
	wantNames(stays...)
}

// The new file has the owner and the group of the old one.
func TestSaveKeepsTheOwner(t *testing.T) {
	path, r := filepath.Join(t.TempDir(), "a"), three(t)
	if err := os.WriteFile(path, nil, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(path, 12345, 23456); err != nil {
		t.Skip(err) // nobody but root may
	}
	for range 2 {
		if err := snapfile.Save(path, r, raw); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if s := info.Sys().(*syscall.Stat_t); s.Uid != 12345 || s.Gid != 23456 || info.Mode() != 0o640 {
			t.Errorf("the new file belongs to %d:%d and has mode %v", s.Uid, s.Gid, info.Mode())
		}
	}
}
