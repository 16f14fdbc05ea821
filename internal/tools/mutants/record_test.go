package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestRecordIsReadAsWritten(t *testing.T) {
	r := &record{"0123", "ab", "sequential 89 unit 5 doubted 1", map[string]remembered{
		"f: torn: x":    {Fate: killed, Layer: "protocol", How: failed, Test: "TestA/b", Tests: "45"},
		"f: torn: x #2": {Fate: killed, Layer: "protocol", How: failed, Test: "TestA/b", Tests: "45"},
		"g: forced: y":  {Fate: killed, Layer: "unit", How: failed, Test: "TestB", Tests: outdated},
		"h: late: z":    {Fate: lived, Tests: "67"},
		"h: stale: z":   {Fate: same, Tests: "67"},
	}}
	dir := t.TempDir()
	if err := r.save(dir, "a/b"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "a-b.txt"))
	if err != nil {
		t.Fatal(err)
	}
	const want = "sources 0123\ncode ab\nsequential 89 unit 5 doubted 1\n" +
		"unit TestB -\n\tg: forced: y\n" +
		"protocol TestA/b 45\n\tf: torn: x\n\tf: torn: x #2\n" +
		"lived 67\n\th: late: z\n" +
		"same 67\n\th: stale: z\n"
	if _, got, _ := strings.Cut(string(text), "\n"); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if got, err := readRecord(dir, "a/b"); err != nil || !reflect.DeepEqual(got, r) {
		t.Errorf("%v, %v; want %v", got, err, r)
	}
	if got, err := readRecord(dir, "c"); err != nil || len(got.byKey) != 0 {
		t.Errorf("no file: %v, %v", got, err)
	}
	for text, want := range map[string]string{
		"\tf: torn: x\n":            ":1: a mutant without a verdict",
		"# c\nsources\n":            ":2: no verdict: sources",
		"lived - -\tf: torn: x -\n": ":1: no verdict",
	} {
		if err := os.WriteFile(filepath.Join(dir, "c.txt"), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := readRecord(dir, "c"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("readRecord(%q): %v, want %q", text, err, want)
		}
	}
}

// A test that was only slow kills a mutant in doubt: the failure of another one, of a later layer, is what is recorded.
func TestRecordPrefersFailures(t *testing.T) {
	m := &mutant{source: &source{path: "f.go"}, function: "f", operator: "torn", what: "x"}
	c := &campaign{
		target:  &target{dir: "a"},
		record:  &record{byKey: map[string]remembered{}},
		memory:  &memory{known: map[string]remembered{}, last: map[string]remembered{}},
		mutants: []*mutant{m},
	}
	remember := func(r remembered) {
		r.Key, r.What = c.identity(m, r.Layer), c.what(m)
		c.memory.add(r)
	}
	remember(remembered{Fate: killed, Layer: "unit", How: slow, Test: "TestA", Tests: "45"})
	if got := c.note(concurrencyNames).byKey[m.key()]; got.Test != "TestA" || got.Tests != outdated {
		t.Errorf("slow alone: %+v", got)
	}
	remember(remembered{Fate: killed, Layer: "protocol", How: failed, Test: "TestB", Tests: "67"})
	if got := c.note(concurrencyNames).byKey[m.key()]; got.Test != "TestB" || got.Tests != "67" {
		t.Errorf("slow, and failed in another layer: %+v", got)
	}
}

