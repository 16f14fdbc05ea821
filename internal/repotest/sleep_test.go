package repotest

import (
	"go/ast"
	"go/types"
	"strings"
	"testing"
)

// No test waits by sleeping but in a synctest bubble, where that takes no time: it is
// slow or flaky. Who sleeps is in a function literal of a function that makes bubbles,
// itself or by calling one that does; or in a function that only such literals use.
func TestNoSleepOutsideBubbles(t *testing.T) {
	folders := append([]string{"fuzz", "internal/atomics", "internal/leak", "internal/table", "bench", "bench/internal/locked"}, importable...)
	packages, err := loadTyped(true, folders...)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range packages {
		for _, at := range p.sleeps() {
			t.Errorf("%s sleeps outside of a synctest bubble", p.fset.Position(at.Pos()))
		}
	}
}

// reference is where a declaration uses another object.
type reference struct {
	ident  *ast.Ident
	by     types.Object // the function or the first variable that is declared
	bubble bool         // in a function literal of a maker of bubbles
	table  bool         // in a function literal that a variable has
}

// sleeps returns where a package's functions sleep outside of a bubble.
func (t typed) sleeps() (found []*ast.Ident) {
	uses, calls := map[types.Object][]reference{}, []reference{}
	makers := t.bubbleMakers()
	for _, f := range t.files {
		for _, d := range f.Decls {
			by := t.declared(d)
			eachName(d, false, func(id *ast.Ident, literal bool) {
				_, table := by.(*types.Var)
				r := reference{id, by, literal && makers[by], literal && table}
				if t.used(id) == "time.Sleep" {
					calls = append(calls, r)
				} else if o := t.info.Uses[id]; o != nil {
					uses[origin(o)] = append(uses[origin(o)], r)
				}
			})
		}
	}
	for _, r := range calls {
		if !inBubble(r, uses, makers, map[types.Object]bool{}) {
			found = append(found, r.ident)
		}
	}
	return found
}

// bubbleMakers returns the functions that call synctest.Test, or others that do.
func (t typed) bubbleMakers() map[types.Object]bool {
	makers := map[types.Object]bool{}
	for before := -1; before != len(makers); {
		before = len(makers)
		for _, f := range t.files {
			for _, d := range f.Decls {
				fd, ok := d.(*ast.FuncDecl)
				if !ok {
					continue
				}
				eachName(fd, false, func(id *ast.Ident, _ bool) {
					if o := t.info.Uses[id]; t.used(id) == "testing/synctest.Test" || o != nil && makers[origin(o)] {
						makers[t.info.Defs[fd.Name]] = true
					}
				})
			}
		}
	}
	return makers
}

// inBubble reports whether r, or whatever uses the function that it is in, is in a
// bubble. What nobody uses, as a test, is not. The functions in a variable are, if only
// makers of bubbles use that.
func inBubble(r reference, uses map[types.Object][]reference, makers, seen map[types.Object]bool) bool {
	if r.bubble || seen[r.by] {
		return true
	}
	seen[r.by] = true
	for _, by := range uses[r.by] {
		if r.table && makers[by.by] {
			continue
		}
		if !inBubble(by, uses, makers, seen) {
			return false
		}
	}
	return len(uses[r.by]) > 0
}

// declared returns the function that d declares, or the first variable, or nil.
func (t typed) declared(d ast.Decl) types.Object {
	switch d := d.(type) {
	case *ast.FuncDecl:
		return t.info.Defs[d.Name]
	case *ast.GenDecl:
		for _, s := range d.Specs {
			if v, ok := s.(*ast.ValueSpec); ok {
				return t.info.Defs[v.Names[0]]
			}
		}
	}
	return nil
}

// eachName calls f for each name below n, and says whether it is in a function literal.
func eachName(n ast.Node, literal bool, f func(id *ast.Ident, literal bool)) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			if !literal {
				eachName(n, true, f)
				return false
			}
		case *ast.Ident:
			f(n, literal)
		}
		return true
	})
}

// origin returns the function that o is an instance of, or o.
func origin(o types.Object) types.Object {
	if f, ok := o.(*types.Func); ok {
		return f.Origin()
	}
	return o
}

func TestSleepIsFound(t *testing.T) {
	p := typedSource(t, `package p
import (
	"testing"
	"testing/synctest"
	later "time"
)
func helper() { later.Sleep(1) }
func TestIn(t *testing.T) { synctest.Test(t, func(*testing.T) { helper(); later.Sleep(2) }) }
func careless() { later.Sleep(3) }
func TestBoth(t *testing.T) { careless(); synctest.Test(t, func(*testing.T) { careless() }) }
func TestOut(t *testing.T) { later.Sleep(4) }
var in, out = func() { later.Sleep(5) }, 0
var both = func() { later.Sleep(6) }
func TestVars(t *testing.T) { both(); TestVar(t) }
func TestVar(t *testing.T) { synctest.Test(t, func(*testing.T) { in() }) }
func TestNone(t *testing.T) { both() }
`)
	var lines []string
	for _, id := range p.sleeps() {
		lines = append(lines, p.fset.Position(id.Pos()).String())
	}
	if got, want := strings.Join(lines, " "), "p.go:9:25 p.go:11:36 p.go:13:27"; got != want {
		t.Errorf("found sleeps at %s, want %s", got, want)
	}
}
