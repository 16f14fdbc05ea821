package repotest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

var (
	progress   = regexp.MustCompile(`\bis (wait-free|lock-free|blocking)\b`)
	takeEffect = regexp.MustCompile(`\btakes?\s+effect\b`)
)

// Every operation on a shared type says how it progresses and when it takes
// effect, in its doc and, for a public package, in a row of its DESIGN.md.
func TestOperationsAreDocumented(t *testing.T) {
	for _, pkg := range slices.Concat(public, parts) {
		t.Run(pkg, func(t *testing.T) {
			sources, err := parseDir(pkg, false)
			if err != nil {
				t.Fatal(err)
			}
			var design []byte
			isPart := slices.Contains(parts, pkg)
			if !isPart {
				if design, err = os.ReadFile(filepath.Join(root, pkg, "DESIGN.md")); err != nil {
					t.Fatal(err)
				}
			}
			ops := operations(pkg, sources)
			if len(ops) < 5 && !isPart || len(ops) < 3 {
				t.Fatalf("found only %d operations; does the test still see the shared types?", len(ops))
			}
			for _, op := range ops {
				if !progress.MatchString(op.doc) {
					t.Errorf("%s: %s.%s: its doc does not say whether it is wait-free, lock-free or blocking", op.pos, op.typeName, op.name())
				}
				if !takeEffect.MatchString(op.doc) {
					t.Errorf("%s: %s.%s: its doc does not say when it takes effect", op.pos, op.typeName, op.name())
				}
				row := regexp.MustCompile("(?m)^\\|[^|]*`([A-Za-z]+\\.)?" + op.name() + "(\\([^`|]*\\))?`")
				if !isPart && !row.Match(design) {
					t.Errorf("%s/DESIGN.md has no row for %s.%s in its table of where operations take effect", pkg, op.typeName, op.name())
				}
			}
		})
	}
}

// Every exported name has a doc comment that starts with the name.
func TestExportedNamesAreDocumented(t *testing.T) {
	for _, pkg := range importable(t) {
		sources, err := parseDir(pkg, false)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range sources {
			for _, missing := range undocumented(s) {
				t.Errorf("%s: no doc comment that starts with the name", missing)
			}
		}
	}
}

// No exported struct embeds an unexported generic type: go doc shows that, as it does not a plain one.
func TestDocsShowNoUnexportedTypes(t *testing.T) {
	for _, pkg := range importable(t) {
		sources, err := parseDir(pkg, false)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range sources {
			for _, f := range hiddenEmbeds(s.file) {
				t.Errorf("%s: an exported type embeds an unexported generic one", s.fset.Position(f.Pos()))
			}
		}
	}
	f, err := parser.ParseFile(token.NewFileSet(), "", `package p
type (
	A struct { Other; *other.Other; b int }
	B[T any] struct { other[T] }
	C struct { *other[int]; plain }
	d struct { other[int] }
)`, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	if got := len(hiddenEmbeds(f)); got != 2 {
		t.Errorf("found %d unexported embedded types in the sample, want 2", got)
	}
}

// hiddenEmbeds returns the fields by which exported structs of a file embed unexported generic types.
func hiddenEmbeds(f *ast.File) (fields []*ast.Field) {
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || !spec.Name.IsExported() {
			return true
		}
		if s, ok := spec.Type.(*ast.StructType); ok {
			for _, field := range s.Fields.List {
				if name, _ := baseType(field.Type); len(field.Names) == 0 && name != "" && !ast.IsExported(name) && isGeneric(field.Type) {
					fields = append(fields, field)
				}
			}
		}
		return true
	})
	return fields
}

// isGeneric reports whether a type, or what it points to, has type arguments.
func isGeneric(e ast.Expr) bool {
	if star, ok := e.(*ast.StarExpr); ok {
		e = star.X
	}
	switch e.(type) {
	case *ast.IndexExpr, *ast.IndexListExpr:
		return true
	}
	return false
}
