package repotest

import (
	"fmt"
	"go/ast"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// mostWords bounds the words of all Markdown that is written by hand. It only goes down.
const mostWords = 39_500

// What is written by hand has at most so many words that a reader can be asked to read them.
func TestMarkdownIsShort(t *testing.T) {
	generated := regexp.MustCompile(`^(oncecache/COMPARISON|(.*/)?CHECKS)\.md$`)
	sum := 0
	var counts []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name := filepath.ToSlash(strings.TrimPrefix(path, root+string(filepath.Separator)))
		if err != nil || filepath.Ext(path) != ".md" || generated.MatchString(name) {
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

// retiredWords returns, for each package, the words in the last column of its rows of
// the vocabulary in CONTRIBUTING.md.
func retiredWords(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, vocabulary, _ := strings.Cut(string(text), "\n## Vocabulary\n")
	vocabulary, _, _ = strings.Cut(vocabulary, "\n## ")
	words, pkg := map[string][]string{}, ""
	for line := range strings.Lines(vocabulary) {
		row := strings.Split(line, "|")
		if len(row) != 6 || strings.Contains(row[1], "---") {
			continue
		}
		if name := strings.Trim(row[1], " `"); name != "" {
			pkg = name
		}
		words[pkg] = append(words[pkg], strings.Fields(row[4])...)
	}
	for _, pkg := range public {
		if len(words[pkg]) == 0 {
			t.Errorf("the vocabulary of CONTRIBUTING.md has no word that %s does not use any more", pkg)
		}
	}
	return words
}

// No type, function, field or variable of a package is called by a retired word, alone
// or with other words, and no file, also of its tests.
func TestRetiredWordsStayRetired(t *testing.T) {
	retired := retiredWords(t)
	for _, pkg := range public {
		words := append(retired["everywhere"], retired[pkg]...)
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
