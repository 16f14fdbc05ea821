package repotest

import (
	"fmt"
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// summary matches what a CHECKS.md begins with.
var summary = regexp.MustCompile(`(?m)^\| programs \|.*\n\|[-:|]*\|\n\|((?: [0-9,]+ \|)+)\n`)

// The table of VERIFICATION.md sums up those of the packages.
func TestVerificationSumsUp(t *testing.T) {
	var table strings.Builder
	table.WriteString("| package | programs | complete | to a bound | must fail, and do | schedules | costs |\n|---|---:|---:|---:|---:|---:|---:|\n")
	var sum [6]int
	for _, pkg := range explored {
		page, err := os.ReadFile(filepath.Join(root, pkg, "CHECKS.md"))
		if err != nil {
			t.Fatal(err)
		}
		m := summary.FindSubmatch(page)
		if m == nil {
			t.Fatalf("%s/CHECKS.md does not begin with a summary", pkg)
		}
		for i, cell := range strings.Split(strings.Trim(string(m[1]), "| "), "|") {
			n, err := strconv.Atoi(strings.ReplaceAll(strings.TrimSpace(cell), ",", ""))
			if err != nil {
				t.Fatal(err)
			}
			sum[i] += n
		}
		fmt.Fprintf(&table, "| [`%s`](%s/CHECKS.md) |%s\n", pkg, pkg, m[1])
	}
	table.WriteString("| all |")
	for _, n := range sum {
		fmt.Fprintf(&table, " %s |", grouped(n))
	}
	table.WriteString("\n")

	pageHas(t, "VERIFICATION.md", "checks", table.String())
}

// A CHECKS.md says of each test what the comment of that test says. Without this only make
// test-all, which explores all programs, would notice that a comment has changed.
func TestChecksSayWhatTestsSay(t *testing.T) {
	section := regexp.MustCompile(`(?ms)^## (Test\w+)\n\n(.*?)\n*^\|`)
	for _, pkg := range explored {
		page, err := os.ReadFile(filepath.Join(root, pkg, "CHECKS.md"))
		if err != nil {
			t.Fatal(err)
		}
		sources, err := parseDir(pkg, true)
		if err != nil {
			t.Fatal(err)
		}
		docs := map[string]string{}
		for _, s := range sources {
			for _, d := range s.file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && strings.HasPrefix(f.Name.Name, "Test") {
					docs[f.Name.Name] = strings.TrimSpace(f.Doc.Text())
				}
			}
		}
		sections := section.FindAllSubmatch(page, -1)
		if len(sections) == 0 {
			t.Errorf("%s/CHECKS.md has no test", pkg)
		}
		for _, m := range sections {
			name, says := string(m[1]), string(m[2])
			if doc, ok := docs[name]; !ok || doc != says {
				t.Errorf("%s/CHECKS.md says of %s\n\t%q, and the test (there: %t)\n\t%q", pkg, name, says, ok, doc)
			}
		}
	}
}

// pageHas fails t unless a page has that text between the marks of a name.
func pageHas(t *testing.T, page, name, text string) {
	t.Helper()
	begin, end := "<!-- "+name+" -->\n", "<!-- /"+name+" -->"
	was, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(was), begin)
	_, after, ok := strings.Cut(rest, end)
	if !ok {
		t.Fatalf("%s has nothing between %q and %q", page, begin, end)
	}
	fileIs(t, page, before+begin+text+end+after)
}

// fileIs fails t unless a file has that text, or writes it with MC_UPDATE=1.
func fileIs(t *testing.T, name, want string) {
	t.Helper()
	path := filepath.Join(root, name)
	text, err := os.ReadFile(path)
	switch {
	case string(text) == want:
	case os.Getenv("MC_UPDATE") != "":
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	case err != nil:
		t.Error(err)
	default:
		t.Errorf("%s is not\n%srewrite it with MC_UPDATE=1 go test ./internal/tools/repotest -run Verification", name, want)
	}
}

// grouped prints n with a comma between groups of three digits.
func grouped(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Every package keeps a book of what it explores, in a TestMain that stands where
// readers of internal/tools/mc look for it, and looks for goroutines that its tests leave
// behind.
func TestPackagesKeepBooks(t *testing.T) {
	calls := func(pkg, callee string) bool {
		sources, err := parseDir(pkg, true)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, s := range sources {
			ast.Inspect(s.file, func(n ast.Node) bool {
				if sel, ok := n.(*ast.SelectorExpr); ok {
					x, ok := sel.X.(*ast.Ident)
					found = found || ok && x.Name+"."+sel.Sel.Name == callee
				}
				return true
			})
		}
		return found
	}
	for _, pkg := range explored {
		if !calls(pkg, "mc.Main") {
			t.Errorf("%s does not call mc.Main: what its tests explore is not compared with CHECKS.md", pkg)
		}
		if _, err := os.Stat(filepath.Join(root, pkg, "mc_main_test.go")); err != nil {
			t.Errorf("%s: TestMain of a package that is explored stands there: %v", pkg, err)
		}
	}
	for _, pkg := range slices.Concat(public, parts) {
		if !calls(pkg, "leak.Main") {
			t.Errorf("%s does not call leak.Main", pkg)
		}
	}
}
