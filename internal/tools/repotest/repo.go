package repotest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/internal/tools/typed"
)

// modulePath is the module under test.
const modulePath = "github.com/latchfree/latchfree"

// public lists the packages that have shared types.
var public = []string{"atomicbreaker", "cowchangeset", "oncecache", "shardedregistry"}

// parts lists the packages below the public ones whose shared types have protocols of
// their own. They are documented as the public ones are, but for a DESIGN.md.
var parts = []string{"atomicbreaker/retrybudget", "atomicbreaker/throttle"}

// explored lists the packages with protocols.
var explored = slices.Concat([]string{"internal/table", "atomicbreaker/internal/ring"}, public, parts)

// ours lists the folders whose packages no program of others contains: benchmarks, tests
// and what only they use, examples, and tools.
var ours = []string{"bench", "examples", "fuzz", "internal/folder/foldertest", "internal/tools"}

// library returns the folders of all packages but ours, with those of commands.
func library(t *testing.T) []string {
	t.Helper()
	return slices.DeleteFunc(folders(t), isOurs)
}

func isOurs(dir string) bool {
	return slices.ContainsFunc(ours, func(o string) bool { return dir == o || strings.HasPrefix(dir, o+"/") })
}

// importable returns the folders of the packages that importers use.
func importable(t *testing.T) []string {
	t.Helper()
	return slices.DeleteFunc(library(t), func(dir string) bool {
		return strings.Contains("/"+dir, "/internal/") || strings.Contains(dir, "/cmd/")
	})
}

// folders returns those of all packages of the module.
func folders(t *testing.T) (dirs []string) {
	t.Helper()
	out, err := goTool(root, "list", "./...")
	if err != nil {
		t.Fatal(err)
	}
	for path := range strings.FieldsSeq(out) {
		dirs = append(dirs, strings.TrimPrefix(path, modulePath+"/"))
	}
	return dirs
}

// loadTyped returns the packages that args select for go list.
func loadTyped(t *testing.T, args ...string) []*typed.Package {
	t.Helper()
	all, err := typed.Load(func(args ...string) ([]byte, error) {
		out, err := goTool(root, args...)
		return []byte(out), err
	}, args...)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// root is the repository's root as seen from this package's tests.
const root = "../../.."

// source is one parsed file.
type source struct {
	name string // relative to the repository's root
	file *ast.File
	fset *token.FileSet
}

// parseDir parses the Go files of one folder, tests excluded or alone.
func parseDir(dir string, tests bool) ([]source, error) {
	names, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	var sources []source
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") != tests {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return nil, err
		}
		sources = append(sources, source{filepath.ToSlash(rel), f, fset})
	}
	if len(sources) == 0 {
		return nil, fmt.Errorf("repotest: no Go files in %s", dir)
	}
	return sources, nil
}

// compiling are the flags with which make test compiles, too, so that nothing that it has
// compiled is compiled again.
const compiling = "-trimpath -gcflags=all=-dwarf=false"

// goTool runs the go command in dir, without network, and returns what it
// printed.
func goTool(dir string, args ...string) (string, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS=-mod=mod -buildvcs=false "+compiling, "GOWORK=off")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, errs.String())
	}
	return out.String(), nil
}
