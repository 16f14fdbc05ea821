package main

import (
	"go/ast"
	"go/token"
)

// changeOrder makes mutants in which two statements have changed places of
// which one acts on shared memory, and the other does too or writes:
//
//	swapped  two statements, the second first
//	late     a statement after the condition or result that follows it
//	early    the first statement that depends on a condition, before it
func changeOrder(k *maker) {
	k.statements(func(list []ast.Stmt) {
		for i := 1; i < len(list); i++ {
			a, b := list[i-1], list[i]
			if !moves(a) || !k.matter(a, b) {
				continue
			}
			if e := decides(b); e != nil && simple(a) && !defines(a) && k.effect(e, false)&acts != 0 {
				k.add("late", k.line(a)+" ⇢ "+k.line(b), edit{a.Pos(), a.End(), ""},
					edit{e.Pos(), e.Pos(), "broken.Late("}, edit{e.End(), e.End(), ", func() { " + k.text(a) + " })"})
				continue
			}
			if moves(b) {
				k.add("swapped", k.line(a)+" ⇄ "+k.line(b), edit{a.Pos(), b.End(), k.text(b) + "\n" + k.margin(a) + k.text(a)})
			}
		}
		for _, s := range list {
			k.early(s)
		}
	})
}

// early makes a mutant of an if whose condition changes something, and then what is in it.
func (k *maker) early(s ast.Stmt) {
	c, ok := s.(*ast.IfStmt)
	if !ok || len(c.Body.List) == 0 {
		return
	}
	before := k.effect(c.Cond, false)
	if c.Init != nil {
		before |= k.effect(c.Init, false)
	}
	first := c.Body.List[0]
	if before&changes != 0 && simple(first) && k.effect(first, false) != 0 {
		k.add("early", k.line(first)+" ⇠ "+k.line(c), edit{c.Pos(), c.Pos(), k.text(first) + "\n" + k.margin(c)}, edit{first.Pos(), first.End(), ""})
	}
}

// matter reports whether others can see in which order a and b run.
func (k *maker) matter(a, b ast.Stmt) bool {
	ea, eb := k.effect(a, false)|k.tells(a), k.effect(b, false)|k.tells(b)
	return ea != 0 && eb != 0 && (ea|eb)&acts != 0
}

// tells returns writes if n calls a function that the package was given, or keeps: whoever
// is behind that learns of it.
func (k *maker) tells(n ast.Node) (e effect) {
	ast.Inspect(n, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && k.callee(call) == nil {
			_, literal := ast.Unparen(call.Fun).(*ast.FuncLit)
			if t := k.info.Types[call.Fun]; !literal && !t.IsType() && !t.IsBuiltin() {
				e = writes
			}
		}
		_, literal := n.(*ast.FuncLit)
		return !literal
	})
	return e
}

// simple reports whether s can be the body of a function literal.
func simple(s ast.Stmt) bool {
	switch s.(type) {
	case *ast.ExprStmt, *ast.AssignStmt, *ast.IncDecStmt:
		return true
	}
	return false
}

// defines reports whether s declares variables.
func defines(s ast.Stmt) bool {
	a, ok := s.(*ast.AssignStmt)
	return ok && a.Tok == token.DEFINE
}

// moves reports whether s can change places with a neighbour.
func moves(s ast.Stmt) bool {
	switch s.(type) {
	case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt, *ast.SwitchStmt, *ast.SelectStmt:
		return true
	}
	return simple(s)
}

// decides returns the condition of an if, or the one result of a return.
func decides(s ast.Stmt) ast.Expr {
	switch s := s.(type) {
	case *ast.IfStmt:
		if s.Init == nil {
			return s.Cond
		}
	case *ast.ReturnStmt:
		if len(s.Results) == 1 {
			return s.Results[0]
		}
	}
	return nil
}
