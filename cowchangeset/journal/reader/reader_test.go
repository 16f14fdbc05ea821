package reader_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/cowchangeset/journal/reader"
	"github.com/latchfree/latchfree/internal/tools/journaltest"
)

// A Reader finds what a Journal that is open beside it has, after each call.
func TestReaderBeside(t *testing.T) {
	m := &memory{}
	j, err := journaltest.Open[any](m, journal.Options{SegmentSize: 600})
	must(t, err)
	r := readerOf(t, m)
	var all []saved
	for _, s := range story() {
		must(t, s.Call(j))
		all = s.Then(all)
		equal(t, journaltest.Collect(t, r.Changesets(background)), all)
		for _, want := range all {
			got, err := r.Changeset(background, want.ID)
			must(t, err)
			equal(t, got, want)
		}
	}
	must(t, j.Prune(background, 2))
	equal(t, journaltest.Collect(t, r.Changesets(background)), unnamed(slices.Clone(all[1:])))
	for _, err := range []error{journaltest.ErrorOf(r.Changeset(background, "A")), journaltest.ErrorOf(r.Changeset(background, "none"))} {
		if !errors.Is(err, journal.ErrNotFound) {
			t.Error(err)
		}
	}
	if before := m.Clone(); !slices.Equal(before.Text(), m.Text()) {
		t.Error("the Reader has written")
	}
	must(t, j.Close())
	if !m.Closed() {
		t.Error("a file is still open")
	}
}

// Only the entries that are asked for are decoded.
func TestChangesetDecodesItsOwn(t *testing.T) {
	m := &memory{}
	tell(t, on(t, m), []step{
		start("A", 1, ""), add("A", item(0, "text")), seal("A", 1, 0),
		start("B", 2, "A"), add("B", item(0, 7)), start("C", 3, "B"),
	})
	r, err := journaltest.Reader[int](m, reader.Options{})
	must(t, err)
	got, err := r.Changeset(background, "B")
	must(t, err)
	equal(t, got, cowchangeset.Saved[int]{Header: header{ID: "B", Ordinal: 2, Previous: "A"}, Entries: journaltest.Entries(0, 7)})
	var wrong *journal.DecodeError
	if _, err := r.Changeset(background, "A"); !errors.As(err, &wrong) || wrong.ChangesetID != "A" || wrong.Line != 3 {
		t.Error(err)
	}
	if got, err := journaltest.CollectAll(r.Events(background, 0)); !errors.As(err, &wrong) || len(got) != 2 {
		t.Error(got, err)
	}
	if got, err := journaltest.CollectAll(r.Events(background, 3)); err != nil || len(got) != 4 {
		t.Error(got, err)
	}
}

// Events says what each line says.
func TestEvents(t *testing.T) {
	m := &memory{}
	j := on(t, m)
	for i, s := range story() {
		if must(t, s.Call(j)); i == 2 || i == 9 {
			must(t, j.Rotate(background))
		}
	}
	must(t, j.Prune(background, 2))
	must(t, j.Close())
	r := readerOf(t, m)
	events := journaltest.Collect(t, r.Events(background, 0))
	const odd = "q\"uo\\te\n\x00\u2028é"
	want := []reader.Event[any]{
		{Kind: reader.Rotated, Segment: 2, Journal: "test"},
		{Kind: reader.Started, ChangesetID: "lost", Ordinal: 2, Previous: "A"},
		{Kind: reader.Started, ChangesetID: odd, Ordinal: 2, Previous: "A"},
		{Kind: reader.Appended, ChangesetID: odd, Ordinal: 2, Entries: []entry{item(5, "é\u2028")}},
		{Kind: reader.Sealed, ChangesetID: "A", Ordinal: 1, Manifest: manifest(3, 7)},
		{Kind: reader.Started, ChangesetID: "C", Ordinal: 3, Previous: odd},
		{Kind: reader.Applied, ChangesetID: "A", Ordinal: 1, Next: 2},
		{Kind: reader.Appended, ChangesetID: "C", Ordinal: 3, Entries: []entry{item(0, "x")}},
		{Kind: reader.Rotated, Segment: 3, Journal: "test"},
		{Kind: reader.Sealed, ChangesetID: odd, Ordinal: 2, Manifest: manifest(1, 5)},
		{Kind: reader.Applied, ChangesetID: "A", Ordinal: 1, Next: cowchangeset.AllApplied},
		{Kind: reader.Aborted, ChangesetID: odd, Ordinal: 2, Reason: "a \"reason\"\n"},
		{Kind: reader.Sealed, ChangesetID: "C", Ordinal: 3, Manifest: manifest(1, 0)},
		{Kind: reader.Aborted, ChangesetID: "C", Ordinal: 3},
		{Kind: reader.Started, ChangesetID: "D", Ordinal: 4, Previous: "C"},
		{Kind: reader.Pruned, Before: 2},
	}
	for i, e := range events {
		if _, err := verify(m, e.Anchor()); err != nil {
			t.Error(err)
		}
		if i > 0 && e.Line != events[i-1].Line+1 {
			t.Errorf("line %d after line %d", e.Line, events[i-1].Line)
		}
		if e.Line, e.Hash = 0, ""; i >= len(want) {
			t.Fatalf("more: %+v", e)
		}
		equal(t, e, want[i])
	}
	equal(t, len(events), len(want))
	begin, end := events[0].Line, events[len(events)-1].Line
	for after := begin - 1; after <= end; after++ {
		got := journaltest.Collect(t, r.Events(background, after))
		if want := events[after-begin+1:]; len(got) > 0 || len(want) > 0 {
			equal(t, got, want)
		}
	}
	if got, err := journaltest.CollectAll(r.Events(background, begin-2)); err != journal.ErrDropped || got != nil {
		t.Error(got, err)
	}
	if got, err := journaltest.CollectAll(r.Events(background, end+1)); err != reader.ErrRewound || got != nil {
		t.Error(got, err)
	}
}

