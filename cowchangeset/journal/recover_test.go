package journal_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/internal/folder"
	"github.com/latchfree/latchfree/internal/tools/journaltest"
)

// Every prefix of a segment, whatever a crash has left of the last write, becomes
// the segment of the calls whose lines are whole, but for their newlines, which
// then goes on.
func TestEveryPrefix(t *testing.T) {
	text, ends, states := storyFile(t)
	calls := story()
	whole := 1 // lines of the prefix
	for n := ends[0]; n <= len(text); n++ {
		if whole < len(ends) && n >= ends[whole]-1 {
			whole++
		}
		good := ends[whole-1] // which is n+1 if only the newline is missing
		torn := int64(max(0, n-good))
		report, err := verifyText(text[:n])
		if err != nil || report.Lines != whole || report.Bytes != int64(good) || report.Torn != torn {
			t.Fatalf("%d bytes: %+v, %v", n, report, err)
		}
		m := holding(text[:n])
		j := on(t, m)
		if j.Recovered() != torn {
			t.Fatalf("%d bytes: recovered %d, want %d", n, j.Recovered(), torn)
		}
		if !bytes.Equal(m.Text(), text[:good]) || !m.Durable() {
			t.Fatalf("%d bytes: the file has %q", n, m.Text())
		}
		equal(t, load(t, j), states[whole-1])
		if torn > 1 && n%8 != 0 {
			continue // it is the same file as there
		}
		for _, s := range calls[whole-1:] {
			must(t, s.Call(j))
		}
		if !bytes.Equal(m.Text(), text) {
			t.Fatalf("%d bytes: with the other calls, the file has %q", n, m.Text())
		}
	}
}

// A segment is made whole or not at all: what has no whole header was damaged, and
// a journal is not made in its place.
func TestEmptied(t *testing.T) {
	text, ends, _ := storyFile(t)
	for n := range ends[0] {
		_, err := journaltest.Open[any](holding(text[:n]), journal.Options{})
		var corrupt *journal.CorruptError
		if !errors.As(err, &corrupt) || corrupt.Line != 1 || corrupt.File != journaltest.SegmentName(1) {
			t.Fatalf("%d bytes: %v", n, err)
		}
	}
}

// The same as TestEveryPrefix with a real file, where lines end and next to it.
func TestPrefixesOnDisk(t *testing.T) {
	text, ends, states := storyFile(t)
	path := newPath(t)
	must(t, os.Mkdir(path, 0o700))
	for i, end := range ends[1:] {
		for n := end - 2; n <= end+1 && n <= len(text); n++ {
			must(t, os.WriteFile(first(path), text[:n], 0o600))
			j := open[any](t, path)
			made := i + 1
			if n < end-1 {
				made--
			}
			equal(t, j.Recovered(), int64(max(0, n-ends[made])))
			equal(t, load(t, j), states[made])
			must(t, j.Close())
			after, _ := os.ReadFile(first(path))
			equal(t, string(after), string(text[:ends[made]]))
		}
	}
}

// Every byte of a segment matters: if it is another one, the line is found, and
// nothing is changed. The last newline is put back.
func TestEveryFlip(t *testing.T) {
	text, ends, states := storyFile(t)
	line := 1
	for i := range text {
		if i == ends[line-1] {
			line++
		}
		for n, flip := range []byte{1, ' ', 0x80} { // a neighbour, the other case, no ASCII
			if testing.Short() && n != i%3 && i != len(text)-1 {
				continue
			}
			bad := bytes.Clone(text)
			bad[i] ^= flip
			m := holding(bad)
			if i == len(text)-1 {
				j := on(t, m)
				equal(t, load(t, j), states[len(states)-1])
				equal(t, j.Recovered(), int64(1))
				equal(t, string(m.Text()), string(text))
				continue
			}
			offset := 0
			if line > 1 {
				offset = ends[line-2]
			}
			_, err := journaltest.Open[any](m, journal.Options{})
			var corrupt *journal.CorruptError
			if !errors.As(err, &corrupt) || corrupt.Line != line || corrupt.Offset != int64(offset) || corrupt.File != journaltest.SegmentName(1) {
				t.Fatalf("byte %d, flip %x: %v, want line %d at %d", i, flip, err, line, offset)
			}
			if !bytes.Equal(m.Text(), bad) || m.Changes() != 0 {
				t.Fatalf("byte %d, flip %x: the file was changed", i, flip)
			}
			if flip != 1 {
				continue
			}
			report, err := verifyText(bad)
			if !errors.As(err, &corrupt) || corrupt.Line != line || report.Lines != line-1 || report.Bytes != int64(offset) {
				t.Fatalf("byte %d, flip %x: %+v, %v", i, flip, report, err)
			}
		}
	}
}