// Of mutants that sequential operators make, the record has numbers in the place of keys.
func TestRecordSumsUp(t *testing.T) {
	all := map[string]remembered{
		"unit":     {Fate: killed, Layer: "unit", Tests: "45"},
		"protocol": {Fate: killed, Layer: "protocol", Tests: "45"},
		"slow":     {Fate: killed, Layer: "unit", Tests: outdated},
		"same":     {Fate: same, Tests: "45"},
		"lived":    {Fate: lived, Tests: "45"},
		"reviewed": {Fate: lived, Tests: "45"},
	}
	r := &record{byKey: map[string]remembered{"f: torn: x": {Fate: lived}}}
	c := &campaign{sources: "0123", review: &review{byKey: map[string]*entry{}}}
	for what, known := range all {
		m := &mutant{source: &source{path: "f.go"}, function: "f", operator: "negated", what: what}
		c.mutants = append(c.mutants, m)
		r.byKey[m.key()] = known
		if what == "reviewed" {
			c.review.byKey[m.key()] = &entry{}
		}
	}
	c.mutants = append(c.mutants, &mutant{source: &source{path: "f.go"}, function: "f", operator: "negated", what: "not tried"})
	const want = "sequential 0123 unit 1 protocol 1 doubted 1 reviewed 1 lived 2 same 1"
	if c.sum(r); r.sequential != want || len(r.byKey) != 1 {
		t.Errorf("%q and %v, want %q", r.sequential, r.byKey, want)
	}
	if c.sum(r); r.sequential != want {
		t.Errorf("%q when nothing is known any more, want %q", r.sequential, want)
	}
}

// What is of other code is in doubt, whatever it was, but for what lives: that lives, reviewed or not.
func TestTidyDoubtsOtherCode(t *testing.T) {
	root := t.TempDir()
	for folder, text := range map[string]string{
		reviews: "",
		records: "sources x\ncode old\nsequential x unit 3 limit 2 doubted 1 reviewed 7 lived 1 same 4\nunit TestA 12\n\tf: torn: x\nlived 34\n\tf: late: y\n",
	} {
		path := pathOf(filepath.Join(root, folder), "a")
		os.MkdirAll(filepath.Dir(path), 0o777)
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if found, err := tidy(root, &target{dir: "a"}, nil, nil, "new", true); err != nil || len(found) != 1 {
		t.Errorf("tidy: %v, %q", err, found)
	}
	const want = "sources x\ncode new\nsequential x doubted 10 reviewed 7 lived 1\nunit TestA -\n\tf: torn: x\nlived -\n\tf: late: y\n"
	if got, _ := os.ReadFile(pathOf(filepath.Join(root, records), "a")); !strings.HasSuffix(string(got), want) {
		t.Errorf("record:\n%s\nwant\n%s", got, want)
	}
	if found, err := tidy(root, &target{dir: "a"}, nil, nil, "new", false); err != nil || len(found) > 0 {
		t.Errorf("tidy again: %v, %q", err, found)
	}
}

// A campaign that breaks concurrency in other code leaves the numbers of sequential mutants in doubt.
func TestRecordDoubtsTheOtherCampaign(t *testing.T) {
	for code, want := range map[string]string{"old": "sequential x unit 3 reviewed 7", "new": "sequential x doubted 3 reviewed 7"} {
		c := &campaign{record: &record{code: "old", sequential: "sequential x unit 3 reviewed 7"}, code: code}
		if got := c.note(concurrencyNames); got.sequential != want || got.code != code {
			t.Errorf("%s: %q of %q, want %q", code, got.sequential, got.code, want)
		}
	}
}

// Comments and layout make no other code, and everything else does.
func TestCode(t *testing.T) {
	hash := func(text string) string {
		var b strings.Builder
		writeTokens(&b, []byte(text))
		return b.String()
	}
	const text = "package a\n\nvar x = f(1)\n"
	for _, same := range []string{"// Doc.\npackage a\n\nvar x = f(1) // one\n", "package a\nvar x = f( 1 )\n"} {
		if hash(same) != hash(text) {
			t.Errorf("%q is other code than %q", same, text)
		}
	}
	for _, other := range []string{"package a\n\nvar x = f(2)\n", "package a\n\nvar x = g(1)\n", "package a\n\nvar x = f(-1)\n", "//go:build y\n\npackage a\n\nvar x = f(1)\n"} {
		if hash(other) == hash(text) {
			t.Errorf("%q is the same code as %q", other, text)
		}
	}
}
