package repotest

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"strings"
	"testing"
)

// What blocks, and what starts goroutines, goes through internal/atomics: the model
// checker knows nothing of channels, of sync, of timers, or of a goroutine that it did
// not start. Mutexes and events have twins there.
func TestBlockingGoesThroughTheSeam(t *testing.T) {
	packages, err := loadTyped(false, append([]string{"internal/table"}, importable...)...)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range packages {
		for _, f := range p.files {
			for _, n := range p.beside(f) {
				t.Errorf("%s: %s is beside the seam internal/atomics", p.fset.Position(n.node.Pos()), n.what)
			}
		}
	}
}

type finding struct {
	node ast.Node
	what string
}

// beside finds what blocks or starts goroutines without internal/atomics.
func (t typed) beside(f *ast.File) (found []finding) {
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
		case *ast.RangeStmt:
			if _, ok := t.info.TypeOf(n.X).Underlying().(*types.Chan); ok {
				what = "a loop over a channel"
			}
		case *ast.Ident:
			if name := t.used(n); blocks(name) {
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

// blocks reports whether what another package exports waits, makes others wait, or runs
// something later. Contexts that never end, of WithoutCancel and WithValue, do not.
func blocks(name string) bool {
	for _, prefix := range []string{
		"sync.", "context.WithCancel", "context.WithTimeout", "context.WithDeadline", "context.AfterFunc",
		"time.Sleep", "time.After", "time.Tick", "time.NewTimer", "time.NewTicker",
	} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

func TestBlockingIsFound(t *testing.T) {
	p := typedSource(t, `package p
import (
	"context"
	other "sync"
	"time"
)
func f(c chan int, ctx context.Context) {
	go f(c, ctx)
	c <- <-c
	select {}
	for range c {}
	var mu other.Mutex
	mu.Lock()
	_, _ = context.WithTimeout(context.WithoutCancel(ctx), 1)
	time.AfterFunc(time.Second, nil)
}`)
	var got []string
	for _, n := range p.beside(p.files[0]) {
		got = append(got, n.what)
	}
	want := "a go statement, a send, a receive, a select statement, a loop over a channel, sync.Mutex, context.WithTimeout, time.AfterFunc"
	if strings.Join(got, ", ") != want {
		t.Errorf("found %q, want %q", got, want)
	}
}

// typedSource resolves the names of a file that imports the standard library.
func typedSource(t *testing.T, text string) (p typed) {
	t.Helper()
	p.fset = token.NewFileSet()
	f, err := parser.ParseFile(p.fset, "p.go", text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	p.files = []*ast.File{f}
	err = p.check(func(path string) (io.ReadCloser, error) {
		file, err := goTool(root, "list", "-export", "-f={{.Export}}", path)
		if err != nil {
			return nil, err
		}
		return os.Open(string(bytes.TrimSpace([]byte(file))))
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}
