package journal_test

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

// noContext is nil, for what refuses that.
var noContext context.Context

type (
	header = cowchangeset.Header
	entry  = cowchangeset.Entry[any]
	saved  = cowchangeset.Saved[any]
)

var (
	background = context.Background()
	errBoom    = errors.New("boom")
)

// open opens a journal on a disk.
func open[E any](t testing.TB, path string) *journal.Journal[E] {
	t.Helper()
	j, err := journal.Open[E](path, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func newPath(t testing.TB) string { return filepath.Join(t.TempDir(), "changes.journal") }

// load returns all that a journal has.
func load[E any](t testing.TB, j *journal.Journal[E]) []cowchangeset.Saved[E] {
	t.Helper()
	all, err := everything(j)
	must(t, err)
	return all
}

// everything returns all that a journal has, also the entries that Load leaves out.
func everything[E any](j *journal.Journal[E]) (all []cowchangeset.Saved[E], err error) {
	for s, err := range j.Load(background) {
		if err != nil {
			return nil, err
		}
		if finished := s.Aborted || s.Applied == cowchangeset.AllApplied; s.Manifest.Len > 0 && (!finished || s.Entries != nil) {
			return nil, fmt.Errorf("it leaves out entries of %+v", s)
		}
		var entries []cowchangeset.Entry[E]
		for e, err := range j.LoadEntries(background, s.ID) {
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

// verifyText verifies the first segment of a journal.
func verifyText(text []byte) (journal.Report, error) {
	return journal.VerifyOn(holding(text), journal.Anchor{})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal(t testing.TB, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got\n\t%+v\nwant\n\t%+v", got, want)
	}
}

// A step is a call, and what it does to the changesets that the journal has.
type step struct {
	name string
	call func(*journal.Journal[any]) error
	then func([]saved) []saved
}

func start(id string, ordinal uint64, previous string) step {
	h := header{ID: id, Ordinal: ordinal, Previous: previous}
	return step{fmt.Sprintf("start %q %d", id, ordinal),
		func(j *journal.Journal[any]) error { return j.Start(background, h) },
		func(all []saved) []saved {
			kept := slices.DeleteFunc(slices.Clone(all), func(s saved) bool { return s.Ordinal >= ordinal })
			return append(kept, saved{Header: h})
		}}
}

func add(id string, entries ...entry) step {
	return step{fmt.Sprintf("append %q", id),
		func(j *journal.Journal[any]) error { return j.Append(background, id, entries) },
		at(id, func(s *saved) { s.Entries = slices.Concat(s.Entries, entries) })}
}

func seal(id string, n int, last uint64) step {
	return step{fmt.Sprintf("seal %q", id),
		func(j *journal.Journal[any]) error {
			return j.Seal(background, id, cowchangeset.Manifest{Len: n, Last: last})
		},
		at(id, func(s *saved) { s.Sealed = true })}
}

func abort(id, reason string) step {
	return step{fmt.Sprintf("abort %q", id),
		func(j *journal.Journal[any]) error { return j.Abort(background, id, reason) },
		at(id, func(s *saved) { s.Aborted, s.Reason = true, reason })}
}

func applied(id string, next uint64) step {
	return step{fmt.Sprintf("applied %q %d", id, next),
		func(j *journal.Journal[any]) error { return j.Applied(background, id, next) },
		at(id, func(s *saved) { s.Applied = next })}
}

func prune(before uint64) step {
	return step{fmt.Sprintf("prune %d", before),
		func(j *journal.Journal[any]) error { return j.Prune(background, before) },
		func(all []saved) []saved {
			return unnamed(slices.DeleteFunc(slices.Clone(all), func(s saved) bool { return s.Ordinal < before }))
		}}
}

// unnamed forgets what a pruned changeset was called.
func unnamed(all []saved) []saved {
	if len(all) > 0 {
		all[0].Previous = ""
	}
	return all
}

// at changes the changeset with an ID, in a copy.
func at(id string, change func(*saved)) func([]saved) []saved {
	return func(all []saved) []saved {
		all = slices.Clone(all)
		for i := range all {
			if all[i].ID == id {
				change(&all[i])
			}
		}
		return all
	}
}

// story is a sequence of calls with all kinds of lines.
func story() []step {
	const odd = "q\"uo\\te\n\x00\u2028é"
	return []step{
		start("A", 1, ""),
		add("A", item(0, "one"), item(1, nil)),
		add("A", item(7, map[string]any{"a<b&c": []any{json.Number("1.5"), true}, "hash": ",\"hash\":\"0\"}\n"})),
		start("lost", 2, "A"),
		start(odd, 2, "A"),
		add(odd, item(5, "é\u2028")),
		seal("A", 3, 7),
		start("C", 3, odd),
		applied("A", 2),
		add("C", item(0, "x")),
		seal(odd, 1, 5),
		applied("A", cowchangeset.AllApplied),
		abort(odd, "a \"reason\"\n"),
		seal("C", 1, 0),
		abort("C", ""),
		start("D", 4, "C"),
	}
}

// tell makes calls that must succeed, and returns what there is then to load,
// after no call, after the first one, and so on.
func tell(t testing.TB, j *journal.Journal[any], steps []step) (states [][]saved) {
	t.Helper()
	var all []saved
	states = append(states, all)
	for _, s := range steps {
		if err := s.call(j); err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		all = s.then(all)
		states = append(states, all)
	}
	return states
}

func item(seq uint64, value any) entry { return entry{Seq: seq, Value: value} }

// entries numbers values from a Seq on.
func entries[E any](seq uint64, values ...E) (all []cowchangeset.Entry[E]) {
	for i, v := range values {
		all = append(all, cowchangeset.Entry[E]{Seq: seq + uint64(i), Value: v})
	}
	return all
}

// chain makes lines of what stands before their hashes.
func chain(bodies ...string) (text []byte) {
	for _, body := range bodies {
		text = fmt.Appendf(text, "%s,\"hash\":\"%x\"}\n", body, sha256.Sum256([]byte(body)))
	}
	return text
}
