//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd)

package journal

import "os"

// lock does nothing: here it is the user's duty to open a file once at a time.
func lock(*os.File) error { return nil }

// movesOpen says that a file can be renamed while it is open.
const movesOpen = false

// keepGroup does nothing: files have no group here.
func keepGroup(*os.File, os.FileInfo) {}

// openDir opens nothing: directories cannot be synced everywhere.
func openDir(string) (*os.File, error) { return nil, nil }

// syncNames does nothing.
func syncNames(*os.File) error { return nil }
