package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// A campaign against the fixture's tests: one mutant dies of the protocol, one
// of a test that it must be built alone for, and one lives, since no test calls
// its function.
func TestCampaign(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs of mutants")
	}
	c, err := parse([]string{"-run", `raise: torn|publish: dropped: b.ready|stable: stale`, "-layers", "protocol,unit", fixture}, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	g := inPlace(t)
	if err := copyModule("../../..", filepath.Join(g.temp, "src")); err != nil {
		t.Fatal(err)
	}
	g.root = filepath.Join(g.temp, "src")
	list := filepath.Join(g.root, reviews, strings.ReplaceAll(fixture, "/", "-")+".txt")
	review := func(text string) {
		if err := os.WriteFile(list, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	k := newKillers(filepath.Join(g.temp, "killers.json"))

	review("box.raise: torn: b.word.CompareAndSwap(now, to)\n\twrongly\n")
	if err := c.campaigns(g, k, nil, &out); err == nil {
		t.Error("a survivor that nobody listed passed, and so did a list that is wrong")
	}
	for _, want := range []string{
		"raise: torn: b.word.CompareAndSwap(now, to)\n            protocol TestRaiseProtocol\n",
		"publish: dropped: b.ready.Fire()\n            LIVED\n",
		": unit tests that need mutants by themselves: TestStable\n",
		"stable: stale: b.word.Load()\n            unit TestStable\n",
		"fixture.go:37: LIVED\nbox.publish: dropped: b.ready.Fire()\n\t- \tb.ready.Fire()\n",
		".txt:1: it does not live: protocol TestRaiseProtocol kills it: box.raise: torn",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q", want)
		}
	}

	// What is listed may live.
	review("box.publish: dropped: b.ready.Fire()\n\tnobody waits\n")
	c.layers = map[string]bool{"unit": true}
	c.run = regexp.MustCompile(`publish: dropped: b.ready`)
	if err := c.campaigns(g, k, nil, &out); err != nil || !strings.Contains(out.String(), "lived, as reviewed\n") {
		t.Errorf("a survivor that is listed: %v", err)
	}
	c.trust = true
	if err := c.campaigns(g, k, nil, &out); err != nil || !strings.Contains(out.String(), "lived, as reviewed (not tried)\n") {
		t.Errorf("a survivor whose review is trusted: %v", err)
	}
	if t.Failed() {
		t.Log(out.String())
	}
}

// Tests that do not start, or that somebody ends, kill no mutant.
func TestStopped(t *testing.T) {
	const itself = "STOP_ITSELF"
	if os.Getenv(itself) != "" {
		p, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = p.Kill()
		}
		t.Fatal(err)
	}
	g := inPlace(t)
	b := &baseline{layer: &layer{name: "unit", env: []string{itself + "=yes"}}}
	for _, binary := range []string{os.Args[0], filepath.Join(g.temp, "nothing")} {
		r := b.run(g, program{binary: binary}, "TestStopped", time.Minute, 1<<40)
		if v := new(verdict); r.how != stopped || !v.take(b, r) || v.fate != lived || !v.untried {
			t.Errorf("%v, and the verdict %+v:\n%s", r.how, v, r.output)
		}
	}
}

