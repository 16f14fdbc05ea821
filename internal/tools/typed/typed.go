// Package typed resolves the names in packages of this module, for tests and
// commands that judge source code by what its names mean.
package typed

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"path/filepath"
	"strings"
)

// A Package has parsed files and resolved names. Packages of one Load share their
// objects.
type Package struct {
	Path  string // by which others import it
	Dir   string
	Files []*ast.File
	Fset  *token.FileSet
	Info  *types.Info
	Types *types.Package
	From  types.Importer // resolves the package's imports
}

// A listed package is what go list says of a package.
type listed struct {
	ImportPath, ForTest, Dir string
	DepOnly                  bool
	GoFiles, CgoFiles        []string
	ImportMap                map[string]string

	types *types.Package
}

// Load returns the packages that args select for go list, which run calls: flags and
// patterns. With -test they have their test files, and those of external tests are
// packages of their own. Everything is checked from source, so that nothing is built;
// what other packages contribute are their declarations.
func Load(run func(args ...string) ([]byte, error), args ...string) (all []*Package, err error) {
	const fields = "-json=ImportPath,ForTest,Dir,DepOnly,GoFiles,CgoFiles,ImportMap"
	out, err := run(append([]string{"list", "-deps", fields}, args...)...)
	if err != nil {
		return nil, err
	}
	l := &loader{token.NewFileSet(), map[string]*listed{}}
	var own []*listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		p := new(listed)
		if err := d.Decode(p); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		l.listed[p.ImportPath] = p
		if !p.DepOnly && !strings.HasSuffix(p.ImportPath, ".test") {
			own = append(own, p)
		}
	}
	for _, p := range own {
		// With its tests, a package is the one that these need.
		if _, ok := l.listed[p.ImportPath+" ["+p.ImportPath+".test]"]; ok {
			continue
		}
		t, err := l.resolve(p)
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

type loader struct {
	fset   *token.FileSet
	listed map[string]*listed
}

// path returns how others import p, without what it is built for.
func (p *listed) path() string {
	path, _, _ := strings.Cut(p.ImportPath, " ")
	return path
}

func (l *loader) parse(p *listed, mode parser.Mode) (files []*ast.File, err error) {
	for _, name := range append(p.GoFiles, p.CgoFiles...) {
		f, err := parser.ParseFile(l.fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution|mode)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

func (l *loader) resolve(p *listed) (*Package, error) {
	files, err := l.parse(p, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	t := &Package{Path: p.path(), Dir: p.Dir, Files: files, Fset: l.fset, Info: NewInfo(), From: importer{l, p}}
	config := types.Config{Importer: t.From}
	t.Types, err = config.Check(t.Path, l.fset, files, t.Info)
	p.types = t.Types
	return t, err
}

// NewInfo returns where types, uses and definitions are written.
func NewInfo() *types.Info {
	return &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}
}

// importer imports for a package.
type importer struct {
	*loader
	by *listed
}

func (i importer) Import(path string) (*types.Package, error) {
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	if mapped, ok := i.by.ImportMap[path]; ok {
		path = mapped
	}
	p := i.listed[path]
	if p == nil {
		return nil, fmt.Errorf("%s imports %s, which go list does not list", i.by.ImportPath, path)
	}
	if p.types != nil {
		return p.types, nil
	}
	files, err := i.parse(p, 0)
	if err != nil {
		return nil, err
	}
	config := types.Config{Importer: importer{i.loader, p}, IgnoreFuncBodies: true, FakeImportC: true}
	p.types, err = config.Check(p.path(), i.fset, files, nil)
	return p.types, err
}
