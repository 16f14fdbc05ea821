package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Every function of the repository's test files that begins with Fuzz is a target, in
// the module and with the tag of its file.
func TestTargets(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	found, err := targets(root, regexp.MustCompile(""))
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]target)
	for _, f := range found {
		got[f.pkg+" "+f.name] = f
	}
	for _, want := range []target{
		{"FuzzCacheExpiry", root, "./fuzz/sequences", ""},
		{"FuzzCacheInterleavings", root, "./fuzz/interleavings", "modelcheck"},
		{"FuzzParsePolicy", root, "./atomicbreaker/settings", ""},
		{"FuzzKeys", filepath.Join(root, "cluster"), "./registry", ""},
	} {
		if f := got[want.pkg+" "+want.name]; f != want {
			t.Errorf("%+v, want %+v", f, want)
		}
	}
	if n := declared(t, root); len(found) != n {
		t.Errorf("%d targets of %d", len(found), n)
	}
}

// The nightly search has a minute for each target beside its time.
func TestNightlySearchHasTheTime(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	n := declared(t, root) // TestTargets compares
	workflow, err := os.ReadFile(filepath.Join(root, ".github", "workflows", "nightly.yml"))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?s)\n  fuzz:\n.*?timeout-minutes: (\d+).*?FUZZTIME=(\S+)`).FindStringSubmatch(string(workflow))
	if m == nil {
		t.Fatal("nightly.yml has no job that fuzzes")
	}
	limit, err := time.ParseDuration(m[1] + "m")
	each, err2 := time.ParseDuration(m[2])
	if want := time.Duration(n) * (each + time.Minute); err != nil || err2 != nil || limit < want {
		t.Errorf("%d targets for %v take %v, the job may take %v (%v, %v)", n, each, want, limit, err, err2)
	}
}

// declared counts the lines of test files, but for this one, that declare a target. It
// knows nothing of modules and tags.
func declared(t *testing.T, root string) (n int) {
	t.Helper()
	line := regexp.MustCompile(`(?m)^func Fuzz\w*\(\w+ \*testing\.F\)`)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") || strings.Contains(path, "testdata") || strings.Contains(path, "fuzzall") {
			return err
		}
		text, err := os.ReadFile(path)
		n += len(line.FindAll(text, -1))
		return err
	})
	if err != nil || n == 0 {
		t.Fatal(n, err)
	}
	return n
}

func TestJudge(t *testing.T) {
	const searched = "fuzz: elapsed: 3s, execs: 29216 (9738/sec), new interesting: 3 (total: 78)\nfuzz: elapsed: 20s, execs: 223974 (10692/sec), new interesting: 7 (total: 82)\n"
	status := errors.New("exit status 1")
	for name, c := range map[string]struct {
		err     error
		printed string
		want    result
	}{
		"passes":   {nil, searched + "PASS\n", result{"ok", false, "223974", "7"}},
		"deadline": {status, searched + "--- FAIL: FuzzX (20.05s)\n    context deadline exceeded\nFAIL\n", result{"ok (stopped late, go.dev/issue/75804)", false, "223974", "7"}},
		"input": {status, searched + "--- FAIL: FuzzX (20.05s)\n    --- FAIL: FuzzX (0.00s)\n        context deadline exceeded\n    Failing input written to testdata/fuzz/FuzzX/1\nFAIL\n",
			result{"FAILED with testdata/fuzz/FuzzX/1", true, "223974", "7"}},
		"another":    {status, searched + "--- FAIL: FuzzX (20.05s)\n    fuzzing process hung or terminated unexpectedly\nFAIL\n", result{"FAILED: exit status 1", true, "223974", "7"}},
		"corpus":     {nil, "fuzz: elapsed: 18s, gathering baseline coverage: 361/402 completed\nPASS\n", result{"ok (its corpus took the time)", false, "-", "-"}},
		"no target":  {nil, "testing: warning: no fuzz tests to fuzz\nPASS\n", result{"FAILED: nothing was searched", true, "-", "-"}},
		"no program": {status, "./x.go:1:1: syntax error\n", result{"FAILED: exit status 1", true, "-", "-"}},
	} {
		if got := judge(c.err, c.printed); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// A target that fails is in the table, and the search goes on with the next one.
func TestGoesOnAfterAFailure(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles two programs")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.com/m\n\ngo 1.24\n",
		"m_test.go": `package m

import "testing"

func FuzzA(f *testing.F) { f.Add(1); f.Fuzz(func(t *testing.T, i int) { if i == 2 { t.Fatal("two") } }); }
func FuzzB(f *testing.F) { f.Add(1); f.Fuzz(func(t *testing.T, i int) {}) }
func Fuzzy() {}
`,
		"testdata/fuzz/FuzzA/two": "go test fuzz v1\nint(2)\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	var out bytes.Buffer
	err := run(&out, 200*time.Millisecond, "")
	if err == nil || err.Error() != "1 of 2 targets failed" {
		t.Errorf("%v", err)
	}
	_, table, _ := strings.Cut(out.String(), "target ")
	if !regexp.MustCompile(`(?s)FuzzA +\. .*FAILED.*FuzzB +\. .*ok`).MatchString(table) {
		t.Errorf("%s", out.String())
	}
}
