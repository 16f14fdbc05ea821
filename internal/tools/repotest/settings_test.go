package repotest

import (
	"go/ast"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// An error about a setting names the field, its value unless that cannot be shown, and
// what must be, in one wording. A setting whose error is another's comes before that.
func TestErrorsOfSettingsReadAlike(t *testing.T) {
	names := regexp.MustCompile(`^([a-z]+: )?(\w*Config|Options)\.[A-Z%]`)
	alike := regexp.MustCompile(`^([a-z]+: )?(\w*Config|Options)\.[\w%]+(\[%q\])?( %[dvq]| true)?: (must (be|not be) .+|%w)`)
	found := 0
	for _, pkg := range importable(t) {
		sources, err := parseDir(pkg, false)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range sources {
			ast.Inspect(s.file, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok || len(call.Args) == 0 {
					return true
				}
				f, ok := call.Fun.(*ast.SelectorExpr)
				if !ok || f.Sel.Name != "Errorf" && f.Sel.Name != "New" {
					return true
				}
				text, ok := literal(call.Args[0])
				if !ok || !names.MatchString(text) {
					return true
				}
				if found++; !alike.MatchString(text) && !strings.Contains(text, " returned ") { // what a function of the user's does is no setting
					t.Errorf("%s: %s, want %s", s.fset.Position(n.Pos()), strconv.Quote(text), `"pkg: Config.Field VALUE: must …"`)
				}
				return true
			})
		}
	}
	if found < 20 {
		t.Errorf("found only %d errors of settings; does the test still see them?", found)
	}
}
