package repotest

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// full is how many entries a folder may have, so that a newcomer can read its list.
const full = 60

// Folders are short enough to read. Seeds of fuzz targets are data.
func TestFoldersAreShort(t *testing.T) {
	sizes, err := folderSizes(root)
	if err != nil || len(sizes) < 50 {
		t.Fatalf("saw %d folders: %v", len(sizes), err)
	}
	for dir, n := range sizes {
		if n > full && !strings.Contains(dir+"/", "testdata/fuzz/") {
			t.Errorf("%s has %d entries, %d are allowed: put what is of one subject into one file", dir, n, full)
		}
	}
}

// folderSizes returns how many files and folders each folder has, but for what git ignores.
func folderSizes(root string) (map[string]int, error) {
	var names strings.Builder // ending with a null each
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == root {
			return err
		}
		if d.Name() == ".git" {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		name, err = filepath.Rel(root, name)
		names.WriteString(filepath.ToSlash(name) + "\x00")
		return err
	})
	if err != nil {
		return nil, err
	}
	ask := exec.Command("git", "check-ignore", "-z", "--stdin")
	ask.Dir, ask.Stdin = root, strings.NewReader(names.String())
	ignored, err := ask.Output()
	if err != nil && ask.ProcessState.ExitCode() != 1 { // 1: none
		return nil, fmt.Errorf("git check-ignore: %w", err)
	}
	skip := map[string]bool{"": true} // after the last null
	for name := range strings.SplitSeq(string(ignored), "\x00") {
		skip[name] = true
	}
	sizes := map[string]int{}
	for name := range strings.SplitSeq(names.String(), "\x00") {
		if !skip[name] {
			sizes[path.Dir(name)]++
		}
	}
	return sizes, nil
}

// Results of benchmarks, which git ignores, are nobody's to read.
func TestFolderSizesLeaveOutWhatGitIgnores(t *testing.T) {
	dir := t.TempDir()
	if out, err := exec.Command("git", "init", "-q", dir).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v\n%s", err, out)
	}
	for name, text := range map[string]string{
		".gitignore": "/bench/results/\n*.out\n", "bench/a.go": "", "bench/b.go": "", "bench/c.out": "", "bench/deep/d.go": "",
		"bench/results/1.txt": "", "bench/results/2.txt": "",
	} {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	sizes, err := folderSizes(dir)
	if want := "map[.:2 bench:3 bench/deep:1]"; err != nil || fmt.Sprint(sizes) != want {
		t.Errorf("%v, %v, want %s", sizes, err, want)
	}
}
