package atomicbreaker_test

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
)

// Every bug in the table "Reported bugs of others" has a test that bears its
// number, or a reason why not, and the tests that it names are there. So are all
// tests with a number in the table.
func TestReportedBugs(t *testing.T) {
	design, err := os.ReadFile("DESIGN.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(design), "\n## Reported bugs of others\n")
	section, _, _ = strings.Cut(section, "\n## ")
	there := map[string]bool{}
	for _, pattern := range []string{"*_test.go", "breakerhttp/*_test.go"} {
		files, _ := filepath.Glob(pattern)
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range testFunc.FindAllSubmatch(text, -1) {
				there[string(m[1])] = true
			}
		}
	}
	named := map[string]bool{}
	rows := strings.Split(section[strings.Index(section, "|---"):], "\n")[1:]
	rows = rows[:len(rows)-1]
	for i, row := range rows {
		prefix, own := fmt.Sprintf("TestT%d_", i+1), false
		for _, m := range testName.FindAllStringSubmatch(row, -1) {
			named[m[1]] = true
			if own = own || strings.HasPrefix(m[1], prefix); !there[m[1]] {
				t.Errorf("there is no %s", m[1])
			}
		}
		if own == strings.Contains(row, "*no test:* ") {
			t.Errorf("row %d has neither a %s nor a reason, or both: %s", i+1, prefix, row)
		}
	}
	if len(rows) != 63 {
		t.Errorf("%d bugs, want 63", len(rows))
	}
	for name := range there {
		if regexp.MustCompile(`^TestT\d`).MatchString(name) && !named[name] {
			t.Errorf("%s is not in the table", name)
		}
	}
}
