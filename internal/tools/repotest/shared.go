package repotest

import (
	"go/ast"
	"go/token"
	"slices"
)

// handles are the exported types that act on shared words without owning
// them, so that they may be copied and have no NoCopy field.
var handles = map[string][]string{
	"atomicbreaker":   {"Permit"},
	"shardedregistry": {"Ref"},
}

// operation is an exported method of a shared type, or an exported function
// that takes one.
type operation struct {
	typeName   string // the shared type
	typeParams int    // how many type parameters that type has
	method     string // empty for a function
	function   string // empty for a method
	pointer    bool   // the method has a pointer receiver
	doc        string
	pos        token.Position
}

// name is how DESIGN.md and messages call the operation.
func (o operation) name() string {
	if o.function != "" {
		return o.function
	}
	return o.method
}

// sharedTypes returns the exported types of a package whose first field is
// atomics.NoCopy, with their number of type parameters, and the handles; and by the
// name of a type that one of them embeds, which of them has its methods.
func sharedTypes(pkg string, sources []source) (shared map[string]int, outer map[string]string) {
	shared, outer = map[string]int{}, map[string]string{}
	for _, s := range sources {
		for _, decl := range s.file.Decls {
			gen, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range gen.Specs {
				t, ok := spec.(*ast.TypeSpec)
				if !ok || !t.Name.IsExported() {
					continue
				}
				if noCopyFirst(t) || slices.Contains(handles[pkg], t.Name.Name) {
					shared[t.Name.Name] = t.TypeParams.NumFields()
					for _, name := range embedded(t) {
						outer[name] = t.Name.Name
					}
				}
			}
		}
	}
	return shared, outer
}

// embedded returns the names of the types of the same package that t embeds.
func embedded(t *ast.TypeSpec) (names []string) {
	s, ok := t.Type.(*ast.StructType)
	if !ok {
		return nil
	}
	for _, f := range s.Fields.List {
		if name, _ := baseType(f.Type); len(f.Names) == 0 && name != "" {
			names = append(names, name)
		}
	}
	return names
}

func noCopyFirst(t *ast.TypeSpec) bool {
	s, ok := t.Type.(*ast.StructType)
	if !ok || s.Fields.NumFields() == 0 {
		return false
	}
	sel, ok := s.Fields.List[0].Type.(*ast.SelectorExpr)
	return ok && sel.Sel.Name == "NoCopy"
}

// operations returns what can be done to the package's shared types from
// outside. Constructors are not among them: nothing is shared yet.
func operations(pkg string, sources []source) []operation {
	shared, outer := sharedTypes(pkg, sources)
	var ops []operation
	for _, s := range sources {
		for _, decl := range s.file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || !f.Name.IsExported() {
				continue
			}
			op := operation{doc: f.Doc.Text(), pos: s.fset.Position(f.Pos())}
			if f.Recv != nil {
				op.typeName, op.pointer = baseType(f.Recv.List[0].Type)
				if name, ok := outer[op.typeName]; ok {
					op.typeName = name
				}
				op.method = f.Name.Name
			} else {
				op.typeName = sharedParam(f, shared)
				op.function = f.Name.Name
			}
			if n, ok := shared[op.typeName]; ok {
				op.typeParams = n
				ops = append(ops, op)
			}
		}
	}
	return ops
}

// sharedParam returns the first shared type that f takes a pointer to.
func sharedParam(f *ast.FuncDecl, shared map[string]int) string {
	for _, p := range f.Type.Params.List {
		if name, pointer := baseType(p.Type); pointer {
			if _, ok := shared[name]; ok {
				return name
			}
		}
	}
	return ""
}

// baseType strips a pointer and type arguments.
func baseType(e ast.Expr) (name string, pointer bool) {
	if star, ok := e.(*ast.StarExpr); ok {
		e, pointer = star.X, true
	}
	switch t := e.(type) {
	case *ast.IndexExpr:
		e = t.X
	case *ast.IndexListExpr:
		e = t.X
	}
	if id, ok := e.(*ast.Ident); ok {
		return id.Name, pointer
	}
	return "", pointer
}
