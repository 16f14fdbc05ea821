// Package foldertest has a simulated folder, whose operations and whose machine fail when a
// test wants it.
package foldertest

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"sync"

	"github.com/latchfree/latchfree/internal/folder"
)

// Memory is a folder in memory. The zero value is an empty one. A test may look at the
// fields, and change them, while no operation runs.
//
// It asks Fault before each operation but Names and Open, if that is set: an error fails
// the operation, after done bytes of a write.
type Memory struct {
	Files map[string]*File
	Moved map[string]*File // to other directories
	Fault func(op string) (done int, err error)
	Shut  error // what Open returns, if it is set
	Dying bool  // a rename or removal that fails may happen all the same

	Opened, Peak int // how many files are open, and have been at once

	mu    sync.Mutex
	ops   map[string]int
	disk  map[string]*File         // the names as of the last Sync
	since []func(map[string]*File) // the changes of names since
}

// ErrShort makes a write end early without an error.
var ErrShort = errors.New("short")

// File is a file of a Memory.
type File struct {
	Data   []byte
	synced []byte
	longer []byte // as it was before a Truncate that was not synced
	of     *Memory
	open   int // how many have it open
}

// Bytes returns what is in the file; nothing if it is nil.
func (f *File) Bytes() []byte {
	if f == nil {
		return nil
	}
	return f.Data
}

// Durable reports whether all of the file was synced.
func (f *File) Durable() bool { return bytes.Equal(f.Data, f.synced) }

// SetFault sets Fault while operations may run.
func (m *Memory) SetFault(fault func(op string) (done int, err error)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.Fault = fault
}

// Put makes or replaces a file.
func (m *Memory) Put(name string, text []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f := m.Files[name]; f != nil {
		f.Data = bytes.Clone(text)
		return
	}
	if m.Files == nil {
		m.Files = map[string]*File{}
	}
	m.Files[name] = &File{of: m, Data: bytes.Clone(text)}
}

// File returns a file, or nil.
func (m *Memory) File(name string) *File {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.Files[name]
}

// Delete deletes files, as somebody else does.
func (m *Memory) Delete(names ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range names {
		delete(m.Files, name)
	}
}

// CopyTo makes an empty folder one with the same files, without faults.
func (m *Memory) CopyTo(c *Memory) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c.Files = map[string]*File{}
	for name, f := range m.Files {
		c.Files[name] = &File{of: c, Data: bytes.Clone(f.Data), synced: bytes.Clone(f.synced)}
	}
}

// Closed reports whether nobody has a file open.
func (m *Memory) Closed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range m.Files {
		if f.open != 0 {
			return false
		}
	}
	return true
}

// Count returns how many operations of a kind there have been.
func (m *Memory) Count(op string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ops[op]
}

// Changes returns how many operations have changed something, or tried to.
func (m *Memory) Changes() (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for op, k := range m.ops {
		if op != "check" {
			n += k
		}
	}
	return n
}

func (m *Memory) ask(op string) (int, error) {
	m.mu.Lock()
	fault := m.Fault
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

// Names returns the names of all files.
func (m *Memory) Names() ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.Files)), nil
}

// Open opens a file.
func (m *Memory) Open(name string) (folder.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.Shut != nil {
		return nil, m.Shut
	}
	f := m.Files[name]
	if f == nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	f.open++
	m.Opened++
	m.Peak = max(m.Peak, m.Opened)
	return &handle{File: f}, nil
}

// Edit asks for "edit".
func (m *Memory) Edit(name string) (folder.File, error) {
	if _, err := m.ask("edit"); err != nil {
		return nil, err
	}
	return m.Open(name)
}

// Create asks for "create".
func (m *Memory) Create(name, like string) (folder.File, error) {
	if _, err := m.ask("create"); err != nil {
		return nil, err
	}
	m.mu.Lock()
	if m.Files[name] != nil {
		m.mu.Unlock()
		return nil, &fs.PathError{Op: "create", Path: name, Err: fs.ErrExist}
	}
	file := &File{of: m}
	m.change(func(files map[string]*File) { files[name] = file })
	m.mu.Unlock()
	return m.Open(name)
}

// change changes names. The caller holds mu.
func (m *Memory) change(do func(files map[string]*File)) {
	if m.Files == nil {
		m.Files = map[string]*File{}
	}
	do(m.Files)
	m.since = append(m.since, do)
}

