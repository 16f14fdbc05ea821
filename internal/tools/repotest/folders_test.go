package repotest

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// full is how many entries a folder may have, so that a newcomer can read its list.
const full = 60

// Folders are short enough to read. Seeds of fuzz targets are data.
func TestFoldersAreShort(t *testing.T) {
	seen := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		dir, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		dir = filepath.ToSlash(dir)
		if d.Name() == ".git" || strings.HasSuffix(dir, "testdata/fuzz") {
			return filepath.SkipDir
		}
		entries, err := os.ReadDir(path)
		if err != nil {
			return err
		}
		if seen++; len(entries) > full {
			t.Errorf("%s has %d entries, %d are allowed: put what is of one subject into one file", dir, len(entries), full)
		}
		return nil
	})
	if err != nil || seen < 50 {
		t.Fatalf("saw %d folders: %v", seen, err)
	}
}
