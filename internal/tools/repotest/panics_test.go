package repotest

import (
	"go/ast"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Who passes nil learns of it in the same words everywhere: the package, the method, and
// what was nil. All other panics of a package's own begin with its name, too.
func TestPanicsReadAlike(t *testing.T) {
	nilArgument := regexp.MustCompile(`^[a-z]+: ([A-Z]\w*\.)?[A-Z]\w*( or [A-Z]\w*)? called with a nil [a-z ]+$`)
	for _, pkg := range importable(t) {
		sources, err := parseDir(pkg, false)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range sources {
			for _, p := range panics(s.file) {
				at := s.fset.Position(p.node.Pos())
				if !strings.HasPrefix(p.what, path.Base(pkg)+": ") {
					t.Errorf("%s: %q does not begin with the package's name", at, p.what)
				}
				if strings.Contains(p.what, "nil") && !nilArgument.MatchString(p.what) {
					t.Errorf("%s: %q, want %q", at, p.what, path.Base(pkg)+": Method called with a nil thing")
				}
			}
		}
	}
}

// panics returns the texts that a file panics with, of formats and sums what they begin
// with.
func panics(f *ast.File) (found []finding) {
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) != 1 {
			return true
		}
		if id, ok := call.Fun.(*ast.Ident); !ok || id.Name != "panic" {
			return true
		}
		arg := call.Args[0]
		if sum, ok := arg.(*ast.BinaryExpr); ok {
			text, _ := literal(sum.X)
			if last, ok := literal(sum.Y); ok && text != "" {
				found = append(found, finding{n, text + "Method" + last})
			}
			return true
		}
		if format, ok := arg.(*ast.CallExpr); ok && len(format.Args) > 0 {
			arg = format.Args[0]
			if text, ok := literal(arg); ok && !strings.HasPrefix(text, "%v") { // an error's text
				found = append(found, finding{n, text})
			}
			return true
		}
		if text, ok := literal(arg); ok {
			found = append(found, finding{n, text})
		}
		return true
	})
	return found
}

// literal returns the value of a string literal, or of a sum what its first one says and
// the last.
func literal(e ast.Expr) (string, bool) {
	if sum, ok := e.(*ast.BinaryExpr); ok {
		return literal(sum.X)
	}
	lit, ok := e.(*ast.BasicLit)
	if !ok {
		return "", false
	}
	text, err := strconv.Unquote(lit.Value)
	return text, err == nil
}
