package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

// A function is copied if its copy can be called in its place.
func TestCopies(t *testing.T) {
	for source, want := range map[string]string{ // "": it is not copied
		"func (t *T) f(a, b int, c ...string) (n int, err error) {}": "return t.g(a, b, c...)",
		"func f() {}":                          "g(); return",
		"func f[K, V any, W int](k K) bool {}": "return g[K, V, W](k)",
		"func (t *T[K]) f(func(int)) {}":       "",
		"func (*T) f() {}":                     "",
		"func (t *T) f(_ int) {}":              "",
		"func (t *T) f() { if r := recover(); r != nil { panic(r) } }": "",
		"func (t *T) f() { defer func() { recover() }() }":             "t.g(); return",
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "", "package p; "+source, 0)
		if err != nil {
			t.Fatal(err)
		}
		d := file.Decls[0].(*ast.FuncDecl)
		got := ""
		if copies(d) {
			got = new(target).callOf(d, "g")
		}
		if got != want {
			t.Errorf("%s: %q, want %q", source, got, want)
		}
	}
}

// All mutants of the fixture that are in functions are together, numbered from
// 1, and lines stay where they are.
func TestTogether(t *testing.T) {
	target, err := inPlace(t).load(fixture)
	if err != nil {
		t.Fatal(err)
	}
	mutants := target.mutants(concurrency)
	j := target.together(mutants)
	if len(j.numbers) != len(mutants) || len(j.files) != 2 {
		t.Errorf("%d of %d mutants are together, in %d files", len(j.numbers), len(mutants), len(j.files))
	}
	for s, text := range j.files {
		if !target.builds(s, text, nil) {
			t.Errorf("what is together does not build:\n%s", text)
		}
		old, now := strings.Split(string(s.text), "\n"), strings.Split(string(text), "\n")
		for i, line := range old[:len(old)-1] {
			if !strings.HasPrefix(now[i], line) {
				t.Errorf("line %d was %q and is %q", i+1, line, now[i])
			}
		}
	}
}
