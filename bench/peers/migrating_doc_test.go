package peers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const migrating = "../../docs/coming-from-breakers.md"

var (
	heading = regexp.MustCompile(`(?m)^## `)
	inTicks = regexp.MustCompile("`([^`]+)`")
)

// tableRows returns the three cells of each row of the tables in a section,
// without their heads.
func tableRows(t *testing.T, section string) (rows [][]string) {
	head := true
	for line := range strings.Lines(section) {
		if !strings.HasPrefix(line, "|") {
			head = true
			continue
		}
		if strings.HasPrefix(line, "|---") {
			head = false
			continue
		}
		cells := strings.Split(strings.TrimSpace(line), "|")
		require.Len(t, cells, 5, "%s", line)
		if !head {
			rows = append(rows, cells[1:4])
		}
	}
	require.NotEmpty(t, rows, "%s", section)
	return rows
}

// coming-from-breakers.md has a row for each subtest, and a subtest for each row: the last
// cell of a row names subtests of its section, other tests of this package, and
// examples.
func TestMigratingNamesItsTests(t *testing.T) {
	text, err := os.ReadFile(migrating)
	require.NoError(t, err)
	examples := slices.DeleteFunc(functions(t, "../../atomicbreaker/example_test.go"),
		func(name string) bool { return !strings.HasPrefix(name, "Example_migrating") })
	tests := functions(t, "*_test.go")
	rowsOf := map[string][]row{
		"gobreaker":   slices.Concat(gobreakerRows, gobreakerDifferences),
		"failsafe-go": slices.Concat(failsafeRows, failsafeDifferences),
	}

	shown := map[string]bool{}
	for _, section := range heading.Split(string(text), -1)[1:] {
		title, body, _ := strings.Cut(section, "\n")
		rows, compiled := rowsOf[strings.TrimPrefix(title, "From ")]
		for _, cells := range tableRows(t, body) {
			names := inTicks.FindAllStringSubmatch(cells[2], -1)
			if compiled {
				assert.NotEmpty(t, names, "%s: the row of %q names no test", title, cells[0])
			}
			for _, m := range names {
				switch name := m[1]; {
				case strings.HasPrefix(name, "Test"):
					assert.Contains(t, tests, name, "%s", title)
				case strings.HasPrefix(name, "migrating"):
					assert.Contains(t, examples, "Example_"+name, "%s", title)
				case compiled:
					assert.False(t, shown[title+name], "%s: two rows name %q", title, name)
					shown[title+name] = true
					assert.True(t, hasRow(rows, name), "%s: there is no subtest %q", title, name)
				}
			}
		}
		for _, r := range rows {
			assert.True(t, shown[title+r.name], "%s: no row names the subtest %q", title, r.name)
		}
		delete(rowsOf, strings.TrimPrefix(title, "From "))
	}
	assert.Empty(t, rowsOf, "sections that are missing")
	for _, example := range examples {
		assert.Contains(t, string(text), "`"+strings.TrimPrefix(example, "Example_")+"`")
	}
}

var (
	foreign  = regexp.MustCompile(`\b(time|context|errors|math|runtime)\.[A-Z]\w*`)
	exported = regexp.MustCompile(`\b[A-Z]\w+`)
)

// What is code in the cells of coming-from-breakers.md are names that there are: those of
// ours are declared by the package, and those of Go peers are used by the tests.
func TestMigratingNamesWhatThereIs(t *testing.T) {
	text, err := os.ReadFile(migrating)
	require.NoError(t, err)
	ours := identifiers(t, "../../atomicbreaker/*.go")
	peers := identifiers(t, "*_test.go")
	checked := 0
	for _, section := range heading.Split(string(text), -1)[1:] {
		title, body, _ := strings.Cut(section, "\n")
		compiled := title == "From gobreaker" || title == "From failsafe-go"
		for _, cells := range tableRows(t, body) {
			here := cells[2]
			if compiled {
				here = cells[1]
				for _, n := range namesIn(cells[0]) {
					assert.True(t, peers[n], "%s: no test uses %s", title, n)
				}
			}
			for _, n := range namesIn(here) {
				assert.True(t, ours[n], "%s: %s is nothing of atomicbreaker", title, n)
				checked++
			}
		}
	}
	assert.Greater(t, checked, 150, "does the test still see the tables?")
}

// namesIn returns the exported names in the code of a cell.
func namesIn(cell string) (names []string) {
	for _, code := range inTicks.FindAllStringSubmatch(cell, -1) {
		names = append(names, exported.FindAllString(foreign.ReplaceAllString(code[1], ""), -1)...)
	}
	return names
}

// identifiers returns the identifiers in the code of files.
func identifiers(t *testing.T, pattern string) map[string]bool {
	found := map[string]bool{}
	for _, f := range parse(t, pattern) {
		ast.Inspect(f, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				found[id.Name] = true
			}
			return true
		})
	}
	return found
}

func hasRow(rows []row, name string) bool {
	return slices.ContainsFunc(rows, func(r row) bool { return r.name == name })
}

// functions returns the names of the functions in files.
func functions(t *testing.T, pattern string) (names []string) {
	for _, f := range parse(t, pattern) {
		for _, d := range f.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
				names = append(names, f.Name.Name)
			}
		}
	}
	return names
}

// parse reads files, but not the tests of another folder if there are several.
func parse(t *testing.T, pattern string) (parsed []*ast.File) {
	files, err := filepath.Glob(pattern)
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		if len(files) > 1 && filepath.Dir(file) != "." && strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		parsed = append(parsed, f)
	}
	return parsed
}
