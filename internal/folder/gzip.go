package folder

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/latchfree/latchfree/internal/atomics"
)

// Gzip is a folder whose files may be compressed: then the file name is in name.gz, which
// gzip and zcat read too. Names are those without the suffix, and files are read as if they
// were not compressed. Of a file that is there in both forms, the compressed one is left
// from a Compress that did not end, and does not count.
type Gzip struct{ Folder }

const (
	zipped = ".gz"

	// Unborn ends the name of a file that is to have the name before it, when it is
	// complete.
	Unborn = ".new"
)

// Names returns the names of all files, sorted.
func (g Gzip) Names() ([]string, error) {
	names, err := g.Folder.Names()
	for i := range names {
		names[i] = strings.TrimSuffix(names[i], zipped)
	}
	slices.Sort(names)
	return slices.Compact(names), err
}

// has reports whether there is a file in that form, as far as there is a descriptor to look.
func (g Gzip) has(name string) bool {
	f, err := g.Folder.Open(name)
	if err == nil {
		f.Close()
	}
	return err == nil
}

// Stored opens a file in the form in which it is there, with the name that it has.
func (g Gzip) Stored(name string) (f File, stored string, err error) {
	f, err = g.Folder.Open(name)
	if !errors.Is(err, fs.ErrNotExist) {
		return f, name, err
	}
	if z, e := g.Folder.Open(name + zipped); !errors.Is(e, fs.ErrNotExist) {
		return z, name + zipped, e
	}
	return nil, name, err
}

// Copy makes a copy of a file, in the form in which it is there, and syncs it.
func (g Gzip) Copy(name, to string) error {
	f, stored, err := g.Stored(name)
	if err != nil {
		return err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return err
	}
	return g.make(to+strings.TrimPrefix(stored, name), stored, func(w io.Writer) error {
		n, err := io.Copy(w, io.NewSectionReader(f, 0, size))
		if err == nil && n < size {
			err = io.ErrUnexpectedEOF
		}
		return err
	})
}

// Open opens a file to read it. What is damaged in a compressed one reads as if it were
// missing.
func (g Gzip) Open(name string) (File, error) {
	f, stored, err := g.Stored(name)
	if err != nil || stored == name {
		return f, err
	}
	return unzip(f)
}

// Edit opens a file to read and to write it. One that was compressed no longer is.
func (g Gzip) Edit(name string) (File, error) {
	f, err := g.Folder.Edit(name)
	if !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	if err := g.inflate(name); err != nil {
		return nil, err
	}
	return g.Folder.Edit(name)
}

// Create makes a file. Another one, which it is to resemble, may be compressed.
func (g Gzip) Create(name, like string) (File, error) {
	if like != "" && !g.has(like) && g.has(like+zipped) {
		like += zipped
	}
	return g.Folder.Create(name, like)
}

// Rename gives a file another name, in the place of the file that has it, if there is one.
func (g Gzip) Rename(from, to string) error {
	plain, other := g.has(from), g.has(from+zipped)
	if other && !plain {
		err := g.Folder.Rename(from+zipped, to+zipped)
		if err == nil && g.has(to) {
			err = g.Folder.Remove(to)
		}
		return err
	}
	if other { // by itself, it would be the file that is renamed
		if err := g.Folder.Remove(from + zipped); err != nil {
			return err
		}
	}
	err := g.Folder.Rename(from, to)
	if err == nil && g.has(to+zipped) {
		err = g.Folder.Remove(to + zipped)
	}
	return err
}

