package repotest

import (
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Shared words go through internal/atomics, and xsync through internal/table.
func TestImports(t *testing.T) {
	for _, pkg := range library(t) {
		sources, err := parseDir(pkg, false)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range sources {
			for _, spec := range s.file.Imports {
				path, err := strconv.Unquote(spec.Path.Value)
				if err != nil {
					t.Fatal(err)
				}
				switch {
				case path == "sync/atomic" && pkg != "internal/atomics":
					t.Errorf("%s imports sync/atomic beside the seam internal/atomics", s.name)
				case strings.Contains(path, "xsync") && pkg != "internal/table":
					t.Errorf("%s imports %s; only internal/table may", s.name, path)
				case path == "C":
					t.Errorf("%s uses cgo", s.name)
				}
			}
		}
	}
}

// A new package with shared types is public, or below one that is, and ours are there.
func TestPackagesAreKnown(t *testing.T) {
	for _, pkg := range importable(t) {
		sources, err := parseDir(pkg, false)
		if err != nil {
			t.Fatal(err)
		}
		if types, _ := sharedTypes(pkg, sources); len(types) > 0 && !slices.Contains(public, pkg) && !slices.Contains(public, path.Dir(pkg)) {
			t.Errorf("%s has shared types, and is not among the public packages", pkg)
		}
	}
	all := folders(t)
	for _, o := range append(public, ours...) {
		if !slices.ContainsFunc(all, func(dir string) bool { return dir == o || strings.HasPrefix(dir, o+"/") }) {
			t.Errorf("there is no %s", o)
		}
	}
}

// The packages' own tests, with what of ours they import, stay within the standard
// library, so that an importer's go.sum does not grow by what they would use.
func TestPackageTestsImportNothingForeign(t *testing.T) {
	var sources []source
	add := func(pkg string, tests bool) {
		more, err := parseDir(pkg, tests)
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, more...)
	}
	for _, pkg := range library(t) {
		add(pkg, true)
	}
	seen := map[string]bool{}
	for len(sources) > 0 {
		s := sources[0]
		sources = sources[1:]
		for _, spec := range s.file.Imports {
			path, _ := strconv.Unquote(spec.Path.Value)
			first, _, _ := strings.Cut(path, "/")
			dir, inModule := strings.CutPrefix(path, modulePath+"/")
			switch {
			case inModule && isOurs(dir) && !seen[dir]:
				seen[dir] = true
				add(dir, false)
			case strings.Contains(first, ".") && !inModule:
				t.Errorf("%s imports %s", s.name, path)
			}
		}
	}
	if !seen["internal/tools/model/shardedregistry"] {
		t.Error("the test does not see what tests import")
	}
}

// A test is either one that explores or one that does not, and is built only
// where it has a point: what the model's build instantiates takes as long to
// compile as its tests to run.
func TestTestsExploreOrDoNot(t *testing.T) {
	tests := regexp.MustCompile(`^(Test|Example|Fuzz|Benchmark)`)
	for _, pkg := range slices.Concat(public, parts) {
		sources, err := parseDir(pkg, true)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range sources {
			want := "!modelcheck"
			if strings.HasPrefix(filepath.Base(s.name), "mc_") {
				want = "modelcheck"
			}
			for _, d := range s.file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && tests.MatchString(f.Name.Name) && !built(s, want) {
					t.Errorf("%s has %s, and no //go:build %s", s.name, f.Name.Name, want)
				}
			}
		}
	}
}

// built reports whether a file is built under a constraint.
func built(s source, want string) bool {
	for _, group := range s.file.Comments {
		for _, c := range group.List {
			if c.Text == "//go:build "+want {
				return c.End() < s.file.Package
			}
		}
	}
	return false
}

var packageState = regexp.MustCompile(`(?m)^//go:linkname`)

// No init functions, no linkname, no package-level variables but error
// sentinels and compile-time assertions, and no unsafe without its reason.
func TestNoHiddenState(t *testing.T) {
	for _, pkg := range library(t) {
		sources, err := parseDir(pkg, false)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range sources {
			text, err := os.ReadFile(filepath.Join(root, s.name))
			if err != nil {
				t.Fatal(err)
			}
			if packageState.Match(text) {
				t.Errorf("%s uses linkname", s.name)
			}
			if n := strings.Count(string(text), "unsafe."); n > 0 && !strings.Contains(string(text), "// Safety:") && !onlySizes(string(text), n) {
				t.Errorf("%s uses unsafe without a // Safety: line", s.name)
			}
			for _, decl := range s.file.Decls {
				switch d := decl.(type) {
				case *ast.FuncDecl:
					if d.Recv == nil && d.Name.Name == "init" {
						t.Errorf("%s: init function", s.fset.Position(d.Pos()))
					}
				case *ast.GenDecl:
					for _, spec := range d.Specs {
						v, ok := spec.(*ast.ValueSpec)
						if !ok || d.Tok.String() != "var" {
							continue
						}
						for _, name := range v.Names {
							if name.Name != "_" && !strings.HasPrefix(strings.ToLower(name.Name), "err") {
								t.Errorf("%s: package-level variable %s", s.fset.Position(name.Pos()), name.Name)
							}
						}
					}
				}
			}
		}
	}
}

// onlySizes reports whether all n uses of unsafe are compile-time sizes.
func onlySizes(text string, n int) bool {
	sizes := strings.Count(text, "unsafe.Sizeof(") + strings.Count(text, "unsafe.Offsetof(") + strings.Count(text, "unsafe.Alignof(")
	return sizes == n
}
