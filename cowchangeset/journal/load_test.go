package journal_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/internal/tools/journaltest"
)

// A value that cannot be decoded is named.
func TestUndecodable(t *testing.T) {
	m := &memory{}
	tell(t, on(t, m), []step{start("A", 1, ""), add("A", journaltest.Entries[any](0, 5)...), add("A", journaltest.Entries[any](5, 6, "six")...)})
	j, err := journaltest.Open[int](m, journal.Options{})
	must(t, err)
	n := 0
	for _, err := range j.Load(background) {
		n++
		var wrong *json.UnmarshalTypeError
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), `journal: memory, line 4: entry 6 of changeset "A"`) {
			t.Error(err)
		}
	}
	if n != 1 {
		t.Errorf("%d rounds", n)
	}
}

// A loop over Load may be left, may call the journal, ends with its context, and
// sees what was there when it began.
func TestLoadLoop(t *testing.T) {
	m := &memory{}
	j := on(t, m)
	states := tell(t, j, story())
	want := states[len(states)-1]
	for range j.Load(background) {
		break
	}
	i := 0
	for s, err := range j.Load(background) {
		must(t, err)
		equal(t, s.Header, want[i].Header)
		i++
		must(t, j.Append(background, "D", []entry{item(uint64(i), i)}))
	}
	if i != len(want) {
		t.Errorf("%d rounds", i)
	}
	ctx, cancel := context.WithCancelCause(background)
	defer cancel(nil)
	i = 0
	for _, err := range j.Load(ctx) {
		if i++; i == 1 {
			must(t, err)
			cancel(errBoom)
		} else if err != errBoom {
			t.Error(err)
		}
	}
	if i != 2 {
		t.Errorf("%d rounds", i)
	}
}

// What has changed under the journal is found, before it is mistaken for what
// was there.
func TestLoadChecks(t *testing.T) {
	text, ends, _ := storyFile(t)
	flipped := bytes.Clone(text)
	flipped[ends[0]+3] ^= 1
	other := &memory{}
	tell(t, on(t, other), []step{start("Z", 1, ""), add("Z", item(0, "z")), seal("Z", 1, 0)})
	for _, tt := range []struct {
		text []byte
		line int
	}{
		{flipped, 2},
		{nil, 1},
		{text[:ends[1]], 3},
		{text[:ends[1]+1], 3},
		{other.Text(), 5},
	} {
		m := &memory{}
		j := on(t, m)
		tell(t, j, story()[:3])
		m.Put(1, tt.text)
		n := 0
		for s, err := range j.Load(background) {
			n++
			var corrupt *journal.CorruptError
			if !errors.As(err, &corrupt) || corrupt.Line != tt.line {
				t.Errorf("%q: %+v, %v", tt.text, s, err)
			}
		}
		if n != 1 {
			t.Errorf("%d rounds", n)
		}
	}
}

// A loop sees nothing of what is told while it reads.
func TestLoadCut(t *testing.T) {
	j := on(t, &memory{})
	states := tell(t, j, []step{start("A", 1, ""), seal("A", 0, 0), start("B", 2, "A"), add("B", item(0, strings.Repeat("x", 1<<20)))})
	var got []saved
	for s, err := range j.Load(background) {
		must(t, err)
		must(t, j.Append(background, "B", []entry{item(1, "later")}))
		got = append(got, s)
	}
	equal(t, got, states[4])
}

// A journal that is closed while it is read says so.
func TestCloseWhileLoading(t *testing.T) {
	m := &memory{}
	j := on(t, m)
	tell(t, j, []step{start("A", 1, ""), seal("A", 0, 0), start("B", 2, "A"), add("B", item(0, strings.Repeat("x", 1<<20)))})
	n := 0
	for s, err := range j.Load(background) {
		switch n++; n {
		case 1:
			must(t, err)
			equal(t, s.ID, "A")
			must(t, j.Close())
		case 2:
			if err != journal.ErrClosed {
				t.Error(err)
			}
		default:
			t.Fatal(s)
		}
	}
}
