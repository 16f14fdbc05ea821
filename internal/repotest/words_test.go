package repotest

import (
	"go/ast"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// retired are words for which the field has others: see Vocabulary in CONTRIBUTING.md.
// No type, function, field or variable of a package is called by them, alone or with
// other words, and no file.
var retired = map[string][]string{
	"atomicbreaker": {"absence", "audience", "book", "carry", "census", "deed", "era", "feed", "fraction", "hears", "ledger", "notice", "page", "pages", "purse", "shelf", "told", "turn"},
	"cowchangeset":  {"fate", "goal", "keeper", "line", "mark", "news", "patience", "round", "rounds", "told", "turn"},
}

func TestRetiredWordsStayRetired(t *testing.T) {
	for pkg, words := range retired {
		for _, tests := range []bool{false, true} {
			sources, err := parseDir(pkg, tests)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range sources {
				for _, w := range strings.Split(strings.TrimSuffix(filepath.Base(s.name), ".go"), "_") {
					if slices.Contains(words, w) {
						t.Errorf("%s: a file is called %q", s.name, w)
					}
				}
				if tests { // which may call what they like as they like
					continue
				}
				for _, id := range declared(s.file) {
					for _, w := range wordsOf(id.Name) {
						if slices.Contains(words, w) {
							t.Errorf("%s: %s is called %q", s.fset.Position(id.Pos()), id.Name, w)
						}
					}
				}
			}
		}
	}
}

// declared returns the names that a file declares outside of functions, and those of
// fields and methods.
func declared(f *ast.File) (names []*ast.Ident) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			names = append(names, d.Name)
		case *ast.GenDecl:
			ast.Inspect(d, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.TypeSpec:
					names = append(names, n.Name)
				case *ast.ValueSpec:
					names = append(names, n.Names...)
				case *ast.Field:
					names = append(names, n.Names...)
				}
				return true
			})
		}
	}
	return names
}

// wordsOf splits a name into its words, in lower case.
func wordsOf(name string) (words []string) {
	for i, r := range name {
		if i == 0 || unicode.IsUpper(r) {
			words = append(words, "")
		}
		words[len(words)-1] += string(unicode.ToLower(r))
	}
	return words
}

// Every retired word has its row in the vocabulary.
func TestRetiredWordsAreExplained(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, vocabulary, ok := strings.Cut(string(text), "\n## Vocabulary\n")
	if !ok {
		t.Fatal("CONTRIBUTING.md has no section Vocabulary")
	}
	for pkg, words := range retired {
		if !strings.Contains(vocabulary, "`"+pkg+"`") {
			t.Errorf("the vocabulary says nothing of %s", pkg)
		}
		_ = words
	}
}
