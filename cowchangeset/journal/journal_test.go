package journal_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/internal/tools/journaltest"
)

// What was told is loaded, at once and after opening the file again, and each
// call adds one line that is durable when it returns.
func TestReadsWhatItWrote(t *testing.T) {
	m := &memory{}
	j := on(t, m)
	var all []saved
	for i, s := range story() {
		must(t, s.Call(j))
		all = s.Then(all)
		equal(t, load(t, j), all)
		if !m.Durable() {
			t.Errorf("%s returned before its line was durable", s.Name)
		}
		report, err := verifyFolder(m, journal.Anchor{})
		must(t, err)
		if report.Lines != i+2 || report.Bytes != int64(len(m.Text())) || report.Torn != 0 {
			t.Errorf("after %s: %+v", s.Name, report)
		}
	}
	must(t, j.Close())
	j = on(t, m)
	equal(t, load(t, j), all)
	report, err := verifyFolder(m, journal.Anchor{})
	must(t, err)
	if report.Changesets != 4 || report.Entries != 5 || !strings.HasSuffix(string(m.Text()), report.Last.Hash+"\"}\n") {
		t.Errorf("%+v", report)
	}
}

// Told again, at once or after the file was opened again, a call succeeds and
// writes nothing.
func TestNotifiedAgain(t *testing.T) {
	m := &memory{}
	j := on(t, m)
	var all []saved
	for i, s := range story() {
		must(t, s.Call(j))
		all = s.Then(all)
		size, syncs := len(m.Text()), m.Count("sync")
		must(t, s.Call(j))
		if len(m.Text()) != size || m.Count("sync") != syncs {
			t.Errorf("%s, told again, writes", s.Name)
		}
		j = on(t, m)
		for _, earlier := range story()[:i+1] {
			if earlier.Name == `start "lost" 2` {
				continue // another one has its place
			}
			if err := earlier.Call(j); err != nil {
				t.Errorf("%s, told again after %s: %v", earlier.Name, s.Name, err)
			}
		}
		if len(m.Text()) != size {
			t.Errorf("told again after %s, some write", s.Name)
		}
		equal(t, load(t, j), all)
	}
}

// An Append that has some entries that are there and some that are not adds the
// latter.
func TestAppendMore(t *testing.T) {
	j := on(t, &memory{})
	tell(t, j, []step{start("A", 1, ""), add("A", item(1, "b"), item(3, "c"))})
	must(t, j.Append(background, "A", []entry{item(1, "B"), item(3, "C"), item(4, "d")}))
	equal(t, load(t, j)[0].Entries, []entry{item(1, "b"), item(3, "c"), item(4, "d")})
	must(t, j.Append(background, "A", nil))
	must(t, seal("A", 3, 4).Call(j))
}

