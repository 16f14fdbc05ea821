package main

import (
	"go/ast"
	"go/token"
	"go/types"
)

// An action is a call that acts on shared memory, through internal/atomics,
// internal/table or xsync.
type action struct {
	call   *ast.CallExpr
	family family
	verb   string   // the method's name
	recv   ast.Expr // nil for the clock
	via    *wrapper // nil if the call is the action itself
}

type family int

const (
	word family = iota
	table
	syncMap
	blocking // Mutex, WaitGroup, Event, Waker
	clock
)

// functions returns what package broken calls the action's family.
func (f family) String() string { return [...]string{"", "Table", "Map", "", ""}[f] }

// A wrapper is a method that does nothing but one action on its receiver. Its
// calls are actions, so that each is broken alone.
type wrapper struct {
	decl  *ast.FuncDecl
	inner *action
}

// shared lists the types whose methods are actions.
var shared = map[string]family{
	"sync/atomic.Bool":                    word,
	"sync/atomic.Int32":                   word,
	"sync/atomic.Int64":                   word,
	"sync/atomic.Uint32":                  word,
	"sync/atomic.Uint64":                  word,
	"sync/atomic.Pointer":                 word,
	module + "/internal/atomics.Pointer":  word,
	"sync.Mutex":                          blocking,
	"sync.WaitGroup":                      blocking,
	module + "/internal/atomics.Event":    blocking,
	module + "/internal/atomics.Waker":    blocking,
	module + "/internal/table.Table":      table,
	module + "/internal/table.Lines":      table, // and Cells
	"github.com/puzpuzpuz/xsync/v3.MapOf": syncMap,
}

// quiet lists methods that are no action: they look at nothing that changes.
var quiet = map[string]bool{"Done": true, "All": true, "Range": true}

// looks lists methods that are actions and change nothing.
var looks = map[string]bool{
	"Load": true, "Find": true, "Len": true, "Counted": true, "Size": true,
	"Fired": true, "Wait": true, "WaitContext": true, "Event": true,
}

// action returns what e does, or nil if it is no action.
func (t *target) action(e ast.Node) *action {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return nil
	}
	f := t.callee(call)
	if f == nil {
		return nil
	}
	if w := t.wrappers[f]; w != nil {
		sel := ast.Unparen(call.Fun).(*ast.SelectorExpr)
		return &action{call, w.inner.family, w.inner.verb, sel.X, w}
	}
	return t.direct(call, f)
}

// direct is action without wrappers.
func (t *target) direct(call *ast.CallExpr, f *types.Func) *action {
	recv := f.Signature().Recv()
	if recv == nil {
		if f.Pkg() != nil && f.Pkg().Path() == module+"/internal/atomics" && (f.Name() == "Now" || f.Name() == "Since") {
			return &action{call: call, family: clock, verb: f.Name()}
		}
		return nil
	}
	family, ok := shared[typeName(recv.Type())]
	if !ok || quiet[f.Name()] {
		return nil
	}
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok {
		return nil
	}
	return &action{call: call, family: family, verb: f.Name(), recv: sel.X}
}

// callee returns the function or method that is called, or nil if that is not
// known before it runs.
func (t *target) callee(call *ast.CallExpr) *types.Func {
	fun := ast.Unparen(call.Fun)
	switch index := fun.(type) { // explicit type arguments
	case *ast.IndexExpr:
		fun = index.X
	case *ast.IndexListExpr:
		fun = index.X
	}
	var id *ast.Ident
	switch fun := fun.(type) {
	case *ast.Ident:
		id = fun
	case *ast.SelectorExpr:
		id = fun.Sel
	default:
		return nil
	}
	f, _ := t.info.Uses[id].(*types.Func)
	if f != nil {
		f = f.Origin()
	}
	return f
}

// typeName returns the name of a type, or of what it points to, with its
// package.
func typeName(t types.Type) string {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	n, ok := types.Unalias(t).(*types.Named)
	if !ok || n.Obj().Pkg() == nil {
		return ""
	}
	return n.Obj().Pkg().Path() + "." + n.Obj().Name()
}

// findWrappers fills t.wrappers.
func (t *target) findWrappers() {
	t.wrappers = map[*types.Func]*wrapper{}
	t.functions(func(_ *source, d *ast.FuncDecl) {
		if d.Recv == nil || len(d.Recv.List[0].Names) == 0 || len(d.Body.List) != 1 {
			return
		}
		var body ast.Expr
		switch s := d.Body.List[0].(type) {
		case *ast.ReturnStmt:
			if len(s.Results) == 1 {
				body = s.Results[0]
			}
		case *ast.ExprStmt:
			body = s.X
		}
		// The action is the whole of it, but for a conversion.
		inner := t.only(body)
		call, ok := body.(*ast.CallExpr)
		if inner == nil || !ok || call != inner.call && !t.info.Types[call.Fun].IsType() {
			return
		}
		f, _ := t.info.Defs[d.Name].(*types.Func)
		if f.Exported() {
			return
		}
		t.wrappers[f] = &wrapper{d, inner}
	})
}

// only returns the one direct action on a word in e, or nil.
func (t *target) only(e ast.Expr) (found *action) {
	if e == nil {
		return nil
	}
	n := 0
	ast.Inspect(e, func(e ast.Node) bool {
		if call, ok := e.(*ast.CallExpr); ok {
			if f := t.callee(call); f != nil {
				if a := t.direct(call, f); a != nil && a.family == word {
					found = a
					n++
				}
			}
		}
		return true
	})
	if n != 1 {
		return nil
	}
	return found
}

// effect is what running a piece of code may do to memory that others see.
type effect int

const (
	acts    effect = 1 << iota // it contains an action
	writes                     // it writes through a pointer, or to an element
	changes                    // it contains an action that changes something
)

// findEffects fills t.effects for the package's functions, with what they do
// themselves and what those do that they call. A method of an interface does
// what any method of that name does.
func (t *target) findEffects() {
	t.effects = map[*types.Func]effect{}
	byName := map[string]effect{}
	for changed := true; changed; {
		changed = false
		t.functions(func(_ *source, d *ast.FuncDecl) {
			f, _ := t.info.Defs[d.Name].(*types.Func)
			e := t.effect(d.Body, true)
			if e != t.effects[f] {
				t.effects[f] = e
				byName[f.Name()] |= e
				changed = true
			}
		})
		for _, object := range t.info.Uses {
			f, ok := object.(*types.Func)
			if ok && f.Pkg() == t.types && f.Signature().Recv() != nil && types.IsInterface(f.Signature().Recv().Type()) {
				t.effects[f] = byName[f.Name()]
			}
		}
	}
}

// effect returns what n does, when it runs itself or, if inside, also when
// function literals in it do.
func (t *target) effect(n ast.Node, inside bool) (e effect) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return inside
		case *ast.CallExpr:
			if a := t.action(n); a != nil {
				if e |= acts; a.family != clock && !looks[a.verb] {
					e |= changes
				}
			}
			if f := t.callee(n); f != nil {
				e |= t.effects[f]
			} else if id, ok := n.Fun.(*ast.Ident); ok && (id.Name == "copy" || id.Name == "clear") {
				e |= writes
			}
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				for _, x := range n.Lhs {
					e |= written(x)
				}
			}
		case *ast.IncDecStmt:
			e |= written(n.X)
		}
		return true
	})
	return e
}

func written(x ast.Expr) effect {
	switch ast.Unparen(x).(type) {
	case *ast.SelectorExpr, *ast.IndexExpr, *ast.StarExpr:
		return writes
	}
	return 0
}