// Remove removes a file.
func (g Gzip) Remove(name string) error {
	e := g.Folder.Remove(name + zipped) // first: by itself, it would be the file
	if e != nil && !errors.Is(e, fs.ErrNotExist) {
		return e
	}
	err := g.Folder.Remove(name)
	if e == nil && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Move moves a file to another directory.
func (g Gzip) Move(name, dir string) error {
	if g.has(name) && g.has(name+zipped) { // as in Rename
		if err := g.Folder.Remove(name + zipped); err != nil {
			return err
		}
	}
	err := g.Folder.Move(name, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return g.Folder.Move(name+zipped, dir)
	}
	return err
}

// Compress compresses a file that nobody writes, unless it is compressed. It asks now and
// then whether to stop, with which error. The file is removed when what is in the
// compressed one was read back, and is on the disk.
func (g Gzip) Compress(name string, stop func() error) error {
	f, err := g.Folder.Open(name)
	if errors.Is(err, fs.ErrNotExist) && g.has(name+zipped) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close() // also if stop panics
	size, err := f.Size()
	to := name + Unborn + zipped
	if err == nil {
		whole := &stoppable{io.NewSectionReader(f, 0, size), stop}
		err = g.make(to, name, func(w io.Writer) error { return zip(w, whole, f, size) })
	}
	if err == nil {
		err = g.compare(to, &stoppable{io.NewSectionReader(f, 0, size), stop})
	}
	f.Close() // or it could not be removed everywhere
	if err == nil {
		err = g.Folder.Rename(to, name+zipped)
	}
	if err != nil {
		g.Folder.Remove(to) // or the next attempt does
		return err
	}
	if err := g.Sync(); err != nil {
		return err
	}
	return g.Folder.Remove(name)
}

// inflate makes a compressed file one that is not.
func (g Gzip) inflate(name string) error {
	z, err := g.Open(name)
	if err != nil {
		return err
	}
	size, err := z.Size()
	if err == nil {
		err = g.make(name+Unborn, name+zipped, func(w io.Writer) error {
			_, err := io.Copy(w, io.NewSectionReader(z, 0, size))
			return err
		})
	}
	z.Close() // or it could not be removed everywhere
	if err == nil {
		err = g.Folder.Rename(name+Unborn, name)
	}
	if err == nil {
		err = g.Sync()
	}
	if err == nil {
		err = g.Folder.Remove(name + zipped)
	}
	return err
}

// make makes a file of what write writes, and syncs it.
func (g Gzip) make(name, like string, write func(io.Writer) error) error {
	if err := g.Folder.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := g.Create(name, like)
	if err != nil {
		return err
	}
	defer f.Close() // also if write panics
	w := bufio.NewWriterSize(f, block)
	if err = write(w); err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

// compare returns an error unless a compressed file has all of a text in it, and no more.
func (g Gzip) compare(name string, text io.Reader) error {
	f, err := g.Folder.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(bufio.NewReaderSize(&part{f, 0}, block))
	if err != nil {
		return err
	}
	a, b := make([]byte, block), make([]byte, block)
	for {
		n, err := io.ReadFull(text, a)
		m, e := io.ReadFull(z, b)
		switch {
		case err != nil && err != io.EOF && err != io.ErrUnexpectedEOF:
			return err
		case n != m || !bytes.Equal(a[:n], b[:m]) || e != err:
			return fmt.Errorf("what was compressed is not read back: %v", e)
		case err != nil:
			return nil
		}
	}
}

// block is how much is read and written at once.
const block = 64 << 10

// A stoppable reader asks before each read whether to stop.
type stoppable struct {
	io.Reader
	stop func() error
}

func (s *stoppable) Read(p []byte) (int, error) {
	if err := s.stop(); err != nil {
		return 0, err
	}
	return s.Reader.Read(p[:min(len(p), block)])
}

// A part reads a file from a place on.
type part struct {
	file io.ReaderAt
	at   int64
}

func (p *part) Read(b []byte) (int, error) {
	n, err := p.file.ReadAt(b, p.at)
	p.at += int64(n)
	if n > 0 {
		err = nil
	}
	return n, err
}

// The header of a compressed file has an extra field with the size of what is in it, and its
// last bytes: who needs only these inflates nothing.
const (
	extraID  = "lf"
	extraEnd = 128 // the last bytes, at most
)

// zip compresses a text of that size, of which f has the end.
func zip(w io.Writer, text io.Reader, f io.ReaderAt, size int64) error {
	end := make([]byte, min(size, extraEnd))
	if _, err := f.ReadAt(end, size-int64(len(end))); err != nil && err != io.EOF {
		return err
	}
	z := gzip.NewWriter(w)
	x := binary.LittleEndian.AppendUint16([]byte(extraID), uint16(8+len(end)))
	z.Extra = append(binary.LittleEndian.AppendUint64(x, uint64(size)), end...)
	if _, err := io.Copy(z, text); err != nil {
		return err
	}
	return z.Close()
}

// A zipFile reads a compressed file as if it were not: best from its beginning to its end, as
// a step back inflates it again from there.
type zipFile struct {
	File        // compressed
	size int64  // of what is in it; 0 if its header is damaged
	end  []byte // of that

	mu atomics.Mutex // guards the following
	z  *gzip.Reader
	at int64 // where z is
}

func unzip(f File) (File, error) {
	z := &zipFile{File: f}
	err := z.rewind()
	if err != nil && damaged(err) != io.ErrUnexpectedEOF {
		f.Close()
		return nil, err
	}
	if x := z.z; err == nil && len(x.Extra) >= 12 && string(x.Extra[:2]) == extraID {
		z.size, z.end = int64(binary.LittleEndian.Uint64(x.Extra[4:])), x.Extra[12:]
	} else if err == nil { // somebody else has compressed it
		z.size, _ = io.Copy(io.Discard, z.z)
		z.at = z.size
	}
	if z.size < int64(len(z.end)) {
		z.size, z.end = 0, nil
	}
	return z, nil
}

func (z *zipFile) rewind() (err error) {
	from := bufio.NewReaderSize(&part{z.File, 0}, block)
	z.at = 0
	if z.z != nil {
		return z.z.Reset(from)
	}
	z.z, err = gzip.NewReader(from)
	return err
}

// Size returns the size of what is in the file.
func (z *zipFile) Size() (int64, error) { return z.size, nil }

// ReadAt reads what is in the file.
func (z *zipFile) ReadAt(b []byte, off int64) (n int, err error) {
	if from := off - (z.size - int64(len(z.end))); from >= 0 {
		n = copy(b, z.end[min(from, int64(len(z.end))):])
	} else if n, err = z.inflateAt(b[:min(int64(len(b)), z.size-off)], off); err != nil {
		return n, damaged(err)
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (z *zipFile) inflateAt(b []byte, off int64) (n int, err error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if off < z.at {
		if err := z.rewind(); err != nil {
			return 0, err
		}
	}
	skipped, err := io.CopyN(io.Discard, z.z, off-z.at)
	z.at += skipped
	if err == nil {
		n, err = io.ReadFull(z.z, b)
		z.at += int64(n)
	}
	return n, err
}

// damaged returns what reading a file that was cut off returns, for what gzip says of one
// that is damaged.
func damaged(err error) error {
	corrupt := flate.CorruptInputError(0)
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, gzip.ErrChecksum) || errors.Is(err, gzip.ErrHeader) || errors.As(err, &corrupt) {
		return io.ErrUnexpectedEOF
	}
	return err
}