// What became of a mutant is known until something changes that matters.
func TestMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs of mutants")
	}
	c, err := parse([]string{"-run", `raise: torn|publish: dropped: b.ready`, "-layers", "protocol,unit", "-j", "1", fixture}, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	g := inPlace(t)
	g.root = filepath.Join(g.temp, "src")
	if err := copyModule("../../..", g.root); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(g.temp, "verdicts")
	again := func(what string, known int) {
		t.Helper()
		v, err := openMemory(path)
		if err != nil {
			t.Fatal(err)
		}
		defer v.file.Close()
		var out bytes.Buffer
		if err := c.campaigns(g, newKillers(filepath.Join(g.temp, "killers.json")), v, &out); err == nil {
			t.Errorf("%s: a survivor passed", what)
		}
		if got := strings.Count(out.String(), "(before)\n"); got != known {
			t.Errorf("%s: %d verdicts were known, want %d:\n%s", what, got, known, out.String())
		}
	}
	edit := func(path, more string) {
		t.Helper()
		path = filepath.Join(g.root, filepath.FromSlash(path))
		text, err := os.ReadFile(path)
		if err == nil || os.IsNotExist(err) {
			err = os.WriteFile(path, append(text, more...), 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	again("at first", 0)
	edit(fixture+"/more_test.go", "package fixture\n")
	again("more tests", 1) // what was killed is dead
	// A line that was cut off is forgotten, and only it.
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, text[:len(text)-20], 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	edit("README.md", "still more")
	again("half a line", 1)
	// Where there is no memory the record knows.
	write(t, c, g, path)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	again("a new machine", 2)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	edit(fixture+"/more_test.go", "// more\n")
	again("a new machine and more tests", 1)
	edit("internal/tools/mc/doc.go", "\n// more\n")
	again("another checker", 0)
}

// write writes the record of the fixture beside the sources that c is run on,
// from the memory at path.
func write(t *testing.T, c *config, g *toolchain, path string) {
	v, err := openMemory(path)
	if err != nil {
		t.Fatal(err)
	}
	defer v.file.Close()
	var out bytes.Buffer
	writing := *c
	writing.record, writing.run = true, regexp.MustCompile("")
	home := g.home
	g.home = g.root
	defer func() { g.home = home }()
	if err := writing.campaigns(g, newKillers(filepath.Join(g.temp, "killers.json")), v, &out); err != nil || out.Len() > 0 {
		t.Fatalf("%v\n%s", err, out.String())
	}
}

func TestCulprit(t *testing.T) {
	for output, want := range map[string]string{
		"=== RUN   TestA\n--- FAIL: TestA (0.00s)\n":                                           "TestA",
		"--- PASS: TestA (0.00s)\n--- FAIL: TestB (0.00s)\n    --- FAIL: TestB/x_y (0.00s)\n":  "TestB/x_y",
		"--- FAIL: TestB (0s)\n    --- FAIL: TestB/x (0s)\n        --- FAIL: TestB/x/y (0s)\n": "TestB/x",
		"=== RUN   TestA\n=== RUN   TestA/x\npanic: test timed out after 1s\n":                 "TestA/x",
		"fatal error: all goroutines are asleep\n":                                             "",
	} {
		if got := culprit(output); got != want {
			t.Errorf("culprit(%q) = %q, want %q", output, got, want)
		}
	}
}

// That an exploration has become larger than its page says kills nothing by itself.
func TestOutgrown(t *testing.T) {
	const says = "PASS\nmc: TestB/b has more executions than the page says: run it without MC_MOST\n"
	for output, want := range map[string]bool{
		"=== RUN   TestA\n--- PASS: TestA (0.00s)\n" + says:                                                true,
		"=== RUN   TestA\n--- FAIL: TestA (0.00s)\nFAIL\n":                                                 false,
		"=== RUN   TestA\n    --- FAIL: TestA/a (0.00s)\n" + says:                                          false,
		"=== RUN   TestA\npanic: test timed out after 1s\n":                                                false,
		"=== RUN   TestA\n--- PASS: TestA (0.00s)\nPASS\nmc: TestA is not deterministic: it found\n\t{}\n": false,
	} {
		if outgrown(output) != want {
			t.Errorf("%v of %q", !want, output)
		}
	}
}

func TestBaselineReadsDurations(t *testing.T) {
	var b baseline
	b.took = map[string]time.Duration{}
	b.read("--- PASS: TestA (1.50s)\n    --- PASS: TestA/x (1.00s)\n        --- PASS: TestA/x/z (0.70s)\n    --- PASS: TestA/y (0.01s)\n--- PASS: TestB (0.00s)\n")
	if b.took["TestA/x"] != time.Second || b.took["TestA/y"] != 10*time.Millisecond || len(b.took) != 3 {
		t.Errorf("took %v", b.took)
	}
	if got, want := pattern(b.quick), "^TestA$/^y$|^TestB$"; got != want {
		t.Errorf("quick %s, want %s", got, want)
	}
	// TestA/x may have taken 1.004 s, and TestB 4 ms.
	if _, most := b.those(program{}, "TestA/x", "TestB"); most != 1010*time.Millisecond {
		t.Errorf("at most %v, want 1.01s", most)
	}
}

func TestTailKeepsTheEnd(t *testing.T) {
	out := &tail{most: 100}
	for range 1000 {
		out.Write([]byte("0123456789"))
	}
	out.Write([]byte("end"))
	if s := out.String(); len(s) > 300 || !strings.HasSuffix(s, "789end") {
		t.Errorf("kept %q", s)
	}
}

func TestReviewRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"\ta reason\n": ":1: a reason without a mutant",
		"f: torn: x\n": ":1: no reason is given",
		"# c\nf: torn: x\n\ty\n\nf: torn: x\n\tz\n":                     ":5: listed twice",
		"f: mangled: x\n\ty\n":                                          ":1: no key of a mutant",
		"# good\nf: torn: x #2\n\ty\n\tz\nf: late: x\nf: late: y\n y\n": "",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "a-b.txt"), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		r, err := readReview(dir, "a/b")
		if want == "" {
			if err != nil || len(r.entries) != 3 || r.entries[0].reason != "y z " || r.entries[1].reason != "y " {
				t.Errorf("readReview(%q) = %v, %v", text, r, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("readReview(%q): %v, want %q", text, err, want)
		}
	}
}

// A list that names what does not exist is told, but only by a full run.
func TestReviewOutdated(t *testing.T) {
	r := &review{path: "p", byKey: map[string]*entry{}}
	for _, key := range []string{"f: torn: x", "f: negated: y"} {
		e := &entry{key: key, reason: "r", line: 1}
		r.entries, r.byKey[key] = append(r.entries, e), e
	}
	if got := r.outdated(nil, nil, true, concurrencyNames); len(got) != 1 || !strings.Contains(got[0], "no such mutant: f: torn: x") {
		t.Errorf("a full run says %q", got)
	}
	if got := r.outdated(nil, nil, false, concurrencyNames); len(got) != 0 {
		t.Errorf("a part says %q", got)
	}
	m := &mutant{function: "f", operator: "torn", what: "x"}
	for fate, want := range map[fate]int{lived: 0, killed: 1, halted: 0, same: 1} {
		if got := r.outdated([]*mutant{m}, map[*mutant]*verdict{m: {fate: fate}}, true, concurrencyNames); len(got) != want {
			t.Errorf("fate %d: %q", fate, got)
		}
	}
}

// What is built with mutants does not stay, and what was there does.
func TestForkedCache(t *testing.T) {
	dir := t.TempDir()
	g := &toolchain{cache: filepath.Join(dir, "go-build"), temp: filepath.Join(dir, "temp")}
	write := func(path string) {
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(g.cache, "ab", "kept"))
	if err := g.split(); err != nil {
		t.Fatal(err)
	}
	fork := g.fork
	old, new := filepath.Join(fork, "ab", "old"), filepath.Join(fork, "ab", "new")
	write(old)
	write(new)
	hour := time.Now().Add(-time.Hour)
	for _, path := range []string{old, filepath.Join(fork, "ab", "kept")} {
		if err := os.Chtimes(path, hour, hour); err != nil {
			t.Fatal(err)
		}
	}
	g.prune()
	for path, want := range map[string]bool{old: false, new: true, filepath.Join(fork, "ab", "kept"): true} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s: %v", path, err)
		}
	}
	g.close()
	if _, err := os.Stat(fork); !os.IsNotExist(err) {
		t.Error("the fork is still there")
	}
	if _, err := os.Stat(filepath.Join(g.cache, "ab", "kept")); err != nil {
		t.Error(err)
	}
}

