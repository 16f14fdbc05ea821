//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package folder

import (
	"io/fs"
	"os"
	"syscall"
)

// MovesOpen says that a file can be renamed while it is open.
const MovesOpen = true

// Lock takes the file for this open file alone, until it is closed or the process ends. If
// another has it, the error is ErrLocked.
func Lock(f *os.File) error {
	for {
		switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err {
		case nil:
			return nil
		case syscall.EINTR:
			// A signal came between.
		case syscall.EWOULDBLOCK:
			return ErrLocked
		default:
			return &fs.PathError{Op: "flock", Path: f.Name(), Err: err}
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
