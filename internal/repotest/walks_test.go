package repotest

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// walks are the operations of testdata/walks, and how many files of its package each may
// pass through: a newcomer has to open that many to follow it. The bounds are what was
// measured; they may only go down.
var walks = []struct {
	name, pkg, what string
	files           int
}{
	{"Update", "shardedregistry", "`Registry.Update` of a present key", 4},
	{"UpdateWithMost", "shardedregistry", "`Registry.Update` with all of Config, and a stream", 14},
	{"Trip", "atomicbreaker", "`Permit.Failure` that trips a key of a `Group`", 10},
	{"Miss", "oncecache", "`Cache.GetOrCreate` of an absent key", 6},
	{"Record", "cowchangeset", "`Tracker.Record` with a store", 6},
}

// Operations pass through few files, and CONTRIBUTING.md lists them.
func TestWalks(t *testing.T) {
	if testing.Short() {
		t.Skip("builds several programs")
	}
	dir := t.TempDir()
	if err := writeModule(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(dir, os.DirFS("testdata/walks")); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "walks.exe")
	args := []string{"build", "-o", program, "-cover", "-covermode=atomic", "-coverpkg=.,"}
	for _, pkg := range public {
		args[len(args)-1] += modulePath + "/" + pkg + ","
	}
	if _, err := goTool(dir, args...); err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	table.WriteString("| operation | files |\n|---|---|\n")
	for _, w := range walks {
		files, err := walk(program, t.TempDir(), w.name, w.pkg)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&table, "| %s | %d: %s |\n", w.what, len(files), strings.Join(files, ", "))
		if len(files) > w.files {
			t.Errorf("%s passes through %d files of %s, want at most %d: %s", w.what, len(files), w.pkg, w.files, strings.Join(files, ", "))
		}
	}
	text, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), table.String()) {
		t.Errorf("CONTRIBUTING.md does not list the files as they are:\n%s", table.String())
	}
}

// walk returns the files of a package that an operation passes through, which
// the program performs.
func walk(program, dir, name, pkg string) ([]string, error) {
	run := exec.Command(program, name)
	run.Dir = dir
	if out, err := run.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", name, err, out)
	}
	profile := filepath.Join(dir, "profile")
	if _, err := goTool(dir, "tool", "covdata", "textfmt", "-i="+dir, "-o="+profile); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(profile)
	if err != nil {
		return nil, err
	}
	var files []string
	for line := range strings.Lines(string(text)) {
		block, executed := strings.CutSuffix(line, " 0\n")
		if name, _, _ := strings.Cut(block, ":"); !executed && path.Dir(name) == modulePath+"/"+pkg {
			files = append(files, path.Base(name))
		}
	}
	slices.Sort(files)
	return slices.Compact(files), nil
}
