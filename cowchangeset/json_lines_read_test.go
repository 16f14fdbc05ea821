//go:build !modelcheck

package cowchangeset_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/latchfree/latchfree/cowchangeset"
)

// imported returns what ReadJSONLines yields, and the error at its end.
func imported[E any](r io.Reader) (entries []cowchangeset.Exported[E], err error) {
	for e, failed := range cowchangeset.ReadJSONLines[E](r) {
		if err != nil {
			return entries, errors.New("more after an error")
		}
		if err = failed; err == nil {
			entries = append(entries, e)
		}
	}
	return entries, err
}

// text returns a string of whatever may be in one.
func text(random *rand.Rand) string {
	pieces := []string{"", "a", "\"", "\\", "\n", "\r\n", "\t", "\x00", "\x7f", "<&>", "\u2028", "é", "日本", "\U0001F600", "\ufffd",
		"\xff", "\xc3", "\xed\xa0\x80", "{}", "[", ",", "null", strings.Repeat("x", 300)}
	var b strings.Builder
	for range random.IntN(8) {
		b.WriteString(pieces[random.IntN(len(pieces))])
	}
	return b.String()
}

// What is read is what was recorded, where it was recorded, whatever is in
// strings: but each byte that is not valid UTF-8 became U+FFFD.
func TestJSONLinesRoundTrip(t *testing.T) {
	valid := func(s string) string { return string([]rune(s)) }
	invalid := 0
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 2))
		tracker := cowchangeset.MustNew(cowchangeset.Config[string]{NewID: func(context.Context) (string, error) { return "#" + text(random), nil }})
		mustStart(t, tracker, 1)
		var want []cowchangeset.Exported[string]
		add := func(r cowchangeset.Receipt, values ...string) {
			r.ChangesetID = valid(r.ChangesetID)
			for i, v := range values {
				if !utf8.ValidString(v) {
					invalid++
				}
				want = append(want, cowchangeset.Exported[string]{Receipt: r, Value: valid(v)})
				want[len(want)-1].Seq += uint64(i)
			}
		}
		for range random.IntN(30) {
			switch random.IntN(8) {
			case 0:
				mustStart(t, tracker, 1)
			case 1: // a place that is voided, so that Seq skips it
				c, _ := tracker.Current()
				c.Reserve("voided")
				c.Len()
			case 2:
				batch := []string{text(random), text(random), text(random)}
				r, _ := tracker.RecordBatch(batch)
				add(r, batch...)
			default:
				v := text(random)
				r, _ := tracker.Record(v)
				add(r, v)
			}
		}
		lines := exported(t, tracker)
		if n := strings.Count(lines, "\n"); n != len(want) || n > 0 && lines[len(lines)-1] != '\n' {
			t.Fatalf("%d lines of %d entries: %q", n, len(want), lines)
		}
		for line := range strings.Lines(lines) {
			if !json.Valid([]byte(line)) || !utf8.ValidString(line) {
				t.Fatalf("%q is no JSON", line)
			}
		}
		if got, err := imported[string](strings.NewReader(lines)); err != nil || !slices.Equal(got, want) {
			t.Fatalf("%v: got %+v, want %+v", err, got, want)
		}
	}
	if invalid < 100 {
		t.Errorf("only %d strings that are not valid UTF-8", invalid)
	}
}

// A file that ends anywhere has the entries of its whole lines, and an error if
// there is more than that.
func TestReadJSONLinesOfAPart(t *testing.T) {
	tracker := plans[string]()
	mustStart(t, tracker, 1)
	for i := range 4 {
		tracker.Record(fmt.Sprintf("value\n%d é", i))
	}
	mustStart(t, tracker, 1)
	tracker.Record("")
	lines := exported(t, tracker)
	whole, err := imported[string](strings.NewReader(lines))
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(lines) {
		got, err := imported[string](strings.NewReader(lines[:n]))
		complete := strings.Count(lines[:n], "\n")
		torn := lines[:n] != "" && lines[n-1] != '\n'
		if torn && lines[n] == '\n' { // all but the end of the line is there
			complete, torn = complete+1, false
		}
		if !slices.Equal(got, whole[:complete]) {
			t.Fatalf("%q: %d entries, want %d", lines[:n], len(got), complete)
		}
		if torn != errors.Is(err, io.ErrUnexpectedEOF) || torn != (err != nil) {
			t.Fatalf("%q: %v", lines[:n], err)
		}
		if torn && !strings.HasPrefix(err.Error(), fmt.Sprintf("cowchangeset: line %d: ", complete+1)) {
			t.Fatal(err)
		}
	}
}

func TestReadJSONLinesOfSomethingElse(t *testing.T) {
	const good = `{"changeset":"a","ordinal":1,"seq":0,"value":7}` + "\n"
	for line, want := range map[string]string{
		`{}`:    "cowchangeset: line 2: it has no ordinal",
		`null`:  "cowchangeset: line 2: it has no ordinal",
		`[]`:    "cowchangeset: line 2: json: cannot unmarshal array",
		`hello`: "cowchangeset: line 2: invalid character 'h'",
		`{"changeset":"a","ordinal":1,"seq":-1,"value":7}`:  "cowchangeset: line 2: json: cannot unmarshal number -1",
		`{"changeset":"a","ordinal":1,"seq":1,"value":"7"}`: "cowchangeset: line 2: json: cannot unmarshal string",
		`{"changeset":"a","ordinal":1,"seq":1,"value":7`:    "cowchangeset: line 2: unexpected EOF",
	} {
		got, err := imported[int](strings.NewReader(good + line))
		if len(got) != 1 || err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, %v; want %s", line, got, err, want)
		}
	}
	got, err := imported[int](io.MultiReader(strings.NewReader(good), readerFunc(func([]byte) (int, error) { return 0, errDiskFull })))
	if len(got) != 1 || !errors.Is(err, errDiskFull) {
		t.Errorf("%v, %v", got, err)
	}
	n := 0
	for range cowchangeset.ReadJSONLines[int](strings.NewReader(good + good)) {
		n++
		break
	}
	if n != 1 {
		t.Errorf("%d entries before a break", n)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// Numbers in an any are the same after an export, also those that a float64 has not.
func TestReadJSONLinesNumbers(t *testing.T) {
	type row struct{ Columns map[string]any }
	want := []any{int64(1<<53 + 1), uint64(1<<64 - 1), int64(-1 << 63), 0.1, "9007199254740993"}
	var tracker cowchangeset.Tracker[row]
	tracker.Start(t.Context())
	for _, n := range want {
		tracker.Record(row{map[string]any{"id": n, "deep": []any{n}}})
	}
	var text strings.Builder
	if err := tracker.Trail().WriteJSONLines(&text); err != nil {
		t.Fatal(err)
	}
	rows, err := imported[row](strings.NewReader(text.String()))
	if err != nil || len(rows) != len(want) {
		t.Fatal(rows, err)
	}
	for i, r := range rows {
		if got := r.Value.Columns["id"]; fmt.Sprint(got) != fmt.Sprint(want[i]) {
			t.Errorf("%v has become %v", want[i], got)
		}
	}
}
