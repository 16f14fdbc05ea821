package repotest

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// reported is how many bugs of others the tests of each package name in their comments.
var reported = map[string]int{"atomicbreaker": 63, "cowchangeset": 22, "oncecache": 39, "shardedregistry": 32}

var (
	testName = regexp.MustCompile("`(Test[A-Za-z0-9_]+)`")
	testFunc = regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9_]+)\(`)
	numbered = regexp.MustCompile(`^TestT(\d+)_`)

	// bugComment is a line of the comment of a test, or of one that says why there is none.
	bugComment = regexp.MustCompile(`(?m)^// Reported bug (\d+), .+: .+\.\n`)
	// commented is the rest of a test's comment, and its name.
	commented = regexp.MustCompile(`\A(?://.*\n)*func (Test[A-Za-z0-9_]+)\(`)
)

// Every bug has tests, or a reason why not, and the tests that are named are
// there. All tests with a number are named with the bug of that number.
func TestReportedBugs(t *testing.T) {
	for pkg, want := range reported {
		rows, there := bugs(t, pkg), tests(t, pkg)
		if len(rows) != want || len(there) == 0 {
			t.Errorf("%s: %d bugs, want %d, and %d tests", pkg, len(rows), want, len(there))
		}
		named := map[string]bool{}
		for i, row := range rows {
			found := testName.FindAllStringSubmatch(row, -1)
			for _, m := range found {
				named[fmt.Sprint(i+1, m[1])] = true
				if !there[m[1]] {
					t.Errorf("%s: there is no %s", pkg, m[1])
				}
			}
			if (len(found) > 0) == strings.Contains(row, "*no test:* ") {
				t.Errorf("%s: bug %d has neither a test nor a reason, or both: %s", pkg, i+1, row)
			}
		}
		for name := range there {
			if m := numbered.FindStringSubmatch(name); m != nil && !named[m[1]+name] {
				t.Errorf("%s: %s is not with bug %s", pkg, name, m[1])
			}
		}
	}
}

// bugs returns what the comments of the package's tests say of each bug: the names of its
// tests, or why there is none.
func bugs(t *testing.T, pkg string) (rows []string) {
	eachTestFile(t, pkg, func(text []byte) {
		for _, m := range bugComment.FindAllSubmatchIndex(text, -1) {
			n, _ := strconv.Atoi(string(text[m[2]:m[3]]))
			for len(rows) < n {
				rows = append(rows, "")
			}
			if test := commented.FindSubmatch(text[m[1]:]); test != nil {
				rows[n-1] += "`" + string(test[1]) + "`"
			} else {
				rows[n-1] += strings.Replace(string(text[m[0]:m[1]]), "No test: ", "*no test:* ", 1)
			}
		}
	})
	return rows
}

// tests returns the names of the tests of the package, and of those in it.
func tests(t *testing.T, pkg string) map[string]bool {
	there := map[string]bool{}
	eachTestFile(t, pkg, func(text []byte) {
		for _, m := range testFunc.FindAllSubmatch(text, -1) {
			there[string(m[1])] = true
		}
	})
	return there
}

// eachTestFile yields the files of the tests of the package, and of those in it.
func eachTestFile(t *testing.T, pkg string, yield func(text []byte)) {
	err := filepath.WalkDir(filepath.Join(root, pkg), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err == nil {
			yield(text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
