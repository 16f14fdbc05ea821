package main

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// concurrency are the operators that break synchronisation.
var concurrency = operators{breakActions, dropStatements, breakLoads, changeOrder, breakContexts, doAtOnce}

// concurrencyNames are those that they give their mutants.
var concurrencyNames = []string{"torn", "forced", "skipped", "failed", "dropped", "reread", "stale", "hoisted", "swapped", "late", "early", "detached", "causeless", "hasty"}

// brokenly lists the ways to break an action that package broken knows.
var brokenly = map[string][]string{
	"CompareAndSwap":        {"torn", "forced", "skipped", "failed"},
	"Swap":                  {"torn", "skipped"},
	"Add":                   {"torn", "skipped"},
	"And":                   {"torn", "skipped"},
	"Or":                    {"torn", "skipped"},
	"Install":               {"torn", "forced"},
	"TryLock":               {"failed"},
	"WaitContext":           {"skipped"},
	"TableLoadOrStore":      {"torn", "forced", "skipped"},
	"TableSwap":             {"torn", "skipped"},
	"TableLoadAndDelete":    {"torn", "skipped"},
	"TableCompareAndSwap":   {"torn", "forced", "skipped", "failed"},
	"TableCompareAndDelete": {"torn", "forced", "skipped", "failed"},
	"TableRemove":           {"torn", "forced"},
	"TableCompute":          {"torn", "skipped"},
	"MapLoadOrStore":        {"torn", "skipped"},
	"MapLoadAndStore":       {"torn", "skipped"},
	"MapLoadAndDelete":      {"torn", "skipped"},
	"MapCompute":            {"torn", "skipped"},
}

// breakActions calls package broken in place of an action. Where nobody looks
// at what the action returns, to skip it is to drop it, which is done below.
func breakActions(k *maker) {
	ignored := map[*ast.CallExpr]bool{}
	ast.Inspect(k.scope, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ExprStmt:
			if call, ok := n.X.(*ast.CallExpr); ok {
				ignored[call] = true
			}
		case *ast.CallExpr:
			a := k.action(n)
			if a == nil || a.via == nil && k.wraps() {
				break
			}
			for _, how := range brokenly[a.family.String()+a.verb] {
				if !ignored[n] || how == "torn" || how == "forced" {
					k.replace(how, n, k.broken(a, title(how)+a.family.String()+a.verb))
				}
			}
		}
		return true
	})
}

// wraps reports whether the current scope is a wrapper.
func (k *maker) wraps() bool {
	d, ok := k.scope.(*ast.FuncDecl)
	if !ok {
		return false
	}
	f, _ := k.info.Defs[d.Name].(*types.Func)
	return k.wrappers[f] != nil
}

// broken returns a call of a function of package broken in place of a.
func (k *maker) broken(a *action, function string) string {
	if a.via == nil {
		return "broken." + function + "(" + strings.Join(append([]string{k.pointer(a.recv)}, k.args(a.call)...), ", ") + ")"
	}
	// The wrapper's body becomes a function literal whose first parameter is
	// the receiver.
	d := a.via.decl
	recv := d.Recv.List[0]
	params := []string{k.text(recv)}
	if len(d.Type.Params.List) > 0 {
		list := d.Type.Params
		params = append(params, k.between(list.Opening+1, list.Closing))
	}
	result, ret := "", ""
	if d.Type.Results != nil {
		result, ret = k.text(d.Type.Results), "return "
	}
	body := d.Body.List[0]
	if r, ok := body.(*ast.ReturnStmt); ok {
		body = &ast.ExprStmt{X: r.Results[0]}
	}
	inner := a.via.inner
	text := k.between(body.Pos(), inner.call.Pos()) + k.broken(inner, function) + k.between(inner.call.End(), body.End())
	object := k.text(a.recv)
	if _, ok := recv.Type.(*ast.StarExpr); ok {
		object = k.pointer(a.recv)
	}
	return "func(" + strings.Join(params, ", ") + ") " + result + " { " + ret + text + " }(" +
		strings.Join(append([]string{object}, k.args(a.call)...), ", ") + ")"
}

// pointer returns the source of a pointer to what x is, or points to.
func (k *maker) pointer(x ast.Expr) string {
	if _, ok := types.Unalias(k.info.Types[x].Type).Underlying().(*types.Pointer); ok {
		return k.text(x)
	}
	return "&" + k.text(x)
}

func (k *maker) args(call *ast.CallExpr) (args []string) {
	for _, a := range call.Args {
		args = append(args, k.text(a))
	}
	return args
}

// dropStatements leaves out statements that do nothing but act, or call a
// function of the package that does, or one that it was given.
func dropStatements(k *maker) {
	k.statements(func(list []ast.Stmt) {
		for _, s := range list {
			var call ast.Expr
			switch s := s.(type) {
			case *ast.ExprStmt:
				call = s.X
			case *ast.DeferStmt:
				call = s.Call
			case *ast.AssignStmt:
				if s.Tok != token.DEFINE && k.effect(s, true)&acts != 0 {
					k.drop(s)
				}
				continue
			default:
				continue
			}
			if k.tells(call) != 0 || k.effect(call, true)&acts != 0 && (k.action(call) == nil || k.action(call).verb != "Load") {
				k.drop(s)
			}
		}
	})
}

func (k *maker) drop(s ast.Stmt) { k.replace("dropped", s, k.orphans(s)) }

// orphans returns statements that use the variables that nothing but n uses, so that
// what is left compiles without it.
func (k *maker) orphans(n ast.Node) (uses string) {
	type count struct{ all, here int }
	counts := map[types.Object]*count{}
	var order []types.Object
	set := map[*ast.Ident]bool{} // only written
	ast.Inspect(k.scope, func(x ast.Node) bool {
		switch x := x.(type) {
		case *ast.AssignStmt:
			for _, to := range x.Lhs {
				if id, ok := to.(*ast.Ident); ok {
					set[id] = true
				}
			}
		case *ast.Ident:
			v, ok := k.info.Uses[x].(*types.Var)
			if !ok || set[x] || v.IsField() || v.Kind() != types.LocalVar || v.Pos() >= n.Pos() && v.Pos() < n.End() {
				break
			}
			if counts[v] == nil {
				counts[v] = &count{}
				order = append(order, v)
			}
			counts[v].all++
			if x.Pos() >= n.Pos() && x.End() <= n.End() {
				counts[v].here++
			}
		}
		return true
	})
	for _, v := range order {
		if c := counts[v]; c.all == c.here {
			uses += "; _ = " + v.Name()
		}
	}
	return strings.TrimPrefix(uses, "; ")
}

// statements calls f for every list of statements in the current scope.
func (k *maker) statements(f func([]ast.Stmt)) {
	if k.wraps() {
		return // its calls are broken one by one
	}
	ast.Inspect(k.scope, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BlockStmt:
			f(n.List)
		case *ast.CaseClause:
			f(n.Body)
		case *ast.CommClause:
			f(n.Body)
		}
		return true
	})
}

// title returns an ASCII word with a capital.
func title(word string) string { return strings.ToUpper(word[:1]) + word[1:] }
