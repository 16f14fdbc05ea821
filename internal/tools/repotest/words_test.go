package repotest

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// mostWords bounds the words of the library's Markdown that is written by hand: of all but
// guides and the nested modules, of which a reader needs one at a time.
const mostWords = 30000

// What is written by hand has at most so many words that a reader can be asked to read them.
func TestMarkdownIsShort(t *testing.T) {
	others := regexp.MustCompile(`^(oncecache/COMPARISON|(.*/)?CHECKS)\.md$|^(cluster|docs|examples|integrations)/`)
	sum := 0
	var counts []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name := filepath.ToSlash(strings.TrimPrefix(path, root+string(filepath.Separator)))
		if err != nil || filepath.Ext(path) != ".md" || others.MatchString(name) {
			return err
		}
		text, err := os.ReadFile(path)
		n := len(strings.Fields(string(text)))
		sum += n
		counts = append(counts, fmt.Sprintf("%6d %s", n, name))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if sum > mostWords {
		t.Errorf("%d words in Markdown, at most %d:\n%s", sum, mostWords, strings.Join(counts, "\n"))
	}
	if sum < mostWords*9/10 {
		t.Errorf("%d words in Markdown: lower mostWords", sum)
	}
}

// retiredWords returns the words of testdata/retired.txt, which names had before, for each package.
// Those of everywhere are no package's.
func retiredWords(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("testdata/retired.txt")
	if err != nil {
		t.Fatal(err)
	}
	words := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		pkg, list, _ := strings.Cut(line, ":")
		words[pkg] = strings.Fields(list)
	}
	for _, pkg := range append([]string{"everywhere"}, public...) {
		if len(words[pkg]) == 0 {
			t.Errorf("testdata/retired.txt has no word that %s does not use any more", pkg)
		}
	}
	if len(words) != 1+len(public) {
		t.Errorf("testdata/retired.txt has words of %d packages", len(words)-1)
	}
	return words
}

// No file, type, function, field or variable of a package or its tests is called by a retired
// word or its plural, alone or with other words, nor is a test or scenario of its CHECKS.md. An
// example may have what it likes: its things are those of a service.
func TestRetiredWordsStayRetired(t *testing.T) {
	retired := retiredWords(t)
	for _, pkg := range library(t) {
		parent, _, _ := strings.Cut(pkg, "/")
		words := slices.Concat(retired["everywhere"], retired[parent])
		isRetired := func(w string) bool { return slices.Contains(words, w) || slices.Contains(words, singular(w)) }
		for _, tests := range []bool{false, true} {
			sources, err := parseDir(pkg, tests)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range sources {
				for _, w := range strings.Split(strings.TrimSuffix(filepath.Base(s.name), ".go"), "_") {
					if isRetired(w) {
						t.Errorf("%s: a file is called %q", s.name, w)
					}
				}
				if strings.HasPrefix(filepath.Base(s.name), "example_") {
					continue
				}
				for _, id := range declared(s.file) {
					for _, w := range wordsOf(id.Name) {
						if isRetired(w) {
							t.Errorf("%s: %s is called %q", s.fset.Position(id.Pos()), id.Name, w)
						}
					}
				}
			}
		}
		for _, name := range scenarios(t, pkg) {
			for _, w := range strings.FieldsFunc(name, func(r rune) bool { return !unicode.IsLetter(r) }) {
				for _, w := range wordsOf(w) {
					if isRetired(w) {
						t.Errorf("%s/CHECKS.md: %q has %q", pkg, name, w)
					}
				}
			}
		}
	}
}

// scenarios returns the names of tests and scenarios in the CHECKS.md of a package, if it has one.
func scenarios(t *testing.T, pkg string) (names []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, pkg, "CHECKS.md"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^(?:## (Test.*)|\| ([^|]*) \|.*)$`).FindAllSubmatch(text, -1) {
		names = append(names, string(m[1])+string(m[2]))
	}
	if len(names) == 0 {
		t.Errorf("%s/CHECKS.md names no test", pkg)
	}
	return names
}

// declared returns the names that a file declares, also of parameters and in functions.
func declared(f *ast.File) (names []*ast.Ident) {
	add := func(exprs ...ast.Expr) {
		for _, e := range exprs {
			if id, ok := e.(*ast.Ident); ok {
				names = append(names, id)
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			names = append(names, n.Name)
		case *ast.TypeSpec:
			names = append(names, n.Name)
		case *ast.ValueSpec:
			names = append(names, n.Names...)
		case *ast.Field:
			names = append(names, n.Names...)
		case *ast.LabeledStmt:
			names = append(names, n.Label)
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				add(n.Lhs...)
			}
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				add(n.Key, n.Value)
			}
		}
		return true
	})
	return names
}

// What declared and wordsOf find is what a reader sees.
func TestDeclaredNames(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "", `package p
const oneRound = 1
type two[Three any] struct{ four, five int }
func (six two[T]) seven(eight func(nine int)) (ten int) {
	var eleven, _ = 1, 2
twelve:
	for thirteen, fourteen := range m { fifteen, err := f(func(sixteen int) { used = 1; x.used() }); break twelve }
	switch seventeen := eight.(type) {}
}`, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, id := range declared(f) {
		for _, w := range wordsOf(id.Name) {
			got = append(got, singular(w))
		}
	}
	want := "one round two three four five six seven eight nine ten eleven _ twelve thirteen fourteen fifteen err sixteen seventeen"
	slices.Sort(got)
	if words := strings.Fields(want); !slices.Equal(got, slices.Sorted(slices.Values(words))) {
		t.Errorf("%q", got)
	}
	for word, want := range map[string]string{"gates": "gate", "gate": "gate", "boxes": "box", "passes": "pass", "pass": "pass", "entries": "entry", "status": "status"} {
		if got := singular(word); got != want {
			t.Errorf("singular of %s: %s, want %s", word, got, want)
		}
	}
}

// singular returns a word without the ending of the plural.
func singular(word string) string {
	for _, ending := range []struct{ plural, singular string }{{"ies", "y"}, {"sses", "ss"}, {"shes", "sh"}, {"ches", "ch"}, {"xes", "x"}, {"ss", "ss"}, {"us", "us"}, {"s", ""}} {
		if stem, ok := strings.CutSuffix(word, ending.plural); ok {
			return stem + ending.singular
		}
	}
	return word
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
