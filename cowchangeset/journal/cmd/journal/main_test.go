package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/internal/tools/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// made returns the path of a journal that has two segments, and the journal.
func made(t *testing.T) (string, *journal.Journal[json.RawMessage]) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "changes")
	j, err := journal.Open[json.RawMessage](path, journal.Options{})
	must(t, err)
	ctx := t.Context()
	value := func(seq uint64, text string) []cowchangeset.Entry[json.RawMessage] {
		return []cowchangeset.Entry[json.RawMessage]{{Seq: seq, Value: json.RawMessage(text)}}
	}
	must(t, j.Start(ctx, cowchangeset.Header{ID: "A", Ordinal: 1}))
	must(t, j.Append(ctx, "A", value(0, `{"a":"<1>"}`)))
	must(t, j.Append(ctx, "A", value(3, `null`)))
	must(t, j.Seal(ctx, "A", cowchangeset.Manifest{Len: 2, Last: 3}))
	must(t, j.Applied(ctx, "A", cowchangeset.AllApplied))
	must(t, j.Rotate(ctx))
	must(t, j.Start(ctx, cowchangeset.Header{ID: "B", Ordinal: 2, Previous: "A"}))
	must(t, j.Seal(ctx, "B", cowchangeset.Manifest{}))
	must(t, j.Abort(ctx, "B", ""))
	must(t, j.Start(ctx, cowchangeset.Header{ID: "C", Ordinal: 3, Previous: "B"}))
	return path, j
}

func segment(path string, n int) string {
	names, _ := filepath.Glob(filepath.Join(path, "*.journal"))
	return names[n-1]
}

// damage changes a byte near the end of a segment.
func damage(t *testing.T, path string, n int) {
	t.Helper()
	text, err := os.ReadFile(segment(path, n))
	must(t, err)
	text[len(text)-200] ^= 1
	must(t, os.WriteFile(segment(path, n), text, 0o600))
}

// A call is one of the command, and what must come of it.
type call struct {
	args        string
	code        int
	out, errors []string // what is in what it prints
}

func (c call) check(t *testing.T, path string) string {
	t.Helper()
	var out, errs bytes.Buffer
	args := strings.Fields(strings.ReplaceAll(c.args, "PATH", path))
	if code := run(t.Context(), args, &out, &errs); code != c.code {
		t.Errorf("%s: code %d, want %d: %s%s", c.args, code, c.code, &out, &errs)
	}
	for _, part := range c.out {
		if !strings.Contains(out.String(), part) {
			t.Errorf("%s: %q is missing in\n%s", c.args, part, &out)
		}
	}
	for _, part := range c.errors {
		if !strings.Contains(errs.String(), part) {
			t.Errorf("%s: %q is missing in\n%s", c.args, part, &errs)
		}
	}
	if (errs.Len() == 0) != (len(c.errors) == 0) {
		t.Errorf("%s: %s", c.args, &errs)
	}
	return out.String()
}

func TestSound(t *testing.T) {
	path, j := made(t)
	last := j.Hash()
	identity := j.Identity()
	for _, c := range []call{
		{args: "verify PATH", out: []string{"last        " + last.String()}},
		{args: "verify -from " + last.String() + " PATH"},
		{args: "verify PATH", out: []string{
			"identity    " + identity, "segments    2\n", "lines       11\n", "changesets  3\n", "pending     1\n",
			"entries     2\n", "torn        0\n",
		}},
		{args: "cat PATH", out: []string{
			`{"line":1,"kind":"rotated","segment":1,"journal":"` + identity, `{"line":2,"kind":"started","id":"A","ordinal":1,`,
			`"entries":[{"seq":0,"value":{"a":"<1>"}}]`, `"kind":"sealed","id":"B","ordinal":2,"len":0,"last":0,`,
			`"kind":"aborted","id":"B","ordinal":2,"reason":"",`, `"next":18446744073709551615`,
		}},
		{args: "-h", out: []string{"Usage:", "Exit codes:"}},
		{args: "cat -h", out: []string{"Usage:"}},
	} {
		c.check(t, path)
	}
	for args, want := range map[string]string{
		"cat -id A PATH": "{\"seq\":0,\"value\":{\"a\":\"<1>\"}}\n{\"seq\":3,\"value\":null}\n",
		"cat -id B PATH": "",
	} {
		if got := (call{args: args}).check(t, path); got != want {
			t.Errorf("%s: %s", args, got)
		}
	}
	all := call{args: "cat PATH"}.check(t, path)
	if got := (call{args: "cat -after 10 PATH"}).check(t, path); strings.Count(all, "\n") != 11 || !strings.HasSuffix(all, got) || strings.Count(got, "\n") != 1 {
		t.Error(got)
	}
	call{args: "repair PATH", code: exitFailed, errors: []string{"in use"}}.check(t, path)
	must(t, j.Close())
	call{args: "repair PATH", out: []string{"nothing was taken out"}}.check(t, path)
}