// A newline that was damaged before the end is not the end.
func TestNewlineBeforeTorn(t *testing.T) {
	text, ends, _ := storyFile(t)
	line := len(ends) - 2
	bad := bytes.Clone(text[:len(text)-9])
	bad[ends[line]-1] = ' '
	_, err := journaltest.Open[any](holding(bad), journal.Options{})
	var corrupt *journal.CorruptError
	if !errors.As(err, &corrupt) || corrupt.Line != line+1 || corrupt.Offset != int64(ends[line-1]) || !strings.Contains(corrupt.Reason, "newline") {
		t.Errorf("%v, want line %d", err, line+1)
	}
}

// Lines that are left out, told twice or in another order are found, where the
// chain breaks.
func TestLinesMoved(t *testing.T) {
	text, _, _ := storyFile(t)
	lines := strings.SplitAfter(string(text), "\n")
	lines = lines[:len(lines)-1]
	check := func(what string, line int, why string, lines ...string) {
		t.Helper()
		_, err := verifyText([]byte(strings.Join(lines, "")))
		var corrupt *journal.CorruptError
		if !errors.As(err, &corrupt) || corrupt.Line != line || !strings.Contains(corrupt.Reason, why) {
			t.Errorf("%s: %v, want line %d, %s", what, err, line, why)
		}
	}
	cut := func(i, j int) []string { return append([]string{}, lines[i:j]...) }
	for i := range lines {
		if i < len(lines)-1 {
			why := fmt.Sprintf("it says that it is line %d", i+2)
			if i == 0 {
				why = "its first line is no header"
			}
			check(fmt.Sprintf("without line %d", i+1), i+1, why, append(cut(0, i), lines[i+1:]...)...)
			check(fmt.Sprintf("line %d later", i+1), i+1, why, append(append(cut(0, i), lines[i+1], lines[i]), lines[i+2:]...)...)
		}
		check(fmt.Sprintf("line %d twice", i+1), i+2, fmt.Sprintf("it says that it is line %d", i+1), append(cut(0, i+1), lines[i:]...)...)
	}
	// Two files whose lines have the same numbers do not go together.
	m := &memory{}
	tell(t, on(t, m), []step{start("other", 1, "")})
	check("line 2 of another file", 3, "its prev is not the hash", append([]string{string(m.Text())}, lines[2:]...)...)
}

