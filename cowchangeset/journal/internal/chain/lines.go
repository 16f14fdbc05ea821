package chain

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/latchfree/latchfree/internal/atomics"
	"github.com/latchfree/latchfree/internal/folder"
)

// lines reads the lines of a segment after another, as far as the segments had come when
// their sizes were looked at. It checks that each line is one, and continues the one
// before it in its segment.
type lines struct {
	From  Source
	Files []Segment
	Live  bool // somebody may write the last one

	decodes bool // values are decoded afterwards

	At     int         // the segment that is read
	File   folder.File // which is that, or nil
	blocks *blocks
	block  *block // is being read, or nil
}

// Open goes on in segment i from a byte on, up to another. The line before that has a number
// and a hash; 0 means that the line tells them.
func (r *lines) Open(i int, from, to int64, number int, hash Digest) error {
	if r.blocks != nil {
		r.blocks.close()
	}
	if r.File == nil || r.At != i {
		r.Close()
		f, err := r.From.Open(r.Files[i].Name())
		if err != nil {
			return err
		}
		r.At, r.File = i, f
	}
	part := &part{r.File, r.Files[i].Name(), from, to, r.Live && i == len(r.Files)-1}
	r.blocks, r.block = &blocks{r: part, size: int(min(blockSize, max(1, to-from))), number: number, hash: hash}, nil
	r.blocks.parser.decodes = r.decodes
	return nil
}

// next returns the next line of the segment or, at its end, the bytes that are no line,
// with io.EOF.
func (r *lines) next() (c *checked, rest []byte, err error) {
	for r.block == nil || len(r.block.lines) == 0 {
		if r.block != nil && r.block.err != nil {
			return nil, r.block.rest, r.block.err
		}
		r.block = r.blocks.take(r.block)
	}
	c = &r.block.lines[0]
	r.block.lines = r.block.lines[1:]
	return c, nil, nil
}

// Close closes the segment that is open.
func (r *lines) Close() {
	if r.File != nil {
		r.blocks.close()
		r.File.Close()
		r.File = nil
	}
}

// A part reads a segment from a place to an end.
type part struct {
	file    folder.File
	name    string
	at, end int64
	live    bool
}

func (p *part) Read(b []byte) (int, error) {
	n, err := p.file.ReadAt(b[:min(int64(len(b)), max(0, p.end-p.at))], p.at)
	p.at += int64(n)
	switch {
	case n > 0:
		return n, nil
	case p.at >= p.end || errors.Is(err, io.EOF) && p.live: // its writer has removed the remains of a failed write
		return 0, io.EOF
	case errors.Is(err, io.EOF):
		err = fmt.Errorf("%s is shorter than it was: %w", p.name, io.ErrUnexpectedEOF)
	}
	return 0, err
}

// Ends reports whether a line with a hash ends at a place of a segment.
func Ends(f folder.File, offset int64, hash Digest) (bool, error) {
	end := append(hash[:], lineEnd+"\n"...)
	if offset < int64(len(end)) {
		return false, nil
	}
	text := make([]byte, len(end))
	_, err := f.ReadAt(text, offset-int64(len(text)))
	if errors.Is(err, io.EOF) { // it is the end of the file, or that has become shorter just now
		err = nil
	}
	return string(text) == string(end), err
}

// blocks reads lines, checks their hashes and parses them, many at a time: while the
// caller uses one block, a goroutine fills the next. The goroutine ends with the block.
type blocks struct {
	r    io.Reader
	size int    // how much is read at once
	next *block // is being filled, or is full; nil before the first

	// Only fill uses these.
	rest   []byte // read, and no whole line yet
	err    error  // of r
	parser parser
	number int    // of the last line; 0 before the first
	hash   Digest // of that
}

// A block is some lines.
type block struct {
	buf    []byte // where they are
	values []entry
	all    []checked
	lines  []checked // those that were not taken yet
	rest   []byte    // after the last newline; set with err
	err    error     // what comes after the lines: io.EOF, or an error of the reader
	full   atomics.Event
}

// A checked line is one that was looked at by itself.
type checked struct {
	Line
	body   []byte // the bytes that the hash is of
	hash   Digest
	why    string // why it may not come next, or that its hash is wrong; empty for a good line
	number int
	prev   Digest
}

