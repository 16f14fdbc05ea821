package main

import (
	"go/ast"
)

// doAtOnce makes mutants that do at once what the source does later: when the function
// returns, or when a while has passed.
func doAtOnce(k *maker) {
	ast.Inspect(k.scope, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.DeferStmt:
			k.add("hasty", k.line(n), edit{n.Pos(), n.Call.Pos(), ""})
		case *ast.CallExpr:
			if f := k.callee(n); f != nil && f.Pkg() != nil && f.Pkg().Path() == module+"/internal/atomics" {
				for _, arg := range n.Args {
					if typeName(k.info.TypeOf(arg)) == "time.Duration" {
						k.add("hasty", k.text(arg)+" in "+k.line(n), edit{arg.Pos(), arg.End(), "0"})
					}
				}
			}
		}
		return true
	})
}