// What is chained as it should be, and is not what a journal writes, is found
// too: whoever made it, the journal would not know what to do with it.
func TestForged(t *testing.T) {
	h := strings.TrimSuffix(string(journaltest.FirstLine()), "\n")
	body, _, _ := strings.Cut(h, `,"hash":`)
	for _, tt := range []struct {
		why   string
		lines []string // after the header and a start of A
	}{
		{"unknown op", []string{`"op":"more","id":"A"`}},
		{"the file is named as segment 2", []string{`"op":"journal","format":1,"journal":"test","segment":1,"ordinal":1,"id":"A","previous":"","before":1,"gaps":[],"changesets":[]`}},
		{"it goes on from changeset 0", []string{`"op":"journal","format":1,"journal":"test","segment":2,"ordinal":0,"id":"","previous":"","before":1,"gaps":[],"changesets":[]`}},
		{"it goes on from changeset 1, \"B\"", []string{`"op":"journal","format":1,"journal":"test","segment":2,"ordinal":1,"id":"B","previous":"","before":1,"gaps":[],"changesets":[]`}},
		{"the segment is of journal \"Y\", and not \"test\"", []string{`"op":"journal","format":1,"journal":"test","segment":2,"ordinal":1,"id":"A","previous":"","before":1,"gaps":[],"changesets":[{"ordinal":1,"id":"A","len":0,"last":0,"sealed":false,"aborted":false,"reason":"","applied":0,"segment":1,"offset":285,"through":1,"end":285}]`,
			`"op":"journal","format":1,"journal":"Y","segment":3,"ordinal":1,"id":"A","previous":"","before":1,"gaps":[],"changesets":[]`}},
		{"its checkpoint is not what the lines before it say", []string{`"op":"journal","format":1,"journal":"test","segment":2,"ordinal":1,"id":"A","previous":"","before":1,"gaps":[],"changesets":[]`}},
		{"changeset 1 is not sealed", []string{`"op":"start","id":"B","ordinal":2,"previous":"A"`, `"op":"prune","before":2`}},
		{"the latest changeset is 1", []string{`"op":"prune","before":2`}},
		{"it says nothing new", []string{`"op":"prune","before":1`}},
		{"unknown op", []string{`"op":"seal,"id":"A"`}},
		{"not as a journal writes it", []string{`"op":"seal","id":"A","len":-1.5`}},
		{"not as a journal writes it", []string{`"op":"applied","id":"A","next":18446744073709551616`}},
		{"not as a journal writes it", []string{`"op":"seal","id":"A","len":0,"last":0,"more":1`}},
		{"not as a journal writes it", []string{`"op":"seal","id":"A","len":0,"last":0,"len":0`}},
		{"not as a journal writes it", []string{`"op":"seal","id":"A","last":0,"len":0`}},
		{"not as a journal writes it", []string{`"op":"seal","id":"A","len":00,"last":0`}},
		{"not as a journal writes it", []string{`"op":"seal","id":"A","len":0, "last":0`}},
		{"not as a journal writes it", []string{`"op":"seal","id":"\u0041","len":0,"last":0`}},
		{"not as a journal writes it", []string{`"op":"seal","ID":"A","len":0,"last":0`}},
		{"not as a journal writes it", []string{`"op":"seal","id":"A","len":0`}},
		{"not as a journal writes it", []string{`"op":"start","id":"` + "\xff" + `","ordinal":2,"previous":"A"`}},
		{"not as a journal writes it", []string{`"op":"append","id":"A","entries":[{"seq":0}]`}},
		{"not as a journal writes it", []string{`"op":"append","id":"A","entries":[{"value":0,"seq":0}]`}},
		{"not as a journal writes it", []string{`"op":"append","id":"A","entries":[]`}},
		{"seq 4 comes after seq 4", []string{`"op":"append","id":"A","entries":[{"seq":4,"value":1},{"seq":4,"value":1}]`}},
		{"seq 4 comes after seq 4", []string{`"op":"append","id":"A","entries":[{"seq":4,"value":1}]`, `"op":"append","id":"A","entries":[{"seq":4,"value":1},{"seq":5,"value":1}]`}},
		{"it says nothing new", []string{`"op":"append","id":"A","entries":[{"seq":4,"value":1}]`, `"op":"append","id":"A","entries":[{"seq":3,"value":1},{"seq":4,"value":1}]`}},
		{"not as a journal writes it", []string{`"op":"append","id":"A","entries":[{"seq":4611686018427387904,"value":1}]`}},
		{"it goes on from changeset 1099511627777", []string{`"op":"journal","format":1,"journal":"test","segment":2,"ordinal":1099511627777,"id":"A","previous":"","before":1,"gaps":[],"changesets":[]`}},
		{"append of changeset \"B\": it was not started", []string{`"op":"append","id":"B","entries":[{"seq":4,"value":1}]`}},
		{"seal of changeset \"A\": the manifest says", []string{`"op":"seal","id":"A","len":1,"last":0`}},
		{"it says nothing new", []string{`"op":"seal","id":"A","len":0,"last":0`, `"op":"seal","id":"A","len":0,"last":0`}},
		{"it says nothing new", []string{`"op":"start","id":"A","ordinal":1,"previous":""`}},
		{"it says nothing new", []string{`"op":"seal","id":"A","len":0,"last":0`, `"op":"applied","id":"A","next":0`}},
		{"its ordinal is 3", []string{`"op":"start","id":"B","ordinal":3,"previous":"A"`}},
		{"the ID is empty", []string{`"op":"start","id":"","ordinal":2,"previous":"A"`}},
		{"it is sealed", []string{`"op":"seal","id":"A","len":0,"last":0`, `"op":"append","id":"A","entries":[{"seq":4,"value":1}]`}},
		{"it is not sealed", []string{`"op":"abort","id":"A","reason":""`}},
	} {
		bodies := []string{body}
		for _, line := range append([]string{`"op":"start","id":"A","ordinal":1,"previous":""`}, tt.lines...) {
			bodies = append(bodies, fmt.Sprintf(`{"line":%d,%s,"prev":"%x"`, len(bodies)+1, line, sha256.Sum256([]byte(bodies[len(bodies)-1]))))
		}
		m := &memory{}
		for _, line := range bytes.SplitAfter(chain(bodies...), []byte("\n")) {
			if n := len(m.Segments()); bytes.Contains(line, []byte(`,"op":"journal",`)) {
				m.Put(n+1, line)
			} else {
				m.Put(n, append(m.Segment(n).Data, line...))
			}
		}
		_, err := verifyFolder(m, journal.Anchor{})
		var corrupt *journal.CorruptError
		if !errors.As(err, &corrupt) || corrupt.Line != len(bodies) || !strings.Contains(corrupt.Reason, tt.why) {
			t.Errorf("%s: %v, want line %d: %s", bodies[len(bodies)-1], err, len(bodies), tt.why)
		}
	}
}

