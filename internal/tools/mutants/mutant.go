package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// A mutant is its target with a change.
type mutant struct {
	target   *target
	source   *source
	scope    ast.Decl // where it is
	function string   // likewise, as name prints it
	operator string
	what     string // the source that is changed, on one line
	number   int    // above 1 if others have the same three
	pos      token.Pos
	edits    []edit
	text     []byte // of the changed file
}

// An edit replaces the source from one position to another.
type edit struct {
	from, to token.Pos
	text     string
}

// key identifies the mutant as long as its lines stay as they are, wherever
// they move to.
func (m *mutant) key() string {
	key := m.function + ": " + m.operator + ": " + m.what
	if m.number > 1 {
		key += fmt.Sprintf(" #%d", m.number)
	}
	return key
}

// place returns the file and line of the change.
func (m *mutant) place() string {
	return fmt.Sprintf("%s:%d", m.source.name(), m.target.fset.Position(m.pos).Line)
}

// apply makes m.text.
func (m *mutant) apply() {
	edits := m.edits
	if slices.ContainsFunc(edits, func(e edit) bool { return strings.Contains(e.text, "broken.") }) {
		edits = append(slices.Clone(edits), m.source.using())
	}
	m.text = splice(m.source.text, m.target.fset.File(m.pos).Base(), edits)
}

// using imports the tools, on the line of the package clause, so that no line
// moves.
func (s *source) using() edit {
	end := s.file.Name.End()
	return edit{end, end, "; import \"" + tools + "\""}
}

// splice returns a text that begins at a position, with edits.
func splice(text []byte, base int, edits []edit) (now []byte) {
	edits = slices.SortedStableFunc(slices.Values(edits), func(a, b edit) int { return cmp.Compare(a.from, b.from) })
	at := 0
	for _, e := range edits {
		now = append(append(now, text[at:int(e.from)-base]...), e.text...)
		at = int(e.to) - base
	}
	return append(now, text[at:]...)
}

// diff returns the lines that the mutant changes.
func (m *mutant) diff() string {
	old, now := lines(m.source.text), lines(m.text)
	now[slices.IndexFunc(now, isPackage)] = old[slices.IndexFunc(old, isPackage)] // without the import
	for len(old) > 0 && len(now) > 0 && old[0] == now[0] {
		old, now = old[1:], now[1:]
	}
	for len(old) > 0 && len(now) > 0 && old[len(old)-1] == now[len(now)-1] {
		old, now = old[:len(old)-1], now[:len(now)-1]
	}
	var b strings.Builder
	for _, l := range old {
		b.WriteString("\t- " + l + "\n")
	}
	for _, l := range now {
		b.WriteString("\t+ " + l + "\n")
	}
	return b.String()
}

func isPackage(line string) bool { return strings.HasPrefix(line, "package ") }

func lines(text []byte) []string { return strings.Split(string(text), "\n") }

// A maker makes the mutants of one target.
type maker struct {
	*target
	source *source
	scope  ast.Decl // a function, or constants
	made   []*mutant
}

// add makes one mutant. What it is made of names it, with the operator.
func (k *maker) add(operator, what string, edits ...edit) {
	k.made = append(k.made, &mutant{
		target: k.target, source: k.source, scope: k.scope, function: name(k.scope),
		operator: operator, what: oneLine(what), pos: edits[0].from, edits: edits,
	})
}

// replace makes the mutant that has text in place of n.
func (k *maker) replace(operator string, n ast.Node, text string) {
	k.add(operator, k.line(n), edit{n.Pos(), n.End(), text})
}

// margin returns what stands before n on its line, if that is white.
func (k *maker) margin(n ast.Node) string {
	f := k.fset.File(n.Pos())
	before := k.between(f.LineStart(f.Line(n.Pos())), n.Pos())
	return before[:len(before)-len(strings.TrimLeft(before, "\t"))]
}

// Operators make mutants of the current scope, each those of a few kinds.
type operators []func(*maker)

// mutants returns those mutants that compile, in the order of the source.
func (t *target) mutants(ops operators) []*mutant {
	k := &maker{target: t}
	t.scopes(func(s *source, d ast.Decl) {
		k.source, k.scope = s, d
		for _, op := range ops {
			op(k)
		}
	})
	slices.SortStableFunc(k.made, func(a, b *mutant) int { return cmp.Compare(a.pos, b.pos) })
	seen := map[string]bool{}
	count := map[string]int{}
	var kept []*mutant
	for _, m := range k.made {
		m.apply()
		if id := m.source.path + string(m.text); seen[id] {
			continue
		} else {
			seen[id] = true
		}
		// Numbers count what does not compile too: they must not depend on
		// other lines than those named.
		count[m.key()]++
		m.number = count[m.key()]
		if string(m.text) != string(m.source.text) && t.builds(m.source, m.text, m.scope) {
			kept = append(kept, m)
		}
	}
	return kept
}
