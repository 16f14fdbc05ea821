//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd)

package snapfile

import (
	"errors"
	"io/fs"
	"os"
)

// lock fails: here nobody can tell the file of a save that was killed from one that is being
// written.
func lock(*os.File) error { return errors.ErrUnsupported }

// owners says that there are none to keep.
func owners(fs.FileInfo) (uid, gid int, ok bool) { return 0, 0, false }

// cannotSync reports false: no error here means that.
func cannotSync(error) bool { return false }
