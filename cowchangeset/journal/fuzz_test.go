package journal_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/internal/tools/journaltest"
)

// FuzzOpen opens bytes, as they are and as the lines of a file whose numbers and
// hashes are right: nothing panics; what Open accepts, Verify accepts, and opening
// it again changes nothing; what it does not accept is as it was.
func FuzzOpen(f *testing.F) {
	m := &memory{}
	j, err := journaltest.Open[any](m, journal.Options{})
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range story() {
		if err := s.Call(j); err != nil {
			f.Fatal(err)
		}
	}
	f.Add(m.Text())
	f.Add(m.Text()[:len(m.Text())-9])
	f.Add(m.Text()[:len(m.Text())-1])
	f.Add([]byte{})
	var inner []string
	for line := range bytes.Lines(m.Text()) {
		_, rest, _ := bytes.Cut(line, []byte(`,`))
		inner = append(inner, string(rest[:bytes.LastIndex(rest, []byte(`,"prev":`))]))
	}
	f.Add([]byte(strings.Join(inner[1:], "\n")))
	for _, line := range inner[2:] {
		f.Add([]byte(inner[1] + "\n" + line))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		tryOpen(t, text)
		tryOpen(t, chained(text))
	})
}

// chained makes a file of lines that have neither number nor hashes.
func chained(text []byte) []byte {
	header, _, _ := strings.Cut(string(journaltest.FirstLine()), `,"hash":`)
	bodies := []string{header}
	for line := range bytes.SplitSeq(text, []byte("\n")) {
		prev := sha256.Sum256([]byte(bodies[len(bodies)-1]))
		bodies = append(bodies, fmt.Sprintf(`{"line":%d,%s,"prev":"%x"`, len(bodies)+1, line, prev))
	}
	return chain(bodies...)
}

func tryOpen(t *testing.T, text []byte) {
	report, verdict := verifyText(text)
	m := holding(slices.Clone(text))
	j, err := journaltest.Open[any](m, journal.Options{})
	if (err == nil) != (verdict == nil) && len(text) > 0 {
		t.Fatalf("Open: %v, Verify: %v", err, verdict)
	}
	if err != nil {
		var corrupt, same *journal.CorruptError
		if !errors.As(err, &corrupt) || len(text) > 0 && (!errors.As(verdict, &same) || corrupt.Line != same.Line || corrupt.Offset != same.Offset || corrupt.Reason != same.Reason) {
			t.Fatalf("Open: %v, Verify: %v", err, verdict)
		}
		if corrupt.Line != report.Last.Line+1 || corrupt.Offset != report.Bytes || !bytes.Equal(m.Text(), text) {
			t.Errorf("%v, after %+v, of %q, now %q", err, report, text, m.Text())
		}
		return
	}
	opened := m.Segment(1).Data
	if j.Recovered() != report.Torn || int64(len(opened)) != report.Bytes || !bytes.HasPrefix(append(text, '\n'), opened) && report.Torn == 0 {
		t.Errorf("%q became %q, recovered %d: %+v", text, opened, j.Recovered(), report)
	}
	all := load(t, j)
	if len(all) != report.Changesets {
		t.Errorf("%d changesets: %+v", len(all), report)
	}
	must(t, j.Close())
	opened = m.Text()
	report, err = verifyText(opened)
	if err != nil || report.Torn != 0 || report.Bytes != int64(len(opened)) {
		t.Errorf("after Open: %+v, %v", report, err)
	}
	again := on(t, m)
	if again.Recovered() != 0 || !bytes.Equal(m.Text(), opened) {
		t.Errorf("opened again, %q became %q", opened, m.Text())
	}
	equal(t, load(t, again), all)
	for _, s := range all { // what it has, it takes again, and writes nothing
		must(t, again.Start(background, s.Header))
		must(t, again.Append(background, s.ID, s.Entries))
	}
	if !bytes.Equal(m.Text(), opened) {
		t.Errorf("told again, %q became %q", opened, m.Text())
	}
}
