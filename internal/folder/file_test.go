package folder

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

type syncer struct{ err error }

func (s syncer) Sync() error { return &os.PathError{Op: "sync", Path: "folder", Err: s.err} }

// Where directories cannot be synced at all, that is no error.
func TestDirectoriesThatCannotBeSynced(t *testing.T) {
	for _, err := range []error{syscall.EINVAL, syscall.ENOTSUP} {
		if got := syncNames(syncer{err}); got != nil {
			t.Errorf("where it gives %v: %v", err, got)
		}
	}
	if err := syncNames(syncer{syscall.EIO}); !errors.Is(err, syscall.EIO) && runtime.GOOS != "windows" {
		t.Errorf("a disk that fails: %v", err)
	}
}

// A directory is locked once, whatever becomes of the file of the lock.
func TestLock(t *testing.T) {
	d, err := At(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	l, err := d.Lock("lock")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Lock("lock"); err != ErrLocked {
		t.Skip("no locks here:", err)
	}
	os.Remove(d.In("lock"))
	again, err := d.Lock("lock")
	if err != nil {
		t.Fatalf("with another file: %v", err)
	}
	for _, l := range []*Locked{l, again} {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Same tells a file from another one of its name, and from none.
func TestSame(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	same := func() bool { is, err := Same(f, path); return is && err == nil }
	if !same() {
		t.Error("a file is not itself")
	}
	os.Remove(path)
	if same() {
		t.Error("a file that was removed is there")
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if same() {
		t.Error("another file is the same")
	}
}

type short struct{}

func (short) Write([]byte) (int, error) { return 1, nil }

// A write that ends early fails.
func TestWrite(t *testing.T) {
	if err := Write(short{}, []byte("text")); err != io.ErrShortWrite {
		t.Error(err)
	}
	if err := Write(short{}, []byte("t")); err != nil {
		t.Error(err)
	}
}
