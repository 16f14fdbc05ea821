//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package snapfile

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// lock takes the file for this open file alone, until it is closed or the process ends. If
// another has it, the error is errLocked.
func lock(f *os.File) error {
	for {
		switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err {
		case syscall.EINTR:
			// A signal came between.
		case syscall.EWOULDBLOCK:
			return errLocked
		default:
			return err
		}
	}
}

// owners returns the owner and the group of a file.
func owners(info fs.FileInfo) (uid, gid int, ok bool) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, false
	}
	return int(s.Uid), int(s.Gid), true
}

// cannotSync reports whether err says that directories cannot be synced here at all, as on
// some network file systems.
func cannotSync(err error) bool {
	return errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP)
}