// Each line is JSON with the fields that the package's documentation names.
func TestLinesAreJSON(t *testing.T) {
	text, _, _ := storyFile(t)
	prev := strings.Repeat("0", 64)
	kinds := map[string]int{}
	for i, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		var l struct {
			Line           int
			Op, Prev, Hash string
		}
		must(t, json.Unmarshal([]byte(line), &l))
		at := strings.LastIndex(line, `,"hash":`)
		if hash := fmt.Sprintf("%x", sha256.Sum256([]byte(line[:at]))); l.Line != i+1 || l.Prev != prev || l.Hash != hash {
			t.Errorf("%+v: the hash should be %s and prev %s", l, hash, prev)
		}
		prev = l.Hash
		kinds[l.Op]++
	}
	if !bytes.Contains(text, []byte(`{"a<b&c":[1.5,true],`)) {
		t.Error("values cannot be read by people")
	}
	if len(kinds) != 6 {
		t.Error(kinds)
	}
}

// The shell commands of the package's documentation find what Verify finds.
func TestShell(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a shell for each line")
	}
	if runtime.GOOS != "linux" {
		return // others have no sha256sum
	}
	doc, err := os.ReadFile("doc.go")
	must(t, err)
	var script strings.Builder
	for line := range strings.Lines(string(doc)) {
		if command, ok := strings.CutPrefix(line, "//\t"); ok && (script.Len() > 0 || strings.HasPrefix(command, "n=0")) {
			script.WriteString(command)
			if strings.HasPrefix(command, "done") {
				break
			}
		}
	}
	run := func(m *memory) string {
		dir := t.TempDir()
		must(t, os.Mkdir(dir+"/changes", 0o700))
		for name, f := range m.Files {
			must(t, os.WriteFile(dir+"/changes/"+name, f.Data, 0o600))
		}
		cmd := exec.Command("sh", "-c", script.String())
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		must(t, err)
		return string(out)
	}
	text, ends, _ := storyFile(t)
	several, _ := segmented(t)
	if out := run(several); out != "" {
		t.Errorf("it finds: %s", out)
	}
	delete(several.Files, journaltest.SegmentName(1)) // as if it had been pruned
	if out := run(several); out != "" {
		t.Errorf("it finds: %s", out)
	}
	for i, end := range ends {
		bad := bytes.Clone(text)
		bad[end-90] ^= 1
		if out := run(holding(bad)); out != fmt.Sprintf("line %d is corrupt\n", i+1) {
			if i > 0 || !strings.HasSuffix(out, "is corrupt\n") { // whose prev is its own word
				t.Errorf("line %d: it says %q", i+1, out)
			}
		}
	}
}

// An error of the disk is not a corrupt file.
func TestReadFails(t *testing.T) {
	text, ends, _ := storyFile(t)
	m := holding(text)
	report, err := verifyFolder(failing{m, int64(ends[3] + 5)}, journal.Anchor{})
	var corrupt *journal.CorruptError
	if !errors.Is(err, errBoom) || errors.As(err, &corrupt) || report.Lines != 4 {
		t.Errorf("%+v, %v", report, err)
	}
}

// failing is a folder whose files can be read to a place only.
type failing struct {
	*memory
	end int64
}

type failingFile struct {
	folder.File
	end int64
}

func (f failing) Open(name string) (folder.File, error) {
	is, err := f.memory.Open(name)
	return failingFile{is, f.end}, err
}

func (f failingFile) ReadAt(p []byte, at int64) (int, error) {
	if at >= f.end {
		return 0, errBoom
	}
	return f.File.ReadAt(p[:min(int64(len(p)), f.end-at)], at)
}

var _ cowchangeset.Store[any] = (*journal.Journal[any])(nil)

// A value that looks like the end of its own line is no end, and the line gets its
// newline back all the same.
func TestValueLikeAnEnd(t *testing.T) {
	m := &memory{}
	j, err := journaltest.Open[json.RawMessage](m, journal.Options{})
	must(t, err)
	must(t, j.Start(background, header{ID: "A", Ordinal: 1}))
	value := json.RawMessage(fmt.Sprintf(`{"x":1,"prev":"%s","hash":"%s"}`, j.Hash().Hash, strings.Repeat("0", 64)))
	must(t, j.Append(background, "A", journaltest.Entries(0, value)))
	text := m.Text()
	for cut := 1; cut < 80; cut++ {
		j, err = journaltest.Open[json.RawMessage](holding(text[:len(text)-cut]), journal.Options{})
		must(t, err)
		if got := load(t, j)[0].Entries; (len(got) == 1) != (cut == 1) {
			t.Errorf("%d bytes cut: %d entries", cut, len(got))
		}
	}
}
