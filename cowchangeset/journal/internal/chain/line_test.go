package chain

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// Each line is read as it was written, and no other text says the same.
func TestLines(t *testing.T) {
	entries := AppendEntry(append(AppendEntry(nil, 0, []byte(`"v"`)), ','), 7, []byte(`{"a":[1]}`))
	gaps := []Gap{{Segment: 1, SHA256: "ab", Reason: "why"}, {Segment: 3, Ordinal: 9, Reason: "\"\\\n"}}
	changesets := []Changeset{
		{ID: "A", Ordinal: 1, Count: 2, Last: 7, sealed: true, aborted: true, reason: "no", From: place{1, 200}, to: place{1, 400}},
		{ID: "B", Ordinal: 2, applied: 5, From: place{1, 500}, to: place{1, 500}},
	}
	for _, l := range []Line{
		{Op: OpJournal, Format: Format, Journal: "j", Segment: 4, Ordinal: 2, ID: "B", Previous: "A", Before: 1, gaps: gaps, changesets: changesets},
		{Op: OpStart, ID: "q\"\x00é", Ordinal: 3, Previous: "B"},
		{Op: OpAppend, ID: "A", Entries: entries},
		{Op: OpSeal, ID: "A", Count: 2, Last: 7},
		{Op: OpAbort, ID: "A", Reason: ""},
		{Op: OpApplied, ID: "A", Next: 1<<64 - 1},
		{Op: OpPrune, Before: 2},
		{Op: OpGap, Segment: 1, Ordinal: 2, Sum: "ab", Reason: "why"},
	} {
		text, hash := l.Encode(nil, 12, NoHash())
		body, same, why := cutHash(slices.Clone(text[:len(text)-1]))
		if why != "" || same != hash {
			t.Fatalf("%s: %s", text, why)
		}
		var got Line
		if why := new(parser).parse(&got, body, 12, NoHash()); why != "" {
			t.Fatalf("%s: %s", text, why)
		}
		if l.Op == OpAppend {
			l.First, l.Count, l.Last, l.Values = 0, 2, 7, []entry{{0, []byte(`"v"`)}, {7, []byte(`{"a":[1]}`)}}
		}
		if !reflect.DeepEqual(got, l) {
			t.Errorf("%s was read as %+v", text, got)
		}
		for i := range body {
			changed := slices.Clone(body)
			changed[i] ^= 1
			var other Line
			if why := new(parser).parse(&other, changed, 12, NoHash()); why == "" && reflect.DeepEqual(other, l) {
				t.Errorf("%s says the same", changed)
			}
		}
		for _, changed := range []string{string(body) + " ", " " + string(body), strings.Replace(string(body), ",", ", ", 1), strings.Replace(string(body), ":", ": ", 1)} {
			if why := new(parser).parse(new(Line), []byte(changed), 12, NoHash()); why == "" {
				t.Errorf("%s is accepted", changed)
			}
		}
	}
}

// Anchors are kept as text.
func TestParseAnchor(t *testing.T) {
	a := Anchor{Line: 12, Hash: strings.Repeat("0f", 32)}
	if got, err := ParseAnchor(a.String()); got != a || err != nil {
		t.Error(got, err)
	}
	for _, text := range []string{"", "1", "1:", "-1:" + strings.Repeat("0", 64), "01:" + strings.Repeat("0", 64), "1:" + strings.Repeat("0", 63), "1:" + strings.Repeat("G", 64), "x:" + strings.Repeat("0", 64)} {
		if _, err := ParseAnchor(text); err == nil || !strings.HasPrefix(err.Error(), "journal: ") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
