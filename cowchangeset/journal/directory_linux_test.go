package journal_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/internal/folder"
	"github.com/latchfree/latchfree/internal/tools/journaltest"
)

// While the process has no descriptor left, a journal writes and prunes. It cannot begin
// a segment, and does so afterwards.
func TestNoDescriptors(t *testing.T) {
	path := newPath(t)
	j := open[any](t, path)
	tell(t, j, story())
	must(t, j.Rotate(background))
	tell(t, j, []step{seal("D", 0, 0), abort("D", ""), start("last", 5, "D")})
	must(t, j.Rotate(background))

	var limit syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	low := limit
	low.Cur = 256
	must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &low))
	var held []*os.File
	for {
		f, err := os.Open(os.DevNull)
		if err != nil {
			break
		}
		held = append(held, f)
	}
	wrote, pruned := seal("last", 0, 0).Call(j), j.Prune(background, 5)
	rotated := j.Rotate(background)
	for _, f := range held {
		f.Close()
	}
	must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
	if wrote != nil || pruned != nil || rotated == nil || errors.Is(rotated, journal.ErrBroken) {
		t.Errorf("%v, %v, %v", wrote, pruned, rotated)
	}
	if _, err := os.Stat(first(path)); err == nil {
		t.Error("the first segment is still there")
	}
	must(t, j.Rotate(background))
	must(t, j.Close())
	equal(t, len(load(t, open[any](t, path))), 1)
}

// The parent of a journal's directory may be one that others can only search: nothing
// changes there. Where Open makes the directory, it must be able to sync its name.
func TestParentThatIsOnlySearched(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "journal")
	must(t, os.Mkdir(path, 0o700))
	asNobody(t, []string{dir, path}, func() {
		must(t, os.Chmod(dir, 0o300))
		defer os.Chmod(dir, 0o700)
		for range 2 { // it has no segments; it has some
			must(t, open[any](t, path).Close())
		}
		made := filepath.Join(dir, "another")
		if _, err := journal.Open[any](made, journal.Options{}); !errors.Is(err, os.ErrPermission) {
			t.Error(err)
		}
		if _, err := os.Stat(made); !errors.Is(err, os.ErrNotExist) {
			t.Error("it has left a directory whose name may be lost:", err)
		}
	})
}

// A file system without fsync of directories says so, and keeps its names as it can.
func TestNoFsyncOfDirectories(t *testing.T) {
	must(t, folder.Directory{Path: "/proc/self"}.Sync())
	if err := folder.SyncDir(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// A segment is archived when the archive has its name for good: if that cannot be
// synced, the next Prune sees to it.
func TestArchiveIsSynced(t *testing.T) {
	path, store := newPath(t), t.TempDir()
	j, err := journal.Open[any](path, journal.Options{Archive: store})
	must(t, err)
	tell(t, j, story())
	tell(t, j, []step{seal("D", 0, 0), abort("D", "")})
	must(t, j.Rotate(background))
	must(t, start("last", 5, "D").Call(j))
	must(t, os.Chmod(store, 0o300)) // names can be made there, and not synced
	asNobody(t, []string{path, store, first(path)}, func() {
		if err := j.Prune(background, 5); !errors.Is(err, os.ErrPermission) {
			t.Error(err)
		}
		must(t, os.Chmod(store, 0o700))
		must(t, start("one more", 6, "last").Call(j))
		must(t, seal("last", 0, 0).Call(j))
		must(t, abort("last", "").Call(j))
		must(t, j.Prune(background, 6))
	})
	if _, err := os.Stat(filepath.Join(store, journaltest.SegmentName(1))); err != nil {
		t.Error(err)
	}
	must(t, j.Close())
	equal(t, len(load(t, open[any](t, path))), 1)
}

// asNobody runs a function as somebody who owns some files and may not read everything.
func asNobody(t *testing.T, files []string, run func()) {
	t.Helper()
	if os.Getuid() == 0 {
		const nobody = 65534
		for _, f := range files {
			must(t, os.Chown(f, nobody, nobody))
			for d := filepath.Dir(f); d != os.TempDir(); d = filepath.Dir(d) {
				must(t, os.Chmod(d, 0o711))
			}
		}
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		must(t, syscall.Setfsuid(nobody))
		defer syscall.Setfsuid(0)
	}
	run()
}

// A later segment has the mode and group of the one before it.
func TestModeOfSegments(t *testing.T) {
	path := newPath(t)
	j := open[any](t, path)
	stat := func(number int) *syscall.Stat_t {
		info, err := os.Stat(filepath.Join(path, journaltest.SegmentName(number)))
		must(t, err)
		return info.Sys().(*syscall.Stat_t)
	}
	equal(t, stat(1).Mode&0o777, uint32(0o600))
	must(t, start("A", 1, "").Call(j))
	must(t, os.Chmod(first(path), 0o640))
	group := os.Getgid()
	if os.Getuid() == 0 {
		group = 2000
		must(t, os.Chown(first(path), -1, group))
	}
	for n := range 2 {
		must(t, j.Rotate(background))
		must(t, start("A"+strconv.Itoa(n), uint64(n+2), []string{"A", "A0"}[n]).Call(j))
		equal(t, stat(n+2).Mode&0o777, uint32(0o640))
		equal(t, stat(n+2).Gid, uint32(group))
	}
	must(t, j.Close())
}
