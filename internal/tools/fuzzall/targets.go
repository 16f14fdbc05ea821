package main

import (
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// target is a function for go test -fuzz.
type target struct {
	name   string
	module string // the folder of its go.mod
	pkg    string // relative to module
	tags   string // that its file asks for, or ""
}

// targets returns the targets of all modules below root that match, in the order of
// their files.
func targets(root string, match *regexp.Regexp) ([]target, error) {
	var (
		found   []target
		modules []string // the nested modules so far; files come in lexical order
	)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".")):
			return filepath.SkipDir
		case d.IsDir():
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil {
				modules = append(modules, path)
			}
			return nil
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		module := root
		for _, m := range modules {
			if strings.HasPrefix(path, m+string(filepath.Separator)) {
				module = m
			}
		}
		names, tags, err := inFile(path)
		if err != nil {
			return err
		}
		pkg, err := filepath.Rel(module, filepath.Dir(path))
		if err != nil {
			return err
		}
		for _, name := range names {
			if match.MatchString(name) {
				found = append(found, target{name, module, "./" + filepath.ToSlash(pkg), tags})
			}
		}
		return nil
	})
	return found, err
}

// fuzzName matches the names that go test takes for targets.
var fuzzName = regexp.MustCompile(`^Fuzz($|\P{Ll})`)

// inFile returns the names of a test file's targets, and the tag that they need.
func inFile(path string) (names []string, tags string, err error) {
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, "", err
	}
	for _, group := range f.Comments {
		for _, c := range group.List {
			if c.Pos() > f.Package || !constraint.IsGoBuild(c.Text) {
				continue
			}
			if expr, err := constraint.Parse(c.Text); err == nil && !expr.Eval(func(string) bool { return false }) {
				tags = expr.String()
			}
		}
	}
	for _, decl := range f.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && fuzzName.MatchString(fn.Name.Name) {
			names = append(names, fn.Name.Name)
		}
	}
	return names, tags, nil
}
