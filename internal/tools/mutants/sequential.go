package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"math/big"
)

// sequential are the operators that break what one goroutine does.
var sequential = operators{breakConditions, breakExpressions, breakResults, removeStatements}

// sequentialNames are those that they give their mutants.
var sequentialNames = []string{"negated", "operand", "boundary", "arithmetic", "constant", "result", "removed"}

// breakConditions negates conditions.
func breakConditions(k *maker) {
	not := func(e ast.Expr) {
		if e != nil {
			k.replace("negated", e, "!("+k.text(e)+")")
		}
	}
	ast.Inspect(k.scope, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IfStmt:
			not(n.Cond)
		case *ast.ForStmt:
			not(n.Cond)
		case *ast.SwitchStmt:
			if n.Tag == nil {
				for _, c := range n.Body.List {
					for _, e := range c.(*ast.CaseClause).List {
						not(e)
					}
				}
			}
		}
		return true
	})
}

// other lists what is put in the place of operators.
var other = map[token.Token]struct {
	operator string
	by       token.Token
}{
	token.EQL: {"boundary", token.NEQ}, token.NEQ: {"boundary", token.EQL},
	token.LSS: {"boundary", token.LEQ}, token.LEQ: {"boundary", token.LSS},
	token.GTR: {"boundary", token.GEQ}, token.GEQ: {"boundary", token.GTR},

	token.ADD: {"arithmetic", token.SUB}, token.SUB: {"arithmetic", token.ADD},
	token.MUL: {"arithmetic", token.QUO}, token.QUO: {"arithmetic", token.MUL}, token.REM: {"arithmetic", token.MUL},
	token.AND: {"arithmetic", token.OR}, token.OR: {"arithmetic", token.AND}, token.AND_NOT: {"arithmetic", token.AND},
	token.XOR: {"arithmetic", token.AND},
	token.SHL: {"arithmetic", token.SHR}, token.SHR: {"arithmetic", token.SHL},

	token.ADD_ASSIGN: {"arithmetic", token.SUB_ASSIGN}, token.SUB_ASSIGN: {"arithmetic", token.ADD_ASSIGN},
	token.MUL_ASSIGN: {"arithmetic", token.QUO_ASSIGN}, token.QUO_ASSIGN: {"arithmetic", token.MUL_ASSIGN},
	token.AND_ASSIGN: {"arithmetic", token.OR_ASSIGN}, token.OR_ASSIGN: {"arithmetic", token.AND_ASSIGN},
	token.AND_NOT_ASSIGN: {"arithmetic", token.AND_ASSIGN},
	token.INC:            {"arithmetic", token.DEC}, token.DEC: {"arithmetic", token.INC},
}

// breakExpressions puts other operators and constants in their places.
func breakExpressions(k *maker) {
	whole := map[ast.Node]bool{} // conditions and results, which are negated as such
	swap := func(n ast.Node, op token.Token, pos token.Pos) {
		if o, ok := other[op]; ok {
			end := pos + token.Pos(len(op.String()))
			k.add(o.operator, k.between(pos, end)+" in "+k.line(n), edit{pos, end, o.by.String()})
		}
	}
	ast.Inspect(k.scope, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IfStmt:
			whole[n.Cond] = true
		case *ast.ForStmt:
			whole[n.Cond] = true
		case *ast.ReturnStmt:
			for _, e := range n.Results {
				whole[e] = true
			}
		case *ast.CaseClause:
			for _, e := range n.List {
				whole[e] = true
			}
		case *ast.BinaryExpr:
			if whole[n] && (n.Op == token.EQL || n.Op == token.NEQ) {
				break
			}
			if n.Op == token.LAND || n.Op == token.LOR || (n.Op == token.ADD || n.Op == token.SUB) && k.timed(n) {
				k.add("operand", k.text(n.X)+" in "+k.line(n), edit{n.Pos(), n.End(), k.text(n.Y)})
				k.add("operand", k.text(n.Y)+" in "+k.line(n), edit{n.Pos(), n.End(), k.text(n.X)})
			}
			swap(n, n.Op, n.OpPos)
		case *ast.AssignStmt:
			swap(n, n.Tok, n.TokPos)
		case *ast.IncDecStmt:
			swap(n, n.Tok, n.TokPos)
		case *ast.BasicLit:
			if i, ok := new(big.Int).SetString(n.Value, 0); ok && n.Kind == token.INT {
				k.constant(n, fmt.Sprint(i.Add(i, big.NewInt(1))))
			}
		case *ast.Ident:
			if k.info.Uses[n] == types.Universe.Lookup("true") {
				k.constant(n, "false")
			} else if k.info.Uses[n] == types.Universe.Lookup("false") {
				k.constant(n, "true")
			}
		}
		return true
	})
}

// timed reports whether e is a duration, or is made of one or of what the clock says.
func (k *maker) timed(e ast.Expr) (timed bool) {
	if t, ok := k.info.TypeOf(e).Underlying().(*types.Basic); !ok || t.Info()&types.IsNumeric == 0 || k.info.Types[e].Value != nil {
		return false // no number, or a constant, which has mutants of its own
	}
	ast.Inspect(e, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if x, is := n.(ast.Expr); is && typeName(k.info.TypeOf(x)) == "time.Duration" || ok && k.clocks[k.callee(call)] {
			timed = true
		}
		return !timed
	})
	return timed
}

// constant makes a mutant with another constant. Its line tells which it was.
func (k *maker) constant(n ast.Expr, by string) {
	line := k.fset.Position(n.Pos()).Line
	f := k.fset.File(n.Pos())
	end := f.Pos(f.Size())
	if line < f.LineCount() {
		end = f.LineStart(line+1) - 1
	}
	k.add("constant", k.text(n)+" in "+oneLine(k.between(f.LineStart(line), end)), edit{n.Pos(), n.End(), by})
}

// breakResults returns something else.
func breakResults(k *maker) {
	ast.Inspect(k.scope, func(n ast.Node) bool {
		r, ok := n.(*ast.ReturnStmt)
		if !ok {
			return true
		}
		for _, e := range r.Results {
			t := k.info.Types[e]
			if t.Type == nil || t.IsNil() {
				continue
			}
			by := ""
			switch u := t.Type.Underlying().(type) {
			case *types.Basic:
				if u.Info()&types.IsBoolean != 0 && t.Value == nil {
					by = "!(" + k.text(e) + ")"
				} else if u.Info()&types.IsNumeric != 0 && t.Value == nil {
					by = "(" + k.text(e) + ") + 1"
				}
			case *types.Interface, *types.Pointer, *types.Slice, *types.Map, *types.Signature:
				if _, ok := types.Unalias(t.Type).(*types.TypeParam); !ok {
					by = "nil"
				}
			}
			if by != "" {
				k.add("result", k.text(e)+" in "+k.line(r), edit{e.Pos(), e.End(), by})
			}
		}
		return true
	})
}

// removeStatements leaves out statements that act on nothing shared. The
// others are dropped with the concurrency.
func removeStatements(k *maker) {
	k.statements(func(list []ast.Stmt) {
		for _, s := range list {
			switch a := s.(type) {
			case *ast.AssignStmt:
				if a.Tok == token.DEFINE {
					continue
				}
			case *ast.ExprStmt, *ast.DeferStmt:
				if k.tells(s) != 0 {
					continue
				}
			case *ast.IncDecStmt:
			default:
				continue
			}
			if k.effect(s, true)&acts == 0 {
				k.replace("removed", s, k.orphans(s))
			}
		}
	})
}
