package journal

import (
	"bytes"
	"io"
	"math"
	"slices"

	"github.com/latchfree/latchfree/internal/atomics"
)

// blocks reads lines and checks their hashes, many at a time: while the caller uses one
// block, a goroutine fills the next, if ahead is set. The goroutine ends with the
// block.
//
// The caller parses the lines or, if parses is set, the goroutine that fills the block
// does, so that the caller can decode values meanwhile.
type blocks struct {
	r      io.Reader
	ahead  bool
	parses bool
	next   *block // is being filled, or is full; nil before the first

	// Only fill uses these.
	rest []byte // read, and no whole line yet
	err  error  // of r

	// Only parse uses these.
	parser parser
	number int    // of the last line; 0 before the first
	hash   digest // of that
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
	body   []byte // the bytes that the hash is of
	hash   digest
	why    string // why it may not come next, or that its hash is wrong; empty for a good line
	number int    // 0 until it is parsed, as are the others
	prev   digest
	line   line
	jump   string // of a header that does not continue the line before it: why not
}

// blockSize is how much of a file is read at once: handing over a block takes no time
// beside hashing it.
const blockSize = 128 << 10

// take returns the next block. Last is the one before it, which the caller does not
// need any more, or nil.
func (b *blocks) take(last *block) *block {
	if last == nil {
		last = new(block)
	}
	if !b.ahead {
		b.fill(last)
		return last
	}
	if b.next == nil {
		b.begin(new(block))
	}
	b.next.full.Wait()
	now := b.next
	if now.err == nil {
		b.begin(last)
	}
	return now
}

// begin has the next block filled.
func (b *blocks) begin(to *block) {
	to.full = atomics.MakeEvent()
	b.next = to
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
	for idle := 0; end == 0 && b.err == nil; idle++ {
		to.buf = slices.Grow(to.buf, blockSize)
		from := len(to.buf)
		n, err := b.r.Read(to.buf[from:cap(to.buf)])
		to.buf, b.err = to.buf[:from+n], err
		if i := bytes.LastIndexByte(to.buf[from:], '\n'); i >= 0 {
			end = from + i + 1
		}
		if n > 0 {
			idle = 0
		} else if err == nil && idle == 100 {
			b.err = io.ErrNoProgress
		}
	}
	b.rest = append(b.rest[:0], to.buf[end:]...)
	if b.parses {
		b.parser.values = to.values[:0]
	}
	for text := to.buf[:end]; len(text) > 0; {
		n := bytes.IndexByte(text, '\n')
		to.all = append(to.all, checked{})
		c := &to.all[len(to.all)-1]
		if c.body, c.hash, c.why = cutHash(text[:n]); b.parses {
			b.parse(c)
		}
		text = text[n+1:]
	}
	if to.lines = to.all; b.parses {
		to.values = b.parser.values
	}
	if b.err != nil {
		to.rest, to.err = b.rest, b.err
	}
}

// parse parses a line, unless that was done.
func (b *blocks) parse(c *checked) {
	if c.why != "" || c.number > 0 {
		return
	}
	number, prev := b.number+1, b.hash
	if b.number == 0 {
		number, prev = beginning(c.body)
	}
	if !b.parses {
		b.parser.values = b.parser.values[:0]
	}
	c.why = b.parser.parse(&c.line, c.body, number, prev)
	if c.why != "" && b.number > 0 && isHeader(c.body) { // perhaps behind a gap
		c.jump = c.why
		number, prev = beginning(c.body)
		c.why = b.parser.parse(&c.line, c.body, number, prev)
	}
	if c.why == "" {
		c.number, c.prev = number, prev
		b.number, b.hash = number, c.hash
	}
}

// isHeader reports whether a body looks like that of a header.
func isHeader(body []byte) bool {
	p := parser{rest: body}
	p.expect(lineKey)
	p.uint()
	p.expect(opKey)
	return p.why == "" && p.op() == opJournal
}

// beginning returns the number of a header and the hash of the line before it, as the
// header gives them: the lines before the first one that is read are not there to
// compare.
func beginning(body []byte) (number int, prev digest) {
	p := parser{rest: body}
	p.expect(lineKey)
	if n := p.uint(); n <= maxHeader && n <= math.MaxInt/2 {
		number = int(n)
	}
	if n := len(body) - 1 - len(prev); number > 1 && n > 0 {
		copy(prev[:], body[n:])
		return number, prev
	}
	return 1, noHash()
}
