package repotest

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/internal/tools/typed"
)

// What blocks, and what starts goroutines, goes through internal/atomics: the model
// checker knows nothing of channels, of sync, of timers, or of a goroutine that it did
// not start. Mutexes and events have twins there.
func TestBlockingGoesThroughTheSeam(t *testing.T) {
	seen := map[string]bool{}
	for tags, folders := range map[string][]string{"": library(t), "purego": {"internal/table"}} {
		for _, p := range loadTyped(t, append([]string{"-tags=" + tags}, patterns(folders)...)...) {
			for _, f := range p.Files {
				seen[p.Fset.Position(f.Pos()).Filename] = true
				if p.Path == seam {
					continue
				}
				for _, n := range beside(p, f) {
					t.Errorf("%s: %s is beside the seam internal/atomics", p.Fset.Position(n.node.Pos()), n.what)
				}
			}
		}
	}
	for _, pkg := range library(t) {
		sources, err := parseDir(pkg, false)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range sources {
			path, err := filepath.Abs(filepath.Join(root, s.name))
			if err != nil {
				t.Fatal(err)
			}
			if !seen[path] && !strings.HasSuffix(path, "_mc.go") && !slices.Contains(elsewhere, s.name) {
				t.Errorf("%s is in no build that this test reads", s.name)
			}
		}
	}
}

// seam is the package in which blocking and shared words have twins.
const seam = modulePath + "/internal/atomics"

// elsewhere lists the files of other systems and processors.
var elsewhere = []string{"internal/folder/lock_other.go", "internal/goid/token_other.go"}

// patterns returns how go list is asked for the packages in folders.
func patterns(folders []string) (all []string) {
	for _, f := range folders {
		all = append(all, "./"+f)
	}
	return all
}

type finding struct {
	node ast.Node
	what string
}

// beside finds what blocks or starts goroutines without internal/atomics.
func beside(p *typed.Package, f *ast.File) (found []finding) {
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
			if overChannel(p.Info.TypeOf(n.X)) {
				what = "a loop over a channel"
			}
		case *ast.Ident:
			if name := used(p, n); blocks(name) {
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

// overChannel reports whether who loops over a t receives: from a channel, or from what
// a type parameter stands for if that may be one.
func overChannel(t types.Type) bool {
	switch u := t.Underlying().(type) {
	case *types.Chan:
		return true
	case *types.Interface: // of a type parameter, which alone can be looped over
		for e := range u.EmbeddedTypes() {
			if overChannel(e) {
				return true
			}
		}
	case *types.Union:
		for term := range u.Terms() {
			if overChannel(term.Type()) {
				return true
			}
		}
	}
	return false
}

// used returns what a name stands for if that belongs to another package, as
// "sync.Mutex" or "time.Sleep", whatever name the file imports that package under.
func used(p *typed.Package, id *ast.Ident) string {
	o := p.Info.Uses[id]
	if o == nil || o.Pkg() == nil || o.Parent() != o.Pkg().Scope() {
		return ""
	}
	return o.Pkg().Path() + "." + o.Name()
}

// blocks reports whether what another package exports waits, makes others wait, or runs
// something later. Contexts that never end, of WithoutCancel and WithValue, do not.
func blocks(name string) bool {
	for _, prefix := range []string{
		"sync.", "context.WithCancel", "context.WithTimeout", "context.WithDeadline", "context.AfterFunc",
		"time.Sleep", "time.After", "time.Tick", "time.NewTimer", "time.NewTicker", "time.Timer",
		"iter.Pull",
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
	. "iter"
	other "sync"
	"time"
)
type channel interface { chan int | ~<-chan int }
func f[C channel, F interface { ~func(func() bool) }](c chan int, d C, g F, ctx context.Context) {
	go f(c, d, g, ctx)
	c <- <-c
	select {}
	for range c {}
	for range d {}
	for range g {}
	for range 2 {}
	var mu other.Mutex
	mu.Lock()
	_, _ = context.WithTimeout(context.WithoutCancel(ctx), 1)
	time.AfterFunc(time.Second, nil)
	_ = time.NewTimer
	_, _ = Pull[int](nil)
}`)
	var got []string
	for _, n := range beside(p, p.Files[0]) {
		got = append(got, n.what)
	}
	want := "a go statement, a send, a receive, a select statement, a loop over a channel, a loop over a channel, " +
		"sync.Mutex, context.WithTimeout, time.AfterFunc, time.NewTimer, iter.Pull"
	if strings.Join(got, ", ") != want {
		t.Errorf("found %q, want %q", got, want)
	}
}

// typedSource resolves the names of a file that imports the standard library.
func typedSource(t *testing.T, text string) *typed.Package {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "p.go", text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	p := &typed.Package{Path: "p", Files: []*ast.File{f}, Fset: fset, Info: typed.NewInfo()}
	compiled := func(path string) (io.ReadCloser, error) {
		file, err := goTool(".", "list", "-export", "-f", "{{.Export}}", path)
		if err != nil {
			return nil, err
		}
		return os.Open(strings.TrimSpace(file))
	}
	if p.Types, err = (&types.Config{Importer: importer.ForCompiler(fset, "gc", compiled)}).Check("p", fset, p.Files, p.Info); err != nil {
		t.Fatal(err)
	}
	return p
}
