package main

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// A reading is a variable that holds what was loaded from a shared word, a moment, or the
// event that the next wake-up fires.
type reading struct {
	stmt     *ast.AssignStmt
	variable *ast.Ident
	load     ast.Expr // with conversions, and methods of what was loaded
}

// breakLoads makes mutants that read a word, or the clock, at another time:
//
//	reread   where the source uses what it read, they read again
//	stale    where the source reads again, they use what they read before
//	hoisted  what the source reads in each round of a loop, they read once
func breakLoads(k *maker) {
	var readings []reading
	of := map[ast.Stmt]bool{}
	ast.Inspect(k.scope, func(n ast.Node) bool {
		s, ok := n.(*ast.AssignStmt)
		if !ok || s.Tok != token.DEFINE || len(s.Lhs) != len(s.Rhs) {
			return true
		}
		for i, e := range s.Rhs {
			if k.loads(e) {
				readings = append(readings, reading{s, s.Lhs[i].(*ast.Ident), e})
				of[s] = len(s.Rhs) == 1
			}
		}
		return true
	})
	for _, r := range readings {
		k.reread(r)
		k.stale(r)
	}
	ast.Inspect(k.scope, func(n ast.Node) bool {
		if loop, ok := n.(*ast.ForStmt); ok {
			for _, s := range loop.Body.List {
				if of[s] {
					k.add("hoisted", k.line(s),
						edit{loop.Pos(), loop.Pos(), k.text(s) + "\n" + k.margin(loop)},
						edit{s.Pos(), s.End(), ""})
				}
			}
		}
		return true
	})
}

// findClocks fills t.clocks.
func (t *target) findClocks() {
	t.clocks = map[*types.Func]bool{}
	t.functions(func(_ *source, d *ast.FuncDecl) {
		reads, other := false, false
		ast.Inspect(d.Body, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if a := t.action(n); a != nil && a.family == clock {
				reads = true
			} else if ok && (a != nil || t.effects[t.callee(call)] != 0) {
				other = true
			}
			return true
		})
		f, _ := t.info.Defs[d.Name].(*types.Func)
		s := f.Signature()
		t.clocks[f] = reads && !other && !f.Exported() && s.Params().Len() == 0 && s.Results().Len() == 1
	})
}

// loads reports whether e is a load, perhaps converted, or a method without
// arguments of one.
func (k *maker) loads(e ast.Expr) bool {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return false
	}
	if a := k.action(call); a != nil {
		return a.verb == "Load" || a.verb == "Event" || a.family == clock
	}
	if k.clocks[k.callee(call)] {
		return true
	}
	if k.info.Types[call.Fun].IsType() {
		return len(call.Args) == 1 && k.loads(call.Args[0])
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	return ok && len(call.Args) == 0 && k.loads(sel.X)
}

// reread makes a mutant for each use of the variable.
func (k *maker) reread(r reading) {
	object := k.info.Defs[r.variable]
	if object == nil {
		return
	}
	var within []ast.Node
	ast.Inspect(k.scope, func(n ast.Node) bool {
		if n == nil {
			within = within[:len(within)-1]
			return false
		}
		within = append(within, n)
		if id, ok := n.(*ast.Ident); ok && k.info.Uses[id] == object && !assigned(within) {
			edits := []edit{{id.Pos(), id.End(), k.text(r.load)}}
			if left := k.orphans(id); left != "" {
				edits = append(edits, edit{r.stmt.End(), r.stmt.End(), "; " + left})
			}
			k.add("reread", id.Name+" in "+k.line(statement(within)), edits...)
		}
		return true
	})
}

// assigned reports whether the last of the nodes, each within the one before
// it, is assigned to.
func assigned(within []ast.Node) bool {
	parent, n := within[len(within)-2], within[len(within)-1]
	switch p := parent.(type) {
	case *ast.AssignStmt:
		return slices.ContainsFunc(p.Lhs, func(x ast.Expr) bool { return x == n })
	case *ast.IncDecStmt:
		return true
	case *ast.UnaryExpr:
		return p.Op == token.AND
	}
	return false
}

// statement returns the innermost statement among nodes.
func statement(within []ast.Node) ast.Node {
	for i := len(within) - 1; i > 0; i-- {
		if s, ok := within[i].(ast.Stmt); ok {
			return s
		}
	}
	return within[len(within)-1]
}

// stale makes a mutant for each later expression that reads the same.
func (k *maker) stale(r reading) {
	text := k.text(r.load)
	ast.Inspect(k.scope, func(n ast.Node) bool {
		e, ok := n.(ast.Expr)
		if ok && e.Pos() > r.stmt.End() && k.text(e) == text {
			k.replace("stale", e, r.variable.Name)
		}
		return true
	})
}
