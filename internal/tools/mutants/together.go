package main

import (
	"fmt"
	"go/ast"
	"math"
	"slices"
	"strings"
)

// together is a target with many of its mutants in it: functions have copies,
// one for each mutant, and begin with a look at which of them is chosen. So one
// program is built instead of one for each mutant. A function that grows so is
// not inlined, and what it is given may escape: tests that fail for that reason
// are left to mutants that are built by themselves.
type together struct {
	numbers map[*mutant]int       // from 1
	places  map[*ast.FuncDecl]int // of the functions with copies, from 0
	files   map[*source][]byte
}

// everyCopy chooses, in place of a mutant, copies of all functions that change
// nothing, and notes which are reached. Tests must not notice.
const everyCopy = -1

// together puts together those mutants that can be.
func (t *target) together(mutants []*mutant) *together {
	j := &together{map[*mutant]int{}, map[*ast.FuncDecl]int{}, map[*source][]byte{}}
	byScope := map[*ast.FuncDecl][]*mutant{}
	for _, m := range mutants {
		if d, ok := m.scope.(*ast.FuncDecl); ok && copies(d) {
			j.numbers[m] = len(j.numbers) + 1
			byScope[d] = append(byScope[d], m)
		}
	}
	for _, s := range t.files {
		var edits []edit
		var more strings.Builder
		for _, d := range s.file.Decls {
			d, ok := d.(*ast.FuncDecl)
			if !ok || byScope[d] == nil {
				continue
			}
			var choice strings.Builder
			choice.WriteString(" switch broken.Chosen {")
			j.places[d] = len(j.places)
			one := func(number int, changes []edit) {
				name := fmt.Sprintf("%s__%d", d.Name.Name, max(number, 0))
				first := ""
				if number == everyCopy {
					first = fmt.Sprintf("broken.Reached(%d); ", j.places[d])
				}
				fmt.Fprintf(&choice, " case %d: %s%s;", number, first, t.callOf(d, name))
				more.WriteString("\n" + t.edited(d, append(slices.Clone(changes), edit{d.Name.Pos(), d.Name.End(), name})) + "\n")
			}
			one(everyCopy, nil)
			for _, m := range byScope[d] {
				one(j.numbers[m], m.edits)
			}
			choice.WriteString(" };")
			edits = append(edits, edit{d.Body.Lbrace + 1, d.Body.Lbrace + 1, choice.String()})
		}
		if edits != nil {
			text := splice(s.text, t.fset.File(s.file.Pos()).Base(), append(edits, s.using()))
			j.files[s] = append(text, more.String()...)
		}
	}
	return j
}

// copies reports whether a copy of d can be called in its place: what it is
// given has names, and it does not recover, which only works in the function
// that is deferred.
func copies(d *ast.FuncDecl) bool {
	named := func(l *ast.FieldList) bool {
		if l == nil {
			return true
		}
		for _, f := range l.List {
			if len(f.Names) == 0 || slices.ContainsFunc(f.Names, func(n *ast.Ident) bool { return n.Name == "_" }) {
				return false
			}
		}
		return true
	}
	recovers := false
	ast.Inspect(d.Body, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if f, ok := call.Fun.(*ast.Ident); ok && f.Name == "recover" {
				recovers = true
			}
		}
		_, literal := n.(*ast.FuncLit)
		return !literal
	})
	return named(d.Recv) && named(d.Type.Params) && named(d.Type.TypeParams) && !recovers
}

// callOf returns the statements that call name, which is declared like d, with
// what d was given, and return.
func (t *target) callOf(d *ast.FuncDecl, name string) string {
	var args []string
	for _, f := range d.Type.Params.List {
		for _, n := range f.Names {
			if _, ok := f.Type.(*ast.Ellipsis); ok {
				args = append(args, n.Name+"...")
			} else {
				args = append(args, n.Name)
			}
		}
	}
	if d.Recv != nil {
		name = d.Recv.List[0].Names[0].Name + "." + name
	}
	if d.Type.TypeParams != nil {
		var types []string
		for _, f := range d.Type.TypeParams.List {
			for _, n := range f.Names {
				types = append(types, n.Name)
			}
		}
		name += "[" + strings.Join(types, ", ") + "]"
	}
	call := name + "(" + strings.Join(args, ", ") + ")"
	if d.Type.Results != nil {
		return "return " + call
	}
	return call + "; return"
}

// edited returns the source of d with changes.
func (t *target) edited(d *ast.FuncDecl, changes []edit) string {
	return string(splice([]byte(t.text(d)), int(d.Pos()), changes))
}

// gather builds the layer's tests with all mutants together, and finds out which
// of them fail for no other reason, and which functions the others come to.
func (b *baseline) gather(g *toolchain, overlay string, workers int) error {
	binary, err := g.test(b.build, b.dir, "together-"+b.name, overlay)
	if err != nil {
		return err
	}
	for {
		r := b.run(g, program{binary: binary, skip: b.apart, chosen: everyCopy}, b.tests, endless, math.MaxInt64)
		if r.how == passed {
			break
		}
		test := top(r.test)
		if test == "" || slices.Contains(b.apart, test) {
			return fmt.Errorf("the %s tests of %s with copies of functions:\n%s", b.name, b.dir, r.output)
		}
		b.apart = append(b.apart, test)
	}
	b.joined = binary
	b.reach, err = b.follow(g, workers)
	return err
}

// A program is tests to run.
type program struct {
	binary string
	skip   []string // functions
	chosen int      // 0: no mutant, or one that is built by itself
	trace  string   // a file for the functions that everyCopy comes to, or ""
}
