package folder

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"runtime"
	"syscall"
)

// ErrLocked says that another open file has the lock.
var ErrLocked = errors.New("locked")

// Same reports whether a path is the name of f.
func Same(f *os.File, path string) (bool, error) {
	is, err := f.Stat()
	if err != nil {
		return false, err
	}
	at, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(is, at), err
}

// Resemble gives a file the permissions, the owner and the group of another, as far as this
// process may: a group that it has instead may do no more than others.
func Resemble(f *os.File, like fs.FileInfo) error {
	mode := like.Mode().Perm()
	now, err := f.Stat()
	if err != nil {
		return err
	}
	uid, gid, ok := owners(like)
	myUID, myGID, _ := owners(now)
	if ok && (uid != myUID || gid != myGID) && f.Chown(uid, gid) != nil && gid != myGID && f.Chown(-1, gid) != nil {
		mode &^= 0o070 &^ (mode << 3) // what is for that group is not for this one
	}
	return f.Chmod(mode)
}

// SyncDir makes the names in a directory durable, as far as its file system can.
func SyncDir(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	return syncNames(d)
}

// syncNames is SyncDir of an open directory.
func syncNames(d interface{ Sync() error }) error {
	err := d.Sync()
	if runtime.GOOS == "windows" || errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		return nil // directories cannot be synced here at all
	}
	return err
}

// Write writes all of a text or fails.
func Write(f io.Writer, text []byte) error {
	n, err := f.Write(text)
	if err == nil && n < len(text) {
		err = io.ErrShortWrite
	}
	return err
}
