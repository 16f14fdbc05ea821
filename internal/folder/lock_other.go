//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd)

package folder

import (
	"errors"
	"io/fs"
	"os"
)

// MovesOpen says that a file can be renamed while it is open.
const MovesOpen = false

// Lock fails: here nobody can tell whether another has the file.
func Lock(*os.File) error { return errors.ErrUnsupported }

// owners says that there are none to keep.
func owners(fs.FileInfo) (uid, gid int, ok bool) { return 0, 0, false }
