package repotest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

// What blocks, and what starts goroutines, goes through internal/atomics too:
// the model checker knows nothing of channels, of sync, or of a goroutine that
// it did not start. Mutexes and events have twins there.
func TestBlockingGoesThroughTheSeam(t *testing.T) {
	for _, pkg := range importable {
		sources, err := parseDir(pkg, false)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range sources {
			for _, n := range beside(s.file) {
				t.Errorf("%s: %s is beside the seam internal/atomics", s.fset.Position(n.node.Pos()), n.what)
			}
		}
	}
}

type finding struct {
	node ast.Node
	what string
}

// beside finds what blocks or starts goroutines without internal/atomics.
func beside(f *ast.File) (found []finding) {
	ast.Inspect(f, func(n ast.Node) bool {
		what := ""
		switch n := n.(type) {
		case *ast.GoStmt:
			what = "a go statement"
		case *ast.SelectStmt:
			what = "a select statement"
		case *ast.SendStmt:
			what = "a send"
		case *ast.UnaryExpr:
			if n.Op == token.ARROW {
				what = "a receive"
			}
		case *ast.SelectorExpr:
			pkg, ok := n.X.(*ast.Ident)
			if !ok {
				break
			}
			if name := pkg.Name + "." + n.Sel.Name; pkg.Name == "sync" || derivesContexts(name) {
				what = name
			}
		}
		if what != "" {
			found = append(found, finding{n, what})
		}
		return true
	})
	return found
}

// derivesContexts reports whether the function makes a context that ends by
// itself, or calls when one ends. WithoutCancel and WithValue do not.
func derivesContexts(name string) bool {
	for _, prefix := range []string{"context.WithCancel", "context.WithTimeout", "context.WithDeadline", "context.AfterFunc"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

func TestBlockingIsFound(t *testing.T) {
	f := parse(t, `package p
func f(c chan int) {
	go f(c)
	c <- <-c
	select {}
	var mu sync.Mutex
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 1)
}`)
	var got []string
	for _, n := range beside(f) {
		got = append(got, n.what)
	}
	want := "a go statement, a send, a receive, a select statement, sync.Mutex, context.WithTimeout"
	if strings.Join(got, ", ") != want {
		t.Errorf("found %q, want %q", got, want)
	}
}

func parse(t *testing.T, source string) *ast.File {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "", source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return f
}
