package main

import (
	"go/ast"
)

// changeOrder makes mutants in which two statements have changed places of
// which one acts on shared memory, and the other does too or writes:
//
//	swapped  two statements, the second first
//	late     a statement after the condition or result that follows it
func changeOrder(k *maker) {
	k.statements(func(list []ast.Stmt) {
		for i := 1; i < len(list); i++ {
			a, b := list[i-1], list[i]
			if !moves(a) || !k.matter(a, b) {
				continue
			}
			if e := decides(b); e != nil && simple(a) && k.effect(e, false)&acts != 0 {
				k.add("late", k.line(a)+" ⇢ "+k.line(b), edit{a.Pos(), a.End(), ""},
					edit{e.Pos(), e.Pos(), "broken.Late("}, edit{e.End(), e.End(), ", func() { " + k.text(a) + " })"})
				continue
			}
			if moves(b) {
				k.add("swapped", k.line(a)+" ⇄ "+k.line(b), edit{a.Pos(), b.End(), k.text(b) + "\n" + k.margin(a) + k.text(a)})
			}
		}
	})
}

// matter reports whether others can see in which order a and b run.
func (k *maker) matter(a, b ast.Stmt) bool {
	ea, eb := k.effect(a, false), k.effect(b, false)
	return ea != 0 && eb != 0 && (ea|eb)&acts != 0
}

// simple reports whether s can be the body of a function literal.
func simple(s ast.Stmt) bool {
	switch s.(type) {
	case *ast.ExprStmt, *ast.AssignStmt, *ast.IncDecStmt:
		return true
	}
	return false
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
