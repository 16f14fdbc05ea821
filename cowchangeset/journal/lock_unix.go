//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package journal

import (
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

// syncDir makes the names in a folder durable.
func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	err = d.Sync()
	if e := d.Close(); err == nil {
		err = e
	}
	return err
}
