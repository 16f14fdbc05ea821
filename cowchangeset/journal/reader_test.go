package journal_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal"
)

// collect returns what a loop yields, which must not be an error.
func collect[V any](t testing.TB, all iter.Seq2[V, error]) (got []V) {
	t.Helper()
	for v, err := range all {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, v)
	}
	return got
}

// ended returns what a loop yields before its error, and that, or nil.
func ended[V any](all iter.Seq2[V, error]) (got []V, err error) {
	for v, e := range all {
		if err = e; e == nil {
			got = append(got, v)
		}
	}
	return got, err
}

func reader(t testing.TB, m *memory) *journal.Reader[any] {
	t.Helper()
	r, err := journal.ReaderOn[any](m, journal.Options{})
	must(t, err)
	return r
}

// prunedStory returns a folder in memory with a story that was pruned, in segments
// of which the first is gone, and what there is to load.
func prunedStory(t testing.TB) (m *memory, all []saved) {
	t.Helper()
	m = &memory{}
	j, err := journal.OpenOn[any](m, journal.Options{SegmentSize: 800})
	must(t, err)
	states := tell(t, j, story())
	must(t, j.Prune(background, 2))
	must(t, j.Close())
	return m, unnamed(states[len(states)-1][1:])
}

// A Reader finds what a Journal that is open beside it has, after each call.
func TestReaderBeside(t *testing.T) {
	m := &memory{}
	j, err := journal.OpenOn[any](m, journal.Options{SegmentSize: 600})
	must(t, err)
	r := reader(t, m)
	var all []saved
	for _, s := range story() {
		must(t, s.call(j))
		all = s.then(all)
		equal(t, collect(t, r.Changesets(background)), all)
		for _, want := range all {
			got, err := r.Changeset(background, want.ID)
			must(t, err)
			equal(t, got, want)
			got, err = r.ChangesetAt(background, want.Ordinal)
			must(t, err)
			equal(t, got, want)
		}
	}
	must(t, j.Prune(background, 2))
	equal(t, collect(t, r.Changesets(background)), unnamed(slices.Clone(all[1:])))
	for _, err := range []error{second(r.Changeset(background, "A")), second(r.Changeset(background, "none")), second(r.ChangesetAt(background, 0)), second(r.ChangesetAt(background, 9))} {
		if !errors.Is(err, journal.ErrNotFound) {
			t.Error(err)
		}
	}
	if before := m.clone(); !slices.Equal(before.bytes(), m.bytes()) {
		t.Error("the Reader has written")
	}
	must(t, j.Close())
	if !m.closed() {
		t.Error("a file is still open")
	}
}

func second[A any](_ A, err error) error { return err }

// Only the entries that are asked for are decoded.
func TestChangesetDecodesItsOwn(t *testing.T) {
	m := &memory{}
	tell(t, on(t, m), []step{
		start("A", 1, ""), add("A", item(0, "text")), seal("A", 1, 0),
		start("B", 2, "A"), add("B", item(0, 7)), start("C", 3, "B"),
	})
	r, err := journal.ReaderOn[int](m, journal.Options{})
	must(t, err)
	got, err := r.Changeset(background, "B")
	must(t, err)
	equal(t, got, cowchangeset.Saved[int]{Header: header{ID: "B", Ordinal: 2, Previous: "A"}, Entries: entries(0, 7)})
	var wrong *journal.DecodeError
	if _, err := r.ChangesetAt(background, 1); !errors.As(err, &wrong) || wrong.ChangesetID != "A" || wrong.Line != 3 {
		t.Error(err)
	}
	if got, err := ended(r.Events(background, 0)); !errors.As(err, &wrong) || len(got) != 2 {
		t.Error(got, err)
	}
	if got, err := ended(r.Events(background, 3)); err != nil || len(got) != 4 {
		t.Error(got, err)
	}
}

