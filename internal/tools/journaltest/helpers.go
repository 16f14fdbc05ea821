package journaltest

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal"
)

// NoContext is nil, for what refuses that.
var NoContext context.Context

type (
	Header = cowchangeset.Header
	Entry  = cowchangeset.Entry[any]
	Saved  = cowchangeset.Saved[any]
)

var (
	Background = context.Background()
	ErrBoom    = errors.New("boom")
)

// OpenPath opens a journal on a disk.
func OpenPath[E any](t testing.TB, path string) *journal.Journal[E] {
	t.Helper()
	j, err := journal.Open[E](path, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// NewPath returns a path at which there is nothing.
func NewPath(t testing.TB) string { return filepath.Join(t.TempDir(), "changes.journal") }

// Load returns all that a journal has.
func Load[E any](t testing.TB, j *journal.Journal[E]) []cowchangeset.Saved[E] {
	t.Helper()
	all, err := Everything(j)
	Must(t, err)
	return all
}

// Everything returns all that a journal has, also the entries that Load leaves out.
func Everything[E any](j *journal.Journal[E]) (all []cowchangeset.Saved[E], err error) {
	for s, err := range j.Load(Background) {
		if err != nil {
			return nil, err
		}
		if finished := s.Aborted || s.Applied == cowchangeset.AllApplied; s.Manifest.Len > 0 && (!finished || s.Entries != nil) {
			return nil, fmt.Errorf("it leaves out entries of %+v", s)
		}
		var entries []cowchangeset.Entry[E]
		for e, err := range j.LoadEntries(Background, s.ID) {
			if err != nil {
				return nil, err
			}
			entries = append(entries, e)
		}
		if s.Manifest.Len > 0 {
			s.Entries, s.Manifest = entries, cowchangeset.Manifest{}
		} else if n := len(s.Entries); len(entries) < n || !reflect.DeepEqual(s.Entries, entries[:n:n]) && n > 0 {
			return nil, fmt.Errorf("of %+v, it loads entries %+v", s, entries)
		}
		all = append(all, s)
	}
	return all, nil
}

// Must fails the test with an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Equal fails the test unless both are equal.
func Equal(t testing.TB, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got\n\t%+v\nwant\n\t%+v", got, want)
	}
}

// A Step is a call, and what it does to the changesets that the journal has.
type Step struct {
	Name string
	Call func(*journal.Journal[any]) error
	Then func([]Saved) []Saved
}

// Start is the step that starts a changeset.
func Start(id string, ordinal uint64, previous string) Step {
	h := Header{ID: id, Ordinal: ordinal, Previous: previous}
	return Step{fmt.Sprintf("start %q %d", id, ordinal),
		func(j *journal.Journal[any]) error { return j.Start(Background, h) },
		func(all []Saved) []Saved {
			kept := slices.DeleteFunc(slices.Clone(all), func(s Saved) bool { return s.Ordinal >= ordinal })
			return append(kept, Saved{Header: h})
		}}
}

// Add is the step that appends entries.
func Add(id string, entries ...Entry) Step {
	return Step{fmt.Sprintf("append %q", id),
		func(j *journal.Journal[any]) error { return j.Append(Background, id, entries) },
		at(id, func(s *Saved) { s.Entries = slices.Concat(s.Entries, entries) })}
}

// Seal is the step that seals.
func Seal(id string, n int, last uint64) Step {
	return Step{fmt.Sprintf("seal %q", id),
		func(j *journal.Journal[any]) error {
			return j.Seal(Background, id, cowchangeset.Manifest{Len: n, Last: last})
		},
		at(id, func(s *Saved) { s.Sealed = true })}
}

// Abort is the step that aborts.
func Abort(id, reason string) Step {
	return Step{fmt.Sprintf("abort %q", id),
		func(j *journal.Journal[any]) error { return j.Abort(Background, id, reason) },
		at(id, func(s *Saved) { s.Aborted, s.Reason = true, reason })}
}

// Applied is the step that says how far a changeset is applied.
func Applied(id string, next uint64) Step {
	return Step{fmt.Sprintf("applied %q %d", id, next),
		func(j *journal.Journal[any]) error { return j.Applied(Background, id, next) },
		at(id, func(s *Saved) { s.Applied = next })}
}

// Prune is the step that prunes.
func Prune(before uint64) Step {
	return Step{fmt.Sprintf("prune %d", before),
		func(j *journal.Journal[any]) error { return j.Prune(Background, before) },
		func(all []Saved) []Saved {
			return Unnamed(slices.DeleteFunc(slices.Clone(all), func(s Saved) bool { return s.Ordinal < before }))
		}}
}

// Unnamed forgets what a pruned changeset was called.
func Unnamed(all []Saved) []Saved {
	if len(all) > 0 {
		all[0].Previous = ""
	}
	return all
}

// at changes the changeset with an ID, in a copy.
func at(id string, change func(*Saved)) func([]Saved) []Saved {
	return func(all []Saved) []Saved {
		all = slices.Clone(all)
		for i := range all {
			if all[i].ID == id {
				change(&all[i])
			}
		}
		return all
	}
}

// Story is a sequence of calls with all kinds of lines.
func Story() []Step {
	const odd = "q\"uo\\te\n\x00\u2028é"
	return []Step{
		Start("A", 1, ""),
		Add("A", Item(0, "one"), Item(1, nil)),
		Add("A", Item(7, map[string]any{"a<b&c": []any{json.Number("1.5"), true}, "hash": ",\"hash\":\"0\"}\n"})),
		Start("lost", 2, "A"),
		Start(odd, 2, "A"),
		Add(odd, Item(5, "é\u2028")),
		Seal("A", 3, 7),
		Start("C", 3, odd),
		Applied("A", 2),
		Add("C", Item(0, "x")),
		Seal(odd, 1, 5),
		Applied("A", cowchangeset.AllApplied),
		Abort(odd, "a \"reason\"\n"),
		Seal("C", 1, 0),
		Abort("C", ""),
		Start("D", 4, "C"),
	}
}

// Tell makes calls that must succeed, and returns what there is then to load,
// after no call, after the first one, and so on.
func Tell(t testing.TB, j *journal.Journal[any], steps []Step) (states [][]Saved) {
	t.Helper()
	var all []Saved
	states = append(states, all)
	for _, s := range steps {
		if err := s.Call(j); err != nil {
			t.Fatalf("%s: %v", s.Name, err)
		}
		all = s.Then(all)
		states = append(states, all)
	}
	return states
}

// Item makes an entry.
func Item(seq uint64, value any) Entry { return Entry{Seq: seq, Value: value} }

// Entries numbers values from a Seq on.
func Entries[E any](seq uint64, values ...E) (all []cowchangeset.Entry[E]) {
	for i, v := range values {
		all = append(all, cowchangeset.Entry[E]{Seq: seq + uint64(i), Value: v})
	}
	return all
}

// Lines makes lines of what stands before their hashes.
func Lines(bodies ...string) (text []byte) {
	for _, body := range bodies {
		text = fmt.Appendf(text, "%s,\"hash\":\"%x\"}\n", body, sha256.Sum256([]byte(body)))
	}
	return text
}