// A last line that has lost its newline counts, as it does for Open.
func TestReaderTornTail(t *testing.T) {
	text, ends, states := storyFile(t)
	for i, end := range ends {
		for _, n := range []int{end - 1, end, end + 1} {
			if n > len(text) || n < ends[0] {
				continue
			}
			r := readerOf(t, holding(text[:n]))
			equal(t, journaltest.Collect(t, r.Changesets(background)), states[i])
			if got := journaltest.Collect(t, r.Events(background, 0)); len(got) != i+1 {
				t.Fatalf("%d events of %d lines", len(got), i+1)
			}
		}
	}
}

// Segments that are missing at the beginning are damage, whatever the end is like.
func TestReaderMissingHead(t *testing.T) {
	for _, lost := range []int{0, 1, 9} {
		m, _ := three(t)
		m.Delete(journaltest.SegmentName(1))
		m.Put(3, m.Segment(3).Data[:len(m.Segment(3).Data)-lost])
		_, want := journaltest.Open[any](m, journal.Options{})
		var corrupt *journal.CorruptError
		if !errors.As(want, &corrupt) {
			t.Fatal(want)
		}
		_, err := journaltest.CollectAll(readerOf(t, m).Events(background, 0))
		equal(t, err, want)
		r, err := journaltest.Reader[any](m, reader.Options{PollInterval: 1})
		must(t, err)
		_, err = journaltest.CollectAll(r.Follow(background, 0))
		equal(t, err, want)
		_, err = journaltest.CollectAll(readerOf(t, m).Changesets(background))
		equal(t, err, want)
	}
}

// OpenReader refuses what cannot be read.
func TestOpenReader(t *testing.T) {
	path := newPath(t)
	if _, err := reader.Open[any](path, reader.Options{}); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), path) {
		t.Error(err)
	}
	j := open[any](t, path)
	tell(t, j, story())
	for _, o := range []reader.Options{{PollInterval: -1}} {
		if _, err := reader.Open[any](path, o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
	if _, err := reader.Open[chan int](path, reader.Options{}); err == nil {
		t.Error("channels are accepted")
	}
	upcast := func(v journal.Value) (json.RawMessage, error) { return json.RawMessage(fmt.Sprint(v.Seq)), nil }
	r, err := reader.Open[int](path, reader.Options{Upcast: upcast, Identity: j.Identity()})
	must(t, err)
	got, err := r.Changeset(background, "A")
	must(t, err)
	equal(t, got.Entries, []cowchangeset.Entry[int]{{Seq: 0, Value: 0}, {Seq: 1, Value: 1}, {Seq: 7, Value: 7}})
	must(t, j.Close())

	other, err := reader.Open[any](path, reader.Options{Identity: "other"})
	must(t, err)
	for _, err := range []error{journaltest.ErrorOf(journaltest.CollectAll(other.Changesets(background))), journaltest.ErrorOf(journaltest.CollectAll(other.Events(background, 0))), journaltest.ErrorOf(other.Changeset(background, "A"))} {
		if err == nil || !strings.Contains(err.Error(), `and not "other"`) {
			t.Error(err)
		}
	}

	must(t, os.RemoveAll(path))
	if _, err := other.Changeset(background, "A"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// Loops may be left, end with their context, and panic without one.
func TestReaderLoops(t *testing.T) {
	m, all := prunedStory(t)
	r := readerOf(t, m)
	for range r.Changesets(background) {
		break
	}
	for range r.Events(background, 0) {
		break
	}
	for range r.Follow(background, 0) {
		break
	}
	ctx, cancel := context.WithCancelCause(background)
	defer cancel(nil)
	for s, err := range r.Changesets(ctx) {
		if cancel(errBoom); s.Ordinal > 2 {
			equal(t, err, errBoom)
		}
	}
	for _, err := range []error{journaltest.ErrorOf(r.Changeset(ctx, "A")), journaltest.ErrorOf(journaltest.CollectAll(r.Events(ctx, 0))), journaltest.ErrorOf(journaltest.CollectAll(r.Follow(ctx, 0)))} {
		equal(t, err, errBoom)
	}
	for what, f := range map[string]func(){
		"Changesets": func() { r.Changesets(noContext) },
		"Changeset":  func() { r.Changeset(noContext, "") },
		"Events":     func() { r.Events(noContext, 0) },
		"Follow":     func() { r.Follow(noContext, 0) },
		"negative":   func() { r.Events(background, -1) },
	} {
		func() {
			defer func() {
				if p, ok := recover().(string); !ok || !strings.HasPrefix(p, "reader: ") {
					t.Errorf("%s: %v", what, p)
				}
			}()
			f()
		}()
	}
	if !m.Closed() {
		t.Error("a file is still open")
	}
	equal(t, len(all), 3)
}

func manifest(n int, last uint64) cowchangeset.Manifest {
	return cowchangeset.Manifest{Len: n, Last: last}
}

// A context that panics while a Reader reads leaves no file open.
func TestReaderHostileContext(t *testing.T) {
	m, _ := segmented(t)
	r := readerOf(t, m)
	for range r.Changesets(background) {
		break
	}
	func() {
		defer func() { _ = recover() }()
		for range r.Changesets(panickingContext{background}) {
			t.Error("it has not panicked")
		}
	}()
	if !m.Closed() {
		t.Error("files are open")
	}
}

type panickingContext struct{ context.Context }

func (panickingContext) Err() error { panic(errBoom) }