// Rename asks for "rename".
func (m *Memory) Rename(from, to string) error {
	return m.move("rename", from, func(files map[string]*File, f *File) { files[to] = f })
}

// Remove asks for "remove".
func (m *Memory) Remove(name string) error {
	return m.move("remove", name, func(map[string]*File, *File) {})
}

// Move asks for "move".
func (m *Memory) Move(name, dir string) error {
	return m.move("move", name, func(_ map[string]*File, f *File) {
		if m.Moved == nil {
			m.Moved = map[string]*File{}
		}
		m.Moved[name] = f
	})
}

func (m *Memory) move(op, name string, to func(files map[string]*File, f *File)) error {
	_, err := m.ask(op)
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.Files[name]
	if err == nil && f == nil {
		return &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
	}
	change := func(files map[string]*File) {
		delete(files, name)
		to(files, f)
	}
	switch {
	case err == nil:
		m.change(change)
	case m.Dying && f != nil:
		m.since = append(m.since, change)
	}
	return err
}

// Sync asks for "syncdir".
func (m *Memory) Sync() error {
	if _, err := m.ask("syncdir"); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.disk, m.since = maps.Clone(m.Files), nil
	return nil
}

// Check asks for "check".
func (m *Memory) Check(name string, f folder.File, size int64) error {
	if _, err := m.ask("check"); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if is := m.Files[name]; is != f.(*handle).File || int64(len(is.Data)) != size {
		return errors.New("not as it was")
	}
	return nil
}

// Settle makes everything durable, without faults.
func (m *Memory) Settle() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range m.Files {
		f.synced = bytes.Clone(f.Data)
	}
	m.disk, m.since = maps.Clone(m.Files), nil
}

// Crash makes an empty folder what is on the disk if the machine loses its power now. What was not
// synced is there or not: of files, each sector by itself and any size between the old and
// the new one; of the names, the first of the changes since the last Sync, as many as it
// happens.
func (m *Memory) Crash(c *Memory) {
	m.mu.Lock()
	defer m.mu.Unlock()
	files := maps.Clone(m.disk)
	if files == nil {
		files = map[string]*File{}
	}
	if n := len(m.since); n > 0 {
		for _, change := range m.since[:rand.IntN(n+1)] {
			change(files)
		}
	}
	c.Files = map[string]*File{}
	for name, f := range files {
		is := f.Data
		if f.longer != nil && rand.IntN(3) == 0 {
			is = f.longer
		}
		text := torn(f.synced, is)
		c.Files[name] = &File{of: c, Data: text, synced: text[:len(text):len(text)]}
	}
	c.disk = maps.Clone(c.Files)
}

// torn returns what a disk may have of a file.
func torn(was, is []byte) []byte {
	const sector = 512
	size := len(was)
	switch {
	case rand.IntN(3) == 0:
		size = len(is)
	case len(is) > size:
		size += rand.IntN(len(is) - size + 1)
	}
	out := make([]byte, size)
	copy(out, was)
	inOrder, reached := rand.IntN(2) == 0, rand.IntN(len(is)/sector+2)
	for i := 0; i < size; i += sector {
		there := rand.IntN(2) == 0
		if inOrder {
			there = i/sector < reached
		}
		if there && i < len(is) {
			copy(out[i:min(i+sector, size)], is[i:])
		}
	}
	return out
}

// handle is an open file.
type handle struct {
	*File
	closed bool
}

func (f *handle) ReadAt(p []byte, off int64) (int, error) {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	if f.closed {
		return 0, os.ErrClosed
	}
	if off >= int64(len(f.Data)) {
		return 0, io.EOF
	}
	n := copy(p, f.Data[off:])
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
	f.Data = append(f.Data, p[:done]...)
	if err == ErrShort {
		err = nil
	}
	return done, err
}

func (f *handle) Truncate(size int64) error {
	if _, err := f.of.ask("truncate"); err != nil {
		return err
	}
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	if len(f.Data) > len(f.longer) {
		f.longer = f.Data
	}
	f.Data = f.Data[:size:size] // what is written next does not change what was synced
	return nil
}

func (f *handle) Sync() error {
	if _, err := f.of.ask("sync"); err != nil {
		return err
	}
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	f.synced, f.longer = f.Data, nil
	return nil
}

func (f *handle) Size() (int64, error) {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	return int64(len(f.Data)), nil
}

func (f *handle) Close() error {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	if f.closed {
		return os.ErrClosed
	}
	f.closed = true
	f.open--
	f.of.Opened--
	return nil
}
