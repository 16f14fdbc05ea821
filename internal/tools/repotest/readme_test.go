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

var sample = regexp.MustCompile("(?s)<!-- ([\\w/]+)\\.((?:Example|Test|Fuzz)\\w*) -->\n```go\n(.*?)```")

// Every Go sample of the README, and of each guide, is the body of a runnable example. Those of the
// README show each package.
func TestReadmeShowsTheExamples(t *testing.T) {
	shown := samplesOf(t, "README.md")
	for _, pkg := range public {
		if !strings.Contains(shown, pkg+".") {
			t.Errorf("the README has no sample of %s", pkg)
		}
	}
	guides, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(guides) == 0 {
		t.Fatal("no guides: ", err)
	}
	for _, guide := range guides {
		samplesOf(t, "docs/"+filepath.Base(guide))
	}
}

// The Go samples of a module of its own leave out what its example does besides, such as to
// look at errors: their lines are lines of the example, in that order.
func TestModulesShowTheirExamples(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(root, "integrations/*/README.md"))
	if err != nil || len(pages) == 0 {
		t.Fatal("no modules: ", err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		dir := "integrations/" + filepath.Base(filepath.Dir(page))
		body, err := exampleBody(dir, "Example")
		if err != nil {
			t.Fatal(dir, ": ", err)
		}
		body = "\n" + strings.ReplaceAll(body, "\t", "")
		blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllSubmatch(text, -1)
		if len(blocks) == 0 {
			t.Errorf("%s/README.md has no sample", dir)
		}
		for _, b := range blocks {
			for line := range strings.FieldsFuncSeq(string(b[1]), func(r rune) bool { return r == '\n' }) {
				_, rest, ok := strings.Cut(body, "\n"+strings.ReplaceAll(line, "\t", ""))
				if !ok {
					t.Errorf("%s/README.md: the example lacks, at that place: %s", dir, line)
					continue
				}
				body = rest
			}
		}
	}
}

// samplesOf checks the samples of a page, and returns them.
func samplesOf(t *testing.T, page string) (shown string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	samples := sample.FindAllSubmatch(text, -1)
	if got, want := len(samples), strings.Count(string(text), "```go\n"); got != want {
		t.Errorf("%s: %d of %d Go samples name their example", page, got, want)
	}
	for _, m := range samples {
		pkg, example := string(m[1]), string(m[2])
		shown += string(m[3])
		want, err := exampleBody(pkg, example)
		if err != nil {
			t.Fatalf("%s: %s.%s: %v", page, pkg, example, err)
		}
		if got := string(m[3]); got != want {
			t.Errorf("%s: sample %s.%s differs from the example; want\n%s", page, pkg, example, want)
		}
	}
	return shown
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
