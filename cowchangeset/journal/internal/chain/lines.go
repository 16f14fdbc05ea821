package chain

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/latchfree/latchfree/internal/folder"
)

// lines reads the lines of a segment after another, as far as the segments had come when
// their sizes were looked at. It checks that each line is one, and continues the one
// before it in its segment.
type lines struct {
	From  Source
	Files []Segment
	Live  bool // somebody may write the last one

	At   int         // the segment that is read
	File folder.File // which is that, or nil

	place, end int64  // up to where the segment was read, and is to be
	buf        []byte // what was read
	taken      int    // how much of it was returned
	seen       int    // how much has no newline behind that
	err        error  // what comes behind it: io.EOF, or an error of the file

	parser parser
	number int    // of the last line; 0 before the first
	hash   Digest // of that
}

// blockSize is how much of a file is read at once, at most.
const blockSize = 128 << 10

// Open goes on in segment i from a byte on, up to another. The line before that has a number
// and a hash; 0 means that the line tells them.
func (r *lines) Open(i int, place, end int64, number int, hash Digest) error {
	if r.File == nil || r.At != i {
		r.Close()
		f, err := r.From.Open(r.Files[i].Name())
		if err != nil {
			return err
		}
		r.At, r.File = i, f
	}
	r.place, r.end, r.number, r.hash = place, end, number, hash
	r.buf, r.taken, r.seen, r.err = r.buf[:0], 0, 0, nil
	return nil
}

// Close closes the segment that is open.
func (r *lines) Close() {
	if r.File != nil {
		r.File.Close()
		r.File = nil
	}
}

// next reads the next line of the segment into c. At the end of the segment, it returns the
// bytes that are no line, with io.EOF. What it returns is good until the next call.
func (r *lines) next(c *checked) (rest []byte, err error) {
	for {
		text := r.buf[r.taken:]
		if n := bytes.IndexByte(text[r.seen:], '\n'); n >= 0 {
			n += r.seen
			r.taken, r.seen = r.taken+n+1, 0
			r.check(c, text[:n])
			return nil, nil
		}
		if r.seen = len(text); r.err != nil {
			return text, r.err
		}
		r.fill()
	}
}

// fill reads a block.
func (r *lines) fill() {
	if r.taken > 0 {
		r.buf = append(r.buf[:0], r.buf[r.taken:]...)
		r.taken = 0
	}
	size := int(min(blockSize, r.end-r.place))
	if size <= 0 {
		r.err = io.EOF
		return
	}
	from := len(r.buf)
	r.buf = slices.Grow(r.buf, size)[:from+size]
	n, err := r.File.ReadAt(r.buf[from:], r.place)
	r.buf, r.place = r.buf[:from+n], r.place+int64(n)
	switch {
	case n > 0: // the next call returns the error
	case errors.Is(err, io.EOF) && r.Live && r.At == len(r.Files)-1: // its writer has removed the remains of a failed write
		r.err = io.EOF
	case errors.Is(err, io.EOF):
		r.err = fmt.Errorf("%s is shorter than it was: %w", r.Files[r.At].Name(), io.ErrUnexpectedEOF)
	default:
		r.err = err
	}
}

// check makes c of the text of a line.
func (r *lines) check(c *checked, text []byte) {
	*c = checked{}
	if c.body, c.hash, c.why = cutHash(text); c.why != "" {
		return
	}
	if c.number, c.prev = r.number+1, r.hash; r.number == 0 {
		c.number, c.prev = beginning(c.body)
	}
	r.parser.values = r.parser.values[:0]
	if c.why = r.parser.parse(&c.Line, c.body, c.number, c.prev); c.why == "" {
		r.number, r.hash = c.number, c.hash
	}
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

// List returns what segmentsOf does for the names in a folder, with the sizes of the
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