// What does not fit is refused, and nothing is written.
func TestConflicts(t *testing.T) {
	for _, tt := range []struct {
		before []step
		call   step
		why    string
	}{
		{nil, start("A", 2, ""), "its ordinal is 2, and the latest changeset's is 0"},
		{nil, start("A", 0, ""), "its ordinal is 0, and the latest changeset's is 0"},
		{nil, start("A", 1, "Z"), `the changeset before it is "", and not "Z"`},
		{nil, start("", 1, ""), "the ID is empty"},
		{nil, start("\xff", 1, ""), "the ID is not UTF-8"},
		{nil, add("A", item(0, "1")), "was not started"},
		{nil, seal("A", 0, 0), "was not started"},
		{nil, abort("A", ""), "was not started"},
		{nil, applied("A", 1), "was not started"},
		{[]step{start("A", 1, "")}, start("A", 2, "A"), "it was started with ordinal 1"},
		{[]step{start("A", 1, "")}, start("A", 3, ""), "it was started with ordinal 1"},
		{[]step{start("A", 1, "")}, start("B", 3, "A"), "its ordinal is 3, and the latest changeset's is 1"},
		{[]step{start("A", 1, "")}, start("B", 2, ""), `the changeset before it is "A", and not ""`},
		{[]step{start("A", 1, "")}, start("B", 1, "A"), `the changeset before it is "", and not "A"`},
		{[]step{start("A", 1, ""), start("B", 2, "A")}, start("C", 1, ""), "its ordinal is 1"},
		{[]step{start("A", 1, ""), start("B", 2, "A")}, start("B", 2, ""), `it was started with ordinal 2 after "A"`},
		{[]step{start("A", 1, ""), start("B", 1, "")}, add("A", item(0, "1")), "was not started"},
		{[]step{start("A", 1, ""), add("A", item(0, "1"))}, start("B", 1, ""), "its ordinal is 1"},
		{[]step{start("A", 1, ""), seal("A", 0, 0)}, start("B", 1, ""), "its ordinal is 1"},
		{[]step{start("A", 1, "")}, add("A", item(1, "1"), item(1, "2")), "seq 1 comes after seq 1"},
		{[]step{start("A", 1, "")}, add("A", item(2, "1"), item(1, "2")), "seq 1 comes after seq 2"},
		{[]step{start("A", 1, ""), seal("A", 0, 0)}, add("A", item(0, "1")), "it is sealed"},
		{[]step{start("A", 1, ""), add("A", item(4, "1"))}, seal("A", 2, 4), "the manifest says 2 entries up to seq 4, and there are 1 up to 4"},
		{[]step{start("A", 1, ""), add("A", item(4, "1"))}, seal("A", 1, 5), "the manifest says"},
		{[]step{start("A", 1, ""), seal("A", 0, 0)}, seal("A", 1, 0), "the manifest says"},
		{[]step{start("A", 1, "")}, abort("A", ""), "it is not sealed"},
		{[]step{start("A", 1, "")}, applied("A", 1), "it is not sealed"},
		{[]step{start("A", 1, ""), seal("A", 0, 0), abort("A", "x")}, abort("A", "y"), `another reason: "x"`},
	} {
		m := &memory{}
		j := on(t, m)
		states := tell(t, j, tt.before)
		before := string(m.Text())
		for range 2 {
			err := tt.call.Call(j)
			if !errors.Is(err, journal.ErrConflict) || !strings.Contains(err.Error(), tt.why) {
				t.Errorf("%s: got %v, want %q", tt.call.Name, err, tt.why)
			}
		}
		if string(m.Text()) != before {
			t.Errorf("%s was written", tt.call.Name)
		}
		equal(t, load(t, j), states[len(tt.before)])
	}
}

// Numbers up to the largest survive, and so do all strings that are UTF-8.
func TestExtremes(t *testing.T) {
	m := &memory{}
	j, err := journaltest.Open[string](m, journal.Options{})
	must(t, err)
	var all strings.Builder
	for r := range rune(0x3000) {
		if r != 0xd800 {
			all.WriteRune(r)
		}
	}
	id, text := all.String(), all.String()+"\U0010ffff"
	must(t, j.Start(background, header{ID: id, Ordinal: 1}))
	must(t, j.Append(background, id, []cowchangeset.Entry[string]{{Seq: 1<<62 - 2, Value: text}, {Seq: 1<<62 - 1, Value: ""}}))
	must(t, j.Seal(background, id, cowchangeset.Manifest{Len: 2, Last: 1<<62 - 1}))
	must(t, j.Abort(background, id, text+"\xff\xfe"))
	must(t, j.Abort(background, id, text+"\xff\xfe"))
	must(t, j.Start(background, header{ID: text, Ordinal: 2, Previous: id}))

	j, err = journaltest.Open[string](m, journal.Options{})
	must(t, err)
	must(t, j.Abort(background, id, text+"\xff\xfe"))
	if err := j.Append(background, text, []cowchangeset.Entry[string]{{Seq: 1 << 62}}); !errors.Is(err, journal.ErrConflict) {
		t.Error(err) // no tracker would take it back
	}
	got := load(t, j)
	equal(t, got[0].Entries, []cowchangeset.Entry[string]{{Seq: 1<<62 - 2, Value: text}, {Seq: 1<<62 - 1, Value: ""}})
	equal(t, []string{got[0].ID, got[0].Reason, got[1].ID, got[1].Previous}, []string{id, text + "\ufffd\ufffd", text, id})
}

// hostile is a value whose encoding does what it says.
type hostile string

