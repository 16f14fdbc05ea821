package repotest

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// consumerFiles are what a consumer consists of, but for the operations that it
// mentions.
const consumerFiles = "testdata/consumer"

// writeConsumer writes a module into dir that imports the four packages, and
// nothing else, from this checkout, and mentions every operation of every
// shared type so that the linker keeps it.
func writeConsumer(dir string) error {
	operations, err := consumerOperations()
	if err != nil {
		return err
	}
	if err := writeModule(dir); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "operations.go"), []byte(operations), 0o666); err != nil {
		return err
	}
	return os.CopyFS(dir, os.DirFS(consumerFiles))
}

// writeModule makes dir a module that uses this checkout.
func writeModule(dir string) error {
	here, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	gomod := fmt.Sprintf("module example.com/consumer\n\ngo 1.25\n\nrequire %s v0.0.0\n\nreplace %[1]s => %s\n", modulePath, here)
	sums, err := os.ReadFile(filepath.Join(root, "go.sum")) // or a database elsewhere would be asked for them
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "go.sum"), sums, 0o666); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "go.mod"), []byte(gomod), 0o666)
}

// consumerOperations returns the source of a list of all operations. It instantiates generic types in the consumer's own package,
// with string keys and int values, as real importers do.
func consumerOperations() (string, error) {
	var b strings.Builder
	b.WriteString("package main\n\nimport (\n")
	for _, pkg := range slices.Concat(public, parts) {
		fmt.Fprintf(&b, "\t%q\n", modulePath+"/"+pkg)
	}
	b.WriteString(")\n\nvar operations = []any{\n")
	for _, pkg := range slices.Concat(public, parts) {
		sources, err := parseDir(pkg, false)
		if err != nil {
			return "", err
		}
		for _, op := range operations(pkg, sources) {
			if op.method == "" {
				continue // Execute and the like need their own type arguments
			}
			typ := path.Base(pkg) + "." + op.typeName + typeArgs(op.typeParams)
			if op.pointer {
				typ = "(*" + typ + ")"
			}
			fmt.Fprintf(&b, "\t%s.%s,\n", typ, op.method)
		}
	}
	b.WriteString("}\n")
	return b.String(), nil
}

func typeArgs(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "[string]"
	default:
		return "[string, int]"
	}
}