func TestDamaged(t *testing.T) {
	path, j := made(t)
	last := j.Hash()
	must(t, j.Close())
	wrong := last
	wrong.Hash = strings.Repeat("0", 64)
	call{args: "verify -from " + wrong.String() + " PATH", code: exitDamaged, errors: []string{"corrupt at line 11"}}.check(t, path)
	text, err := os.ReadFile(segment(path, 2))
	must(t, err)
	_, before, _ := strings.Cut(string(text[bytes.LastIndex(text, []byte(`,"prev":"`)):]), `:"`)
	damage(t, path, 2)
	corrupt := []string{"corrupt at line 11"}
	for _, c := range []call{
		{args: "verify PATH", code: exitDamaged, errors: corrupt},
		{args: "verify PATH", code: exitDamaged, errors: corrupt, out: []string{"lines       10\n"}},
		{args: "cat PATH", code: exitDamaged, errors: corrupt, out: []string{`"line":10,`}},
		{args: "cat -id A PATH", code: exitDamaged, errors: corrupt},
		{args: "repair PATH", code: exitDamaged, out: append(corrupt, "0000000002.journal.10-"+before[:8]+".damaged")},
		{args: "repair PATH", out: []string{"nothing was taken out"}},
		{args: "verify PATH", out: []string{"last        10:"}},
	} {
		c.check(t, path)
	}
	text, err = os.ReadFile(segment(path, 1))
	must(t, err)
	text[3] ^= 1
	must(t, os.WriteFile(segment(path, 1), text, 0o600))
	out := []string{"corrupt at line 1 ", "segment 1 is taken out"}
	for _, c := range []call{
		{args: "repair -n PATH", code: exitDamaged, out: out},
		{args: "verify PATH", code: exitDamaged, errors: out[:1]},
		{args: "repair PATH", code: exitDamaged, out: out},
		{args: "verify PATH", out: []string{"taken out   segment 1: ", "last        11:"}},
		{args: "cat -after 10 PATH", out: []string{`"kind":"lost"`, `"segment":1`, `"reason":"`}},
		{args: "repair -n -undo PATH", code: exitUsage, errors: []string{"do not go together"}},
		{args: "repair -undo PATH", out: []string{"as it was before"}},
		{args: "verify PATH", code: exitDamaged, errors: out[:1]},
		{args: "repair -undo PATH", out: []string{"as it was before"}}, // the one before that
		{args: "repair -undo PATH", code: exitFailed, errors: []string{"not repaired", "corrupt at line 11"}},
	} {
		c.check(t, path)
	}
}

func TestNotRead(t *testing.T) {
	path, j := made(t)
	must(t, j.Prune(t.Context(), 2))
	must(t, j.Close())
	for _, c := range []call{
		{args: "", code: exitUsage, errors: []string{"Usage:"}},
		{args: "look PATH", code: exitUsage, errors: []string{`no command "look"`}},
		{args: "verify", code: exitUsage, errors: []string{"0 paths"}},
		{args: "verify PATH PATH", code: exitUsage, errors: []string{"2 paths"}},
		{args: "verify -x PATH", code: exitUsage, errors: []string{"-x"}},
		{args: "verify -from 1 PATH", code: exitUsage, errors: []string{"64 hexadecimal digits"}},
		{args: "cat -id A -f PATH", code: exitUsage, errors: []string{"do not go together"}},
		{args: "cat -after -1 PATH", code: exitUsage, errors: []string{"do not go together"}},
		{args: "verify PATH/none", code: exitFailed, errors: []string{"none"}},
		{args: "cat PATH/none", code: exitFailed, errors: []string{"none"}},
		{args: "repair PATH/none", code: exitFailed, errors: []string{"none"}},
		{args: "cat -id none PATH", code: exitFailed, errors: []string{`no such changeset: "none"`}},
		{args: "cat -id A PATH", code: exitFailed, errors: []string{"no such changeset"}},
		{args: "cat -after 1 PATH", code: exitFailed, errors: []string{"dropped"}},
		{args: "verify -from 2:" + strings.Repeat("0", 64) + " PATH", code: exitFailed, errors: []string{"dropped"}},
	} {
		c.check(t, path)
	}
	if code := run(t.Context(), []string{"cat", path}, broken{}, io.Discard); code != exitFailed {
		t.Errorf("with a broken pipe, code %d", code)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// With -f, cat goes on until it is interrupted.
func TestFollow(t *testing.T) {
	path, j := made(t)
	ctx, interrupt := context.WithCancel(t.Context())
	out, in := io.Pipe()
	code := make(chan int)
	go func() {
		code <- run(ctx, []string{"cat", "-f", "-after", "10", path}, in, io.Discard)
		in.Close()
	}()
	lines := bufio.NewScanner(out)
	next := func(kind string) {
		t.Helper()
		if !lines.Scan() || !strings.Contains(lines.Text(), `"kind":"`+kind+`"`) {
			t.Fatalf("%s, want %s", lines.Text(), kind)
		}
	}
	next("started")
	must(t, j.Rotate(t.Context()))
	next("rotated")
	must(t, j.Seal(t.Context(), "C", cowchangeset.Manifest{}))
	next("sealed")
	interrupt()
	if code := <-code; code != exitSound {
		t.Errorf("code %d", code)
	}
	must(t, j.Close())
}
