package repotest

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	assignment = regexp.MustCompile(`(?m)^(\w+) +[:?]?= *(.*)$`)
	use        = regexp.MustCompile(`\$\(([A-Z_]+)\)`)
)

// given lists the variables that make itself sets.
var given = []string{"MAKE", "MAKEFILE_LIST"}

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
	list := use.ReplaceAllStringFunc(values["STRESSED"], func(v string) string { return values[v[2:len(v)-1]] })
	want := 0
	for _, pkg := range append([]string{"internal/table", "internal/atomics", "fuzz"}, importable...) {
		sources, err := parseDir(pkg, true)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range sources {
			for _, d := range s.file.Decls {
				if f, ok := d.(*ast.FuncDecl); !ok || !strings.Contains(f.Name.Name, "Stress") || !strings.HasPrefix(f.Name.Name, "Test") {
					continue
				}
				want++
				if !slices.Contains(strings.Fields(list), "./"+pkg) {
					t.Errorf("%s has a stress test, and STRESSED lacks ./%s", s.name, pkg)
				}
			}
		}
	}
	if want < 40 {
		t.Errorf("the test sees %d stress tests", want)
	}
}
