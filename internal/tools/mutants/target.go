package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/latchfree/latchfree/internal/tools/typed"
)

const (
	module = "github.com/latchfree/latchfree"
	tools  = module + "/internal/tools/mutants/broken"
)

// A target is a package whose mutants are made: the files of its normal build,
// type-checked.
type target struct {
	dir   string // from the module's root, with slashes
	fset  *token.FileSet
	files []*source
	info  *types.Info
	types *types.Package
	from  types.Importer

	known    *known // of the function whose mutants were checked last
	wrappers map[*types.Func]*wrapper
	effects  map[*types.Func]effect
	clocks   map[*types.Func]bool // those that read the clock, and no more
}

// A source is a file of a target.
type source struct {
	path string
	text []byte
	file *ast.File
}

func (s *source) name() string { return filepath.Base(s.path) }

// load reads the package in dir of the module at root.
func (g *toolchain) load(dir string) (*target, error) {
	all, err := typed.Load(g.run, "./"+dir, tools)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(p *typed.Package) bool { return p.Path == module+"/"+dir })
	if i < 0 {
		return nil, fmt.Errorf("%s is no package of %s", dir, module)
	}
	p := all[i]
	t := &target{dir: dir, fset: p.Fset, info: p.Info, types: p.Types, from: p.From}
	for _, f := range p.Files {
		path := p.Fset.File(f.Pos()).Name()
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		t.files = append(t.files, &source{path, text, f})
	}
	t.findWrappers()
	t.findEffects()
	t.findClocks()
	return t, nil
}

// check type-checks the package, with other in place of one of its files.
func (t *target) check(instead *source, other *ast.File) error {
	var files []*ast.File
	for _, s := range t.files {
		if s == instead {
			files = append(files, other)
		} else {
			files = append(files, s.file)
		}
	}
	config := types.Config{Importer: t.from}
	_, err := config.Check(module+"/"+t.dir, t.fset, files, nil)
	return err
}

// builds reports whether the package compiles with text in place of s, from which it
// differs in scope only, unless that is nil.
func (t *target) builds(s *source, text []byte, scope ast.Decl) bool {
	file, err := parser.ParseFile(t.fset, s.path, text, parser.SkipObjectResolution)
	if err != nil {
		return false
	}
	if old, ok := scope.(*ast.FuncDecl); ok {
		i := slices.IndexFunc(file.Decls, func(d ast.Decl) bool {
			f, ok := d.(*ast.FuncDecl)
			return ok && name(f) == name(old)
		})
		if builds, sure := t.buildsFunction(s, old, file.Decls[i].(*ast.FuncDecl)); sure {
			return builds
		}
	}
	return t.check(s, file) == nil
}

// buildsFunction reports whether the package compiles with f in place of old. It checks a
// function literal of the same body where the names are known that old knows, which takes
// a hundredth of what the package takes. It is not sure if the declaration is not that of
// old, or if it matters that the names are in another package.
func (t *target) buildsFunction(s *source, old, f *ast.FuncDecl) (builds, sure bool) {
	if types.ExprString(f.Type) != types.ExprString(old.Type) || old.Recv != nil && strings.Contains(t.text(old.Recv), "_") {
		return false, false
	}
	if t.known == nil || t.known.of != old {
		t.known = &known{of: old, names: t.namesFor(s, old), used: imported(t.info, s.file, old)}
	}
	params := &ast.FieldList{List: slices.Clone(f.Type.Params.List)}
	if f.Recv != nil {
		params.List = append(slices.Clone(f.Recv.List), params.List...)
	}
	literal := &ast.FuncLit{Type: &ast.FuncType{Func: f.Pos(), Params: params, Results: f.Type.Results}, Body: f.Body}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	if err := types.CheckExpr(t.fset, t.known.names, token.NoPos, literal, info); err != nil {
		return false, !strings.Contains(err.Error(), "unexported field")
	}
	used := imported(info, literal, nil)
	for path := range imported(t.info, old, nil) { // which the rest of the file need not use
		if !used[path] && !t.known.used[path] {
			return false, true
		}
	}
	return true, true
}

