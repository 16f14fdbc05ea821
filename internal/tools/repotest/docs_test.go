package repotest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

var (
	progress   = regexp.MustCompile(`\bis (wait-free|lock-free|blocking)\b`)
	takeEffect = regexp.MustCompile(`\btakes?\s+effect\b`)
)

// Every operation on a shared type says how it progresses and when it takes
// effect, in its doc and, for a public package, in a row of its DESIGN.md.
func TestOperationsAreDocumented(t *testing.T) {
	for _, pkg := range slices.Concat(public, parts) {
		t.Run(pkg, func(t *testing.T) {
			sources, err := parseDir(pkg, false)
			if err != nil {
				t.Fatal(err)
			}
			var design []byte
			isPart := slices.Contains(parts, pkg)
			if !isPart {
				if design, err = os.ReadFile(filepath.Join(root, pkg, "DESIGN.md")); err != nil {
					t.Fatal(err)
				}
			}
			ops := operations(pkg, sources)
			if len(ops) < 5 && !isPart || len(ops) < 3 {
				t.Fatalf("found only %d operations; does the test still see the shared types?", len(ops))
			}
			for _, op := range ops {
				if !progress.MatchString(op.doc) {
					t.Errorf("%s: %s.%s: its doc does not say whether it is wait-free, lock-free or blocking", op.pos, op.typeName, op.name())
				}
				if !takeEffect.MatchString(op.doc) {
					t.Errorf("%s: %s.%s: its doc does not say when it takes effect", op.pos, op.typeName, op.name())
				}
				row := regexp.MustCompile("(?m)^\\|[^|]*`([A-Za-z]+\\.)?" + op.name() + "(\\([^`|]*\\))?`")
				if !isPart && !row.Match(design) {
					t.Errorf("%s/DESIGN.md has no row for %s.%s in its table of where operations take effect", pkg, op.typeName, op.name())
				}
			}
		})
	}
}

// Every exported name has a doc comment that starts with the name.
func TestExportedNamesAreDocumented(t *testing.T) {
	for _, pkg := range importable(t) {
		sources, err := parseDir(pkg, false)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range sources {
			for _, missing := range undocumented(s) {
				t.Errorf("%s: no doc comment that starts with the name", missing)
			}
		}
	}
}
