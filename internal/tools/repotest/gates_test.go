package repotest

import (
	"go/ast"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// noGates are the tests of what gates use.
var noGates = []string{
	"BlockingIsFound", "DeclaredNames", "FolderSizesLeaveOutWhatGitIgnores", "ProgressIsFound", "SleepIsFound",
}

// doc.go lists each gate, and marks with a star those that are not short.
func TestGatesAreListed(t *testing.T) {
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{} // with a star
	for _, m := range regexp.MustCompile(`(?m)^//\t([A-Z]\w*)(\*?) +\d+\b`).FindAllStringSubmatch(string(text), -1) {
		listed[m[1]] = m[2] != ""
	}
	sources, err := parseDir("internal/tools/repotest", true)
	if err != nil {
		t.Fatal(err)
	}
	var tests []string
	for _, s := range sources {
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || !strings.HasPrefix(f.Name.Name, "Test") {
				continue
			}
			name := strings.TrimPrefix(f.Name.Name, "Test")
			tests = append(tests, name)
			star, isListed := listed[name]
			switch isGate := !slices.Contains(noGates, name); {
			case isGate && !isListed:
				t.Errorf("doc.go lacks the gate %s", name)
			case !isGate && isListed:
				t.Errorf("doc.go lists %s, which is in noGates", name)
			case star != long(f):
				t.Errorf("doc.go: %s has a star: %t; it asks testing.Short: %t", name, star, long(f))
			}
		}
	}
	for name := range listed {
		if !slices.Contains(tests, name) {
			t.Errorf("doc.go lists %s, which is no test", name)
		}
	}
	for _, name := range noGates {
		if !slices.Contains(tests, name) {
			t.Errorf("noGates has %s, which is no test", name)
		}
	}
}

// long reports whether a test asks whether it is to be short.
func long(f *ast.FuncDecl) (asks bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			x, isName := s.X.(*ast.Ident)
			asks = asks || isName && x.Name == "testing" && s.Sel.Name == "Short"
		}
		return true
	})
	return asks
}
