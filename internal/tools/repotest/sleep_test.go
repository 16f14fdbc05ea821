package repotest

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/internal/tools/typed"
)

// No test waits by sleeping but in a synctest bubble, where that takes no time: it is
// slow or flaky. Who sleeps is in a function literal that synctest.Test is given, or that a
// function is given which makes a bubble; in a table of a function that makes bubbles; or in
// a function that only such places use.
func TestNoSleepOutsideBubbles(t *testing.T) {
	for _, tags := range []string{"", "modelcheck"} {
		if tags != "" && testing.Short() {
			continue
		}
		for _, p := range loadTyped(t, "-test", "-tags="+tags, "./...") {
			for _, at := range sleeps(p) {
				if strings.HasSuffix(p.Path, "fuzz/internal/history") { // Client.Sleep panics outside of one
					continue
				}
				t.Errorf("%s sleeps outside of a synctest bubble", p.Fset.Position(at.Pos()))
			}
		}
	}
}

// reference is where a declaration uses another object.
type reference struct {
	ident  *ast.Ident
	by     types.Object // the function or the first variable that is declared
	bubble bool         // in a function literal that runs in a bubble
	table  bool         // in a function literal that a variable has
}

// sleeps returns where a package's functions sleep outside of a bubble.
func sleeps(p *typed.Package) (found []*ast.Ident) {
	uses, calls := map[types.Object][]reference{}, []reference{}
	makers := bubbleMakers(p)
	for _, f := range p.Files {
		for _, d := range f.Decls {
			w := &names{p: p, makers: makers, use: func(r reference) {
				if name := used(p, r.ident); name == "time.Sleep" {
					calls = append(calls, r)
				} else if o := p.Info.Uses[r.ident]; o != nil {
					uses[origin(o)] = append(uses[origin(o)], r)
				}
			}}
			by := declares(p, d)
			_, table := by.(*types.Var)
			w.walk(d, reference{by: by}, table)
		}
	}
	for _, r := range calls {
		if !inBubble(r, uses, makers, map[types.Object]bool{}) {
			found = append(found, r.ident)
		}
	}
	return found
}

// names finds references.
type names struct {
	p      *typed.Package
	makers map[types.Object]bool
	use    func(reference)
}

// walk finds those below n, which is in what at says.
func (w *names) walk(n ast.Node, at reference, table bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if !w.makes(n.Fun) {
				return true
			}
			w.walk(n.Fun, at, table)
			in := at
			in.bubble = true
			for _, arg := range n.Args {
				w.walk(arg, in, false)
			}
			return false
		case *ast.AssignStmt: // a function that is used by its name
			if len(n.Lhs) != len(n.Rhs) || n.Tok != token.DEFINE {
				return true
			}
			for i, e := range n.Rhs {
				in := at
				if _, ok := e.(*ast.FuncLit); ok && !at.bubble {
					if o := w.p.Info.Defs[n.Lhs[i].(*ast.Ident)]; o != nil {
						in.by = o
					}
				}
				w.walk(e, in, table)
			}
			return false
		case *ast.CompositeLit:
			in := at
			in.bubble = at.bubble || w.makers[at.by]
			for _, e := range n.Elts {
				w.walk(e, in, table)
			}
			return false
		case *ast.FuncLit:
			in := at
			in.table = table
			w.walk(n.Body, in, false)
			return false
		case *ast.Ident:
			in := at
			in.ident = n
			w.use(in)
		}
		return true
	})
}

// makes reports whether f makes a bubble for the functions that it is given.
func (w *names) makes(f ast.Expr) bool {
	made := false
	ast.Inspect(f, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			o := w.p.Info.Uses[id]
			made = made || used(w.p, id) == "testing/synctest.Test" || o != nil && w.makers[origin(o)] && takesFunction(o)
		}
		return true
	})
	return made
}

// takesFunction reports whether o is a function with one as a parameter.
func takesFunction(o types.Object) bool {
	s, ok := o.Type().(*types.Signature)
	if !ok {
		return false
	}
	for v := range s.Params().Variables() {
		if _, ok := v.Type().Underlying().(*types.Signature); ok {
			return true
		}
	}
	return false
}

// bubbleMakers returns the functions that call synctest.Test, or others that do.
func bubbleMakers(p *typed.Package) map[types.Object]bool {
	makers := map[types.Object]bool{}
	for before := -1; before != len(makers); {
		before = len(makers)
		for _, f := range p.Files {
			for _, d := range f.Decls {
				fd, ok := d.(*ast.FuncDecl)
				if !ok {
					continue
				}
				ast.Inspect(fd, func(n ast.Node) bool {
					if id, ok := n.(*ast.Ident); ok {
						if o := p.Info.Uses[id]; used(p, id) == "testing/synctest.Test" || o != nil && makers[origin(o)] {
							makers[p.Info.Defs[fd.Name]] = true
						}
					}
					return true
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

// declares returns the function that d declares, or the first variable, or nil.
func declares(p *typed.Package, d ast.Decl) types.Object {
	switch d := d.(type) {
	case *ast.FuncDecl:
		return p.Info.Defs[d.Name]
	case *ast.GenDecl:
		for _, s := range d.Specs {
			if v, ok := s.(*ast.ValueSpec); ok {
				return p.Info.Defs[v.Names[0]]
			}
		}
	}
	return nil
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
func careless() { later.Sleep(3) } // found
func TestBoth(t *testing.T) { careless(); synctest.Test(t, func(*testing.T) { careless() }) }
func TestOut(t *testing.T) { later.Sleep(4) } // found
var in, out = func() { later.Sleep(5) }, 0
var both = func() { later.Sleep(6) } // found
func TestVars(t *testing.T) { both(); TestVar(t) }
func TestVar(t *testing.T) { synctest.Test(t, func(*testing.T) { in() }) }
func TestNone(t *testing.T) { both() }
func each(t *testing.T, f func(int)) { synctest.Test(t, func(*testing.T) { f(1) }) }
func TestEach(t *testing.T) { each(t, func(n int) { later.Sleep(later.Duration(n)) }) }
func TestBeside(t *testing.T) {
	each(t, func(int) {})
	t.Run("", func(*testing.T) { later.Sleep(7) }) // found
	go func() { later.Sleep(8) }() // found
	wait := func() { later.Sleep(9) } // found
	wait()
	nap := func() { later.Sleep(10) }
	for _, f := range []func(){func() { later.Sleep(11) }, nap} {
		synctest.Test(t, func(*testing.T) { nap(); f() })
	}
}
`)
	var got, want []int
	for _, id := range sleeps(p) {
		got = append(got, p.Fset.Position(id.Pos()).Line)
	}
	for _, c := range p.Files[0].Comments {
		want = append(want, p.Fset.Position(c.Pos()).Line)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("found sleeps in lines %d, want %d", got, want)
	}
}
