package repotest

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// walks are the operations of testdata/walks, and how many files of its package each may
// pass through, and how many functions: a newcomer has to open that many to follow it. Long are
// those of more than one statement; the others read like an expression. A function literal counts
// as part of its function. The bounds may only go down; 0 is none.
var walks = []struct {
	name, pkg, what        string
	files, functions, long int
}{
	{"Get", "shardedregistry", "`Registry.Get`", 1, 1, 1},
	{"Update", "shardedregistry", "`Registry.Update` of a present key", 3, 6, 4},
	{"Create", "shardedregistry", "`Registry.Create`", 4, 10, 7},
	{"Delete", "shardedregistry", "`Registry.Delete`", 4, 21, 9},
	{"UpdateWithMost", "shardedregistry", "`Registry.Update` with all of Config, and a loop", 7, 0, 0},
	{"Trip", "atomicbreaker", "`Permit.Failure` that trips a key of a `Group`", 5, 45, 26},
	{"Hit", "oncecache", "`Cache.GetOrCreate` of a present key", 3, 5, 1},
	{"Miss", "oncecache", "`Cache.GetOrCreate` of an absent key, and one that waits", 4, 27, 14},
	{"Record", "cowchangeset", "`Tracker.Record`", 3, 7, 4},
	{"Start", "cowchangeset", "`Tracker.Start`", 4, 8, 6},
	{"Seal", "cowchangeset", "`Changeset.Seal`", 3, 8, 5},
	{"RecordStored", "cowchangeset", "`Tracker.Record` with a store", 4, 0, 0},
}

// Operations pass through few functions and files, and CONTRIBUTING.md lists the files in the
// order in which they are first reached.
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
	overlay, err := writeTraced(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "walks.exe")
	if _, err := goTool(dir, "build", "-overlay", overlay, "-o", program, "."); err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	table.WriteString("| operation | functions | files |\n|---|--:|---|\n")
	for _, w := range walks {
		files, functions, err := walk(program, w.name, w.pkg)
		if err != nil {
			t.Fatal(err)
		}
		measured := fmt.Sprint(len(functions))
		if w.functions == 0 {
			measured = "varies"
		}
		long := slices.DeleteFunc(slices.Clone(functions), func(f string) bool { return !strings.HasSuffix(f, "…") })
		t.Logf("%s: %d functions, %d of them long, in %d files: %s", w.what, len(functions), len(long), len(files), strings.Join(functions, ", "))
		if w.functions > 0 && (len(functions) > w.functions || len(long) > w.long) {
			t.Errorf("%s passes through %d functions of %s, %d of them long, want at most %d and %d: %s",
				w.what, len(functions), w.pkg, len(long), w.functions, w.long, strings.Join(functions, ", "))
		}
		fmt.Fprintf(&table, "| %s | %s | %s |\n", w.what, measured, strings.Join(files, ", "))
		if len(files) > w.files {
			t.Errorf("%s passes through %d files of %s, want at most %d: %s", w.what, len(files), w.pkg, w.files, strings.Join(files, ", "))
		}
	}
	pageHas(t, "CONTRIBUTING.md", "walks", table.String())
}

// writeTraced writes copies of the packages' files in which each function begins by
// printing the name of its file and its own, with … if it is long, and returns the name of an
// overlay that puts them in the place of the originals.
func writeTraced(dir string) (overlay string, err error) {
	here, err := filepath.Abs(root)
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for _, pkg := range public {
		sources, err := parseDir(pkg, false)
		if err != nil {
			return "", err
		}
		for _, s := range sources {
			original := filepath.Join(here, filepath.FromSlash(s.name))
			text, err := os.ReadFile(original)
			if err != nil {
				return "", err
			}
			traced := filepath.Join(dir, strings.ReplaceAll(s.name, "/", "-"))
			if err := os.WriteFile(traced, trace(s, text), 0o666); err != nil {
				return "", err
			}
			replace[original] = traced
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o666)
}

// trace returns the text of s with a print at the beginning of each function.
func trace(s source, text []byte) []byte {
	type edit struct {
		at   int
		text string
	}
	file := s.fset.File(s.file.Pos())
	edits := []edit{{file.Offset(s.file.Name.End()), `; import traced "os"`}}
	function := "" // of the package's variables
	ast.Inspect(s.file, func(n ast.Node) bool {
		var body *ast.BlockStmt
		switch n := n.(type) {
		case *ast.FuncDecl:
			body, function = n.Body, n.Name.Name
			if n.Recv != nil {
				typeName, _ := baseType(n.Recv.List[0].Type)
				function = typeName + "." + function
			}
			if body != nil && len(body.List) > 1 {
				function += "…"
			}
		case *ast.FuncLit:
			body = n.Body
		}
		if body != nil {
			edits = append(edits, edit{file.Offset(body.Lbrace) + 1, fmt.Sprintf("traced.Stdout.WriteString(%q);", s.name+" "+function+"\n")})
		}
		return true
	})
	if len(edits) == 1 {
		return text
	}
	for _, e := range slices.Backward(edits) { // they are in the order of the source
		text = slices.Insert(text, e.at, []byte(e.text)...)
	}
	return text
}

// walk returns the files and functions of a package that an operation passes through, which
// the program performs, in the order in which it does.
func walk(program, name, pkg string) (files, functions []string, err error) {
	run := exec.Command(program, name)
	out, err := run.CombinedOutput()
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w\n%s", name, err, out)
	}
	_, during, _ := strings.Cut("\n"+string(out), "\nbegin\n")
	during, _, ended := strings.Cut(during, "\nend\n")
	if !ended {
		return nil, nil, fmt.Errorf("%s did not end:\n%s", name, out)
	}
	for line := range strings.Lines(during) {
		step, ok := strings.CutPrefix(strings.TrimSpace(line), pkg+"/")
		if !ok {
			continue
		}
		file, function, _ := strings.Cut(step, " ")
		if !slices.Contains(files, file) {
			files = append(files, file)
		}
		if !slices.Contains(functions, function) {
			functions = append(functions, function)
		}
	}
	return files, functions, nil
}
