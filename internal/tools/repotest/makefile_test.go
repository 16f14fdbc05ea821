package repotest

import (
	"go/ast"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	assignment = regexp.MustCompile(`(?m)^(\w+) +[:?]?= *(.*)$`)
	use        = regexp.MustCompile(`\$\(([A-Z_]+)(?::[^)]*)?\)`)
)

// given lists the variables that make itself sets.
var given = []string{"CURDIR", "MAKE", "MAKEFILE_LIST"}

// variables returns the Makefile and what it assigns.
func variables(t *testing.T) (text string, values map[string]string) {
	t.Helper()
	file, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	values = map[string]string{}
	for _, m := range assignment.FindAllStringSubmatch(string(file), -1) {
		values[m[1]] = m[2]
	}
	return string(file), values
}

// A variable that is not set is empty to make, and nobody hears of it.
func TestMakefileSetsWhatItUses(t *testing.T) {
	text, values := variables(t)
	uses := use.FindAllStringSubmatch(text, -1)
	if len(uses) < 20 {
		t.Fatalf("the test sees %d uses of variables", len(uses))
	}
	for _, m := range uses {
		if _, ok := values[m[1]]; !ok && !slices.Contains(given, m[1]) {
			t.Errorf("$(%s) is set nowhere", m[1])
		}
	}
}

// make stress runs every package that has stress tests of its own.
func TestMakefileStressesAll(t *testing.T) {
	_, values := variables(t)
	list := use.ReplaceAllStringFunc(values["STRESSED"], func(v string) string { return values[use.FindStringSubmatch(v)[1]] })
	stress := 0
	for pkg, names := range testsByPackage(t) {
		for _, test := range names {
			if !strings.Contains(test, "Stress") {
				continue
			}
			if stress++; !slices.Contains(strings.Fields(list), "./"+pkg) {
				t.Errorf("STRESSED lacks ./%s, which has %s", pkg, test)
			}
		}
	}
	if stress < 40 {
		t.Errorf("the test sees %d stress tests", stress)
	}
}

// What make race leaves out is there.
func TestMakefileNamesTests(t *testing.T) {
	_, values := variables(t)
	all := slices.Concat(slices.Collect(maps.Values(testsByPackage(t)))...)
	for pattern := range strings.SplitSeq(values["ALONE"], "|") {
		name := regexp.MustCompile(strings.ReplaceAll(pattern, "$$", "$"))
		if !slices.ContainsFunc(all, name.MatchString) {
			t.Errorf("ALONE: no test is called %s", pattern)
		}
	}
}

// testsByPackage returns the tests of the packages that share memory.
func testsByPackage(t *testing.T) map[string][]string {
	t.Helper()
	names := map[string][]string{}
	for _, pkg := range append(library(t), "fuzz/sequences", "fuzz/interleavings", "fuzz/histories") {
		sources, err := parseDir(pkg, true)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range sources {
			for _, d := range s.file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && strings.HasPrefix(f.Name.Name, "Test") {
					names[pkg] = append(names[pkg], f.Name.Name)
				}
			}
		}
	}
	return names
}

// make test tests each module of its own that has packages.
func TestMakefileNamesModules(t *testing.T) {
	_, values := variables(t)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "go.mod" {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		dir = filepath.ToSlash(dir)
		if tools := dir == "internal/tools/lint"; err == nil && dir != "." && !tools && !slices.Contains(strings.Fields(values["NESTED"]), dir) {
			t.Errorf("NESTED lacks %s", dir)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
