//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package journal

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lock takes the file for this open file alone, until it is closed or the
// process ends.
func lock(f *os.File) error {
	for {
		switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err {
		case nil:
			return nil
		case syscall.EINTR:
			// A signal came between.
		case syscall.EWOULDBLOCK:
			return ErrLocked
		default:
			return fmt.Errorf("journal: flock: %w", err)
		}
	}
}

// movesOpen says that a file can be renamed while it is open.
const movesOpen = true

// keepGroup gives a new file the group of another one, as far as this process may.
func keepGroup(f *os.File, like os.FileInfo) {
	if s, ok := like.Sys().(*syscall.Stat_t); ok {
		f.Chown(-1, int(s.Gid))
	}
}

// openDir opens a directory for syncNames.
func openDir(path string) (*os.File, error) { return os.Open(path) }

// syncNames makes the names in a directory durable, as far as its file system can: some
// have no fsync of directories, and say that the argument is invalid.
func syncNames(d *os.File) error {
	if err := d.Sync(); !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOTSUP) {
		return err
	}
	return nil
}
