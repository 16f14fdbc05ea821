package repotest

import (
	"bytes"
	"go/ast"
	"go/format"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var sample = regexp.MustCompile("(?s)<!-- (\\w+)\\.(Example\\w*) -->\n```go\n(.*?)```")

// Every Go sample of the README is the body of a runnable example.
func TestReadmeShowsTheExamples(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	samples := sample.FindAllSubmatch(readme, -1)
	if got, want := len(samples), strings.Count(string(readme), "```go\n"); got != want {
		t.Errorf("%d of the README's %d Go samples name their example", got, want)
	}
	seen := map[string]bool{}
	for _, m := range samples {
		pkg, example := string(m[1]), string(m[2])
		seen[pkg] = true
		want, err := exampleBody(pkg, example)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(m[3]); got != want {
			t.Errorf("README sample %s.%s differs from the example; want\n%s", pkg, example, want)
		}
	}
	for _, pkg := range public {
		if !seen[pkg] {
			t.Errorf("the README has no sample of %s", pkg)
		}
	}
}

// exampleBody returns the body of an example function as gofmt prints it at
// the top level, with its Output comment.
func exampleBody(pkg, example string) (string, error) {
	sources, err := parseDir(pkg, true)
	if err != nil {
		return "", err
	}
	for _, s := range sources {
		for _, decl := range s.file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Recv != nil || f.Name.Name != example {
				continue
			}
			text, err := os.ReadFile(filepath.Join(root, s.name))
			if err != nil {
				return "", err
			}
			from, to := s.fset.Position(f.Body.Lbrace).Offset+1, s.fset.Position(f.Body.Rbrace).Offset
			body, err := format.Source(bytes.TrimSpace(text[from:to]))
			return string(body) + "\n", err
		}
	}
	return "", os.ErrNotExist
}
