package main

import (
	"go/ast"
	"go/types"
	"strings"
)

// breakContexts makes mutants that know less of a context:
//
//	detached  what asks a context, or is given one, has one that never ends
//	causeless what ends a context, or asks why it has ended, loses the cause
func breakContexts(k *maker) {
	ast.Inspect(k.scope, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok && k.isContext(k.receiver(call)) {
			k.detach(sel.X, call)
		}
		sig, ok := k.info.TypeOf(call.Fun).Underlying().(*types.Signature)
		if !ok {
			return true // a conversion, or built in
		}
		for i, arg := range call.Args {
			if i >= sig.Params().Len() {
				break
			}
			t := sig.Params().At(i).Type()
			if k.info.Types[arg].IsNil() {
				continue
			}
			if k.isContext(t) {
				k.detach(arg, call)
			}
			if k.takesCause(call) && types.Identical(t, types.Universe.Lookup("error").Type()) {
				k.add("causeless", k.text(arg)+" in "+k.line(call), edit{arg.Pos(), arg.End(), "nil"})
			}
		}
		if f := k.callee(call); f != nil && f.FullName() == "context.Cause" {
			k.replace("causeless", call, k.text(call.Args[0])+".Err()")
		}
		return true
	})
}

// detach puts another context in the place of e, of which the call asks something.
func (k *maker) detach(e ast.Expr, in *ast.CallExpr) {
	if call, ok := ast.Unparen(e).(*ast.CallExpr); ok {
		if f := k.callee(call); f != nil && f.FullName() == "context.Background" {
			return
		}
	}
	k.add("detached", k.text(e)+" in "+k.line(in), edit{e.Pos(), e.End(), "broken.Detached(" + k.text(e) + ")"})
}

// receiver returns the type whose method is called, or nil.
func (k *maker) receiver(call *ast.CallExpr) types.Type {
	if f := k.callee(call); f != nil && f.Signature().Recv() != nil {
		return f.Signature().Recv().Type()
	}
	return nil
}

// isContext reports whether t is context.Context.
func (k *maker) isContext(t types.Type) bool { return t != nil && typeName(t) == "context.Context" }

// takesCause reports whether the errors that a call is given are why a context ends.
func (k *maker) takesCause(call *ast.CallExpr) bool {
	f := k.callee(call)
	return typeName(k.info.TypeOf(call.Fun)) == "context.CancelCauseFunc" || f != nil && strings.HasSuffix(f.Name(), "Cause")
}