// What is stopped has a verdict only if it took so long that no machine explains it: the test that ran
// last gets more time by itself.
func TestSlowOrHung(t *testing.T) {
	const script = `#!/bin/sh
case "$1" in
*Alone*) exit 0 ;; # by itself it is fast enough
*Fails*) echo "--- FAIL: TestFails (0.00s)"; exit 1 ;;
esac
echo "=== RUN   $LAST"
echo "panic: test timed out after 1s"
exit 2
`
	binary := filepath.Join(t.TempDir(), "tests")
	if err := os.WriteFile(binary, []byte(script), 0o777); err != nil {
		t.Fatal(err)
	}
	c := &campaign{toolchain: &toolchain{root: t.TempDir()}, config: &config{patience: time.Second, memory: 1 << 40}}
	for _, test := range []struct {
		last string
		most time.Duration
		want ending
	}{
		{"TestHangs", time.Millisecond, timedOut}, // a second is a thousand times as long
		{"TestHangs", time.Minute, timedOut},      // so it is by itself
		{"TestAlone", time.Minute, slow},
		{"TestFails", time.Minute, failed},
		{"TestUnknown", time.Minute, slow},
	} {
		b := &baseline{layer: &layer{env: []string{"LAST=" + test.last}}, took: map[string]time.Duration{"TestHangs": 0, "TestAlone": 0, "TestFails": 0}}
		if r := c.all(b, program{binary: binary}, "^Test", test.most); r.how != test.want {
			t.Errorf("%s, of tests that take %v: %v, want %v", test.last, test.most, r.how, test.want)
		}
	}
}