// known is what is known where a function is.
type known struct {
	of    *ast.FuncDecl
	names *types.Package
	used  map[string]bool // what the rest of its file imports and uses
}

// namesFor returns a package that has what f can name: its type parameters, what its file
// imports, what mutants import, and what its package declares.
func (t *target) namesFor(s *source, f *ast.FuncDecl) *types.Package {
	p := types.NewPackage(t.types.Path(), t.types.Name())
	sig := t.info.Defs[f.Name].(*types.Func).Signature()
	for _, list := range []*types.TypeParamList{sig.RecvTypeParams(), sig.TypeParams()} {
		for param := range list.TypeParams() {
			p.Scope().Insert(param.Obj())
		}
	}
	imports := map[string]string{tools: ""}
	for _, spec := range s.file.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		if imports[path] = ""; spec.Name != nil {
			imports[path] = spec.Name.Name
		}
	}
	for path, name := range imports {
		if of, err := t.from.Import(path); err == nil {
			p.Scope().Insert(types.NewPkgName(token.NoPos, p, cmp.Or(name, of.Name()), of))
		}
	}
	for _, name := range t.types.Scope().Names() {
		p.Scope().Insert(t.types.Scope().Lookup(name))
	}
	return p
}

// imported returns the paths of the imports that are used below n, but not in but.
func imported(info *types.Info, n, but ast.Node) map[string]bool {
	used := map[string]bool{}
	ast.Inspect(n, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			if p, ok := info.Uses[id].(*types.PkgName); ok {
				used[p.Imported().Path()] = true
			}
		}
		return n == nil || n != but
	})
	return used
}

// functions calls f for each function of the package that has a body.
func (t *target) functions(f func(*source, *ast.FuncDecl)) {
	for _, s := range t.files {
		for _, d := range s.file.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && d.Body != nil {
				f(s, d)
			}
		}
	}
}

// scopes calls f for each function with a body, and for declared constants.
func (t *target) scopes(f func(*source, ast.Decl)) {
	for _, s := range t.files {
		for _, d := range s.file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Body != nil && d.Name.Name != "inlined" { // which is never called
					f(s, d)
				}
			case *ast.GenDecl:
				if d.Tok == token.CONST {
					f(s, d)
				}
			}
		}
	}
}

// name returns a function's name, with that of its receiver's type.
func name(scope ast.Decl) string {
	d, ok := scope.(*ast.FuncDecl)
	if !ok {
		return "const"
	}
	if d.Recv == nil {
		return d.Name.Name
	}
	e := d.Recv.List[0].Type
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.IndexListExpr:
			e = x.X
		case *ast.Ident:
			return x.Name + "." + d.Name.Name
		default:
			return d.Name.Name
		}
	}
}

// text returns the source of n.
func (t *target) text(n ast.Node) string { return t.between(n.Pos(), n.End()) }

func (t *target) between(from, to token.Pos) string {
	f := t.fset.File(from)
	for _, s := range t.files {
		if t.fset.File(s.file.Pos()) == f {
			return string(s.text[f.Offset(from):f.Offset(to)])
		}
	}
	return ""
}

// line returns n's source on one line, without the blocks of what has some.
func (t *target) line(n ast.Node) string {
	text := t.text(n)
	var body *ast.BlockStmt
	switch n := n.(type) {
	case *ast.IfStmt:
		body = n.Body
	case *ast.ForStmt:
		body = n.Body
	case *ast.RangeStmt:
		body = n.Body
	case *ast.SwitchStmt:
		body = n.Body
	case *ast.TypeSwitchStmt:
		body = n.Body
	case *ast.SelectStmt:
		body = n.Body
	}
	if body != nil {
		text = t.between(n.Pos(), body.Pos())
	}
	if c, ok := n.(*ast.CaseClause); ok {
		text = t.between(n.Pos(), c.Colon)
	}
	return oneLine(text)
}

func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	const most = 100
	if r := []rune(text); len(r) > most {
		text = string(r[:most-1]) + "…"
	}
	return text
}
