// Package journaltest has what the tests of journals, of their readers and of repairs share:
// journals in memory, calls, and what there is to load after them.
package journaltest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset/journal"
	"github.com/latchfree/latchfree/cowchangeset/journal/reader"
	"github.com/latchfree/latchfree/internal/folder"
	"github.com/latchfree/latchfree/internal/folder/foldertest"
)

// Memory is a folder in memory, for a journal. The zero value is an empty one.
type Memory struct{ foldertest.Memory }

const (
	suffix  = ".journal" // of a segment
	reserve = "reserve"  // the file that keeps room for a prune
)

// SegmentName returns the name of a segment.
func SegmentName(number int) string { return fmt.Sprintf("%010d%s", number, suffix) }

// Holding returns a folder that has a first segment.
func Holding(text []byte) *Memory {
	m := &Memory{}
	if text != nil {
		m.Put(1, text)
	}
	return m
}

// Put replaces a segment.
func (m *Memory) Put(number int, text []byte) { m.Memory.Put(SegmentName(number), text) }

// PutFile replaces a file.
func (m *Memory) PutFile(name string, text []byte) { m.Memory.Put(name, text) }

// Segment returns a segment, or nil.
func (m *Memory) Segment(number int) *foldertest.File { return m.File(SegmentName(number)) }

// Segments returns the names of all files but the reserve.
func (m *Memory) Segments() []string {
	names, _ := m.Names()
	return slices.DeleteFunc(names, func(name string) bool { return name == reserve })
}

// Reserved reports whether room is kept for a prune.
func (m *Memory) Reserved() bool {
	f := m.File(reserve)
	return f != nil && len(f.Data) > 0
}

// Text returns all files but the reserve, one after the other.
func (m *Memory) Text() (all []byte) {
	for _, name := range m.Segments() {
		if f := m.File(name); f != nil {
			all = append(all, f.Data...)
		}
	}
	return all
}

// Durable reports whether all segments were synced to their ends.
func (m *Memory) Durable() bool {
	for _, name := range m.Segments() {
		if strings.HasSuffix(name, suffix) && !m.File(name).Durable() {
			return false
		}
	}
	return true
}

// Clone returns a folder with the same files, and without faults.
func (m *Memory) Clone() *Memory {
	c := &Memory{}
	m.CopyTo(&c.Memory)
	return c
}

// Crash returns what is on the disk if the machine loses its power now.
func (m *Memory) Crash() *Memory {
	c := &Memory{}
	m.Memory.Crash(&c.Memory)
	return c
}

// Identity is that of journals that Open makes.
const Identity = "test"

// Open opens a journal in a folder that nobody else uses. A *CorruptError is not wrapped.
func Open[E any](f folder.Folder, o journal.Options) (*journal.Journal[E], error) {
	o.Folder, o.NewIdentity = f, Identity
	j, err := journal.Open[E]("memory", o)
	if corrupt := new(journal.CorruptError); errors.As(err, &corrupt) {
		return nil, corrupt
	}
	return j, err
}

// Reader returns a Reader of a folder.
func Reader[E any](f folder.Folder, o reader.Options) (*reader.Reader[E], error) {
	o.Folder = f
	return reader.Open[E]("memory", o)
}

// On opens a journal in a folder in memory.
func On(t testing.TB, m *Memory) *journal.Journal[any] {
	t.Helper()
	return With(t, m, journal.Options{})
}

// With is On with options.
func With(t testing.TB, m *Memory, o journal.Options) *journal.Journal[any] {
	t.Helper()
	j, err := Open[any](m, o)
	Must(t, err)
	return j
}

// FirstLine is the first line of the first segment of a journal that Open makes.
func FirstLine() []byte {
	const body = `{"line":1,"op":"journal","format":1,"journal":"` + Identity + `","segment":1,"ordinal":0,"id":"","previous":"","before":1,"gaps":[],"changesets":[],"prev":"%064d"`
	return Lines(fmt.Sprintf(body, 0))
}

// ReaderOf returns a Reader of a folder in memory.
func ReaderOf(t testing.TB, m *Memory) *reader.Reader[any] {
	t.Helper()
	r, err := Reader[any](m, reader.Options{})
	Must(t, err)
	return r
}
