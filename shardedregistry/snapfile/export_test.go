package snapfile

import "io"

type (
	// Folder is what Save needs of a directory, and File of a file in it.
	Folder = saver
	File   = file
)

// SaveOn is Save in a folder, of what write writes.
func SaveOn(d Folder, name string, write func(io.Writer) error) error { return save(d, name, write) }

// Stem is what the name of a new file begins with.
func Stem(name string) string { return stem(name) }

// CheckLengths is what Write asks about a key and a value.
func CheckLengths(key, value uint64) error { return checkLengths(key, value) }