// Events says what each line says.
func TestEvents(t *testing.T) {
	m := &memory{}
	j := on(t, m)
	for i, s := range story() {
		if must(t, s.call(j)); i == 2 || i == 9 {
			must(t, j.Rotate(background))
		}
	}
	must(t, j.Prune(background, 2))
	must(t, j.Close())
	r := reader(t, m)
	events := collect(t, r.Events(background, 0))
	const odd = "q\"uo\\te\n\x00\u2028é"
	want := []journal.Event[any]{
		{Kind: journal.Rotated, Segment: 2, Journal: "test"},
		{Kind: journal.Started, ChangesetID: "lost", Ordinal: 2, Previous: "A"},
		{Kind: journal.Started, ChangesetID: odd, Ordinal: 2, Previous: "A"},
		{Kind: journal.Appended, ChangesetID: odd, Ordinal: 2, Entries: []entry{item(5, "é\u2028")}},
		{Kind: journal.Sealed, ChangesetID: "A", Ordinal: 1, Manifest: manifest(3, 7)},
		{Kind: journal.Started, ChangesetID: "C", Ordinal: 3, Previous: odd},
		{Kind: journal.Applied, ChangesetID: "A", Ordinal: 1, Next: 2},
		{Kind: journal.Appended, ChangesetID: "C", Ordinal: 3, Entries: []entry{item(0, "x")}},
		{Kind: journal.Rotated, Segment: 3, Journal: "test"},
		{Kind: journal.Sealed, ChangesetID: odd, Ordinal: 2, Manifest: manifest(1, 5)},
		{Kind: journal.Applied, ChangesetID: "A", Ordinal: 1, Next: cowchangeset.AllApplied},
		{Kind: journal.Aborted, ChangesetID: odd, Ordinal: 2, Reason: "a \"reason\"\n"},
		{Kind: journal.Sealed, ChangesetID: "C", Ordinal: 3, Manifest: manifest(1, 0)},
		{Kind: journal.Aborted, ChangesetID: "C", Ordinal: 3},
		{Kind: journal.Started, ChangesetID: "D", Ordinal: 4, Previous: "C"},
		{Kind: journal.Pruned, Before: 2},
	}
	for i, e := range events {
		if _, err := journal.VerifyOn(m, e.Anchor()); err != nil {
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
		got := collect(t, r.Events(background, after))
		if want := events[after-begin+1:]; len(got) > 0 || len(want) > 0 {
			equal(t, got, want)
		}
	}
	if got, err := ended(r.Events(background, begin-2)); err != journal.ErrDropped || got != nil {
		t.Error(got, err)
	}
	if got, err := ended(r.Events(background, end+1)); err != journal.ErrRewound || got != nil {
		t.Error(got, err)
	}
}

// A last line that has lost its newline counts, as it does for Open.
func TestReaderTornTail(t *testing.T) {
	text, ends, states := told(t)
	for i, end := range ends {
		for _, n := range []int{end - 1, end, end + 1} {
			if n > len(text) || n < ends[0] {
				continue
			}
			r := reader(t, holding(text[:n]))
			equal(t, collect(t, r.Changesets(background)), states[i])
			if got := collect(t, r.Events(background, 0)); len(got) != i+1 {
				t.Fatalf("%d events of %d lines", len(got), i+1)
			}
		}
	}
}

// Segments that are missing at the beginning are damage, whatever the end is like.
func TestReaderMissingHead(t *testing.T) {
	for _, lost := range []int{0, 1, 9} {
		m, _ := three(t)
		delete(m.files, journal.SegmentName(1))
		m.put(3, m.segment(3).data[:len(m.segment(3).data)-lost])
		_, want := journal.OpenOn[any](m, journal.Options{})
		var corrupt *journal.CorruptError
		if !errors.As(want, &corrupt) {
			t.Fatal(want)
		}
		_, err := ended(reader(t, m).Events(background, 0))
		equal(t, err, want)
		r, err := journal.ReaderOn[any](m, journal.Options{PollInterval: 1})
		must(t, err)
		_, err = ended(r.Follow(background, 0))
		equal(t, err, want)
		_, err = ended(reader(t, m).Changesets(background))
		equal(t, err, want)
	}
}

// OpenReader refuses what cannot be read.
func TestOpenReader(t *testing.T) {
	path := newPath(t)
	if _, err := journal.OpenReader[any](path, journal.Options{}); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), path) {
		t.Error(err)
	}
	j := open[any](t, path)
	tell(t, j, story())
	for _, o := range []journal.Options{{PollInterval: -1}, {Sync: 9}} {
		if _, err := journal.OpenReader[any](path, o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
	if _, err := journal.OpenReader[chan int](path, journal.Options{}); err == nil {
		t.Error("channels are accepted")
	}
	upcast := func(v journal.Value) (json.RawMessage, error) { return json.RawMessage(fmt.Sprint(v.Seq)), nil }
	r, err := journal.OpenReader[int](path, journal.Options{Upcast: upcast, Identity: j.Identity()})
	must(t, err)
	got, err := r.Changeset(background, "A")
	must(t, err)
	equal(t, got.Entries, []cowchangeset.Entry[int]{{Seq: 0, Value: 0}, {Seq: 1, Value: 1}, {Seq: 7, Value: 7}})
	must(t, j.Close())

	other, err := journal.OpenReader[any](path, journal.Options{Identity: "other"})
	must(t, err)
	for _, err := range []error{second(ended(other.Changesets(background))), second(ended(other.Events(background, 0))), second(other.ChangesetAt(background, 1))} {
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
	r := reader(t, m)
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
	for _, err := range []error{second(r.ChangesetAt(ctx, 2)), second(ended(r.Events(ctx, 0))), second(ended(r.Follow(ctx, 0)))} {
		equal(t, err, errBoom)
	}
	for what, f := range map[string]func(){
		"Changesets":  func() { r.Changesets(noContext) },
		"Changeset":   func() { r.Changeset(noContext, "") },
		"ChangesetAt": func() { r.ChangesetAt(noContext, 1) },
		"Events":      func() { r.Events(noContext, 0) },
		"Follow":      func() { r.Follow(noContext, 0) },
		"negative":    func() { r.Events(background, -1) },
	} {
		func() {
			defer func() {
				if p, ok := recover().(string); !ok || !strings.HasPrefix(p, "journal: ") {
					t.Errorf("%s: %v", what, p)
				}
			}()
			f()
		}()
	}
	if !m.closed() {
		t.Error("a file is still open")
	}
	equal(t, len(all), 3)
}

func hashOf(body string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(body))) }

func manifest(n int, last uint64) cowchangeset.Manifest {
	return cowchangeset.Manifest{Len: n, Last: last}
}
