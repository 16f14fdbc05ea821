package journal_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset"
	"github.com/latchfree/latchfree/cowchangeset/journal"
)

type (
	header = cowchangeset.Header
	entry  = cowchangeset.Entry[any]
	saved  = cowchangeset.Saved[any]
)

var (
	background = context.Background()
	errBoom    = errors.New("boom")
)

// memory is a file in memory. Each operation asks fault first, if that is set:
// what it returns fails the operation, after done bytes of a write.
type memory struct {
	mu     sync.Mutex
	data   []byte
	synced int // how many bytes the last Sync has seen
	ops    map[string]int
	closed bool
	fault  func(op string) (done int, err error)
}

func (m *memory) ask(op string) (int, error) {
	m.mu.Lock()
	fault := m.fault
	if m.ops == nil {
		m.ops = map[string]int{}
	}
	m.ops[op]++
	m.mu.Unlock()
	if fault == nil {
		return 0, nil
	}
	return fault(op)
}

func (m *memory) ReadAt(p []byte, off int64) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return 0, os.ErrClosed
	}
	if off >= int64(len(m.data)) {
		return 0, io.EOF
	}
	n := copy(p, m.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (m *memory) WriteAt(p []byte, off int64) (int, error) {
	done, err := m.ask("write")
	if err == nil {
		done = len(p)
	}
	done = min(done, len(p))
	m.mu.Lock()
	defer m.mu.Unlock()
	if grown := int(off) + done - len(m.data); grown > 0 {
		m.data = append(m.data, make([]byte, grown)...)
	}
	copy(m.data[off:], p[:done])
	m.synced = min(m.synced, int(off))
	if err == errShort {
		err = nil
	}
	return done, err
}

// errShort makes a write end early without an error.
var errShort = errors.New("short")

func (m *memory) Truncate(size int64) error {
	if _, err := m.ask("truncate"); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.data = m.data[:size]
	m.synced = min(m.synced, int(size))
	return nil
}

func (m *memory) Sync() error {
	if _, err := m.ask("sync"); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.synced = len(m.data)
	return nil
}

func (m *memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	return nil
}

func (m *memory) count(op string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ops[op]
}

func (m *memory) bytes() []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return bytes.Clone(m.data)
}

// on opens a journal on a file in memory.
func on(t testing.TB, m *memory) *journal.Journal[any] {
	t.Helper()
	m.closed = false
	j, err := journal.OpenOn[any](m, int64(len(m.data)), journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// open opens a journal on a real file.
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
func load[E any](t testing.TB, j *journal.Journal[E]) (all []cowchangeset.Saved[E]) {
	t.Helper()
	for s, err := range j.Load(background) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
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
		func(all []saved) []saved { return append(all[:ordinal-1:ordinal-1], saved{Header: h}) }}
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
		add("A", item(7, map[string]any{"a<b&c": []any{1.5, true}, "hash": ",\"hash\":\"0\"}\n"})),
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