// length returns how many bytes a line has that is one.
func (c *checked) length() int64 {
	return int64(len(c.body) + len(hashKey) + len(c.hash) + len(lineEnd) + 1)
}

// blockSize is how much of a file is read at once, at most: handing over a block takes no
// time beside hashing it.
const blockSize = 128 << 10

// take returns the next block. Last is the one before it, which the caller does not
// need any more, or nil. Only from the second on, blocks are read ahead: often one is
// enough.
func (b *blocks) take(last *block) *block {
	if last == nil {
		last = new(block)
		b.fill(last)
		return last
	}
	if b.next == nil {
		b.next = new(block)
		b.begin(nil)
	}
	now := b.next
	now.full.Wait()
	b.next = last
	b.begin(now.err)
	return now
}

// begin has the next block filled, unless there is none.
func (b *blocks) begin(err error) {
	to := b.next
	if to.full = atomics.MakeEvent(); err != nil {
		to.full.Fire()
		return
	}
	atomics.Go(func() {
		b.fill(to)
		to.full.Fire()
	})
}

// close waits for a read that is under way.
func (b *blocks) close() {
	if b.next != nil {
		b.next.full.Wait()
	}
}

// fill reads until there is a line, or the end. No other goroutine uses the block, or
// the fields of b for fill, until it returns.
func (b *blocks) fill(to *block) {
	to.buf = append(to.buf[:0], b.rest...)
	to.all, to.rest, to.err = to.all[:0], nil, nil
	end := 0 // of the last line
	for end == 0 && b.err == nil {
		to.buf = slices.Grow(to.buf, b.size)
		from := len(to.buf)
		n, err := b.r.Read(to.buf[from:cap(to.buf)])
		to.buf, b.err = to.buf[:from+n], err
		if i := bytes.LastIndexByte(to.buf[from:], '\n'); i >= 0 {
			end = from + i + 1
		}
	}
	b.rest = append(b.rest[:0], to.buf[end:]...)
	b.parser.values = to.values[:0]
	for text := to.buf[:end]; len(text) > 0; {
		n := bytes.IndexByte(text, '\n')
		to.all = append(to.all, checked{})
		b.check(&to.all[len(to.all)-1], text[:n])
		text = text[n+1:]
	}
	to.lines, to.values = to.all, b.parser.values
	if b.err != nil {
		to.rest, to.err = b.rest, b.err
	}
}

// check makes c of the text of a line.
func (b *blocks) check(c *checked, text []byte) {
	if c.body, c.hash, c.why = cutHash(text); c.why != "" {
		return
	}
	if c.number, c.prev = b.number+1, b.hash; b.number == 0 {
		c.number, c.prev = beginning(c.body)
	}
	if c.why = b.parser.parse(&c.Line, c.body, c.number, c.prev); c.why == "" {
		b.number, b.hash = c.number, c.hash
	}
}

// beginning returns the number of a line and the hash of the line before it, as the line
// gives them: that before it is not there to compare.
func beginning(body []byte) (number int, prev Digest) {
	p := parser{rest: body}
	p.expect(lineKey)
	if n := p.uint(); n <= maxHeader && n <= math.MaxInt/2 {
		number = int(n)
	}
	if n := len(body) - 1 - len(prev); number > 1 && n > 0 {
		copy(prev[:], body[n:])
		return number, prev
	}
	return 1, NoHash()
}

// List returns what SegmentsIn does for the names in a folder, with the sizes of the
// segments.
func List(f folder.Folder) (files []Segment, litter, strange []string, err error) {
	names, err := f.Names()
	if err != nil {
		return nil, nil, nil, fmt.Errorf("journal: %w", err)
	}
	files, litter, strange = SegmentsIn(names)
	for i := range files {
		var is folder.File
		if is, err = f.Open(files[i].Name()); err == nil {
			files[i].Size, err = is.Size()
			is.Close()
		}
		if err != nil {
			return nil, nil, nil, fmt.Errorf("journal: %w", err)
		}
	}
	return files, litter, strange, nil
}

// hasHole reports whether a segment is missing between others.
func hasHole(files []Segment) bool {
	return len(files) > 0 && files[len(files)-1].Number-files[0].Number >= uint64(len(files))
}
