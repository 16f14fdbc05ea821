package repotest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"path/filepath"
)

// typed is a package whose files are parsed and whose names are resolved.
type typed struct {
	fset  *token.FileSet
	files []*ast.File
	info  *types.Info
}

// listed is what go list says of a package.
type listed struct {
	ImportPath, ForTest, Dir, Export string
	GoFiles                          []string
	ImportMap                        map[string]string
}

// loadTyped returns the packages in folders as go vet sees them: with their tests, if
// asked, and then also the packages of these tests.
func loadTyped(tests bool, folders ...string) (all []typed, err error) {
	args := []string{"list", "-deps", "-export", "-json=ImportPath,ForTest,Dir,Export,GoFiles,ImportMap"}
	if tests {
		args = append(args, "-test")
	}
	wanted := map[string]bool{}
	for _, f := range folders {
		args = append(args, "./"+f)
		dir, err := filepath.Abs(filepath.Join(root, f))
		if err != nil {
			return nil, err
		}
		wanted[dir] = true
	}
	out, err := goTool(root, args...)
	if err != nil {
		return nil, err
	}
	exports := map[string]string{}
	var own []listed
	for d := json.NewDecoder(bytes.NewReader([]byte(out))); ; {
		var p listed
		if err := d.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		exports[p.ImportPath] = p.Export
		// The package of a test program, which is made, lies in no folder of these.
		if wanted[p.Dir] && (!tests || p.ForTest != "") {
			own = append(own, p)
		}
	}
	for _, p := range own {
		t, err := p.resolve(exports)
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	if len(all) < len(folders) {
		return nil, fmt.Errorf("repotest: %d packages in %d folders", len(all), len(folders))
	}
	return all, nil
}

// resolve parses p and resolves its names, given where the packages that it imports are
// compiled.
func (p listed) resolve(exports map[string]string) (t typed, err error) {
	t.fset = token.NewFileSet()
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(t.fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return t, err
		}
		t.files = append(t.files, f)
	}
	return t, t.check(func(path string) (io.ReadCloser, error) {
		if mapped, ok := p.ImportMap[path]; ok {
			path = mapped
		}
		return os.Open(exports[path])
	})
}

// check resolves the names of t.
func (t *typed) check(exports importer.Lookup) error {
	t.info = &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}
	c := types.Config{Importer: importer.ForCompiler(t.fset, "gc", exports)}
	_, err := c.Check("p", t.fset, t.files, t.info)
	return err
}

// used returns what a name stands for if that belongs to another package, as
// "sync.Mutex" or "time.Sleep", whatever name the file imports that package under.
func (t typed) used(id *ast.Ident) string {
	o := t.info.Uses[id]
	if o == nil || o.Pkg() == nil || o.Parent() != o.Pkg().Scope() {
		return ""
	}
	return o.Pkg().Path() + "." + o.Name()
}