func (h hostile) MarshalJSON() ([]byte, error) {
	switch h {
	case "fails":
		return nil, errBoom
	case "panics":
		panic(errBoom)
	case "lies":
		return []byte(`{"a":`), nil
	case "spreads":
		return []byte("{\n\t\"a\" :\r\n 1 }\n"), nil
	}
	return json.Marshal(string(h))
}

// A value that cannot be encoded is named, nothing is written, and the journal
// goes on.
func TestUnencodable(t *testing.T) {
	m := &memory{}
	j := on(t, m)
	tell(t, j, []step{start("A", 1, "")})
	before := string(m.Text())
	deep := any(1)
	for range 9_998 {
		deep = []any{deep}
	}
	for name, value := range map[string]any{"channel": make(chan int), "fails": hostile("fails"), "lies": hostile("lies"), "NaN": math.NaN(), "deep": deep} {
		err := j.Append(background, "A", []entry{item(3, "fine"), item(5, value)})
		if err == nil || !strings.Contains(err.Error(), `entry 5 of changeset "A"`) || errors.Is(err, journal.ErrBroken) {
			t.Errorf("%s: %v", name, err)
		}
		if name == "fails" && !errors.Is(err, errBoom) {
			t.Errorf("%v does not wrap what MarshalJSON returned", err)
		}
	}
	func() {
		defer func() {
			if r := recover(); r != errBoom {
				t.Errorf("recovered %v", r)
			}
		}()
		j.Append(background, "A", []entry{item(3, "fine"), item(5, hostile("panics"))})
	}()
	if string(m.Text()) != before {
		t.Error("something was written")
	}
	must(t, j.Append(background, "A", []entry{item(3, hostile("spreads")), item(5, deep.([]any)[0])}))
	equal(t, load(t, on(t, m))[0].Entries, []entry{item(3, map[string]any{"a": json.Number("1")}), item(5, unwrapped(deep))})
}

// unwrapped is deep without its outermost level, as it is read back.
func unwrapped(deep any) any {
	out := any(json.Number("1"))
	for range 9_997 {
		out = []any{out}
	}
	return out
}

// After Close, and on a zero Journal, all fails with ErrClosed.
func TestClosed(t *testing.T) {
	closed := on(t, &memory{})
	must(t, closed.Close())
	for _, j := range []*journal.Journal[any]{closed, new(journal.Journal[any])} {
		steps := append(story(), step{Name: "sync", Call: func(j *journal.Journal[any]) error { return j.Sync(background) }},
			step{Name: "close", Call: (*journal.Journal[any]).Close})
		for _, s := range steps {
			if err := s.Call(j); err != journal.ErrClosed {
				t.Errorf("%s: %v", s.Name, err)
			}
		}
		n := 0
		for _, err := range j.Load(background) {
			if n++; err != journal.ErrClosed {
				t.Error(err)
			}
		}
		if n != 1 || j.Recovered() != 0 {
			t.Error(n, j.Recovered())
		}
	}
}

// Nil contexts are a programmer's error.
func TestNilContexts(t *testing.T) {
	j := on(t, &memory{})
	var none context.Context
	for name, f := range map[string]func(){
		"Start":   func() { j.Start(none, header{}) },
		"Append":  func() { j.Append(none, "", nil) },
		"Seal":    func() { j.Seal(none, "", cowchangeset.Manifest{}) },
		"Abort":   func() { j.Abort(none, "", "") },
		"Applied": func() { j.Applied(none, "", 0) },
		"Claim":   func() { j.Claim(none) },
		"Sync":    func() { j.Sync(none) },
		"Load":    func() { j.Load(none) },
	} {
		func() {
			defer func() {
				if r := recover(); r != "journal: "+name+" called with a nil context" {
					t.Errorf("%s: %v", name, r)
				}
			}()
			f()
		}()
	}
}

// A context that has ended is seen before anything is written.
func TestEndedContext(t *testing.T) {
	m := &memory{}
	j := on(t, m)
	ctx, cancel := context.WithCancelCause(background)
	cancel(errBoom)
	size := len(m.Text())
	if err := j.Start(ctx, header{ID: "A", Ordinal: 1}); err != errBoom {
		t.Error(err)
	}
	if len(m.Text()) != size {
		t.Error("it was written")
	}
	must(t, j.Start(background, header{ID: "A", Ordinal: 1}))
}
