package main

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"
)

const fixture = "internal/mutants/testdata/fixture"

var update = flag.Bool("update", false, "rewrite the golden files")

// inPlace returns a toolchain that works on the module itself.
func inPlace(t *testing.T) *toolchain {
	return &toolchain{root: "../..", temp: t.TempDir()}
}

// Every operator, what it makes of each kind of code, and nothing of what does
// not compile.
func TestOperators(t *testing.T) {
	target, err := inPlace(t).load(fixture)
	if err != nil {
		t.Fatal(err)
	}
	for golden, ops := range map[string]operators{
		"testdata/concurrency.golden": concurrency,
		"testdata/sequential.golden":  sequential,
	} {
		var got bytes.Buffer
		for _, m := range target.mutants(ops) {
			got.WriteString(m.place() + " " + m.key() + "\n" + m.diff())
		}
		if *update {
			if err := os.WriteFile(golden, got.Bytes(), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(want, got.Bytes()) {
			t.Errorf("%s is not what was made; look at go test -update and git diff", golden)
		}
	}
}

// A mutant's key stays the same when its lines move.
func TestKeysDoNotKnowLines(t *testing.T) {
	target, err := inPlace(t).load(fixture)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, m := range append(target.mutants(concurrency), target.mutants(sequential)...) {
		if key := m.key(); seen[key] || strings.ContainsAny(key, "\n\t") || operatorOf(key) == "" {
			t.Errorf("key %q", key)
		}
		seen[m.key()] = true
	}
}
