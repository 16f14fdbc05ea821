package journal_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/latchfree/latchfree/cowchangeset/journal"
)

// memory is a folder in memory. Each operation asks fault first, if that is set:
// what it returns fails the operation, after done bytes of a write.
type memory struct {
	mu    sync.Mutex
	files map[string]*memoryFile
	gone  map[string]*memoryFile // what was archived
	ops   map[string]int
	fault func(op string) (done int, err error)
	shut  error // what Open returns, if it is set

	reserve bool // there is room for a prune

	opened, peak int // how many files are open, and have been at once
}

// memoryFile is a file of a memory.
type memoryFile struct {
	of     *memory
	data   []byte
	synced int // how many bytes the last Sync has seen
	open   int // how many have it open
}

// holding returns a folder that has a first segment.
func holding(text []byte) *memory {
	m := &memory{}
	if text != nil {
		m.put(1, text)
	}
	return m
}

// put replaces a segment.
func (m *memory) put(number int, text []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.files == nil {
		m.files = map[string]*memoryFile{}
	}
	name := journal.SegmentName(number)
	if m.files[name] == nil {
		m.files[name] = &memoryFile{of: m}
	}
	m.files[name].data = bytes.Clone(text)
}

// clone returns a folder with the same files, and without faults.
func (m *memory) clone() *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := &memory{files: map[string]*memoryFile{}}
	for name, f := range m.files {
		c.files[name] = &memoryFile{of: c, data: bytes.Clone(f.data), synced: f.synced}
	}
	return c
}

// segment returns a segment, or nil.
func (m *memory) segment(number int) *memoryFile {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.files[journal.SegmentName(number)]
}

// bytes returns all segments, one after the other.
func (m *memory) bytes() (all []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(m.files)) {
		all = append(all, m.files[name].data...)
	}
	return all
}

// durable reports whether all segments were synced to their ends.
func (m *memory) durable() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range m.files {
		if f.synced != len(f.data) {
			return false
		}
	}
	return true
}

// closed reports whether nobody has a file open.
func (m *memory) closed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range m.files {
		if f.open != 0 {
			return false
		}
	}
	return true
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

func (m *memory) count(op string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ops[op]
}

// changes returns how many operations have changed something, or tried to.
func (m *memory) changes() (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for op, k := range m.ops {
		if op != "check" {
			n += k
		}
	}
	return n
}

func (m *memory) Names() ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.files)), nil
}

func (m *memory) Open(name string) (journal.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.shut != nil {
		return nil, m.shut
	}
	f := m.files[name]
	if f == nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	f.open++
	m.opened++
	m.peak = max(m.peak, m.opened)
	return &handle{memoryFile: f}, nil
}

func (m *memory) Edit(name string) (journal.File, error) {
	if _, err := m.ask("edit"); err != nil {
		return nil, err
	}
	return m.Open(name)
}

func (m *memory) Create(name, like string) (journal.File, error) {
	if _, err := m.ask("create"); err != nil {
		return nil, err
	}
	m.mu.Lock()
	if m.files == nil {
		m.files = map[string]*memoryFile{}
	}
	if m.files[name] != nil {
		m.mu.Unlock()
		return nil, &fs.PathError{Op: "create", Path: name, Err: fs.ErrExist}
	}
	m.files[name] = &memoryFile{of: m}
	m.mu.Unlock()
	return m.Open(name)
}

func (m *memory) Rename(from, to string) error {
	if _, err := m.ask("rename"); err != nil {
		return err
	}
	return m.move(from, func(f *memoryFile) { m.files[to] = f })
}

func (m *memory) Remove(name string) error {
	if _, err := m.ask("remove"); err != nil {
		return err
	}
	return m.move(name, func(*memoryFile) {})
}

func (m *memory) Archive(name string) error {
	if _, err := m.ask("archive"); err != nil {
		return err
	}
	return m.move(name, func(f *memoryFile) {
		if m.gone == nil {
			m.gone = map[string]*memoryFile{}
		}
		m.gone[name] = f
	})
}

func (m *memory) move(name string, to func(*memoryFile)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.files[name]
	if f == nil {
		return &fs.PathError{Op: "move", Path: name, Err: fs.ErrNotExist}
	}
	delete(m.files, name)
	to(f)
	return nil
}

func (m *memory) Sync() error {
	_, err := m.ask("syncdir")
	return err
}

// Reserve and Spend do as on a disk. The room is no file here, so that the tests count
// segments.
func (m *memory) Reserve() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reserve = true
	return nil
}

func (m *memory) reserved() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.reserve
}

func (m *memory) Spend() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	had := m.reserve
	m.reserve = false
	return had
}

func (m *memory) Check(name string, f journal.File, size int64) error {
	if _, err := m.ask("check"); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if is := m.files[name]; is != f.(*handle).memoryFile || int64(len(is.data)) != size {
		return errors.New("not as it was")
	}
	return nil
}

// handle is an open file.
type handle struct {
	*memoryFile
	closed bool
}

func (f *handle) ReadAt(p []byte, off int64) (int, error) {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	if f.closed {
		return 0, os.ErrClosed
	}
	if off >= int64(len(f.data)) {
		return 0, io.EOF
	}
	n := copy(p, f.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *handle) Write(p []byte) (int, error) {
	done, err := f.of.ask("write")
	if err == nil {
		done = len(p)
	}
	done = min(done, len(p))
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	f.data = append(f.data, p[:done]...)
	if err == errShort {
		err = nil
	}
	return done, err
}

// errShort makes a write end early without an error.
var errShort = errors.New("short")

func (f *handle) Truncate(size int64) error {
	if _, err := f.of.ask("truncate"); err != nil {
		return err
	}
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	f.data = f.data[:size]
	f.synced = min(f.synced, int(size))
	return nil
}

func (f *handle) Sync() error {
	if _, err := f.of.ask("sync"); err != nil {
		return err
	}
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	f.synced = len(f.data)
	return nil
}

func (f *handle) Size() (int64, error) {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	return int64(len(f.data)), nil
}

func (f *handle) Close() error {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	if f.closed {
		return os.ErrClosed
	}
	f.closed = true
	f.open--
	f.of.opened--
	return nil
}

// on opens a journal in a folder in memory.
func on(t testing.TB, m *memory) *journal.Journal[any] {
	t.Helper()
	return with(t, m, journal.Options{})
}

// with is on with options.
func with(t testing.TB, m *memory, o journal.Options) *journal.Journal[any] {
	t.Helper()
	j, err := journal.OpenOn[any](m, o)
	if err != nil {
		t.Fatal(err)
	}
	return j
}
