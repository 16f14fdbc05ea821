package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Reviews and records name mutants that exist, and records are of the code that there is, or say that they are not.
func TestReviewsAndRecordsAreOfMutants(t *testing.T) {
	for _, dir := range everything {
		target, err := inPlace(t).load(dir)
		if err != nil {
			t.Fatal(err)
		}
		code, err := inPlace(t).code(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []config{{}, {sequential: true}} {
			ops, names := c.operators()
			if !named(t, dir, names) {
				continue // there are many, and nobody asks for them
			}
			found, err := tidy("../../..", target, target.mutants(ops), names, code, false)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range found {
				t.Error(f)
			}
			if len(found) > 0 {
				t.Errorf("go run ./internal/tools/mutants -tidy%s ./%s puts that right", map[bool]string{true: " -sequential"}[c.sequential], dir)
			}
		}
	}
}

// named reports whether a review or a record of the target in dir names a mutant of one of
// these operators.
func named(t *testing.T, dir string, names []string) bool {
	for _, folder := range []string{reviews, records} {
		text, err := os.ReadFile(pathOf(filepath.Join("../../..", folder), dir))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if slices.Contains(names, operatorOf(strings.TrimSpace(line))) {
				return true
			}
		}
	}
	return false
}

// What has moved has its new key, what is gone is gone with its reason if that is of
// nothing else, and what other operators make stays.
func TestTidy(t *testing.T) {
	target, err := inPlace(t).load(fixture)
	if err != nil {
		t.Fatal(err)
	}
	mutants := target.mutants(concurrency)
	here, other := mutants[0].key(), mutants[1].key()
	root := t.TempDir()
	for folder, text := range map[string]string{
		reviews: "# About.\n\nearlier: " + changeOf(other) + "\n\tIt has moved.\n\nf: torn: gone()\n\tIt is\n\tgone.\n\n" +
			here + "\nf: late: gone()\n\tOne of two.\n\nf: removed: x()\n\tOf others.\n",
		records: "sources x\ncode c\nunit TestA -\n\tf: torn: gone()\n\t" + here + "\n\tf: removed: x()\n",
	} {
		path := pathOf(filepath.Join(root, folder), fixture)
		os.MkdirAll(filepath.Dir(path), 0o777)
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	found, err := tidy(root, target, mutants, concurrencyNames, "c", true)
	if err != nil || len(found) != 4 {
		t.Errorf("tidy: %v, %q", err, found)
	}
	want := "# About.\n\n" + other + "\n\tIt has moved.\n\n" + here + "\n\tOne of two.\n\nf: removed: x()\n\tOf others.\n"
	if got, _ := os.ReadFile(pathOf(filepath.Join(root, reviews), fixture)); string(got) != want {
		t.Errorf("reviews:\n%s\nwant\n%s", got, want)
	}
	want = "sources x\ncode c\nunit TestA -\n\t" + here + "\n\tf: removed: x()\n"
	if got, _ := os.ReadFile(pathOf(filepath.Join(root, records), fixture)); !strings.HasSuffix(string(got), want) {
		t.Errorf("record:\n%s\nwant\n%s", got, want)
	}
	if found, err := tidy(root, target, mutants, concurrencyNames, "c", false); err != nil || len(found) > 0 {
		t.Errorf("tidy again: %v, %q", err, found)
	}
}
