package oncecache_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	testName = regexp.MustCompile("`(Test[A-Za-z0-9_]+)`")
	testFunc = regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9_]+)\(`)
	numbered = regexp.MustCompile(`^TestT(\d+)_`)
)

// Every bug in the table "Reported bugs of others" has tests, or a reason why
// not, and the tests that it names are there. All tests with a number are in the
// table, in the row of that number.
func TestReportedBugs(t *testing.T) {
	design, err := os.ReadFile("DESIGN.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(design), "\n## Reported bugs of others\n")
	section, _, _ = strings.Cut(section, "\n## ")
	_, table, _ := strings.Cut(section, "\n|---|---|---|\n")
	there := map[string]bool{}
	files, _ := filepath.Glob("*_test.go")
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range testFunc.FindAllSubmatch(text, -1) {
			there[string(m[1])] = true
		}
	}
	rows := strings.Split(strings.TrimSpace(table), "\n")
	if len(rows) != 35 {
		t.Fatalf("%d bugs, want 35", len(rows))
	}
	in := make([]map[string]bool, len(rows))
	for i, row := range rows {
		in[i] = map[string]bool{}
		for _, m := range testName.FindAllStringSubmatch(row, -1) {
			if in[i][m[1]] = true; !there[m[1]] {
				t.Errorf("there is no %s", m[1])
			}
		}
		if (len(in[i]) > 0) == strings.Contains(row, "*no test:* ") {
			t.Errorf("row %d has neither a test nor a reason, or both: %s", i+1, row)
		}
	}
	for name := range there {
		m := numbered.FindStringSubmatch(name)
		if m == nil {
			continue
		}
		found := false
		for i := range rows {
			found = found || fmt.Sprint(i+1) == m[1] && in[i][name]
		}
		if !found {
			t.Errorf("%s is not in row %s", name, m[1])
		}
	}
}
